"""Check and sort the input of the label-free measures, and compute distances in blocks of rows."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from coterie.errors import InputError

UNASSIGNED = -1
"""The label of a text that is in no cluster."""

BLOCK_CELLS = 2**22
"""Most distances held in memory at a time: 32 MiB in float64, for any number of rows."""


@dataclass(frozen=True, eq=False)
class ClusteredPoints:
    """The points that are in a cluster, in float64, sorted so that each cluster is one run of rows."""

    points: NDArray[np.float64]
    codes: NDArray[np.intp]
    """Cluster of each sorted point, as a position in ``cluster_ids``; never decreases."""
    starts: NDArray[np.intp]
    """Where each cluster begins among the sorted points."""
    sizes: NDArray[np.intp]
    cluster_ids: NDArray[Any]
    rows: NDArray[np.intp]
    """Row of each sorted point in the user's input."""
    n_rows: int
    """Rows of the user's input, including those in no cluster."""


def clustered_points(embeddings: ArrayLike, labels: ArrayLike, *, min_clusters: int = 1) -> ClusteredPoints:
    """Check embeddings and labels, leave out the rows labelled -1, and sort the rest by cluster."""
    points, ids = _embeddings(embeddings), _labels(labels)
    if len(points) != len(ids):
        raise InputError(
            f"embeddings has {len(points)} rows and labels has {len(ids)}: give one of each for every text"
        )
    try:
        assigned = np.flatnonzero(ids != UNASSIGNED)
        cluster_ids, codes, sizes = np.unique(ids[assigned], return_inverse=True, return_counts=True)
    except TypeError as error:
        raise InputError("labels mixes types that have no order: use integers or strings throughout") from error
    if len(cluster_ids) < min_clusters:
        raise InputError(
            f"labels holds {len(cluster_ids)} cluster(s) over {len(ids)} rows, and this measure needs "
            f"at least {min_clusters} (rows labelled -1 are in none): cluster with a larger n_clusters"
        )
    order = np.argsort(codes, kind="stable")
    return ClusteredPoints(
        points=points[assigned[order]],
        codes=codes[order],
        starts=np.cumsum(sizes) - sizes,
        sizes=sizes,
        cluster_ids=cluster_ids,
        rows=assigned[order],
        n_rows=len(ids),
    )


def row_blocks(begin: int, end: int, n_columns: int) -> Iterator[slice]:
    """Cut rows ``begin`` to ``end`` into blocks whose distances to ``n_columns`` points fit in memory."""
    height = max(1, BLOCK_CELLS // max(1, n_columns))
    for start in range(begin, end, height):
        yield slice(start, min(start + height, end))


def squared_norms(points: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the squared length of each row."""
    norms: NDArray[np.float64] = np.einsum("ij,ij->i", points, points)
    return norms


def squared_distances(
    left: NDArray[np.float64],
    left_norms: NDArray[np.float64],
    right: NDArray[np.float64],
    right_norms: NDArray[np.float64],
) -> NDArray[np.float64]:
    """Return squared Euclidean distances by one matrix product; near 0 they have the rounding errors of the norms."""
    distances = left @ right.T
    distances *= -2.0
    distances += left_norms[:, None]
    distances += right_norms[None, :]
    return distances


def distances_between(left: NDArray[np.float64], right: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the Euclidean distance between row i of both, from differences: exactly 0 for duplicates."""
    return np.sqrt(squared_norms(left - right))


def _embeddings(embeddings: ArrayLike) -> NDArray[np.float64]:
    try:
        points = np.asarray(embeddings, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InputError(f"embeddings is no table of numbers ({error}): give one row of numbers per text") from error
    if points.ndim != 2:
        raise InputError(f"embeddings has shape {points.shape}: give two dimensions, one row per text")
    if not np.isfinite(points).all():
        row = int(np.flatnonzero(~np.isfinite(points).all(axis=1))[0])
        raise InputError(f"embeddings has a NaN or infinite value in row {row}: leave the row out or encode it again")
    return points


def _labels(labels: ArrayLike) -> NDArray[Any]:
    ids = np.asarray(labels)
    if ids.ndim != 1:
        raise InputError(f"labels has shape {ids.shape}: give one dimension, one label per row")
    if ids.dtype.kind in "fO":
        for row, label in enumerate(ids):
            if label is None or (isinstance(label, (float, np.floating)) and np.isnan(label)):
                raise InputError(f"labels has no label in row {row}: use {UNASSIGNED} for a text in no cluster")
    return ids
