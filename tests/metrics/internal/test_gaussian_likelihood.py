"""The likelihood of points as spherical Gaussians: against loops, and under shifts, rotations and scaling."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from sklearn.cluster import KMeans

from coterie.metrics.internal.likelihood import gaussian_likelihood

Points = NDArray[np.float64]
Labels = NDArray[np.int64]


def _squared(one: Points, other: Points) -> float:
    return float(sum((a - b) ** 2 for a, b in zip(one.tolist(), other.tolist(), strict=True)))


def _likelihood(points: Points, labels: Labels) -> float:
    n, d = points.shape
    middle = sum(points) / n
    t = sum(_squared(point, middle) for point in points) / n
    total = 0.0
    for k in set(labels.tolist()):
        own = [points[i] for i in range(n) if labels[i] == k]
        mean = sum(own) / len(own)
        q = sum(_squared(point, mean) for point in own)
        v = (q + t) / ((len(own) + 1) * d)
        total += len(own) * math.log(len(own) / n) - len(own) * d / 2 * math.log(v) - q / (2 * v)
    return total / n


def _clouds(sizes: list[int], d: int, seed: int, apart: float = 6.0) -> tuple[Points, Labels]:
    random = np.random.default_rng(seed)
    labels = np.repeat(np.arange(len(sizes)), sizes)
    return apart * np.eye(len(sizes), d)[labels] + random.normal(size=(len(labels), d)), labels


def test_two_pairs_by_hand() -> None:
    points = np.array([[0.0], [2.0], [10.0], [12.0]])
    # The middle is 6, t = (36 + 16 + 16 + 36) / 4 = 26; each pair has q = 2 and v = 28 / 3.
    expected = math.log(0.5) - 0.5 * math.log(28 / 3) - 2 * 2 / (2 * 28 / 3) / 4
    assert gaussian_likelihood(points, np.array([0, 0, 1, 1])) == pytest.approx(expected, rel=1e-12)
    assert isinstance(gaussian_likelihood(points, np.array([0, 0, 1, 1])), float)


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10**6), st.integers(2, 30), st.integers(1, 6), st.integers(1, 6))
def test_against_loops(seed: int, n: int, d: int, k: int) -> None:
    random = np.random.default_rng(seed)
    labels = random.integers(k, size=n)
    points = random.normal(size=(n, d)) * random.uniform(0.1, 5) + 3 * random.normal(size=(k, d))[labels]
    assert gaussian_likelihood(points, labels) == pytest.approx(_likelihood(points, labels), rel=1e-8, abs=1e-10)


@pytest.mark.parametrize("sizes", [[40, 40, 40], [200, 5, 1], [1, 1, 1, 30]])
def test_against_loops_of_clouds(sizes: list[int]) -> None:
    points, labels = _clouds(sizes, 5, seed=0)
    assert gaussian_likelihood(points, labels) == pytest.approx(_likelihood(points, labels), rel=1e-9)


def test_moving_and_turning_change_nothing() -> None:
    points, labels = _clouds([30, 20, 10], 4, seed=1)
    before = gaussian_likelihood(points, labels)
    turn, _ = np.linalg.qr(np.random.default_rng(0).normal(size=(4, 4)))
    assert gaussian_likelihood(points + np.array([100.0, -20.0, 3.0, 0.5]), labels) == pytest.approx(before, rel=1e-8)
    assert gaussian_likelihood(points @ turn, labels) == pytest.approx(before, rel=1e-10)
    order = np.random.default_rng(0).permutation(60)
    assert gaussian_likelihood(points[order], labels[order]) == pytest.approx(before, rel=1e-10)


@pytest.mark.parametrize("times", [0.01, 3.0, 1000.0])
def test_stretching_changes_the_volume_alone(times: float) -> None:
    points, labels = _clouds([30, 20, 10], 4, seed=1)
    expected = gaussian_likelihood(points, labels) - 4 * math.log(times)
    assert gaussian_likelihood(times * points, labels) == pytest.approx(expected, rel=1e-9)


def test_names_and_numbers_left_out_change_nothing() -> None:
    points, labels = _clouds([30, 20, 10], 4, seed=2)
    before = gaussian_likelihood(points, labels)
    for names in ([2, 0, 1], [0, 2, 5], [7, 3, 9]):
        assert gaussian_likelihood(points, np.array(names)[labels]) == pytest.approx(before, rel=1e-12)


@pytest.mark.parametrize("seed", range(3))
def test_true_clouds_beat_shuffled_and_joined_ones(seed: int) -> None:
    points, labels = _clouds([50, 50, 50, 50], 6, seed)
    true = gaussian_likelihood(points, labels)
    assert true > gaussian_likelihood(points, np.random.default_rng(seed).permutation(labels)) + 1
    assert true > gaussian_likelihood(points, labels // 2) + 0.5
    one_moved = labels.copy()
    one_moved[0] = 1
    assert true > gaussian_likelihood(points, one_moved)


@pytest.mark.parametrize("seed", range(3))
def test_uneven_clouds_beat_an_even_cut(seed: int) -> None:
    random = np.random.default_rng(seed)
    wide, narrow = random.normal(size=(400, 2)), random.normal(scale=0.05, size=(40, 2)) + np.array([2.0, 0.0])
    points, truth = np.concatenate([wide, narrow]), np.repeat([0, 1], [400, 40])
    cut = KMeans(2, n_init=3, random_state=0).fit_predict(points).astype(np.int64)
    assert np.bincount(cut).min() > 150
    assert gaussian_likelihood(points, truth) > gaussian_likelihood(points, cut) + 0.05


def test_clusters_of_one_point_are_finite() -> None:
    points, _ = _clouds([6, 6], 3, seed=3)
    alone = np.arange(12)
    assert math.isfinite(gaussian_likelihood(points, alone))
    assert gaussian_likelihood(points, alone) == pytest.approx(_likelihood(points, alone), rel=1e-10)
    assert math.isfinite(gaussian_likelihood(points, np.repeat([0, 1], [1, 11])))


def test_equal_points_in_a_cluster_are_finite() -> None:
    points = np.repeat([[0.0, 1.0], [5.0, 5.0]], [4, 3], axis=0)
    labels = np.repeat([0, 1], [4, 3])
    assert gaussian_likelihood(points, labels) == pytest.approx(_likelihood(points, labels), rel=1e-12)


def test_far_from_the_origin_digits_are_not_lost() -> None:
    points, labels = _clouds([20, 20], 3, seed=4)
    assert gaussian_likelihood(points + 1e6, labels) == pytest.approx(gaussian_likelihood(points, labels), rel=1e-4)


def test_the_points_and_the_labels_are_left_as_they_are() -> None:
    points, labels = _clouds([20, 20], 3, seed=5)
    before = points.copy(), labels.copy()
    gaussian_likelihood(points, labels)
    assert np.array_equal(points, before[0]) and np.array_equal(labels, before[1])
