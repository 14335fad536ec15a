"""The oracle itself: tiny cases worked out by hand, and what the equations must satisfy whatever the data."""

from __future__ import annotations

import math

import numpy as np
import pytest

from . import clusterbert_oracle as oracle
from . import sccl_oracle as sccl


def _random(*shape: int, seed: int = 0) -> sccl.FloatArray:
    return np.random.default_rng(seed).normal(size=shape)


def _random_p(n: int, n_clusters: int, seed: int = 0) -> sccl.FloatArray:
    return np.random.default_rng(seed).dirichlet(np.ones(n_clusters), size=n)


# --- Eq. 1 ---


def test_reconstruction_by_hand() -> None:
    # Scores are logarithms of 1 : 3 and 1 : 1, so the probabilities are 1/4, 3/4 and 1/2, 1/2.
    # Text 0: tokens 0 (1/4), 1 (1/2); text 1: last, 1 (3/4); the rest is ignored. Over tokens, not over texts:
    # (log 4 + log 2 + log 4/3) / 3; with weights 1 and 4: (log 4 + log 2 + 4 log 4/3) / 6.
    steep, flat = [math.log(1), math.log(3)], [7.0, 7.0]
    logits, targets = [[steep, flat, flat], [steep] * 3], [[0, 1, 1], [0, 0, 1]]
    is_token = [[1, 1, 0], [0, 0, 1]]
    eight, rest = math.log(8), math.log(4 / 3)
    assert oracle.reconstruction_loss(logits, targets, is_token) == pytest.approx((eight + rest) / 3, abs=1e-15)
    weighted = oracle.reconstruction_loss(logits, targets, is_token, [1.0, 4.0])
    assert weighted == pytest.approx((eight + 4 * rest) / 6, abs=1e-15)


# --- Eq. 2-4 ---


def test_head_by_hand() -> None:
    # Centroids (1, 2) and (0, -4): b = -5/2, -8. z = (3, 1): 3 + 2 - 5/2 = 5/2; 0 - 4 - 8 = -12.
    weight, bias = oracle.head_from_centroids([[1.0, 2.0], [0.0, -4.0]])
    assert weight.tolist() == [[1.0, 2.0], [0.0, -4.0]]
    assert bias.tolist() == [-2.5, -8.0]
    assert oracle.head_logits([[3.0, 1.0]], weight, bias).tolist() == [[2.5, -12.0]]
    p = oracle.cluster_probabilities([[0.0, math.log(3)]])
    assert p == pytest.approx(np.array([[0.25, 0.75]]), abs=1e-15)


def test_head_from_centroids_follows_half_the_squared_distance() -> None:
    z, centroids = _random(8, 3), _random(4, 3, seed=1)
    p = oracle.cluster_probabilities(oracle.head_logits(z, *oracle.head_from_centroids(centroids)))
    squared = ((z[:, None] - centroids[None]) ** 2).sum(axis=2)
    kernels = np.exp(-squared / 2)
    assert p == pytest.approx(kernels / kernels.sum(axis=1, keepdims=True), abs=1e-14)
    assert (p.argmax(axis=1) == squared.argmin(axis=1)).all()


def test_cluster_loss_by_hand() -> None:
    # Labels 1 and 0: -log 3/4 and -log 1/2; weights 3 and 1.
    p = [[0.25, 0.75], [0.5, 0.5]]
    one, two = math.log(4 / 3), math.log(2)
    q = oracle.one_hot([1, 0], 2)
    assert oracle.cluster_loss(p, q) == pytest.approx((one + two) / 2, abs=1e-15)
    assert oracle.cluster_loss(p, q, [3.0, 1.0]) == pytest.approx((3 * one + two) / 4, abs=1e-15)
    # Soft targets (1/2, 1/2) for the first: 1/2 log 4 + 1/2 log 4/3. The logarithm is of p, not of q.
    # Where the target has no mass the prediction may have none: 0 log 0 = 0.
    assert oracle.cluster_loss([[0.0, 1.0]], [[0.0, 1.0]]) == 0.0
    assert oracle.cluster_loss(p[:1], [[0.5, 0.5]]) == pytest.approx(0.5 * math.log(4) + 0.5 * one, abs=1e-15)


def test_stage_three_loss_is_the_divergence_plus_the_entropy_of_the_targets() -> None:
    p, q, weights = _random_p(5, 3), _random_p(5, 3, seed=1), [1.0, 2.0, 1.0, 4.0, 1.0]
    entropy = np.average(-(q * np.log(q)).sum(axis=1), weights=weights)
    expected = sccl.kl_divergence(q, p, weights) + entropy
    assert oracle.cluster_loss(p, q, weights) == pytest.approx(expected, abs=1e-14)


