"""Record a training run as plain numbers."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class Snapshot:
    """Embeddings and labels of all distinct texts after an epoch; epoch 0 is before training."""

    stage: str
    epoch: int
    step: int
    embeddings: NDArray[np.float32]
    labels: NDArray[np.int64]


class StageCost:
    """Fill the records of :attr:`History.costs`, one per stage."""

    def __init__(self) -> None:
        self._record: dict[str, Any] = {}

    def begin(self, stage: str, share: float) -> dict[str, Any]:
        """Return the record of a new stage, which later calls fill."""
        self._record = {"stage": stage, "share": share, "epochs": 0, "steps": 0, **self._nothing()}
        self._record["last_epoch"] = {"steps": 0, **self._nothing()}
        return self._record

    @staticmethod
    def _nothing() -> dict[str, float]:
        return dict.fromkeys(("views", "refresh", "training", "looks"), 0.0)

    @contextmanager
    def of(self, what: str) -> Iterator[None]:
        """Add the seconds of the ``with`` block to ``what``."""
        began = time.perf_counter()
        try:
            yield
        finally:
            seconds = time.perf_counter() - began
            self._record[what] += seconds
            self._record["last_epoch"][what] = seconds

    def count(self, steps: int) -> None:
        """Count a finished epoch of ``steps`` steps."""
        self._record["epochs"] += 1
        self._record["steps"] += steps
        self._record["last_epoch"]["steps"] = steps


@dataclass
class History:
    """Every loss term of every step, every check of the labels, and how each stage ended.

    Attributes
    ----------
    steps:
        One record per step: ``stage``, ``epoch``, ``step`` and each loss term.
    checks:
        One record per check of the labels: ``stage``, ``epoch``, ``step``, ``label_change``.
    epoch_seconds:
        Seconds per epoch, without checks and snapshots.
    stop_reasons:
        For each stage: ``"converged"``, ``"cap"`` or ``"interrupted"``.
    padding:
        Padded tokens divided by real tokens, over all training batches.
    encoder_change:
        Mean absolute change of the encoder's parameters over the run.
    recording_seconds:
        Seconds spent on recording steps as CUDA graphs, part of the first epochs of each stage.
    costs:
        One record per stage: ``stage``, its ``share`` of the run's steps, the numbers of ``epochs`` and ``steps``, and
        the seconds for ``views``, for recomputing targets every epoch (``refresh``), for ``training`` itself and for
        checks of the labels (``looks``). ``last_epoch`` has the same values for the last epoch only.
    """

    steps: list[dict[str, Any]] = field(default_factory=list)
    checks: list[dict[str, Any]] = field(default_factory=list)
    epoch_seconds: list[float] = field(default_factory=list)
    stop_reasons: dict[str, str] = field(default_factory=dict)
    padding: float = 1.0
    encoder_change: float = 0.0
    recording_seconds: float = 0.0
    costs: list[dict[str, Any]] = field(default_factory=list)
    snapshots: list[Snapshot] = field(default_factory=list)

    @property
    def interrupted(self) -> bool:
        """Whether Ctrl-C ended a stage."""
        return "interrupted" in self.stop_reasons.values()

    def term(self, name: str) -> list[float]:
        """Return the values of one loss term at the steps that have it."""
        return [record[name] for record in self.steps if name in record]

    def to_dict(self) -> dict[str, Any]:
        """Return everything but the snapshots as plain values for JSON."""
        return {
            "steps": self.steps,
            "checks": self.checks,
            "epoch_seconds": self.epoch_seconds,
            "stop_reasons": self.stop_reasons,
            "padding": self.padding,
            "encoder_change": self.encoder_change,
            "recording_seconds": self.recording_seconds,
            "costs": self.costs,
        }
