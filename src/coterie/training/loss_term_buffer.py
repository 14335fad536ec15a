"""Buffer for loss terms that are still on the device."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from coterie.errors import SettingError
from coterie.training.history import History

# Steps per transfer of loss terms from the device: a step must not wait for it.
TERMS_BUFFER = 256


class LossTermBuffer:
    """Collect the loss terms of the last steps and write them into the history.

    Parameters
    ----------
    history:
        Receives the terms.
    lower:
        The setting to lower when a term is not finite, for the error message.
    """

    def __init__(self, history: History, lower: str) -> None:
        self._history = history
        self._lower = lower
        self._waiting: list[tuple[str, int, int, dict[str, Tensor]]] = []

    def add(self, stage: str, epoch: int, step: int, terms: dict[str, Tensor]) -> None:
        """Add the terms of one step; a full buffer is read."""
        self._waiting.append((stage, epoch, step, terms))
        if len(self._waiting) >= TERMS_BUFFER:
            self.read()

    def read(self) -> None:
        """Move all terms from the device into the history, in one transfer."""
        if not self._waiting:
            return
        table = torch.stack([torch.stack(list(terms.values())) for _, _, _, terms in self._waiting]).tolist()
        waiting, self._waiting = self._waiting, []
        for (stage, epoch, step, terms), values in zip(waiting, table, strict=True):
            named = dict(zip(terms, values, strict=True))
            if not all(map(math.isfinite, values)):
                raise SettingError(f"training diverged: {named} at step {step} of stage {stage!r}; lower {self._lower}")
            self._history.steps.append({"stage": stage, "epoch": epoch, "step": step, **named})
