"""Record training steps of an encoder (:mod:`coterie.training.recording`) and replay them.

A recording needs the same shapes and the same memory every time. The texts are therefore packed into one of a few
numbers of windows, and the tokens are copied into memory with a fixed address.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from coterie.encoders.fused_operations import FusedOperations, can_fuse
from coterie.encoders.packing import TokenTable, pack_windows
from coterie.encoders.window_packing import plan_windows, window_width
from coterie.training.objective import Batch, Objective
from coterie.training.recording import StepRecorder, Terms
from coterie.training.steps import Steps

logger = logging.getLogger(__name__)

# Memory for tokens relative to that of the first epoch, since later views may have more tokens.
SPARE = 1.25
# Additional tokens for which there is memory, for small corpora.
SPARE_TOKENS = 1024
# The number of windows is a multiple of about this share of the windows of a batch, so that few sizes occur.
SIZE_SHARE = 1 / 64


@dataclass
class _Resident:
    """Tokens in memory with a fixed address."""

    ids: Tensor
    starts: Tensor
    lengths: Tensor

    @classmethod
    def like(cls, tokens: TokenTable) -> _Resident:
        room = int(len(tokens.ids) * SPARE) + SPARE_TOKENS
        return cls(tokens.ids.new_zeros(room), tokens.starts.clone(), tokens.lengths.clone())

    def holds(self, tokens: TokenTable) -> bool:
        return len(tokens.ids) <= len(self.ids) and len(tokens.starts) == len(self.starts)

    def fill(self, tokens: TokenTable) -> None:
        self.ids[: len(tokens.ids)].copy_(tokens.ids)
        self.starts.copy_(tokens.starts)
        self.lengths.copy_(tokens.lengths)


class RecordedSteps(Steps):
    """Take the steps of :class:`~coterie.training.steps.Steps` by replaying CUDA graphs."""

    _resident: _Resident | None = None
    _recorder: StepRecorder | None = None
    _fused: FusedOperations | None = None

    def start_epoch(self, batches: Sequence[NDArray[np.int64]]) -> None:
        super().start_epoch(batches)
        tokens = self.views.tokens
        if self._resident is None or not self._resident.holds(tokens):
            # A recording reads the memory that it was made with.
            self._resident, self._recorder = _Resident.like(tokens), None
        self._resident.fill(tokens)
        self._width = window_width(int(tokens.lengths_on_host.max()))
        if self._fused is None and self.dtype == torch.bfloat16 and can_fuse():
            seed = torch.randint(2**40, (), device=self.encoder.device)
            self._fused = FusedOperations(seed)

    def take(self, place: int) -> dict[str, Tensor]:
        rows = self.views.rows(self.objective.views, self._batches[place])
        lengths = self.views.tokens.lengths_on_host[rows]
        real = int(lengths.sum())
        layout = plan_windows(rows, lengths, self._width, window_step(real, self._width))
        self.work.real_tokens += real
        self.work.computed_tokens += layout.n_windows * layout.width
        flat = torch.from_numpy(np.concatenate([layout.rows, layout.lengths, layout.places]))
        names, terms = self._run(flat, (len(rows), layout.n_windows, layout.width))
        return dict(zip(names, terms.unbind(), strict=True))

    def _run(self, flat: Tensor, shape: tuple[int, int, int]) -> Terms:
        if self._recorder is None:
            self._recorder = StepRecorder(self._whole_step, self.optimizer, self.encoder.device)
        before = self._recorder.seconds
        found = self._recorder.take(flat, shape)
        if (spent := self._recorder.seconds - before) > 0:
            self.work.recording_seconds += spent
            logger.info("recorded a step of %d texts in %d windows of %d tokens", *shape)
        return found

    def _whole_step(self, layout: Tensor, shape: tuple[int, int, int]) -> Terms:
        assert self._resident is not None
        n_texts, n_windows, width = shape
        n_all = n_texts + n_windows
        rows, lengths, needed = layout.split([n_all, n_all, n_texts])
        self.optimizer.zero_grad(set_to_none=True)
        if self._fused is not None:
            self._fused.next_step()
        with torch.set_grad_enabled(self.objective.trains_encoder):
            packed = pack_windows(self._resident, rows, lengths, needed, n_windows, width)
            sentences = self.encoder.forward_packed(packed, self.encoder.layer_weights(self.dtype), self._fused)
        each = n_texts // len(self.objective.views)
        # The views are consecutive in the table, each with one row per text.
        texts = rows[needed[:each]] % len(self._weights)
        terms = self.objective.loss(Batch(sentences.split(each), texts, self._weights[texts], precision=self.dtype))
        self._descend(terms.total)
        self._update()
        return tuple(terms.named), torch.stack([value.detach().float() for value in terms.named.values()])


def can_record(objective: Objective, steps: Steps) -> bool:
    """Return whether steps of ``objective`` can be recorded with this configuration."""
    return (
        objective.recordable
        and bool(objective.views)
        and not objective.needs_token_states
        and steps.encoder.device.type == "cuda"
        and steps.encoder.packs
        and steps.config.accumulate == 1
    )


def window_step(tokens: int, width: int) -> int:
    """Return the power of two whose multiples are used as numbers of windows for about ``tokens`` tokens."""
    return max(1, 1 << int(tokens / width * SIZE_SHARE).bit_length())
