"""The training of a run as curves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Any

# Points of a curve.
CURVE_POINTS = 200


def loss_curves(history: Mapping[str, Any]) -> dict[str, Any] | None:
    """Every loss term over the steps, in means of some steps each, and where the stages begin."""
    steps: list[dict[str, Any]] = history["steps"]
    if not steps:
        return None
    known = ("stage", "epoch", "step")
    names = list(dict.fromkeys(name for step in steps for name in step if name not in known))
    width = -(-len(steps) // CURVE_POINTS)
    terms: dict[str, list[list[float]]] = {}
    for name in names:
        there = [(step["step"], step[name]) for step in steps if name in step]
        parts = [there[begin : begin + width] for begin in range(0, len(there), width)]
        terms[name] = [[_mean([x for x, _ in part]), _mean([y for _, y in part])] for part in parts]
    stages = [(stage, next(of_stage)["step"]) for stage, of_stage in groupby(steps, key=lambda step: step["stage"])]
    return {"terms": terms, "stages": [{"name": name, "step": step} for name, step in stages]}


def _mean(values: Sequence[float]) -> float:
    return float(f"{sum(values) / len(values):.6g}")
