"""Clusters that are there are found again; halves of one are not."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from coterie.errors import InputError, SettingError
from coterie.metrics.internal.stability import cluster_stability


def _blobs(sizes: list[int], spread: float = 0.3, seed: int = 0) -> tuple[NDArray[Any], NDArray[Any]]:
    generator = np.random.default_rng(seed)
    labels = np.repeat(np.arange(len(sizes)), sizes)
    centers = 10 * np.eye(len(sizes), 8)
    return centers[labels] + spread * generator.normal(size=(len(labels), 8)), labels


def test_separate_blobs_are_stable() -> None:
    vectors, labels = _blobs([80, 80, 80])
    stability = cluster_stability(vectors, labels, 3)
    assert stability.shape == (3,)
    assert stability.dtype == np.float64
    assert (stability > 0.85).all()
    assert (stability <= 1).all()


def test_halves_of_one_blob_are_not() -> None:
    vectors, labels = _blobs([200, 100])
    halved = labels + 1
    # An arbitrary cut through the first blob: nothing in the vectors asks for it.
    halved[:200:2] = 0
    stability = cluster_stability(vectors, halved, 3)
    assert (stability[:2] < 0.6).all()
    assert stability[2] > stability[:2].max() + 0.1


def test_it_is_the_mean_of_the_largest_jaccard_similarities() -> None:
    # Two far groups; the given clusters take one row of the second into the first.
    vectors = np.array([[0.0], [0.1], [0.2], [9.0], [9.1], [9.2], [9.3]])
    labels = np.array([0, 0, 0, 0, 1, 1, 1])
    generator = np.random.default_rng(5)
    wanted: list[list[float]] = [[], []]
    for _ in range(4):
        draw = generator.integers(0, 7, 7)
        generator.integers(2**31)  # the seed of k-means, which finds these groups from any start
        found = [draw < 3, draw >= 3]
        for cluster in (0, 1):
            given = labels[draw] == cluster
            if given.any():
                wanted[cluster].append(max((given & each).sum() / (given | each).sum() for each in found))
    stability = cluster_stability(vectors, labels, 2, runs=4, seed=5)
    assert stability == pytest.approx([np.mean(each) for each in wanted])


def test_a_cluster_without_rows_has_no_stability() -> None:
    vectors, labels = _blobs([30, 30])
    labels[labels == 1] = 3
    labels[:5] = -1
    stability = cluster_stability(vectors, labels, 5)
    assert np.isnan(stability[[1, 2, 4]]).all()
    assert (stability[[0, 3]] > 0.85).all()


def test_a_cluster_that_is_never_sampled_has_no_stability() -> None:
    vectors, labels = _blobs([2_000, 2_000, 1])
    stability = cluster_stability(vectors, labels, 3, runs=1, sample=20)
    assert np.isnan(stability[2])
    assert np.isfinite(stability[:2]).all()


def test_odd_inputs() -> None:
    vectors, _ = _blobs([20, 20])
    everything = cluster_stability(vectors, np.zeros(40, dtype=np.int64), 1)
    assert everything == pytest.approx([1.0])
    assert cluster_stability(vectors[:1], np.array([0]), 1) == pytest.approx([1.0])
    assert np.isnan(cluster_stability(vectors, np.full(40, -1), 2)).all()
    assert cluster_stability(np.zeros((0, 4)), np.zeros(0, dtype=np.int64), 0).shape == (0,)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        alike = cluster_stability(np.ones((40, 4)), np.arange(40) % 4, 4)
    assert (alike < 0.5).all()


def test_a_thousand_clusters() -> None:
    generator = np.random.default_rng(0)
    labels = np.arange(3_000) % 1_000
    vectors = generator.normal(size=(1_000, 8))[labels] + 0.001 * generator.normal(size=(3_000, 8))
    stability = cluster_stability(vectors, labels, 1_000, runs=2)
    assert np.nanmean(stability) > 0.6
    assert np.nanmean(cluster_stability(vectors, generator.permutation(labels), 1_000, runs=2)) < 0.6


def test_the_same_seed_gives_the_same_values() -> None:
    vectors, labels = _blobs([60, 60, 60], spread=4.0)
    first = cluster_stability(vectors, labels, 3, seed=1, sample=100)
    assert np.array_equal(first, cluster_stability(vectors, labels, 3, seed=1, sample=100))
    assert not np.array_equal(first, cluster_stability(vectors, labels, 3, seed=2, sample=100))


def test_what_does_not_fit_is_refused() -> None:
    vectors, labels = _blobs([5, 5])
    with pytest.raises(InputError, match="10 labels|9 labels"):
        cluster_stability(vectors, labels[:9], 2)
    with pytest.raises(InputError, match="n_clusters=1 but a row is labelled 1"):
        cluster_stability(vectors, labels, 1)
    with pytest.raises(SettingError, match="runs=0"):
        cluster_stability(vectors, labels, 2, runs=0)