def test_full_loss_of_each_stage() -> None:
    full = [oracle.full_loss(10.0, 2.0, oracle.STAGE_LAMBDA[stage]) for stage in (1, 2, 3)]
    assert full == pytest.approx([2.0, 8.4, 8.0])
    without = [oracle.full_loss(10.0, 2.0, oracle.WITHOUT_RECONSTRUCTION[stage]) for stage in (1, 2, 3)]
    assert without == pytest.approx([2.0, 10.0, 10.0])


# --- Eq. 5 ---


def test_hardened_targets_by_hand() -> None:
    # p = (1/2, 1/2), (1/4, 3/4). Equal weights: f = 3/4, 5/4 -> (5/8, 3/8), (5/32, 27/32).
    # Weights 1 and 2: f = 1, 2 -> (1/4, 1/8), (1/16, 9/32) -> (2/3, 1/3), (2/11, 9/11).
    p = np.array([[0.5, 0.5], [0.25, 0.75]])
    assert oracle.hardened_targets(p) == pytest.approx(np.array([[5 / 8, 3 / 8], [5 / 32, 27 / 32]]), abs=1e-15)
    weighted = np.array([[2 / 3, 1 / 3], [2 / 11, 9 / 11]])
    assert oracle.hardened_targets(p, [1.0, 2.0]) == pytest.approx(weighted, abs=1e-15)


def test_hardened_targets_belong_to_the_corpus_not_to_the_batch() -> None:
    p, weights = _random_p(6, 3), [1.0, 2.0, 1.0, 5.0, 1.0, 3.0]
    whole = oracle.hardened_targets(p, weights)
    assert whole == pytest.approx(sccl.target_distribution(p, weights), abs=1e-14)
    assert np.abs(oracle.hardened_targets(p[:3], weights[:3]) - whole[:3]).max() > 1e-3
    empty = oracle.hardened_targets(np.column_stack([p, np.zeros(6)]), weights)
    assert empty == pytest.approx(np.column_stack([whole, np.zeros(6)]), abs=1e-14)


# --- Table 5 ---


def _matrix(pairs: dict[tuple[int, int], float]) -> sccl.FloatArray:
    matrix = np.eye(4)
    for (i, j), value in pairs.items():
        matrix[i, j] = matrix[j, i] = value
    return matrix


def test_pair_kinds_by_hand() -> None:
    # Labels 0, 0, 0, 1. Same label: (0,1), (0,2), (1,2); different: (0,3), (1,3), (2,3).
    # (0,1) 0.9 -> 0.8; (0,2) 0.2 -> 1.0, but 0.1 between; (1,2) 0.5 -> 0.7; (0,3) 0.6 -> 0.1; (1,3) 0.0 -> 0.3;
    # (2,3) stays at 0.4, so it neither rises nor falls.
    first = _matrix({(0, 1): 0.9, (0, 2): 0.2, (1, 2): 0.5, (0, 3): 0.6, (1, 3): 0.0, (2, 3): 0.4})
    middle = _matrix({(0, 1): 0.85, (0, 2): 0.1, (1, 2): 0.6, (0, 3): 0.9, (1, 3): 0.9, (2, 3): 0.9})
    last = _matrix({(0, 1): 0.8, (0, 2): 1.0, (1, 2): 0.7, (0, 3): 0.1, (1, 3): 0.3, (2, 3): 0.4})
    kinds = oracle.pair_kinds([first, middle, last], [0, 0, 0, 1])
    assert kinds == {
        "same_close": [(0, 1), (1, 2), (0, 2)],
        "same_rise": [(0, 2), (1, 2)],
        "different_rise": [(1, 3)],
        "different_fall": [(0, 3)],
        "same_fall": [(0, 1)],
    }
    # Without labels: changes 0.8, 0.3, 0.2 up; -0.5, -0.1 down.
    assert oracle.pair_kinds([first, middle, last]) == {"rise": [(0, 2), (1, 3), (1, 2)], "fall": [(0, 3), (0, 1)]}
    assert oracle.pair_kinds([first, last], [0, 0, 0, 1], count=1)["same_close"] == [(0, 1)]


def test_pair_kinds_lists_ten_of_each_and_breaks_ties_by_place() -> None:
    first, last = np.zeros((6, 6)), np.full((6, 6), 0.5)
    kinds = oracle.pair_kinds([first, last], [0] * 6)
    everything = [(i, j) for i in range(6) for j in range(i + 1, 6)]
    assert kinds["same_rise"] == kinds["same_close"] == everything[:10]


def test_cosine_matrix_by_hand() -> None:
    half = math.sqrt(0.5)
    expected = np.array([[1.0, 0.0, half], [0.0, 1.0, half], [half, half, 1.0]])
    assert oracle.cosine_matrix([[2.0, 0.0], [0.0, 3.0], [5.0, 5.0]]) == pytest.approx(expected, abs=1e-15)
