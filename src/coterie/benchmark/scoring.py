"""Scores of saved assignments. Nothing that fits imports this."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from coterie.benchmark.partitions import ON
from coterie.benchmark.sets import Loaded

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

# Partitions of a run: where it started, its trained head, k-means on its last embeddings, its answer.
ANSWERS = ("frozen", "head", "kmeans", "final")


def scores_of(data: Loaded, assignments: Mapping[str, NDArray[np.int64]]) -> dict[str, dict[str, float] | None]:
    """Scores in percent of each partition; ``None`` where a method has no such one.

    ``oracle`` is the best by accuracy of the end and of every epoch: what a choice by label would have printed.
    ``held_out`` is there where texts were kept from fitting and assigned afterwards.
    """
    labels = data.labels
    found: dict[str, dict[str, float] | None] = {
        answer: score(labels, assignments[answer]) if answer in assignments else None for answer in ANSWERS
    }
    found |= {name: score(labels, partition) for name, partition in assignments.items() if name.startswith(ON)}
    if data.held_out:
        found["held_out"] = score(data.held_out_labels, assignments["held_out"])
    epochs = assignments.get("epochs")
    candidates = [each for answer, each in found.items() if each is not None and answer in ANSWERS]
    if epochs is None or not len(epochs):
        return {**found, "oracle": None}
    candidates += [score(labels, partition) for partition in epochs]
    return {**found, "oracle": max(candidates, key=lambda each: each["accuracy"])}


def curve_of(data: Loaded, epochs: NDArray[np.int64]) -> list[dict[str, float]]:
    """Accuracy and NMI of every epoch; for curves alone, since a choice among them would be one by label."""
    return [
        {name: round(value, 3) for name, value in score(data.labels, each).items() if name in ("accuracy", "nmi")}
        for each in epochs
    ]


def score(labels: Sequence[str], partition: Any) -> dict[str, float]:
    """Accuracy, NMI (arithmetic, and the geometric one that some papers use), ARI and purity in percent, and how many
    clusters hold a text.
    """
    from coterie.evaluation.external import evaluate, nmi

    found = evaluate(labels, partition)
    return {
        "accuracy": 100 * found.accuracy,
        "nmi": 100 * found.nmi,
        "nmi_geometric": 100 * nmi(labels, partition, "geometric"),
        "ari": 100 * found.ari,
        "purity": 100 * found.purity,
        "clusters": found.n_clusters,
    }
