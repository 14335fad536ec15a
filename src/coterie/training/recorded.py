"""Record training steps once as a CUDA graph and replay them.

A step of a small encoder is some thousand short kernels. Launching them one by one from Python takes ten times as long
as computing them; a replayed graph is one launch. A graph needs the same memory and the same shapes every time, and
must not wait for the device. The texts are therefore packed into one of a few numbers of windows, and the tokens are
copied into memory with a fixed address.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from coterie.encoders.fused_operations import FusedOperations, can_fuse
from coterie.encoders.packing import TokenTable, pack_windows
from coterie.encoders.window_packing import plan_windows, window_width
from coterie.training.objective import Batch, Objective
from coterie.training.steps import Steps

logger = logging.getLogger(__name__)

# Steps before the first recording: libraries initialise themselves in their first calls.
PLAIN_STEPS = 2
# Memory for tokens relative to that of the first epoch, since later views may have more tokens.
SPARE = 1.25
# Additional tokens for which there is memory, for small corpora.
SPARE_TOKENS = 1024
# The number of windows is a multiple of about this share of the windows of a batch, so that few sizes occur.
SIZE_SHARE = 1 / 64


@dataclass
class _Recording:
    graph: torch.cuda.CUDAGraph
    layout: Tensor
    terms: Tensor
    names: tuple[str, ...]


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
    _recordings: dict[tuple[int, int, int], _Recording]
    _fused: FusedOperations | None = None
    _taken = 0

    def start_epoch(self, batches: Sequence[NDArray[np.int64]]) -> None:
        super().start_epoch(batches)
        tokens = self.views.tokens
        if self._resident is None or not self._resident.holds(tokens):
            self._resident, self._recordings = _Resident.like(tokens), {}
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
        self._taken += 1
        flat = torch.from_numpy(np.concatenate([layout.rows, layout.lengths, layout.places]))
        names, terms = self._run(flat, (len(rows), layout.n_windows, layout.width))
        return dict(zip(names, terms.unbind(), strict=True))

    def _run(self, flat: Tensor, shape: tuple[int, int, int]) -> tuple[tuple[str, ...], Tensor]:
        # A copy from pinned memory runs while the device computes earlier steps.
        flat = flat.pin_memory()
        return self._plain(flat, shape) if self._taken <= PLAIN_STEPS else self._replay(flat, shape)

    def _plain(self, flat: Tensor, shape: tuple[int, int, int]) -> tuple[tuple[str, ...], Tensor]:
        """Make a step without a recording, on the stream that recordings use."""
        device, stream = self.encoder.device, _own_stream(self.encoder.device)
        stream.wait_stream(torch.cuda.current_stream(device))
        with torch.cuda.stream(stream):
            names, terms = self._whole_step(flat.to(device, non_blocking=True), shape)
        torch.cuda.current_stream(device).wait_stream(stream)
        return names, terms

    def _replay(self, flat: Tensor, shape: tuple[int, int, int]) -> tuple[tuple[str, ...], Tensor]:
        recording = self._recordings.get(shape)
        if recording is None:
            recording = self._recordings[shape] = self._record(flat, shape)
        recording.layout.copy_(flat, non_blocking=True)
        recording.graph.replay()
        return recording.names, recording.terms.clone()

    def _record(self, flat: Tensor, shape: tuple[int, int, int]) -> _Recording:
        began = time.perf_counter()
        graph, layout = torch.cuda.CUDAGraph(), flat.to(self.encoder.device)
        # All recordings share one memory pool, since they never run at the same time. They share one stream, since only
        # the stream that freed memory can use it again.
        pool = next((each.graph.pool() for each in self._recordings.values()), None)
        # The gradients are in the graph's own memory.
        self.optimizer.zero_grad(set_to_none=True)
        with torch.cuda.graph(graph, pool=pool, stream=_own_stream(self.encoder.device)):
            names, terms = self._whole_step(layout, shape)
        self.work.recording_seconds += time.perf_counter() - began
        logger.info("recorded a step of %d texts in %d windows of %d tokens", *shape)
        return _Recording(graph, layout, terms, names)

    def _whole_step(self, layout: Tensor, shape: tuple[int, int, int]) -> tuple[tuple[str, ...], Tensor]:
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


@lru_cache(maxsize=8)
def _own_stream(device: torch.device) -> torch.cuda.Stream:
    """Return one stream for all fits: libraries never release the memory they reserve for a stream."""
    return torch.cuda.Stream(device)


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
