"""Loss terms over the steps of a training, averaged to the length of a plot."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Any

# Points of a curve at most: more than a plot of this width can show.
MAX_CURVE_POINTS = 200


def average_loss_curves(history: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return every loss term as points (step, value), means of consecutive steps, and the first step of each stage.

    ``None`` for a method that is not trained step by step. ``history`` is that of ``run.json``.
    """
    steps: list[dict[str, Any]] = history["steps"]
    if not steps:
        return None
    names = list(dict.fromkeys(name for step in steps for name in step if name not in ("stage", "epoch", "step")))
    width = -(-len(steps) // MAX_CURVE_POINTS)
    terms: dict[str, list[list[float]]] = {}
    for name in names:
        points = [(step["step"], step[name]) for step in steps if name in step]
        parts = [points[begin : begin + width] for begin in range(0, len(points), width)]
        terms[name] = [[_mean([x for x, _ in part]), _mean([y for _, y in part])] for part in parts]
    stages = [(stage, next(of_stage)["step"]) for stage, of_stage in groupby(steps, key=lambda step: step["stage"])]
    return {"terms": terms, "stages": [{"name": name, "step": step} for name, step in stages]}


def _mean(values: Sequence[float]) -> float:
    return float(f"{sum(values) / len(values):.6g}")
