"""Scores of saved assignments. Nothing that fits imports this."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from coterie.benchmark.partitions import ON
from coterie.benchmark.sets import Loaded, find_set, load_set
from coterie.benchmark.store import Store
from coterie.errors import InputError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

# Partitions of a run: where it started, its trained head, k-means on its last embeddings, its answer.
ANSWERS = ("frozen", "head", "kmeans", "final")


def scores_of(
    data: Loaded,
    assignments: Mapping[str, NDArray[np.int64]],
    epochs: Sequence[dict[str, float]] | None = None,
) -> dict[str, dict[str, float] | None]:
    """Scores in percent of each partition; ``None`` where a method has no such one.

    A method that learned on some of the texts and assigned the others afterwards has a start, a head, k-means and
    epochs of those it learned on, and they are scored on them; its answer is for all.

    ``oracle`` is the best by accuracy of the end and of every epoch: what a choice by label would have printed.
    ``held_out`` is there where texts were kept from fitting and assigned afterwards. ``epochs`` are their scores, where
    they are known already.
    """
    labels = data.labels
    found: dict[str, dict[str, float] | None] = {
        answer: _learned_score(data, assignments, assignments[answer]) if answer in assignments else None
        for answer in ANSWERS
        if answer != "final"
    }
    found["final"] = score(labels, assignments["final"])
    found |= {name: score(labels, partition) for name, partition in assignments.items() if name.startswith(ON)}
    if data.held_out:
        found["held_out"] = score(data.held_out_labels, assignments["held_out"])
    epochs = epochs_of(data, assignments) if epochs is None else epochs
    if not epochs:
        return {**found, "oracle": None}
    ends = [each for answer, each in found.items() if each is not None and answer in ANSWERS]
    return {**found, "oracle": max([*ends, *epochs], key=lambda each: each["accuracy"])}


def score_again(store: Store, echo: Callable[[str], object]) -> None:
    """Score the stored assignments of all runs and store what has changed; ``echo`` is called with a line about it."""
    sets: dict[str, Loaded] = {}
    changed = 0
    for name, record in store.records().items():
        dataset = record["dataset"]
        if dataset not in sets:
            sets[dataset] = load_set(find_set(dataset))
        if sets[dataset].sha256 != record["data_sha256"]:
            raise InputError(f"{name}: the texts of {dataset!r} here are not those of the run")
        if sets[dataset].questions:
            echo(f"{name}: ranked by embeddings, which are not stored; its scores stay")
            continue
        if not store.has_assignments(name):
            echo(f"{name}: no assignments; its scores stay")
            continue
        scores = scores_of(sets[dataset], store.assignments(name))
        if not store.epochs_file(name).is_file():
            scores["oracle"] = record["scores"]["oracle"]  # computed from the epochs, and their curve stays as well
        if scores != record["scores"]:
            store.write(name, {**record, "scores": scores})
            changed += 1
    echo(f"{changed} of {len(store.names())} runs changed")


def epochs_of(data: Loaded, assignments: Mapping[str, NDArray[np.int64]]) -> list[dict[str, float]]:
    """Scores of every epoch that was kept; for curves and the oracle, since a choice among them is one by label."""
    return [_learned_score(data, assignments, partition) for partition in assignments.get("epochs", ())]


def _learned_score(
    data: Loaded, assignments: Mapping[str, NDArray[np.int64]], partition: NDArray[np.int64]
) -> dict[str, float]:
    """Score on the rows that were learned on; a text that is in no cluster at all counts as wrong, as everywhere."""
    if "frozen" not in assignments:
        return score(data.labels, partition)
    rows = (assignments["frozen"] >= 0) | (assignments["final"] < 0)
    return score([label for label, learned in zip(data.labels, rows, strict=True) if learned], partition[rows])


def score(labels: Sequence[str], partition: Any) -> dict[str, float]:
    """Accuracy, NMI (arithmetic, and the geometric one that some papers use), ARI and purity in percent, and how many
    clusters hold a text.
    """
    from coterie.metrics.external.scores import evaluate, nmi

    found = evaluate(labels, partition)
    return {
        "accuracy": 100 * found.accuracy,
        "nmi": 100 * found.nmi,
        "nmi_geometric": 100 * nmi(labels, partition, "geometric"),
        "ari": 100 * found.ari,
        "purity": 100 * found.purity,
        "clusters": found.n_clusters,
    }
