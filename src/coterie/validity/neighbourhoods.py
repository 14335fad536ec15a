"""What speaks for clusters without labels: neighbours, by vectors and by words, that stay together; a silhouette."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

# Neighbours of a text, by its vector and by its words.
NEIGHBOURS = 5


def cosine_silhouette(units: NDArray[np.float32], labels: NDArray[np.int64]) -> float:
    """The mean silhouette by cosine distance, exactly: the mean distance to a cluster is the distance to its mean."""
    n_clusters, rows = int(labels.max()) + 1, np.arange(len(labels))
    if n_clusters < 2:
        return 0.0
    sizes = np.bincount(labels, minlength=n_clusters)
    sums = np.zeros((n_clusters, units.shape[1]))
    np.add.at(sums, labels, units)
    likeness = units @ sums.T
    others = sizes[labels] - 1
    # A text's likeness with itself, 1 (0 for a vector of zeros), is none of its cluster's.
    itself = np.einsum("ij,ij->i", units, units)
    inside = 1 - (likeness[rows, labels] - itself) / np.maximum(others, 1)
    outside = 1 - likeness / sizes
    outside[rows, labels] = np.inf
    nearest = outside.min(axis=1)
    larger = np.maximum(inside, nearest)
    defined = (others > 0) & (larger > 1e-9)
    return float(np.where(defined, (nearest - inside) / np.where(defined, larger, 1), 0).mean())


def kept_together(labels: NDArray[np.int64], first: NDArray[np.int64], second: NDArray[np.int64]) -> float:
    """The share of neighbours in one cluster, less what chance would give clusters of these sizes: modularity.

    NaN where no text has a neighbour.
    """
    if not len(first):
        return float("nan")
    n_clusters = int(labels.max()) + 1
    starts = np.bincount(labels[first], minlength=n_clusters) / len(first)
    ends = np.bincount(labels[second], minlength=n_clusters) / len(second)
    return float((labels[first] == labels[second]).mean() - starts @ ends)


def nearest_by_vector(units: NDArray[np.float32]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Each text with each of its nearest texts."""
    n_texts = len(units)
    count = min(NEIGHBOURS, n_texts - 1)
    found = []
    for begin in range(0, n_texts, 1_024):
        likeness = units[begin : begin + 1_024] @ units.T
        likeness[np.arange(len(likeness)), begin + np.arange(len(likeness))] = -np.inf
        found.append(np.argpartition(-likeness, count - 1, axis=1)[:, :count])
    return np.repeat(np.arange(n_texts), count), np.concatenate(found).ravel()


def nearest_by_words(texts: Sequence[str]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Each text with each of those nearest by TF-IDF that share a word with it."""
    from coterie.encoders.words import WordSpace
    from coterie.errors import InputError

    once = np.ones(len(texts), dtype=np.int64)
    try:
        space = WordSpace.fit(texts, once, max_features=20_000, stop_words=None, weighting="tfidf")
    except InputError:
        return np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64)
    table = space.encode(texts)
    first, second = [], []
    for begin in range(0, len(texts), 512):
        likeness = (table[begin : begin + 512] @ table.T).toarray()
        rows = np.arange(len(likeness))
        likeness[rows, begin + rows] = 0
        count = min(NEIGHBOURS, len(texts) - 1)
        nearest = np.argpartition(-likeness, count - 1, axis=1)[:, :count]
        shares = np.take_along_axis(likeness, nearest, axis=1) > 0
        first.append(begin + np.repeat(rows, count)[shares.ravel()])
        second.append(nearest[shares])
    return np.concatenate(first), np.concatenate(second)
