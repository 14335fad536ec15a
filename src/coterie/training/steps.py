"""Take one optimiser step: forward pass, loss, backward pass, update.

:class:`Steps` works for every device and objective. :class:`~coterie.training.recorded.RecordedSteps` records all
kernels of a step once and replays them.
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

# Tokens per forward pass: a CPU is faster with several small passes of texts of similar length; a GPU takes all views
# of a batch at once.
TOKENS_PER_TRAINING_FORWARD = {"cpu": 4_096}


def backpropagate(loss: Tensor) -> None:
    """Compute the gradients of ``loss``. No other function of the package does this."""
    loss.backward()


@dataclass
class Work:
    """The cost of a run's steps: token counts, which do not depend on the machine, and seconds of recording.

    Attributes
    ----------
    real_tokens, computed_tokens:
        Tokens of the texts, and tokens that the encoder computed, padding included.
    recording_seconds:
        Seconds spent on recording steps, once for every size.
    """

    real_tokens: int = 0
    computed_tokens: int = 0
    recording_seconds: float = 0.0


class Steps:
    """Training steps of one stage.

    Parameters
    ----------
    weights:
        Occurrences of each text, on the host and on the device.
    work:
        Counts that every step adds to.
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
        """Store the batches of the epoch whose views are ready."""
        self._batches = batches

    def take(self, place: int) -> dict[str, Tensor]:
        """Make the step of one batch and return the terms of its loss, still on the device."""
        self.optimizer.zero_grad(set_to_none=True)
        rows = self._batches[place]
        # At least two texts per part: a contrastive loss needs a negative.
        n_parts = max(1, min(self.config.accumulate, len(rows) // 2))
        whole = self._counts[rows].sum()
        sums: dict[str, Tensor] = {}
        for part in np.array_split(rows, n_parts):
            # The loss of a part is a weighted mean; the mean of the batch weights the parts by their sums.
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
        """Encode all views of a batch together and compute the loss."""
        objective = self.objective
        places = torch.from_numpy(rows).to(self.encoder.device)
        embeddings: tuple[Tensor, ...]
        token_views: tuple[TokenView, ...] = ()
        with torch.set_grad_enabled(objective.trains_encoder):
            if objective.needs_token_states:
                embeddings, token_views = self._by_token(rows)
            else:
                embeddings = self._by_sentence(rows) if objective.views else ()
        # The losses run outside autocast: their exponentials and logarithms need float32.
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
        """Return sentence embeddings; texts of similar length are encoded together, across views."""
        flat = self.views.rows(self.objective.views, rows)
        sentences, computed = self.encoder.encode_rows(self.views.tokens, flat, self.dtype, self._token_budget)
        self._count(flat, computed)
        return sentences.split(len(rows))

    def _by_token(self, rows: NDArray[np.int64]) -> tuple[tuple[Tensor, ...], tuple[TokenView, ...]]:
        """Return sentence embeddings and token states, with one padded pass per view."""
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
