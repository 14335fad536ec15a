"""Where clusters lie among each other, and which other cluster is next to each text."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from coterie.clustering.kmeans import centroids

N_NEAREST = 3
# Numbers held at a time, beside the vectors: some tens of megabytes.
NUMBERS_AT_A_TIME = 4_000_000


@dataclass(frozen=True, eq=False)
class Geometry:
    """One entry a cluster; NaN and empty where there is nothing to tell.

    Attributes
    ----------
    cohesion: mean cosine between its texts and their mean.
    separation: 1 minus the cosine between its mean and the nearest other.
    nearest: ids of the clusters with the nearest means, by cosine.
    """

    cohesion: NDArray[np.float64]
    separation: NDArray[np.float64]
    nearest: tuple[tuple[int, ...], ...]

    @classmethod
    def unknown(cls, n_clusters: int) -> Geometry:
        """Where there are no vectors."""
        return cls(np.full(n_clusters, np.nan), np.full(n_clusters, np.nan), ((),) * n_clusters)


def measure_geometry(vectors: NDArray[np.floating[Any]], labels: NDArray[np.int64], n_clusters: int) -> Geometry:
    """How tight each cluster is and how far from the others; rows labelled -1 are left out."""
    from scipy.sparse import csr_matrix

    sizes = np.bincount(labels[labels >= 0], minlength=n_clusters)
    sums = np.zeros((n_clusters, vectors.shape[1]))
    for rows in _blocks(len(vectors), vectors.shape[1]):
        inside = np.flatnonzero(labels[rows] >= 0)
        member_of = labels[rows][inside]
        ones = np.ones(len(inside), np.float32)
        # One row a cluster that occurs in the block: with many clusters most do not.
        present, place = np.unique(member_of, return_inverse=True)
        adding = csr_matrix((ones, (place.reshape(-1), inside)), shape=(len(present), rows.stop - rows.start))
        sums[present] += adding @ vectors[rows].astype(np.float32)
    directions = _unit(sums).astype(np.float32)
    cosines = np.zeros(n_clusters)
    for rows in _blocks(len(vectors), vectors.shape[1]):
        inside = np.flatnonzero(labels[rows] >= 0)
        member_of = labels[rows][inside]
        along = np.einsum("ij,ij->i", _unit(vectors[rows][inside].astype(np.float32)), directions[member_of])
        cosines += np.bincount(member_of, weights=along, minlength=n_clusters)
    cohesion = np.where(sizes > 0, cosines / np.maximum(sizes, 1), np.nan)
    separation, nearest = _nearest(directions, np.flatnonzero(sizes))
    return Geometry(np.minimum(cohesion, 1.0), separation, nearest)


def as_dense(vectors: Any) -> NDArray[np.float32]:
    """Some vectors as a plain table; counts of words come as a sparse one."""
    from scipy.sparse import issparse

    return np.asarray(vectors.toarray() if issparse(vectors) else vectors, dtype=np.float32)


def cluster_means(vectors: Any, labels: NDArray[np.int64], n_ids: int) -> NDArray[np.float32]:
    """The mean vector of every cluster, by id; NaN for one without a row. Vectors may be sparse."""
    inside = np.flatnonzero(labels >= 0)
    found = centroids(vectors[inside], labels[inside], n_ids).astype(np.float32)
    found[np.bincount(labels[inside], minlength=n_ids) == 0] = np.nan
    return found


def find_runner_ups(
    vectors: NDArray[np.floating[Any]], centers: NDArray[np.floating[Any]], labels: NDArray[np.integer[Any]]
) -> NDArray[np.int64]:
    """The nearest centre of each row, by Euclidean distance, that is not its own cluster's.

    -1 for rows that are in no cluster and where there is no other centre. Centres that are not finite (of empty
    clusters) are nobody's. Distances are held for some rows at a time: 100,000 rows and 1,000 centres take tens of
    megabytes.
    """
    labels = np.asarray(labels, dtype=np.int64)
    found = np.full(len(labels), -1)
    usable = np.flatnonzero(np.isfinite(centers).all(axis=1))
    if not len(usable):
        return found
    # Around their mean, distances lose less to rounding.
    middle = centers[usable].mean(axis=0, dtype=np.float64)
    points = (centers[usable] - middle).astype(np.float32)
    norms = np.einsum("ij,ij->i", points, points)
    place = np.full(max(len(centers), int(labels.max(initial=-1)) + 1), -1)
    place[usable] = np.arange(len(usable))
    for rows in _blocks(len(vectors), len(usable) + vectors.shape[1]):
        distances = (vectors[rows] - middle.astype(np.float32)).astype(np.float32) @ points.T
        distances *= -2
        distances += norms
        own = np.where(labels[rows] >= 0, place[labels[rows]], -1)
        has_center = np.flatnonzero(own >= 0)
        distances[has_center, own[has_center]] = np.inf
        best = distances.argmin(axis=1)
        is_other = np.isfinite(distances[np.arange(len(best)), best]) & (labels[rows] >= 0)
        found[rows] = np.where(is_other, usable[best], -1)
    return found


def _nearest(
    directions: NDArray[np.float32], filled: NDArray[np.int64]
) -> tuple[NDArray[np.float64], tuple[tuple[int, ...], ...]]:
    """Separation and nearest clusters of those that hold texts."""
    separation = np.full(len(directions), np.nan)
    nearest: list[tuple[int, ...]] = [()] * len(directions)
    wanted = min(N_NEAREST, len(filled) - 1)
    if wanted < 1:
        return separation, tuple(nearest)
    points = directions[filled]
    for rows in _blocks(len(filled), len(filled)):
        cosines = points[rows] @ points.T
        cosines[np.arange(rows.stop - rows.start), np.arange(rows.start, rows.stop)] = -np.inf
        # Sorted whole, so that of equally near ones the first is named.
        best = np.argsort(-cosines, axis=1, kind="stable")[:, :wanted]
        separation[filled[rows]] = 1 - np.minimum(np.take_along_axis(cosines, best, axis=1)[:, 0], 1.0)
        for k, others in zip(filled[rows].tolist(), filled[best].tolist(), strict=True):
            nearest[k] = tuple(others)
    return separation, tuple(nearest)


def _unit(vectors: NDArray[Any]) -> NDArray[Any]:
    """Rows of length one; a row of zeros stays."""
    lengths = np.sqrt(np.einsum("ij,ij->i", vectors, vectors))
    return np.asarray(vectors / np.where(lengths > 0, lengths, 1)[:, None])


def _blocks(n_rows: int, n_columns: int) -> Iterator[slice]:
    step = max(1, NUMBERS_AT_A_TIME // max(1, n_columns))
    return (slice(begin, min(begin + step, n_rows)) for begin in range(0, n_rows, step))
