"""Clusterings of the same vectors by different eyes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from coterie.clustering.agglomerative import cut
from coterie.clustering.kmeans import kmeans, unit_rows
from coterie.starts.graph import smoothed, spectral

# Steps of smoothing, and the most waves of the graph that are looked at.
STEPS, WAVES = 3, 60
# Restarts of k-means.
RESTARTS = 5
# Linkage holds all pairs: of more rows so many are linked, and the others follow their nearest.
LINKED = 5_000
# Rows whose likeness with the linked ones is held at a time.
AT_A_TIME = 2_048


@dataclass(frozen=True)
class Start:
    """A clustering by its name; ``labels`` run from 0 without a gap."""

    name: str
    labels: NDArray[np.int64]


def make_starts(
    units: NDArray[np.float32], graph: Any, n_clusters: int, weights: NDArray[Any], seed: int
) -> list[Start]:
    """k-means, Ward and average linkage of the vectors as they are and smoothed, and two of the graph's own waves.

    ``units`` are of length one, one row a distinct text; ``graph`` tells of their neighbours
    (:func:`~coterie.starts.graph.neighbour_graph`); ``weights``, how often each text occurs, count for k-means.
    """
    spaces = (
        ("", units, ("k-means", "Ward", "average")),
        ("smoothed ", smoothed(units, graph, STEPS), ("k-means", "Ward", "average")),
        ("graph ", spectral(graph, min(n_clusters, WAVES), seed), ("k-means", "average")),
    )
    found = []
    for space, vectors, ways in spaces:
        for way in ways:
            if way == "k-means":
                labels = kmeans(vectors, n_clusters, weights=weights, n_init=RESTARTS, seed=seed).labels
            else:
                labels = linked(np.asarray(vectors, dtype=np.float64), n_clusters, way.lower(), seed)
            found.append(Start(f"{space}{way}", without_gaps(labels)))
    return found


def without_gaps(labels: NDArray[np.int64]) -> NDArray[np.int64]:
    """The same clusters, numbered from 0 with none left out."""
    return np.unique(labels, return_inverse=True)[1].astype(np.int64)


def linked(vectors: NDArray[np.float64], n_clusters: int, way: str, seed: int) -> NDArray[np.int64]:
    """The tree of the rows, or of ``LINKED`` drawn ones, cut; rows that were not drawn follow the nearest drawn one."""
    from scipy.cluster.hierarchy import linkage

    n_rows = len(vectors)
    drawn = np.arange(n_rows)
    if n_rows > LINKED:
        drawn = np.sort(np.random.default_rng(seed).permutation(n_rows)[: max(LINKED, n_clusters)])
    rows = unit_rows(vectors[drawn])
    labels = cut(np.asarray(linkage(rows, way)), len(rows), n_clusters)
    return labels if len(drawn) == n_rows else followed(vectors, drawn, labels)


def followed(vectors: NDArray[Any], drawn: NDArray[np.int64], labels: NDArray[np.int64]) -> NDArray[np.int64]:
    """``labels`` of the rows ``drawn``, and for every other row that of the drawn one most like it."""
    rows = unit_rows(vectors[drawn])
    found = np.empty(len(vectors), dtype=np.int64)
    for begin in range(0, len(vectors), AT_A_TIME):
        alike = unit_rows(vectors[begin : begin + AT_A_TIME]) @ rows.T
        found[begin : begin + AT_A_TIME] = labels[alike.argmax(axis=1)]
    found[drawn] = labels
    return found
