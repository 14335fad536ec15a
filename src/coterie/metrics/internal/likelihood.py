"""How likely points are where each cluster is a round cloud of its own size and width."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def clouds_likelihood(points: NDArray[np.float64], labels: NDArray[np.int64]) -> float:
    """The mean log-likelihood of points together with their clusters, up to a constant; more is better.

    ``sum_k n_k [log(n_k / n) - d/2 log v_k - s_k / (2 v_k)] / n`` in ``d`` dimensions, with ``s_k`` the mean squared
    distance from the mean of cluster k and ``v_k`` its variance a dimension, as though one more point were in it that
    is as far out as points are on the whole. Unlike inertia it knows that clusters have different sizes and widths.
    """
    n_points, dimension = points.shape
    n_clusters = int(labels.max()) + 1
    sizes = np.bincount(labels, minlength=n_clusters).astype(np.float64)
    sums = np.stack([np.bincount(labels, column, minlength=n_clusters) for column in points.T], axis=1)
    means = sums / np.maximum(sizes, 1)[:, None]
    spread = np.bincount(labels, ((points - means[labels]) ** 2).sum(axis=1), minlength=n_clusters)
    overall = float(((points - points.mean(axis=0)) ** 2).sum()) / n_points
    variance = np.maximum((spread + overall) / ((sizes + 1) * dimension), 1e-12)
    there = sizes > 0
    each = np.log(np.where(there, sizes, 1) / n_points) * sizes
    each -= sizes * dimension / 2 * np.log(variance) + spread / (2 * variance)
    return float(each[there].sum()) / n_points
