"""Measure whether clusters are found again in resampled texts."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray

from coterie.clustering.kmeans import kmeans
from coterie.errors import InputError, SettingError


def cluster_stability(
    vectors: NDArray[np.floating[Any]],
    labels: NDArray[np.integer[Any]],
    n_clusters: int,
    *,
    runs: int = 10,
    sample: int = 5_000,
    seed: int = 0,
) -> NDArray[np.float64]:
    """Return how well each cluster is found again in bootstrap samples of the rows (Hennig, 2007), from 0 to 1.

    Every run samples ``len(vectors)`` rows (at most ``sample``) with replacement and clusters them by one k-means,
    initialised by k-means++. The sampled rows of each cluster are compared with every new cluster; the largest Jaccard
    similarity (rows in both over rows in either) counts, and its mean over the runs is returned. It is NaN for a
    cluster of which no row was ever sampled. Rows labelled -1 are left out.

    0.85 and more: the cluster is stable, it is found again nearly unchanged. 0.6 to 0.75: there is a pattern, but it is
    doubtful which rows belong to it. Under 0.6: do not trust the cluster. The result for a cluster of a few rows
    depends on which of them were sampled.

    Stability is the degree to which k-means finds a cluster again in the same vectors. A stable cluster need not be
    right or useful: one cluster of all texts is perfectly stable.

    A run takes well under a second for tens of clusters but some seconds for 1,000: use fewer runs then.
    """
    rows = np.asarray(vectors)
    clusters = np.asarray(labels, dtype=np.int64)
    if rows.ndim != 2 or len(rows) != len(clusters):
        raise InputError(f"vectors of shape {rows.shape} but {len(clusters)} labels: one label per row is needed")
    if clusters.max(initial=-1) >= n_clusters:
        raise InputError(f"n_clusters={n_clusters} but a row is labelled {clusters.max()}")
    for name, value in (("runs", runs), ("sample", sample)):
        if value < 1:
            raise SettingError(f"{name}={value}: at least 1 is needed")
    assigned = np.flatnonzero(clusters >= 0)
    total, n_samples = np.zeros(n_clusters), np.zeros(n_clusters)
    if len(assigned):
        n_found = len(np.unique(clusters[assigned]))
        generator = np.random.default_rng(seed)
        for _ in range(runs):
            bootstrap = assigned[generator.integers(0, len(assigned), min(len(assigned), sample))]
            sampled, times = np.unique(bootstrap, return_counts=True)
            found = cluster_again(rows[sampled], times, n_found, int(generator.integers(2**31)))
            best = largest_jaccard(clusters[sampled], found, times, n_clusters)
            was_sampled = ~np.isnan(best)
            total[was_sampled] += best[was_sampled]
            n_samples += was_sampled
    return np.divide(total, n_samples, out=np.full(n_clusters, np.nan), where=n_samples > 0)


def cluster_again(rows: Any, times: NDArray[np.int64], n_clusters: int, seed: int) -> NDArray[np.int64]:
    """Cluster rows, dense or sparse, by one k-means; each row counts as often as it was sampled (``times``)."""
    from sklearn.exceptions import ConvergenceWarning
    from threadpoolctl import threadpool_limits

    # k-means++ computes many small products: several threads mostly wait for each other, and on a busy machine take ten
    # times as long as one.
    with threadpool_limits(1), warnings.catch_warnings():
        # Fewer distinct vectors than clusters leave some clusters empty, which is harmless here.
        warnings.simplefilter("ignore", ConvergenceWarning)
        return kmeans(rows, min(n_clusters, len(times)), weights=times, n_init=1, seed=seed).labels


def largest_jaccard(
    labels: NDArray[np.int64], found: NDArray[np.int64], times: NDArray[np.int64], n_clusters: int
) -> NDArray[np.float64]:
    """Return for each cluster of ``labels`` the Jaccard similarity with the most similar one of ``found``.

    It is NaN for a cluster without rows; ``times`` are the weights of the rows.
    """
    n_found = int(found.max()) + 1
    both = np.bincount(labels * n_found + found, weights=times, minlength=n_clusters * n_found).reshape(
        n_clusters, n_found
    )
    either = both.sum(axis=1, keepdims=True) + both.sum(axis=0) - both
    best = np.divide(both, either, out=np.zeros_like(both), where=either > 0).max(axis=1)
    best[both.sum(axis=1) == 0] = np.nan
    return np.asarray(best)
