"""Compare a clustering with true labels, where they are given for the report."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

# Labels and clusters of the confusion table; more rows than this do not fit on a screen.
MAX_TABLE_SIZE = 40
# Thresholds of confidence from 0 to 1, so that they are 2.5 points apart.
N_THRESHOLDS = 41


def coverage_by_confidence(
    confidence: NDArray[np.float64], clusters: NDArray[np.int64], labels: Sequence[object] | None
) -> list[dict[str, float]]:
    """Return, for thresholds of confidence from 0 to 1, the share of texts at or above and their mean confidence.

    Keys: ``threshold``, ``share``, ``expected`` (mean confidence) and, with labels, ``accuracy``: the share of these
    texts that have the most frequent label of their cluster, which is what confidence is calibrated to.
    """
    is_right = None if labels is None else _has_main_label(labels, clusters)
    assigned = clusters >= 0
    curve = []
    for threshold in np.linspace(0, 1, N_THRESHOLDS):
        above = assigned & (confidence >= threshold)
        point = {
            "threshold": round(float(threshold), 3),
            "share": round(float(above.sum() / max(1, assigned.sum())), 4),
        }
        if above.any():
            point["expected"] = round(float(confidence[above].mean()), 4)
        if is_right is not None:
            labelled = above & (is_right >= 0)
            if labelled.any():
                point["accuracy"] = round(float(is_right[labelled].mean()), 4)
        curve.append(point)
    return curve


def _has_main_label(labels: Sequence[object], clusters: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return 1 where the row has the most frequent label of its cluster, 0 where not, -1 without a label."""
    names, codes = _encode_labels(labels)
    most_frequent = _count_pairs(codes, len(names), clusters).argmax(axis=0)
    return np.where((codes < 0) | (clusters < 0), -1, most_frequent[clusters] == codes)


def main_labels(labels: Sequence[object], clusters: NDArray[np.int64]) -> dict[int, dict[str, Any]]:
    """Return each cluster's most frequent label, and its share of the cluster's rows that have a label."""
    names, codes = _encode_labels(labels)
    if not names:
        return {}
    table = _count_pairs(codes, len(names), clusters)
    return {
        int(k): {"name": str(names[table[:, k].argmax()]), "share": float(table[:, k].max() / table[:, k].sum())}
        for k in np.flatnonzero(table.sum(axis=0))
    }


def numbered_labels(labels: Sequence[object]) -> tuple[list[str], NDArray[np.int64]]:
    """Return the labels from the most frequent to the rarest, and the number of each row's label; -1 without one."""
    names, codes = _encode_labels(labels)
    order = np.argsort(-np.bincount(codes[codes >= 0], minlength=len(names)), kind="stable")
    # The last entry is for -1.
    rank = np.append(np.argsort(order), -1)
    return [str(names[code]) for code in order], rank[codes]


def confusion_table(labels: Sequence[object], clusters: NDArray[np.int64]) -> dict[str, Any]:
    """Return scores and the counts of texts by label and cluster, with matching ones on the diagonal."""
    from coterie.metrics.external.scores import evaluate

    scores = evaluate(list(labels), clusters)
    names, codes = _encode_labels(labels)
    table = _count_pairs(codes, len(names), clusters)
    # A label whose rows are all in no cluster would be an empty row, a cluster merged away an empty column.
    present, filled = np.flatnonzero(table.sum(axis=1)), np.flatnonzero(table.sum(axis=0))
    names, table = [names[label] for label in present], table[np.ix_(present, filled)]
    rows, columns = _match(table)
    order = np.argsort(-table[rows, columns])
    rows, columns = rows[order], columns[order]
    rows = np.concatenate([rows, np.setdiff1d(np.arange(table.shape[0]), rows)])[:MAX_TABLE_SIZE]
    columns = np.concatenate([columns, np.setdiff1d(np.arange(table.shape[1]), columns)])[:MAX_TABLE_SIZE]
    return {
        "scores": scores.to_dict(),
        "labels": [str(names[row]) for row in rows],
        "clusters": filled[columns].tolist(),
        "counts": table[np.ix_(rows, columns)].tolist(),
        "truncated": bool(max(table.shape) > MAX_TABLE_SIZE),
    }


def _encode_labels(labels: Sequence[object]) -> tuple[list[object], NDArray[np.int64]]:
    """Return the distinct labels, and the number of each row's label; -1 without one."""
    names = list(dict.fromkeys(label for label in labels if not _is_missing(label)))
    code = {name: i for i, name in enumerate(names)}
    return names, np.array([code.get(label, -1) for label in labels], dtype=np.int64)


def _is_missing(label: object) -> bool:
    """Return whether a label is None, NaN or empty, as in :func:`~coterie.metrics.external.scores.evaluate`."""
    return label is None or label == "" or label != label


def _count_pairs(codes: NDArray[np.int64], n_labels: int, clusters: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return how many rows of each label are in each cluster: shape (n_labels, n_clusters)."""
    known = (codes >= 0) & (clusters >= 0)
    table = np.zeros((n_labels, int(clusters.max(initial=0)) + 1), dtype=np.int64)
    np.add.at(table, (codes[known], clusters[known]), 1)
    return table


def _match(table: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Pair labels and clusters one to one so that they share as many texts as possible."""
    from scipy.optimize import linear_sum_assignment

    rows, columns = linear_sum_assignment(-table)
    return np.asarray(rows), np.asarray(columns)
