"""Compute the silhouette: how much nearer a text is to its own cluster than to the next one (Rousseeuw, 1987)."""

from __future__ import annotations

from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from coterie.errors import SettingError
from coterie.metrics.internal.inputs import (
    ClusteredPoints,
    clustered_points,
    row_blocks,
    squared_distances,
    squared_norms,
)

Metric: TypeAlias = Literal["euclidean", "cosine"]

_ROUNDING = 1e-14
"""Squared distances below this share of the squared norms are rounding errors (1e-7 in distance, as in float32)."""


def silhouette(
    embeddings: ArrayLike,
    labels: ArrayLike,
    metric: Metric = "euclidean",
    sample_size: int | None = None,
    random_state: int | np.random.Generator | None = 0,
) -> float:
    """Return the mean silhouette over the texts that are in a cluster, in [-1, 1]; larger is better.

    Parameters
    ----------
    embeddings:
        One row per text.
    labels:
        One cluster per text; rows labelled -1 are left out. At least two clusters are needed.
    metric:
        ``"euclidean"`` or ``"cosine"``.
    sample_size:
        Score this number of sampled texts, each against all other texts, so that the mean is an unbiased estimate.
        (scikit-learn's option of this name also removes the other texts from the clusters.)
    random_state:
        Seed of the sample.
    """
    data = _check_input(embeddings, labels, metric)
    n_points = len(data.points)
    chosen = np.arange(n_points)
    if sample_size is not None:
        if isinstance(sample_size, bool) or not isinstance(sample_size, (int, np.integer)) or sample_size < 1:
            raise SettingError(f"sample_size={sample_size!r}: use a whole number from 1 on, or None for all texts")
        if sample_size < n_points:
            chosen = np.sort(np.random.default_rng(random_state).choice(n_points, sample_size, replace=False))
    return float(_scores(data, chosen, metric).mean())


def cosine_silhouette(units: NDArray[np.float32], labels: NDArray[np.int64]) -> float:
    """Return the mean silhouette by cosine distance of rows of length one, in time linear in their number.

    The result is exact, because the mean cosine distance to a cluster is the distance to its mean. It is 0 for a single
    cluster. Labels run from 0; a cluster without rows is left out.
    """
    n_clusters, rows = int(labels.max()) + 1, np.arange(len(labels))
    if n_clusters < 2:
        return 0.0
    sizes = np.bincount(labels, minlength=n_clusters)
    sums = np.stack([np.bincount(labels, column, minlength=n_clusters) for column in units.T], axis=1)
    similarity = units @ sums.T
    others = sizes[labels] - 1
    # A row's similarity with itself, 1 (0 for a row of zeros), does not count.
    itself = np.einsum("ij,ij->i", units, units)
    inside = 1 - (similarity[rows, labels] - itself) / np.maximum(others, 1)
    outside = 1 - similarity / np.maximum(sizes, 1)
    outside[:, sizes == 0] = np.inf
    outside[rows, labels] = np.inf
    closest = outside.min(axis=1)
    larger = np.maximum(inside, closest)
    defined = (others > 0) & (larger > 1e-9)
    return float(np.where(defined, (closest - inside) / np.where(defined, larger, 1), 0).mean())


def silhouette_samples(embeddings: ArrayLike, labels: ArrayLike, metric: Metric = "euclidean") -> NDArray[np.float64]:
    """Return the silhouette of each text in order: NaN where labelled -1, 0 if it is alone in its cluster."""
    data = _check_input(embeddings, labels, metric)
    scores = np.full(data.n_rows, np.nan)
    scores[data.rows] = _scores(data, np.arange(len(data.points)), metric)
    return scores


def _check_input(embeddings: ArrayLike, labels: ArrayLike, metric: Metric) -> ClusteredPoints:
    if metric not in ("euclidean", "cosine"):
        raise SettingError(f"metric={metric!r} is unknown: use 'euclidean' or 'cosine'")
    return clustered_points(embeddings, labels, min_clusters=2)


def _scores(data: ClusteredPoints, chosen: NDArray[np.intp], metric: Metric) -> NDArray[np.float64]:
    """Return the silhouette of the ``chosen`` sorted points, each measured against all points."""
    points = _prepare_points(data.points, metric)
    norms = squared_norms(points)
    scores = np.empty(len(chosen))
    for block in row_blocks(0, len(chosen), len(points)):
        members = chosen[block]
        if metric == "euclidean":
            distances = squared_distances(points[members], norms[members], points, norms)
            # Without this, rounding errors would separate duplicates, and their score would be random.
            distances[distances <= _ROUNDING * (norms[members][:, None] + norms[None, :])] = 0.0
            np.sqrt(distances, out=distances)
        else:
            distances = 1.0 - points[members] @ points.T
            distances[distances <= _ROUNDING] = 0.0
        inside = np.arange(len(members))
        distances[inside, members] = 0.0
        totals = np.add.reduceat(distances, data.starts, axis=1)
        own = data.codes[members]
        others = data.sizes[own] - 1
        cohesion = totals[inside, own] / np.maximum(others, 1)
        means = totals / data.sizes
        means[inside, own] = np.inf
        separation = means.min(axis=1)
        larger = np.maximum(cohesion, separation)
        # A text alone in its cluster scores 0 by convention, and so does one that coincides with all other texts.
        defined = (others > 0) & (larger > 0)
        scores[block] = np.where(defined, (separation - cohesion) / np.where(defined, larger, 1.0), 0.0)
    return scores


def _prepare_points(points: NDArray[np.float64], metric: Metric) -> NDArray[np.float64]:
    if metric == "euclidean":
        centre: NDArray[np.float64] = points.mean(axis=0)
        return points - centre  # changes no distance, and small norms keep small distances exact
    lengths = np.sqrt(squared_norms(points))
    # A row of zeros has no direction: unchanged, it has distance 1 from every other text.
    return points / np.where(lengths > 0, lengths, 1.0)[:, None]
