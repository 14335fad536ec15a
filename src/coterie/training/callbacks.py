"""Callbacks of a training run."""

from __future__ import annotations

import time
from typing import Any

import torch


class Callback:
    """Receive the events of a training run; every method does nothing unless overridden."""

    def on_stage_start(self, name: str, total_steps: int) -> None:
        """Called when a stage of at most ``total_steps`` begins."""

    def on_step(self, step: int, terms: dict[str, torch.Tensor]) -> None:
        """Called after a step; reading a term's value makes the device wait, so do it rarely."""

    def on_check(self, label_change: float) -> None:
        """Called after a check of the labels, with the share of texts that changed cluster."""

    def on_stage_end(self, reason: str) -> None:
        """Called when a stage has ended."""


class ProgressBar(Callback):
    """Show a bar with the loss terms, the last label change and the time left until the step limit."""

    # Seconds between two readings of the terms, which wait for the device: often enough for a person.
    REFRESH_SECONDS = 1.0

    def __init__(self) -> None:
        self._bar: Any = None
        self._shown: dict[str, str] = {}
        self._next = 0.0

    def on_stage_start(self, name: str, total_steps: int) -> None:
        from tqdm import tqdm

        self._bar = tqdm(
            total=total_steps,
            desc=name,
            unit="step",
            mininterval=self.REFRESH_SECONDS,
            bar_format="{desc}: {percentage:3.0f}% |{bar}| {n_fmt}/{total_fmt} "
            "[{elapsed}, at most {remaining} left{postfix}]",
        )

    def on_step(self, step: int, terms: dict[str, torch.Tensor]) -> None:
        if time.monotonic() >= self._next:
            self._next = time.monotonic() + self.REFRESH_SECONDS
            self._shown.update({name: f"{float(value):.3f}" for name, value in terms.items()})
            self._bar.set_postfix(self._shown, refresh=False)
        self._bar.update(1)

    def on_check(self, label_change: float) -> None:
        self._shown["labels changed"] = f"{label_change:.1%}"
        self._bar.set_postfix(self._shown)

    def on_stage_end(self, reason: str) -> None:
        if self._bar is not None:
            self._bar.close()
