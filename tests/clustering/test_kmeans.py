"""k-means and spherical k-means: weights are repetitions, centres are what they should be."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy import sparse

from coterie.clustering.kmeans import centroids, kmeans, spherical_kmeans, unit_rows
from coterie.clustering.partition import Partition


def _blobs(n: int, k: int, dimension: int = 6, seed: int = 0, noise: float = 0.05) -> tuple[np.ndarray, np.ndarray]:
    generator = np.random.default_rng(seed)
    centers = generator.normal(size=(k, dimension))
    groups = np.arange(n) % k
    return (centers[groups] + noise * generator.normal(size=(n, dimension))).astype(np.float32), groups


def _same_partition(first: np.ndarray, second: np.ndarray) -> bool:
    pairs = set(zip(first.tolist(), second.tolist(), strict=True))
    return len(pairs) == len({a for a, _ in pairs}) == len({b for _, b in pairs})


def _inertia(features: np.ndarray, partition: Partition, weights: np.ndarray) -> float:
    gaps = features - partition.centers[partition.labels]
    return float((weights * np.square(gaps).sum(axis=1)).sum())


BOTH = pytest.mark.parametrize("run", [kmeans, spherical_kmeans])


@BOTH
def test_groups_far_apart_are_found(run: Callable[..., Partition]) -> None:
    features, groups = _blobs(60, 4)
    partition = run(features, 4, seed=0)
    assert _same_partition(partition.labels, groups)
    assert partition.labels.dtype == np.int64
    assert partition.centers.dtype == np.float32
    assert partition.centers.shape == (4, 6)


@BOTH
def test_inertia_is_the_weighted_squared_distance_to_the_own_centre(run: Callable[..., Partition]) -> None:
    features = unit_rows(np.random.default_rng(0).normal(size=(50, 5))).astype(np.float32)
    weights = np.random.default_rng(1).integers(1, 6, size=50)
    partition = run(features, 4, weights=weights)
    assert partition.inertia == pytest.approx(_inertia(features, partition, weights), rel=1e-4)


@BOTH
def test_the_seed_decides(run: Callable[..., Partition]) -> None:
    features = np.random.default_rng(0).normal(size=(80, 5)).astype(np.float32)
    first, second = run(features, 6, seed=3, n_init=1), run(features, 6, seed=3, n_init=1)
    assert np.array_equal(first.labels, second.labels)
    assert np.array_equal(first.centers, second.centers)
    assert any(not _same_partition(first.labels, run(features, 6, seed=s, n_init=1).labels) for s in range(4, 9))


@BOTH
def test_weights_are_repetitions(run: Callable[..., Partition]) -> None:
    features, _ = _blobs(40, 4, noise=0.2)
    counts = np.random.default_rng(1).integers(1, 6, size=40)
    weighted = run(features, 4, weights=counts, seed=0)
    repeated = run(np.repeat(features, counts, axis=0), 4, seed=0)
    firsts = np.concatenate([[0], np.cumsum(counts)[:-1]])
    assert _same_partition(weighted.labels, repeated.labels[firsts])
    order = [int(repeated.labels[firsts][weighted.labels == k][0]) for k in range(4)]
    np.testing.assert_allclose(weighted.centers, repeated.centers[order], atol=1e-5)
    # Without the weights the centres are others, so the comparison means something.
    plain = run(features, 4, seed=0)
    assert np.abs(np.sort(plain.centers, axis=0) - np.sort(weighted.centers, axis=0)).max() > 1e-3


def test_given_centres_are_the_start() -> None:
    features = np.random.default_rng(0).normal(size=(70, 5)).astype(np.float32)
    counts = np.random.default_rng(1).integers(1, 6, size=70)
    start = features[[3, 14, 15, 9]]
    weighted = kmeans(features, 4, weights=counts, init=start, seed=0)
    repeated = kmeans(np.repeat(features, counts, axis=0), 4, init=start, seed=1)
    firsts = np.concatenate([[0], np.cumsum(counts)[:-1]])
    # From given centres nothing is random: the same ids, not only the same partition.
    assert np.array_equal(weighted.labels, repeated.labels[firsts])
    np.testing.assert_allclose(weighted.centers, repeated.centers, atol=1e-5)


def test_given_centres_keep_their_places() -> None:
    features, groups = _blobs(60, 3)
    truth = np.stack([features[groups == k].mean(axis=0) for k in range(3)])
    for order in itertools.permutations(range(3)):
        partition = kmeans(features, 3, init=truth[list(order)])
        np.testing.assert_allclose(partition.centers, truth[list(order)], atol=1e-5)
        assert np.array_equal(np.array(order)[partition.labels], groups)


def test_kmeans_ends_in_a_fixed_point() -> None:
    features = np.random.default_rng(0).normal(size=(70, 5)).astype(np.float32)
    weights = np.random.default_rng(1).integers(1, 6, size=70)
    partition = kmeans(features, 5, weights=weights)
    gaps = np.square(features[:, None] - partition.centers[None]).sum(axis=2)
    assert np.array_equal(partition.labels, gaps.argmin(axis=1))
    np.testing.assert_allclose(partition.centers, centroids(features, partition.labels, 5, weights), atol=1e-4)
    assert _inertia(features, partition, weights) < _inertia(features, kmeans(features, 4, weights=weights), weights)


def test_sparse_rows_cluster_like_dense_ones() -> None:
    features, _ = _blobs(50, 4, noise=0.1)
    features[np.abs(features) < 0.3] = 0
    for run in (kmeans, spherical_kmeans):
        dense, thin = run(features, 4, seed=0), run(sparse.csr_matrix(features), 4, seed=0)
        assert _same_partition(dense.labels, thin.labels)
        order = [int(thin.labels[dense.labels == k][0]) for k in range(4)]
        np.testing.assert_allclose(dense.centers, thin.centers[order], atol=1e-5)


# --- Spherical k-means ---


def _cosine_total(features: np.ndarray, partition: Partition, weights: np.ndarray) -> float:
    return float((weights * (unit_rows(features) * partition.centers[partition.labels]).sum(axis=1)).sum())


def test_spherical_centres_have_unit_length_and_rows_go_to_the_nearest_by_cosine() -> None:
    generator = np.random.default_rng(0)
    # Rows of very different lengths: Euclidean distance would go astray.
    features = generator.normal(size=(90, 5)) * generator.uniform(0.1, 20, size=(90, 1))
    partition = spherical_kmeans(features, 6)
    np.testing.assert_allclose(np.linalg.norm(partition.centers, axis=1), 1, atol=1e-6)
    cosine = unit_rows(features) @ partition.centers.T
    assert np.array_equal(partition.labels, cosine.argmax(axis=1))
    # A centre is the direction of its rows' sum.
    for k in range(6):
        total = unit_rows(features)[partition.labels == k].sum(axis=0)
        np.testing.assert_allclose(partition.centers[k], total / np.linalg.norm(total), atol=1e-5)


def test_length_is_nothing_to_spherical_kmeans() -> None:
    features, _ = _blobs(60, 4, noise=0.3)
    scale = np.random.default_rng(2).uniform(0.01, 100, size=(60, 1))
    assert np.array_equal(spherical_kmeans(features, 4).labels, spherical_kmeans(features * scale, 4).labels)


def test_spherical_kmeans_beats_random_partitions_and_restarts_help() -> None:
    features = np.random.default_rng(0).normal(size=(80, 6))
    weights = np.random.default_rng(1).integers(1, 5, size=80)
    best = _cosine_total(features, spherical_kmeans(features, 7, weights=weights, n_init=10), weights)
    for seed in range(20):
        labels = np.random.default_rng(seed).integers(0, 7, size=80)
        centers = unit_rows(centroids(unit_rows(features), labels, 7, weights)).astype(np.float32)
        assert _cosine_total(features, Partition(labels, centers, 0.0), weights) < best
    single = [
        _cosine_total(features, spherical_kmeans(features, 7, weights=weights, n_init=1, seed=s), weights)
        for s in range(8)
    ]
    assert best >= np.median(single)
    assert min(single) < best - 1e-6


def test_heavy_rows_are_likelier_starts_of_spherical_kmeans() -> None:
    features = unit_rows(np.random.default_rng(0).normal(size=(40, 5)))
    weights = np.ones(40)
    weights[17] = 1e9
    for seed in range(5):
        start = spherical_kmeans(features, 3, weights=weights, n_init=1, max_iter=0, seed=seed)
        assert np.abs(start.centers - features[17]).max(axis=1).min() < 1e-6


def test_rows_of_zeros_do_no_harm_to_spherical_kmeans() -> None:
    features, _ = _blobs(30, 3)
    features[:4] = 0
    partition = spherical_kmeans(features, 3)
    assert np.isfinite(partition.centers).all()
    assert set(partition.labels.tolist()) == {0, 1, 2}


# --- Small parts ---


@pytest.mark.parametrize("make", [np.asarray, sparse.csr_matrix])
def test_centroids_are_weighted_means(make: Callable[[Any], Any]) -> None:
    features = np.random.default_rng(0).normal(size=(7, 3))
    labels = np.array([0, 2, 0, 2, 2, 0, 0])
    weights = np.array([1, 2, 3, 4, 5, 6, 7])
    result = centroids(make(features), labels, 4, weights)
    for k in (0, 2):
        mine = labels == k
        np.testing.assert_allclose(result[k], np.average(features[mine], axis=0, weights=weights[mine]))
    assert np.array_equal(result[[1, 3]], np.zeros((2, 3)))  # nobody there
    np.testing.assert_allclose(centroids(make(features), labels, 4)[0], features[labels == 0].mean(axis=0))


def test_unit_rows_keep_zeros() -> None:
    rows = unit_rows(np.array([[3.0, 4.0], [0.0, 0.0]]))
    np.testing.assert_allclose(rows, [[0.6, 0.8], [0, 0]])
