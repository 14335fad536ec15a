"""Provide the views of every text that an objective needs, tokenised and on the device."""

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
from coterie.text.augmentation.cache import augment_with_cache
from coterie.training.objective import ORIGINAL
from coterie.training.view_worker_pool import Request, ViewWorkerPool


class Views:
    """Tokens of the originals and of the augmented views, in one array on the device.

    Parameters
    ----------
    augmenters:
        View name to augmenter. The random numbers of a view depend only on the seed, its index among the views and
        the epoch. The view of a slow augmenter is computed once and cached on disk.
    ahead:
        Number of processes that compute views of later epochs, and how many epochs ahead they compute. The views do not
        depend on it. The processes start when they are first needed and end with :meth:`close` or with this object.

    Attributes
    ----------
    unchanged:
        For each augmented view, the share of texts that its first version left unchanged.
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
        self._pool: ViewWorkerPool | None = None
        self._lengths = tokens.lengths
        self._first_row = {ORIGINAL: 0}
        self._cached: dict[str, TokenArrays] = {}
        self.unchanged: dict[str, float] = {}
        self._originals = self.tokens = DeviceTokens(tokens, encoder.pad_id, encoder.device)

    def __enter__(self) -> Views:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """End the worker processes; views can still be computed in this process."""
        self._ahead = 0
        if self._pool is not None:
            self._pool.close()
            self._pool = None

    @property
    def lengths(self) -> NDArray[np.int64]:
        """Number of tokens of each original text."""
        return self._lengths

    def prefetch(self, names: Sequence[str], epochs: Iterable[int]) -> None:
        """Request the views ``names`` of these epochs from the workers, which compute them in the background.

        The next call of :meth:`resample` cancels the requests that it does not need.
        """
        requests = [request for epoch in epochs for request in self._requests(names, epoch).values()]
        if self._pool is None and self._ahead and requests:
            tokenizer, max_length = self._encoder.tokenizer, self._encoder.max_length
            self._pool = ViewWorkerPool(self._ahead, self._texts, self._augmenters, tokenizer, max_length)
        if self._pool is not None:
            for request in requests:
                self._pool.submit(request)

    def resample(self, names: Sequence[str], epoch: int, last: int | None = None) -> None:
        """Resample the augmented views among ``names`` for ``epoch``.

        The following epochs, up to ``last`` (``None``: no end), are expected to need the same views.
        """
        requests = self._requests(names, epoch)
        end = epoch + self._ahead + 1 if last is None else min(epoch + self._ahead, last) + 1
        later_epochs = range(epoch + 1, end)
        begun = self._find_begun(names, requests, later_epochs)
        self.prefetch(names, later_epochs)
        # Views that no worker has begun are computed here, while the workers compute the others.
        views = {name: self._augment_here(name, request) for name, request in requests.items() if name not in begun}
        for name in begun:
            views[name] = self._take_from_worker(name, requests[name])
        for name in self._augmenters:
            if name in names and name not in requests:
                views[name] = self._cached_view(name)
        parts = [(name, views[name]) for name in self._augmenters if name in views]
        for place, (name, _) in enumerate(parts):
            self._first_row[name] = (1 + place) * len(self._texts)
        if parts:
            self.tokens = self._originals.concatenate([tokens for _, tokens in parts])

    def _requests(self, names: Sequence[str], epoch: int) -> dict[str, Request]:
        """Return the request of each of the views ``names`` that are resampled every epoch."""
        return {
            name: (name, (int(self._seed), place, int(epoch)))
            for place, (name, augmenter) in enumerate(self._augmenters.items())
            if name in names and not augmenter.slow
        }

    def _find_begun(
        self, names: Sequence[str], requests: Mapping[str, Request], later_epochs: Iterable[int]
    ) -> list[str]:
        """Return those of ``requests`` that a worker has begun; cancel requests that are no longer needed."""
        if self._pool is None:
            return []
        later = [request for epoch in later_epochs for request in self._requests(names, epoch).values()]
        self._pool.keep_only({*requests.values(), *later})
        return [name for name, request in requests.items() if self._pool.has_begun(request)]

    def _take_from_worker(self, name: str, request: Request) -> TokenArrays:
        assert self._pool is not None
        view = self._pool.take(request)
        if view is None:
            return self._augment_here(name, request)
        self.unchanged.setdefault(name, view.unchanged)
        return view.tokens

    def _augment_here(self, name: str, request: Request) -> TokenArrays:
        texts = self._augmenters[name].augment(self._texts, np.random.default_rng(request[1]))
        return self._tokenize_view(name, texts)

    def _cached_view(self, name: str) -> TokenArrays:
        """Return the view of a slow augmenter, computed once."""
        if name not in self._cached:
            seed = [self._seed, list(self._augmenters).index(name)]
            self._cached[name] = self._tokenize_view(
                name, augment_with_cache(self._augmenters[name], self._texts, seed)
            )
        return self._cached[name]

    def _tokenize_view(self, name: str, texts: Sequence[str]) -> TokenArrays:
        if name not in self.unchanged:
            self.unchanged[name] = unchanged_share(self._texts, texts)
        return self._encoder.tokenize(texts)

    def batch(self, name: str, rows: NDArray[np.int64]) -> tuple[Tensor, Tensor]:
        """Return padded ids and mask of one view of the texts ``rows``."""
        flat = self.rows([name], rows)
        return self.tokens.batch(torch.from_numpy(flat).to(self._encoder.device), self.tokens.width(flat))

    def rows(self, names: Sequence[str], rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the rows of :attr:`tokens` that hold the views ``names`` of the texts ``rows``, view after view."""
        return np.concatenate([self._first_row[name] + rows for name in names])
