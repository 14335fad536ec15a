"""k-means and spherical k-means on weighted rows."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from coterie.clustering.partition import Partition


def kmeans(
    features: Any,
    n_clusters: int,
    *,
    weights: NDArray[Any] | None = None,
    n_init: int = 10,
    init: NDArray[Any] | None = None,
    seed: int = 0,
    max_iter: int = 300,
) -> Partition:
    """Cluster rows by Lloyd's k-means (scikit-learn's).

    Parameters
    ----------
    features:
        An array, a sparse matrix or a torch tensor, one row per text. A tensor on a GPU is clustered there, by the same
        algorithm (:mod:`coterie.clustering.device_kmeans`).
    n_clusters:
        How many clusters.
    weights:
        Weight of each row; 1 by default.
    n_init:
        Restarts from k-means++ centres; the one with the least inertia is returned.
    init:
        Initial centres in place of k-means++, for a single run.
    seed:
        Seed of k-means++.
    max_iter:
        Most steps of a restart.
    """
    on_gpu = getattr(features, "is_cuda", None)  # None unless it is a tensor; this needs no import of torch
    if on_gpu:
        from coterie.clustering.device_kmeans import device_kmeans

        return device_kmeans(
            features, n_clusters, weights=weights, n_init=n_init, init=init, seed=seed, max_iter=max_iter
        )
    if on_gpu is not None:
        features = features.detach().cpu().numpy()
    from sklearn.cluster import KMeans

    model = KMeans(
        n_clusters,
        init="k-means++" if init is None else np.asarray(init, dtype=np.float32),
        n_init=n_init if init is None else 1,
        random_state=seed,
        max_iter=max_iter,
    )
    model.fit(features, sample_weight=None if weights is None else np.asarray(weights, dtype=np.float64))
    centers = np.asarray(model.cluster_centers_, dtype=np.float32)
    return Partition(model.labels_.astype(np.int64), centers, float(model.inertia_))


def spherical_kmeans(
    features: Any,
    n_clusters: int,
    *,
    weights: NDArray[Any] | None = None,
    n_init: int = 10,
    seed: int = 0,
    max_iter: int = 100,
) -> Partition:
    """Cluster rows by k-means on cosine similarity: rows and centres have unit length (Dhillon and Modha, 2001).

    The best of ``n_init`` restarts from k-means++ on the unit rows is returned: that with the largest total similarity.
    """
    from sklearn.cluster import kmeans_plusplus

    rows = unit_rows(features)
    mass = np.ones(rows.shape[0]) if weights is None else np.asarray(weights, dtype=np.float64)
    generator = np.random.RandomState(seed)
    best: tuple[float, Partition] | None = None
    for _ in range(n_init):
        centers, _ = kmeans_plusplus(rows, n_clusters, sample_weight=mass, random_state=generator)
        centers = unit_rows(np.asarray(centers.todense()) if not isinstance(centers, np.ndarray) else centers)
        labels = np.full(rows.shape[0], -1)
        for _ in range(max_iter):
            similarity = np.asarray(rows @ centers.T)
            updated = similarity.argmax(axis=1)
            if np.array_equal(updated, labels):
                break
            labels = updated
            centers = _directions(rows, labels, mass, centers)
        similarity = np.asarray(rows @ centers.T)
        labels = similarity.argmax(axis=1)
        score = float((mass * similarity.max(axis=1)).sum())
        if best is None or score > best[0] + 1e-12:
            # On unit vectors the squared distance is 2 - 2 cosine.
            inertia = 2 * (float(mass.sum()) - score)
            best = score, Partition(labels.astype(np.int64), centers.astype(np.float32), inertia)
    assert best is not None
    return best[1]


def centroids(
    features: Any, labels: NDArray[np.int64], n_clusters: int, weights: NDArray[Any] | None = None
) -> NDArray[np.float64]:
    """Return the weighted mean of each cluster's rows; zeros for a cluster without rows."""
    from scipy import sparse

    mass = np.ones(len(labels)) if weights is None else np.asarray(weights, dtype=np.float64)
    membership = sparse.csr_matrix((mass, (labels, np.arange(len(labels)))), shape=(n_clusters, len(labels)))
    sums = membership @ features
    dense = np.asarray(sums.todense()) if sparse.issparse(sums) else np.asarray(sums, dtype=np.float64)
    return dense / np.maximum(np.asarray(membership.sum(axis=1)), 1e-12)


def unit_rows(features: Any) -> Any:
    """Scale rows, dense or sparse, to length one; rows of zeros stay zero."""
    from sklearn.preprocessing import normalize

    return normalize(features)


def _directions(
    rows: Any, labels: NDArray[np.int64], mass: NDArray[np.float64], previous: NDArray[Any]
) -> NDArray[np.float64]:
    """Return new unit centres; a cluster without rows keeps its old one."""
    means = centroids(rows, labels, len(previous), mass)
    lengths = np.linalg.norm(means, axis=1, keepdims=True)
    return np.where(lengths > 1e-12, means / np.maximum(lengths, 1e-12), previous)
