"""What happened during training, as plain numbers."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class Snapshot:
    """Embeddings and labels of all distinct texts at one moment; ``epoch`` 0 is before training."""

    stage: str
    epoch: int
    step: int
    embeddings: NDArray[np.float32]
    labels: NDArray[np.int64]


@dataclass
class History:
    """Every loss term of every step, every look at the labels, and how each stage ended.

    Attributes
    ----------
    steps:
        One record a step: ``stage``, ``epoch``, ``step`` and each loss term.
    checks:
        One record a look at the labels: ``stage``, ``epoch``, ``step``, ``label_change``.
    epoch_seconds:
        Seconds each epoch took, looks and snapshots apart.
    stop_reasons:
        For each stage: ``"converged"``, ``"cap"`` or ``"interrupted"``.
    padding:
        Padded tokens over real tokens, over all training batches.
    encoder_change:
        Mean absolute change of the encoder's parameters over the run.
    """

    steps: list[dict[str, Any]] = field(default_factory=list)
    checks: list[dict[str, Any]] = field(default_factory=list)
    epoch_seconds: list[float] = field(default_factory=list)
    stop_reasons: dict[str, str] = field(default_factory=dict)
    padding: float = 1.0
    encoder_change: float = 0.0
    snapshots: list[Snapshot] = field(default_factory=list)

    @property
    def interrupted(self) -> bool:
        return "interrupted" in self.stop_reasons.values()

    def term(self, name: str) -> list[float]:
        """The values of one loss term, step by step, where it occurs."""
        return [record[name] for record in self.steps if name in record]

    def to_dict(self) -> dict[str, Any]:
        """Everything but the snapshots, ready for JSON."""
        return {
            "steps": self.steps,
            "checks": self.checks,
            "epoch_seconds": self.epoch_seconds,
            "stop_reasons": self.stop_reasons,
            "padding": self.padding,
            "encoder_change": self.encoder_change,
        }
