"""What speaks for clusters without labels: neighbours, by vectors and by words, that stay together; a silhouette."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from coterie.clustering.nearest import nearest

# Neighbours of a text, by its vector and by its words.
NEIGHBOURS = 5
Pairs = tuple[NDArray[np.int64], NDArray[np.int64]]


def cosine_silhouette(units: NDArray[np.float32], labels: NDArray[np.int64]) -> float:
    """The mean silhouette by cosine distance, exactly: the mean distance to a cluster is the distance to its mean."""
    n_clusters, rows = int(labels.max()) + 1, np.arange(len(labels))
    if n_clusters < 2:
        return 0.0
    sizes = np.bincount(labels, minlength=n_clusters)
    sums = np.stack([np.bincount(labels, column, minlength=n_clusters) for column in units.T], axis=1)
    likeness = units @ sums.T
    others = sizes[labels] - 1
    # A text's likeness with itself, 1 (0 for a vector of zeros), is none of its cluster's.
    itself = np.einsum("ij,ij->i", units, units)
    inside = 1 - (likeness[rows, labels] - itself) / np.maximum(others, 1)
    outside = 1 - likeness / np.maximum(sizes, 1)
    outside[:, sizes == 0] = np.inf
    outside[rows, labels] = np.inf
    closest = outside.min(axis=1)
    larger = np.maximum(inside, closest)
    defined = (others > 0) & (larger > 1e-9)
    return float(np.where(defined, (closest - inside) / np.where(defined, larger, 1), 0).mean())


def kept_together(labels: NDArray[np.int64], first: NDArray[np.int64], second: NDArray[np.int64]) -> float:
    """The share of neighbours in one cluster, less what chance would give clusters of these sizes: modularity.

    NaN where no text has a neighbour.
    """
    together, by_chance = _together(labels, first, second)
    return together - by_chance


def kept_of_possible(labels: NDArray[np.int64], first: NDArray[np.int64], second: NDArray[np.int64]) -> float:
    """:func:`kept_together` as a share of the most that clusters of these sizes could have (as Cohen's kappa).

    Modularity is highest for clusters of one size; this says nothing about sizes. NaN where no text has a neighbour.
    """
    together, by_chance = _together(labels, first, second)
    return (together - by_chance) / max(1 - by_chance, 1e-12)


def _together(labels: NDArray[np.int64], first: NDArray[np.int64], second: NDArray[np.int64]) -> tuple[float, float]:
    """The share of neighbours in one cluster, and what chance gives."""
    if not len(first):
        return float("nan"), float("nan")
    n_clusters = int(labels.max()) + 1
    starts = np.bincount(labels[first], minlength=n_clusters) / len(first)
    ends = np.bincount(labels[second], minlength=n_clusters) / len(second)
    return float((labels[first] == labels[second]).mean()), float(starts @ ends)


def pairs_of(near: NDArray[np.int64], which: NDArray[np.bool_] | None = None) -> Pairs:
    """Each row with each of its nearest, or with ``which`` of them."""
    if which is None:
        return np.repeat(np.arange(len(near)), near.shape[1]), near.ravel()
    return np.nonzero(which)[0], near[which]


def nearest_by_vector(units: NDArray[np.float32]) -> Pairs:
    """Each text with each of its nearest texts."""
    return pairs_of(nearest(units, min(NEIGHBOURS, len(units) - 1))[0])


def nearest_by_words(texts: Sequence[str]) -> Pairs:
    """Each text with each of those nearest by TF-IDF that share a word with it."""
    space = word_space(texts)
    if space is None:
        none = np.zeros(0, dtype=np.int64)
        return none, none
    near, cosines = nearest(space, min(NEIGHBOURS, len(texts) - 1))
    return pairs_of(near, cosines > 0)


def word_space(texts: Sequence[str]) -> Any | None:
    """TF-IDF rows of length one; ``None`` where the texts hold no words."""
    from coterie.encoders.bag_of_words import BagOfWordsEncoder
    from coterie.errors import InputError

    once = np.ones(len(texts), dtype=np.int64)
    try:
        space = BagOfWordsEncoder.fit(texts, once, max_features=20_000, stop_words=None, weighting="tfidf")
    except InputError:
        return None
    return space.encode(texts)
