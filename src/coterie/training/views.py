"""The versions of every text that an objective asks for, tokenised and on the device."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from coterie.encoders.tokens import DeviceTokens, TokenArrays, joined
from coterie.encoders.transformer import TransformerEncoder
from coterie.text.augmentation.base import Augmenter, unchanged_share
from coterie.text.augmentation.cache import augment_cached
from coterie.training.objective import ORIGINAL


class Views:
    """Tokens of the originals and of the augmented views, in one array on the device.

    Parameters
    ----------
    augmenters:
        View name to augmenter. Which random draws a view gets depends on the seed, its place among the views and
        the epoch alone. A slow one is drawn once, and kept on disk for the next run.

    Attributes
    ----------
    unchanged:
        For each augmented view, the share of texts that its first draw left as they were.
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
        self._kept: dict[str, TokenArrays] = {}
        self.unchanged: dict[str, float] = {}
        self.tokens = DeviceTokens(tokens, encoder.pad_id, encoder.device)

    @property
    def lengths(self) -> NDArray[np.int64]:
        """Tokens of each original."""
        return self._originals.lengths

    def draw(self, names: Sequence[str], epoch: int) -> None:
        """Make the augmented views among ``names`` anew for ``epoch``."""
        parts = [self._originals]
        for place, name in enumerate(self._augmenters):
            if name in names:
                self._first_row[name] = len(parts) * len(self._texts)
                parts.append(self._view(name, place, epoch))
        if len(parts) > 1:
            self.tokens = DeviceTokens(joined(parts), self._encoder.pad_id, self._encoder.device)

    def _view(self, name: str, place: int, epoch: int) -> TokenArrays:
        if name in self._kept:
            return self._kept[name]
        augmenter = self._augmenters[name]
        if augmenter.slow:
            texts = augment_cached(augmenter, self._texts, [self._seed, place])
        else:
            texts = augmenter.augment(self._texts, np.random.default_rng([self._seed, place, epoch]))
        self.unchanged.setdefault(name, unchanged_share(self._texts, texts))
        tokens = self._encoder.tokenize(texts)
        if augmenter.slow:
            self._kept[name] = tokens
        return tokens

    def batch(self, name: str, rows: NDArray[np.int64]) -> tuple[Tensor, Tensor]:
        """Padded ids and mask of one view of the texts ``rows``."""
        flat = self.rows([name], rows)
        return self.tokens.batch(torch.from_numpy(flat).to(self._encoder.device), self.tokens.width(flat))

    def rows(self, names: Sequence[str], rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """Where the views ``names`` of the texts ``rows`` stand in :attr:`tokens`, view after view."""
        return np.concatenate([self._first_row[name] + rows for name in names])
