"""Measure how many nearest neighbours share a cluster, beyond chance: semantic or lexical modularity."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from coterie.clustering.nearest import nearest

# Nearest neighbours of a text: enough for a stable share, few enough that small clusters can hold them.
NEIGHBOURS = 5
# Number of most frequent words for TF-IDF: more words cost memory and hardly change the nearest neighbours.
MAX_WORDS = 20_000
# Most neighbours of a text in :func:`neighbour_information`, as a share of the size of its cluster: among more of them,
# many would belong to other clusters even where a small cluster is found exactly.
SHARE_OF_CLUSTER = 0.7
# Two arrays of the same length: rows, and one neighbour of each.
NeighbourPairs: TypeAlias = tuple[NDArray[np.int64], NDArray[np.int64]]


def modularity(labels: NDArray[np.int64], first: NDArray[np.int64], second: NDArray[np.int64]) -> float:
    """Return the share of neighbour pairs in one cluster minus the share expected by chance for these cluster sizes.

    NaN where there are no pairs.
    """
    together, by_chance = _share_together(labels, first, second)
    return together - by_chance


def normalised_modularity(labels: NDArray[np.int64], first: NDArray[np.int64], second: NDArray[np.int64]) -> float:
    """Return :func:`modularity` as a share of the largest value that clusters of these sizes can have.

    Modularity is largest for clusters of equal size; this measure, of the form of Cohen's kappa, does not favour any
    sizes. NaN where there are no pairs.
    """
    return beyond_chance(*_share_together(labels, first, second))


def beyond_chance(observed: float, expected: float) -> float:
    """Return an agreement corrected for chance: 1 for full agreement, 0 for that of chance (Cohen, 1960)."""
    return (observed - expected) / max(1 - expected, 1e-12)


def neighbour_information(labels: NDArray[np.int64], near: NDArray[np.int64]) -> float:
    """Return how much clusters tell about which texts are neighbours, in nats per neighbour; larger is better.

    It is the log-likelihood, beyond chance, of a planted partition:
    ``t log(t / c) + (1 - t) log((1 - t) / (1 - c))``. ``t`` is the share of neighbours in the text's own cluster, ``c``
    the share expected by chance: the sum of the squared shares of texts in the clusters. Splitting a cluster between
    neighbourhoods raises it, because ``c`` falls; splitting neighbourhoods lowers it, because ``t`` falls. Modularity,
    which is ``t - c``, hardly rises once ``c`` is small, so it does not tell many clusters apart.

    Parameters
    ----------
    labels:
        Cluster of each text, from 0.
    near:
        The nearest rows of each row, the nearest first: one row per text. Of a text in a cluster of few texts, only the
        first ``SHARE_OF_CLUSTER`` times as many as the cluster has texts count.
    """
    n_texts, count = near.shape
    sizes = np.bincount(labels)
    counted = np.clip(np.ceil(SHARE_OF_CLUSTER * sizes), 1, count).astype(np.int64)[labels]
    mask = np.arange(count) < counted[:, None]
    inside = (labels[near] == labels[:, None]) & mask
    together = float((inside.sum(axis=1) / counted).mean())
    by_chance = float(((sizes / n_texts) ** 2).sum())
    if together <= by_chance:
        return 0.0
    found = together * np.log(together / by_chance)
    return float(found if together == 1 else found + (1 - together) * np.log((1 - together) / (1 - by_chance)))


def _share_together(
    labels: NDArray[np.int64], first: NDArray[np.int64], second: NDArray[np.int64]
) -> tuple[float, float]:
    """Return the share of pairs in one cluster, and the share expected by chance."""
    if not len(first):
        return float("nan"), float("nan")
    n_clusters = int(labels.max()) + 1
    of_first = np.bincount(labels[first], minlength=n_clusters) / len(first)
    of_second = np.bincount(labels[second], minlength=n_clusters) / len(second)
    return float((labels[first] == labels[second]).mean()), float(of_first @ of_second)


def neighbour_pairs(near: NDArray[np.int64], mask: NDArray[np.bool_] | None = None) -> NeighbourPairs:
    """Return pairs of each row and its nearest rows, or only those of them for which ``mask`` is true.

    Both arrays have one row per text and one column per neighbour.
    """
    if mask is None:
        return np.repeat(np.arange(len(near)), near.shape[1]), near.ravel()
    return np.nonzero(mask)[0], near[mask]


def semantic_pairs(units: NDArray[np.float32]) -> NeighbourPairs:
    """Return pairs of each text and its nearest texts by cosine; rows of ``units`` have length one."""
    return neighbour_pairs(nearest(units, min(NEIGHBOURS, len(units) - 1))[0])


def lexical_pairs(texts: Sequence[str]) -> NeighbourPairs:
    """Return pairs of each text and its nearest texts by TF-IDF, if the two share a word."""
    rows = tfidf_rows(texts)
    if rows is None:
        none = np.zeros(0, dtype=np.int64)
        return none, none
    near, cosines = nearest(rows, min(NEIGHBOURS, len(texts) - 1))
    return neighbour_pairs(near, cosines > 0)


def tfidf_rows(texts: Sequence[str]) -> Any | None:
    """Return sparse TF-IDF rows of length one, or ``None`` if the texts have no words."""
    from coterie.encoders.bag_of_words import BagOfWordsEncoder
    from coterie.errors import InputError

    once = np.ones(len(texts), dtype=np.int64)
    try:
        encoder = BagOfWordsEncoder.fit(texts, once, max_features=MAX_WORDS, stop_words=None, weighting="tfidf")
    except InputError:
        return None
    return encoder.encode(texts)
