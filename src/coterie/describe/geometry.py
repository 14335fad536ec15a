"""Cohesion and separation of clusters, their nearest clusters, and the runner-up cluster of each text."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from coterie.clustering.kmeans import centroids

# Nearest clusters that are listed per cluster.
N_NEAREST = 3
# Floats of a block of rows: some tens of megabytes.
BLOCK_SIZE = 4_000_000


@dataclass(frozen=True, eq=False)
class Geometry:
    """One entry per cluster; NaN or empty where it cannot be computed.

    Attributes
    ----------
    cohesion:
        Mean cosine between its texts and their mean.
    separation:
        1 minus the cosine between its mean and the nearest other mean.
    nearest:
        Ids of the clusters with the nearest means, by cosine.
    """

    cohesion: NDArray[np.float64]
    separation: NDArray[np.float64]
    nearest: tuple[tuple[int, ...], ...]

    @classmethod
    def unknown(cls, n_clusters: int) -> Geometry:
        """Return the geometry of clusters without vectors."""
        return cls(np.full(n_clusters, np.nan), np.full(n_clusters, np.nan), ((),) * n_clusters)


def measure_geometry(vectors: NDArray[np.floating[Any]], labels: NDArray[np.int64], n_clusters: int) -> Geometry:
    """Return cohesion, separation and nearest clusters; rows labelled -1 are left out."""
    from scipy.sparse import csr_matrix

    sizes = np.bincount(labels[labels >= 0], minlength=n_clusters)
    sums = np.zeros((n_clusters, vectors.shape[1]))
    for rows in _blocks(len(vectors), vectors.shape[1]):
        inside = np.flatnonzero(labels[rows] >= 0)
        member_of = labels[rows][inside]
        ones = np.ones(len(inside), np.float32)
        # One row per cluster that occurs in the block: of many clusters, most do not.
        present, position = np.unique(member_of, return_inverse=True)
        adding = csr_matrix((ones, (position.reshape(-1), inside)), shape=(len(present), rows.stop - rows.start))
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
    """Return vectors as a dense float32 array; word counts come as a sparse matrix."""
    from scipy.sparse import issparse

    return np.asarray(vectors.toarray() if issparse(vectors) else vectors, dtype=np.float32)


def cluster_means(vectors: Any, labels: NDArray[np.int64], n_ids: int) -> NDArray[np.float32]:
    """Return the mean vector of every cluster, by id; NaN for one without rows. Vectors may be sparse."""
    inside = np.flatnonzero(labels >= 0)
    found = centroids(vectors[inside], labels[inside], n_ids).astype(np.float32)
    found[np.bincount(labels[inside], minlength=n_ids) == 0] = np.nan
    return found


def find_runner_ups(
    vectors: NDArray[np.floating[Any]], centers: NDArray[np.floating[Any]], labels: NDArray[np.integer[Any]]
) -> NDArray[np.int64]:
    """Return the cluster of each row's nearest centre, by Euclidean distance, other than its own cluster.

    -1 for rows that are in no cluster or have no other centre. Centres that are not finite (of empty clusters) are
    ignored. Distances are computed in blocks of rows: 100,000 rows and 1,000 centres take tens of megabytes.
    """
    labels = np.asarray(labels, dtype=np.int64)
    found = np.full(len(labels), -1)
    usable = np.flatnonzero(np.isfinite(centers).all(axis=1))
    if not len(usable):
        return found
    # Relative to their mean, distances lose less precision to rounding.
    mean = centers[usable].mean(axis=0, dtype=np.float64)
    points = (centers[usable] - mean).astype(np.float32)
    norms = np.einsum("ij,ij->i", points, points)
    position = np.full(max(len(centers), int(labels.max(initial=-1)) + 1), -1)
    position[usable] = np.arange(len(usable))
    for rows in _blocks(len(vectors), len(usable) + vectors.shape[1]):
        distances = (vectors[rows] - mean.astype(np.float32)).astype(np.float32) @ points.T
        distances *= -2
        distances += norms
        own = np.where(labels[rows] >= 0, position[labels[rows]], -1)
        has_center = np.flatnonzero(own >= 0)
        distances[has_center, own[has_center]] = np.inf
        best = distances.argmin(axis=1)
        is_other = np.isfinite(distances[np.arange(len(best)), best]) & (labels[rows] >= 0)
        found[rows] = np.where(is_other, usable[best], -1)
    return found


def _nearest(
    directions: NDArray[np.float32], filled: NDArray[np.int64]
) -> tuple[NDArray[np.float64], tuple[tuple[int, ...], ...]]:
    """Return separation and nearest clusters of the clusters that have texts."""
    separation = np.full(len(directions), np.nan)
    nearest: list[tuple[int, ...]] = [()] * len(directions)
    n_nearest = min(N_NEAREST, len(filled) - 1)
    if n_nearest < 1:
        return separation, tuple(nearest)
    points = directions[filled]
    for rows in _blocks(len(filled), len(filled)):
        cosines = points[rows] @ points.T
        cosines[np.arange(rows.stop - rows.start), np.arange(rows.start, rows.stop)] = -np.inf
        # A stable sort, so that of equally near clusters the first is listed.
        best = np.argsort(-cosines, axis=1, kind="stable")[:, :n_nearest]
        separation[filled[rows]] = 1 - np.minimum(np.take_along_axis(cosines, best, axis=1)[:, 0], 1.0)
        for k, others in zip(filled[rows].tolist(), filled[best].tolist(), strict=True):
            nearest[k] = tuple(others)
    return separation, tuple(nearest)


def _unit(vectors: NDArray[Any]) -> NDArray[Any]:
    """Return the rows scaled to length 1; a row of zeros stays."""
    lengths = np.sqrt(np.einsum("ij,ij->i", vectors, vectors))
    return np.asarray(vectors / np.where(lengths > 0, lengths, 1)[:, None])


def _blocks(n_rows: int, n_columns: int) -> Iterator[slice]:
    step = max(1, BLOCK_SIZE // max(1, n_columns))
    return (slice(begin, min(begin + step, n_rows)) for begin in range(0, n_rows, step))
