"""Scores of stored assignments: the only module of the benchmark, with traces.py, that reads labels.

No process that fits imports it.
"""

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

# Partitions of a run: the start of training, its trained head, k-means on its last embeddings, what it returns.
ANSWERS = ("frozen", "head", "kmeans", "final")


def scores_of(
    data: Loaded,
    assignments: Mapping[str, NDArray[np.int64]],
    epochs: Sequence[dict[str, float]] | None = None,
) -> dict[str, dict[str, float] | None]:
    """Return the scores of each partition, in percent; ``None`` where a method has no such partition.

    Where a method learned on a sample and assigned the other texts afterwards, its start, head, k-means and epochs are
    scored on the sample, and what it returns on all texts.

    ``oracle`` is the best by accuracy of the end and of every epoch: the score of a choice that reads labels.
    ``held_out`` exists where texts were left out of the fit and assigned afterwards. ``epochs`` are the scores of the
    epochs, if they have been computed.
    """
    labels = data.labels
    scores: dict[str, dict[str, float] | None] = {
        answer: _learned_score(data, assignments, assignments[answer]) if answer in assignments else None
        for answer in ANSWERS
        if answer != "final"
    }
    scores["final"] = score(labels, assignments["final"])
    scores |= {name: score(labels, partition) for name, partition in assignments.items() if name.startswith(ON)}
    if data.held_out:
        scores["held_out"] = score(data.held_out_labels, assignments["held_out"])
    epochs = epochs_of(data, assignments) if epochs is None else epochs
    if not epochs:
        return {**scores, "oracle": None}
    ends = [each for answer, each in scores.items() if each is not None and answer in ANSWERS]
    return {**scores, "oracle": max([*ends, *epochs], key=lambda each: each["accuracy"])}


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
    """Return the scores of every stored epoch: for curves and the oracle, since to choose among them reads labels."""
    return [_learned_score(data, assignments, partition) for partition in assignments.get("epochs", ())]


def _learned_score(
    data: Loaded, assignments: Mapping[str, NDArray[np.int64]], partition: NDArray[np.int64]
) -> dict[str, float]:
    """Score the rows that were learned on; a text in no cluster counts as wrong, as everywhere."""
    if "frozen" not in assignments:
        return score(data.labels, partition)
    rows = (assignments["frozen"] >= 0) | (assignments["final"] < 0)
    return score([label for label, learned in zip(data.labels, rows, strict=True) if learned], partition[rows])


def score(labels: Sequence[str], partition: Any) -> dict[str, float]:
    """Return accuracy, NMI, ARI and purity in percent, and the number of clusters that are not empty.

    ``nmi`` has the arithmetic mean, ``nmi_geometric`` the geometric mean that some papers use.
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
