"""Record the kernels of a step once as a CUDA graph and replay them.

A step of a small network is many short kernels. Launching them one by one from Python takes ten times as long as
computing them; a replayed graph is one launch. A graph needs the same memory and the same shapes every time, and must
not wait for the device.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import torch
from torch import Tensor

# Steps before the first recording: libraries initialise themselves in their first calls.
PLAIN_STEPS = 2

# Names of the terms of a loss, and their values in one tensor.
Terms = tuple[tuple[str, ...], Tensor]


@dataclass
class _Recording:
    graph: torch.cuda.CUDAGraph
    inputs: Tensor
    terms: Tensor
    names: tuple[str, ...]


class StepRecorder:
    """Take steps by replaying CUDA graphs, one for every shape.

    Parameters
    ----------
    step:
        A whole step: clear the gradients, compute the loss of the inputs (one tensor on the device) and their shape,
        compute the gradients, update the weights, and return the terms of the loss.
    optimizer:
        The optimiser of the step; it must be capturable.
    device:
        A CUDA device.
    generators:
        Generators on the device that the step draws from, apart from the default one.

    Attributes
    ----------
    seconds:
        Seconds spent on recording.
    """

    def __init__(
        self,
        step: Callable[[Tensor, Any], Terms],
        optimizer: torch.optim.Optimizer,
        device: torch.device,
        generators: Sequence[torch.Generator] = (),
    ) -> None:
        self.seconds = 0.0
        self._step = step
        self._optimizer = optimizer
        self._device = device
        self._generators = generators
        self._recordings: dict[Any, _Recording] = {}
        self._taken = 0

    def take(self, inputs: Tensor, shape: Any) -> Terms:
        """Take a step; inputs of the same ``shape`` replay one recording."""
        self._taken += 1
        if not inputs.is_cuda:
            # A copy from pinned memory runs while the device computes earlier steps.
            inputs = inputs.pin_memory()
        return self._plain(inputs, shape) if self._taken <= PLAIN_STEPS else self._replay(inputs, shape)

    def _plain(self, inputs: Tensor, shape: Any) -> Terms:
        """Take a step without a recording, on the stream that recordings use."""
        stream = _own_stream(self._device)
        stream.wait_stream(torch.cuda.current_stream(self._device))
        with torch.cuda.stream(stream):
            names, terms = self._step(inputs.to(self._device, non_blocking=True), shape)
        torch.cuda.current_stream(self._device).wait_stream(stream)
        return names, terms

    def _replay(self, inputs: Tensor, shape: Any) -> Terms:
        recording = self._recordings.get(shape)
        if recording is None:
            recording = self._recordings[shape] = self._record(inputs, shape)
        recording.inputs.copy_(inputs, non_blocking=True)
        recording.graph.replay()
        return recording.names, recording.terms.clone()

    def _record(self, inputs: Tensor, shape: Any) -> _Recording:
        began = time.perf_counter()
        graph, copied = torch.cuda.CUDAGraph(), inputs.to(self._device, copy=True)
        for generator in self._generators:
            graph.register_generator_state(generator)
        # All recordings share one memory pool, since they never run at the same time. They share one stream, since only
        # the stream that freed memory can use it again.
        pool = next((each.graph.pool() for each in self._recordings.values()), None)
        # The gradients are in the graph's own memory.
        self._optimizer.zero_grad(set_to_none=True)
        with torch.cuda.graph(graph, pool=pool, stream=_own_stream(self._device)):
            names, terms = self._step(copied, shape)
        self.seconds += time.perf_counter() - began
        return _Recording(graph, copied, terms, names)


@lru_cache(maxsize=8)
def _own_stream(device: torch.device) -> torch.cuda.Stream:
    """Return one stream for all fits: libraries never release the memory they reserve for a stream."""
    return torch.cuda.Stream(device)
