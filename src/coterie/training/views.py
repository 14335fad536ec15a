"""The versions of every text that an objective asks for, tokenised and on the device."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from types import TracebackType

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from coterie.checks import check_whole
from coterie.encoders.device_tokens import DeviceTokens
from coterie.encoders.tokenization import TokenArrays
from coterie.encoders.transformer import TransformerEncoder
from coterie.text.augmentation.base import Augmenter, unchanged_share
from coterie.text.augmentation.cache import augment_cached
from coterie.training.objective import ORIGINAL
from coterie.training.view_worker_pool import Drawers, Request


class Views:
    """Tokens of the originals and of the augmented views, in one array on the device.

    Parameters
    ----------
    augmenters:
        View name to augmenter. Which random draws a view gets depends on the seed, its place among the views and
        the epoch alone. A slow one is drawn once, and kept on disk for the next run.
    ahead:
        How many processes draw the views of the epochs to come, and for how many epochs. What is drawn does not
        depend on it. They are started when they are first needed, and end with :meth:`close` or with this object.

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
        ahead: int = 0,
    ) -> None:
        check_whole("ahead", ahead, least=0)
        self._encoder = encoder
        self._texts = texts
        self._augmenters = dict(augmenters)
        self._seed = seed
        self._ahead = ahead
        self._drawers: Drawers | None = None
        self._lengths = tokens.lengths
        self._first_row = {ORIGINAL: 0}
        self._kept: dict[str, TokenArrays] = {}
        self.unchanged: dict[str, float] = {}
        self._originals = self.tokens = DeviceTokens(tokens, encoder.pad_id, encoder.device)

    def __enter__(self) -> Views:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """End the processes that draw ahead; views can still be drawn, here."""
        self._ahead = 0
        if self._drawers is not None:
            self._drawers.close()
            self._drawers = None

    @property
    def lengths(self) -> NDArray[np.int64]:
        """Tokens of each original."""
        return self._lengths

    def prefetch(self, names: Sequence[str], epochs: Iterable[int]) -> None:
        """Have the views ``names`` of these epochs drawn while other things go on. The next draw that has no use for
        them forgets them.
        """
        requests = [request for epoch in epochs for request in self._requests(names, epoch).values()]
        if self._drawers is None and self._ahead and requests:
            tokenizer, max_length = self._encoder.tokenizer, self._encoder.max_length
            self._drawers = Drawers(self._ahead, self._texts, self._augmenters, tokenizer, max_length)
        if self._drawers is not None:
            for request in requests:
                self._drawers.ask(request)

    def draw(self, names: Sequence[str], epoch: int, last: int | None = None) -> None:
        """Make the augmented views among ``names`` anew for ``epoch``.

        The epochs behind it, up to ``last`` (without one there is no end), are taken to want the same views next.
        """
        requests = self._requests(names, epoch)
        end = epoch + self._ahead + 1 if last is None else min(epoch + self._ahead, last) + 1
        coming = range(epoch + 1, end)
        begun = self._begun(names, requests, coming)
        self.prefetch(names, coming)
        # What no worker has begun is drawn here, while they are at the rest.
        views = {name: self._drawn_here(name, request) for name, request in requests.items() if name not in begun}
        for name in begun:
            views[name] = self._drawn_ahead(name, requests[name])
        for name in self._augmenters:
            if name in names and name not in requests:
                views[name] = self._kept_view(name)
        parts = [(name, views[name]) for name in self._augmenters if name in views]
        for place, (name, _) in enumerate(parts):
            self._first_row[name] = (1 + place) * len(self._texts)
        if parts:
            self.tokens = self._originals.extended([tokens for _, tokens in parts])

    def _requests(self, names: Sequence[str], epoch: int) -> dict[str, Request]:
        """What decides each of the views ``names`` that are drawn every epoch."""
        return {
            name: (name, (int(self._seed), place, int(epoch)))
            for place, (name, augmenter) in enumerate(self._augmenters.items())
            if name in names and not augmenter.slow
        }

    def _begun(self, names: Sequence[str], requests: Mapping[str, Request], coming: Iterable[int]) -> list[str]:
        """Which of ``requests`` a worker has begun; what neither they nor the epochs to come ask for is forgotten."""
        if self._drawers is None:
            return []
        later = [request for epoch in coming for request in self._requests(names, epoch).values()]
        self._drawers.keep_only({*requests.values(), *later})
        return [name for name, request in requests.items() if self._drawers.has_begun(request)]

    def _drawn_ahead(self, name: str, request: Request) -> TokenArrays:
        assert self._drawers is not None
        drawn = self._drawers.take(request)
        if drawn is None:
            return self._drawn_here(name, request)
        self.unchanged.setdefault(name, drawn.unchanged)
        return drawn.tokens

    def _drawn_here(self, name: str, request: Request) -> TokenArrays:
        texts = self._augmenters[name].augment(self._texts, np.random.default_rng(request[1]))
        return self._tokenized(name, texts)

    def _kept_view(self, name: str) -> TokenArrays:
        """A slow view, drawn once."""
        if name not in self._kept:
            seed = [self._seed, list(self._augmenters).index(name)]
            self._kept[name] = self._tokenized(name, augment_cached(self._augmenters[name], self._texts, seed))
        return self._kept[name]

    def _tokenized(self, name: str, texts: Sequence[str]) -> TokenArrays:
        if name not in self.unchanged:
            self.unchanged[name] = unchanged_share(self._texts, texts)
        return self._encoder.tokenize(texts)

    def batch(self, name: str, rows: NDArray[np.int64]) -> tuple[Tensor, Tensor]:
        """Padded ids and mask of one view of the texts ``rows``."""
        flat = self.rows([name], rows)
        return self.tokens.batch(torch.from_numpy(flat).to(self._encoder.device), self.tokens.width(flat))

    def rows(self, names: Sequence[str], rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """Where the views ``names`` of the texts ``rows`` stand in :attr:`tokens`, view after view."""
        return np.concatenate([self._first_row[name] + rows for name in names])
