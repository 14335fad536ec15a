"""The versions of every text that an objective asks for, tokenised and on the device."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from coterie.encoders.tokens import DeviceTokens, TokenArrays, joined
from coterie.encoders.transformer import TransformerEncoder
from coterie.text.augmentation.base import Augmenter
from coterie.training.objective import ORIGINAL


class Views:
    """Tokens of the originals and of the augmented views, in one array on the device.

    Parameters
    ----------
    augmenters:
        View name to augmenter. Which random draws a view gets depends on the seed, its place among the views and
        the epoch alone.
    """

    def __init__(
        self,
        encoder: TransformerEncoder,
        texts: Sequence[str],
        tokens: TokenArrays,
        augmenters: Mapping[str, Augmenter],
        seed: int,
    ) -> None:
        self._encoder = encoder
        self._texts = texts
        self._augmenters = dict(augmenters)
        self._seed = seed
        self._originals = tokens
        self._first_row = {ORIGINAL: 0}
        self.tokens = DeviceTokens(tokens, encoder.pad_id, encoder.device)

    @property
    def lengths(self) -> NDArray[np.int64]:
        """Tokens of each original."""
        return self._originals.lengths

    def draw(self, names: Sequence[str], epoch: int) -> None:
        """Make the augmented views among ``names`` anew for ``epoch``."""
        parts = [self._originals]
        for place, (name, augmenter) in enumerate(self._augmenters.items()):
            if name in names:
                generator = np.random.default_rng([self._seed, place, epoch])
                self._first_row[name] = len(parts) * len(self._texts)
                parts.append(self._encoder.tokenize(augmenter.augment(self._texts, generator)))
        if len(parts) > 1:
            self.tokens = DeviceTokens(joined(parts), self._encoder.pad_id, self._encoder.device)

    def rows(self, names: Sequence[str], rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """Where the views ``names`` of the texts ``rows`` stand in :attr:`tokens`, view after view."""
        return np.concatenate([self._first_row[name] + rows for name in names])
