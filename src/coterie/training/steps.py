"""One optimiser step: a batch through the encoder, the objective, backwards, and the update.

:class:`Steps` is the plain way, for every device and objective. :class:`~coterie.training.recorded.RecordedSteps` does
the same with all kernels of a step recorded once and replayed.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from coterie.encoders.device import autocast
from coterie.encoders.transformer import TransformerEncoder
from coterie.training.config import TrainingConfig
from coterie.training.objective import Batch, LossTerms, Objective, TokenView
from coterie.training.views import Views

# A GPU takes all views of a batch in one forward pass; a CPU is faster in small passes of texts of like length.
TOKENS_PER_TRAINING_FORWARD = {"cpu": 4_096}


def backpropagate(loss: Tensor) -> None:
    """Gradients of ``loss``: the only place where any are computed."""
    loss.backward()


@dataclass
class Work:
    """What the steps of a run cost: counts that no machine changes, and seconds that come once.

    Attributes
    ----------
    real_tokens, computed_tokens:
        Tokens of the texts, and those that went through the encoder, padding and filling included.
    recording_seconds:
        Spent on recording steps, once for every size of them.
    """

    real_tokens: int = 0
    computed_tokens: int = 0
    recording_seconds: float = 0.0


class Steps:
    """Training steps of one stage.

    Parameters
    ----------
    weights:
        How often each text occurs, on the host and on the device.
    work:
        Counts to add to.
    """

    def __init__(
        self,
        encoder: TransformerEncoder,
        objective: Objective,
        optimizer: torch.optim.Optimizer,
        views: Views,
        config: TrainingConfig,
        dtype: torch.dtype,
        weights: tuple[NDArray[np.float64], Tensor],
        work: Work,
    ) -> None:
        self.encoder = encoder
        self.objective = objective
        self.optimizer = optimizer
        self.views = views
        self.config = config
        self.dtype = dtype
        self.work = work
        self._counts, self._weights = weights
        self._token_budget = TOKENS_PER_TRAINING_FORWARD.get(encoder.device.type, sys.maxsize)

    def start_epoch(self, batches: Sequence[NDArray[np.int64]]) -> None:
        """The views are drawn, and these batches follow."""
        self._batches = batches

    def take(self, place: int) -> dict[str, Tensor]:
        """The step of one batch; the terms of its loss, still on the device."""
        self.optimizer.zero_grad(set_to_none=True)
        rows = self._batches[place]
        # Two texts a part at least: a contrastive loss has nothing to contrast in one.
        n_parts = max(1, min(self.config.accumulate, len(rows) // 2))
        whole = self._counts[rows].sum()
        sums: dict[str, Tensor] = {}
        for part in np.array_split(rows, n_parts):
            # A part's loss is a mean over its weights; the batch's mean weighs the parts by theirs.
            share = float(self._counts[part].sum() / whole)
            terms = self._forward(part)
            self._descend(terms.total * share)
            for name, value in terms.named.items():
                sums[name] = sums.get(name, 0) + value.detach() * share
        self._update()
        return sums

    def _descend(self, loss: Tensor) -> None:
        backpropagate(loss)

    def _update(self) -> None:
        if self.config.max_grad_norm is not None:
            parameters = [p for group in self.optimizer.param_groups for p in group["params"]]
            nn.utils.clip_grad_norm_(parameters, self.config.max_grad_norm)
        self.optimizer.step()

    def _forward(self, rows: NDArray[np.int64]) -> LossTerms:
        """All views of a batch through the encoder together, then the objective."""
        objective = self.objective
        places = torch.from_numpy(rows).to(self.encoder.device)
        embeddings: tuple[Tensor, ...]
        token_views: tuple[TokenView, ...] = ()
        with torch.set_grad_enabled(objective.trains_encoder):
            if objective.needs_token_states:
                embeddings, token_views = self._by_token(rows)
            else:
                embeddings = self._by_sentence(rows) if objective.views else ()
        # The losses run outside autocast: their exponentials and logarithms want float32.
        return objective.loss(
            Batch(
                embeddings,
                places,
                self._weights[places],
                token_views,
                tokens=lambda name: self.views.batch(name, rows),
                precision=self.dtype,
            )
        )

    def _by_sentence(self, rows: NDArray[np.int64]) -> tuple[Tensor, ...]:
        """Sentence embeddings alone: texts of like length go through together, whatever view they are of."""
        flat = self.views.rows(self.objective.views, rows)
        sentences, computed = self.encoder.encode_rows(self.views.tokens, flat, self.dtype, self._token_budget)
        self._count(flat, computed)
        return sentences.split(len(rows))

    def _by_token(self, rows: NDArray[np.int64]) -> tuple[tuple[Tensor, ...], tuple[TokenView, ...]]:
        """Token states too: one padded pass a view."""
        sentences, views = [], []
        for name in self.objective.views:
            ids, mask = self.views.batch(name, rows)
            read = self.objective.corrupt(ids, mask)
            with autocast(self.encoder.device, self.dtype):
                output = self.encoder(read, mask)
            self._count(self.views.rows([name], rows), ids.numel())
            sentences.append(output.sentences)
            views.append(TokenView(output.token_states, read, mask, ids))
        return tuple(sentences), tuple(views)

    def _count(self, rows: NDArray[np.int64], computed: int) -> None:
        self.work.computed_tokens += computed
        self.work.real_tokens += int(self.views.tokens.lengths_on_host[rows].sum())
