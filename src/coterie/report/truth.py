"""What true labels say about a partition, where somebody gives them for the report."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

# Classes and clusters of the table.
MOST_CLASSES = 40


def coverage(
    confidence: NDArray[np.float64], clusters: NDArray[np.int64], labels: Sequence[object] | None
) -> list[dict[str, float]]:
    """Which share of the texts is left where only confident answers count, and how many of them should be right.

    With labels, how many are: those with the label that is most frequent in their cluster, which is what confidence
    is calibrated to.
    """
    right = None if labels is None else _rightly(labels, clusters)
    assigned = clusters >= 0
    found = []
    for least in np.linspace(0, 1, 41):
        kept = assigned & (confidence >= least)
        point = {"least": round(float(least), 3), "share": round(float(kept.sum() / max(1, assigned.sum())), 4)}
        if kept.any():
            point["expected"] = round(float(confidence[kept].mean()), 4)
        if right is not None:
            known = kept & (right >= 0)
            if known.any():
                point["right"] = round(float(right[known].mean()), 4)
        found.append(point)
    return found


def _rightly(labels: Sequence[object], clusters: NDArray[np.int64]) -> NDArray[np.int64]:
    """1 where the cluster's most frequent label is the row's, 0 where not, -1 without a label."""
    names, codes = _coded(labels)
    most_frequent = _crossed(codes, len(names), clusters).argmax(axis=0)
    return np.where((codes < 0) | (clusters < 0), -1, most_frequent[clusters] == codes)


def main_labels(labels: Sequence[object], clusters: NDArray[np.int64]) -> dict[int, dict[str, Any]]:
    """The most frequent label of each cluster, and its share of the cluster's rows that have one."""
    names, codes = _coded(labels)
    if not names:
        return {}
    table = _crossed(codes, len(names), clusters)
    return {
        int(k): {"name": str(names[table[:, k].argmax()]), "share": float(table[:, k].max() / table[:, k].sum())}
        for k in np.flatnonzero(table.sum(axis=0))
    }


def numbered_labels(labels: Sequence[object]) -> tuple[list[str], NDArray[np.int64]]:
    """The labels from the most frequent to the rarest, and which one each row has; -1 without one."""
    names, codes = _coded(labels)
    order = np.argsort(-np.bincount(codes[codes >= 0], minlength=len(names)), kind="stable")
    # The last place is for -1.
    place = np.append(np.argsort(order), -1)
    return [str(names[code]) for code in order], place[codes]


def truth_table(labels: Sequence[object], clusters: NDArray[np.int64]) -> dict[str, Any]:
    """Scores, and how many texts of each label are in each cluster, matching ones on the diagonal."""
    from coterie.metrics.external.scores import evaluate

    scores = evaluate(list(labels), clusters)
    names, codes = _coded(labels)
    table = _crossed(codes, len(names), clusters)
    # A label of none but rows in no cluster would be an empty line, a cluster that is gone an empty column.
    held, filled = np.flatnonzero(table.sum(axis=1)), np.flatnonzero(table.sum(axis=0))
    names, table = [names[label] for label in held], table[np.ix_(held, filled)]
    rows, columns = _matched(table)
    order = np.argsort(-table[rows, columns])
    rows, columns = rows[order], columns[order]
    rows = np.concatenate([rows, np.setdiff1d(np.arange(table.shape[0]), rows)])[:MOST_CLASSES]
    columns = np.concatenate([columns, np.setdiff1d(np.arange(table.shape[1]), columns)])[:MOST_CLASSES]
    return {
        "scores": scores.to_dict(),
        "labels": [str(names[row]) for row in rows],
        "clusters": filled[columns].tolist(),
        "counts": table[np.ix_(rows, columns)].tolist(),
        "left_out": bool(max(table.shape) > MOST_CLASSES),
    }


def _coded(labels: Sequence[object]) -> tuple[list[object], NDArray[np.int64]]:
    names = list(dict.fromkeys(label for label in labels if not _is_missing(label)))
    place = {name: i for i, name in enumerate(names)}
    return names, np.array([place.get(label, -1) for label in labels], dtype=np.int64)


def _is_missing(label: object) -> bool:
    """None, NaN or nothing: as :func:`~coterie.metrics.external.scores.evaluate` takes it."""
    return label is None or label == "" or label != label


def _crossed(codes: NDArray[np.int64], n_labels: int, clusters: NDArray[np.int64]) -> NDArray[np.int64]:
    known = (codes >= 0) & (clusters >= 0)
    table = np.zeros((n_labels, int(clusters.max(initial=0)) + 1), dtype=np.int64)
    np.add.at(table, (codes[known], clusters[known]), 1)
    return table


def _matched(table: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    from scipy.optimize import linear_sum_assignment

    rows, columns = linear_sum_assignment(-table)
    return np.asarray(rows), np.asarray(columns)
