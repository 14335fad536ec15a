"""The oracle itself: tiny cases worked out by hand, and what the equations must satisfy whatever the data."""

from __future__ import annotations

import math

import numpy as np
import pytest

from . import sccl_oracle as sccl
from . import uftc_oracle as oracle


def test_average_pooling_by_hand() -> None:
    # The padding of the second text, 100s, does not enter.
    pad = [100.0, 100.0]
    hidden = [[[1.0, 2.0], [3.0, 6.0], [5.0, 1.0]], [[5.0, 7.0], pad, pad]]
    assert oracle.average_pooling(hidden, [[1, 1, 1], [1, 0, 0]]).tolist() == [[3.0, 3.0], [5.0, 7.0]]


def test_masked_language_loss_by_hand() -> None:
    # Probabilities 1/4, 3/4 (scores log 1, log 3) and 1/2, 1/2. Masked: text 0's token 0 (1/4) and token 1 (1/2),
    # text 1's last, token 1 (3/4). The mean is over tokens: (log 4 + log 2 + log 4/3) / 3.
    steep, flat = [math.log(1), math.log(3)], [7.0, 7.0]
    logits, ids, masked = [[steep, flat, flat], [steep] * 3], [[0, 1, 1], [0, 0, 1]], [[1, 1, 0], [0, 0, 1]]
    eight, rest = math.log(8), math.log(4 / 3)
    assert oracle.masked_language_loss(logits, ids, masked) == pytest.approx((eight + rest) / 3, abs=1e-15)
    weighted = oracle.masked_language_loss(logits, ids, masked, [1.0, 4.0])
    assert weighted == pytest.approx((eight + 4 * rest) / 6, abs=1e-15)
    assert oracle.masked_language_loss(logits, ids, np.zeros((2, 3))) == 0.0


def test_masked_language_loss_of_equal_scores_is_the_log_of_the_vocabulary() -> None:
    loss = oracle.masked_language_loss(np.zeros((2, 3, 5)), np.ones((2, 3), dtype=int), np.ones((2, 3)), [1.0, 7.0])
    assert loss == pytest.approx(math.log(5), abs=1e-15)


def test_cluster_loss_by_hand() -> None:
    # KL of (1/2, 1/2) from (1/4, 3/4) = 1/2 log(4/3); of (1, 0) from (1/2, 1/2) = log 2. A mean, not Eq. 2's sum.
    p, q = [[0.5, 0.5], [1.0, 0.0]], [[0.25, 0.75], [0.5, 0.5]]
    one, two = 0.5 * math.log(4 / 3), math.log(2)
    assert oracle.cluster_loss(p, q) == pytest.approx((one + two) / 2, abs=1e-15)
    assert oracle.cluster_loss(p, q, [3.0, 1.0]) == pytest.approx((3 * one + two) / 4, abs=1e-15)


def test_assignment_by_hand() -> None:
    # z = 0, centers 1 and 2: alpha 1: 1/2, 1/5 -> 5/7, 2/7; alpha 3: (4/3)^-2, (7/3)^-2 -> 49/65, 16/65
    assert oracle.student_t([[0.0]], [[1.0], [2.0]]) == pytest.approx(np.array([[5 / 7, 2 / 7]]), abs=1e-15)
    assert oracle.student_t([[0.0]], [[1.0], [2.0]], 3.0) == pytest.approx(np.array([[49 / 65, 16 / 65]]), abs=1e-15)
    assert oracle.labels([[0.2, 0.5, 0.3], [0.4, 0.4, 0.2], [0.1, 0.1, 0.8]]) == [1, 0, 2]


def test_target_by_hand() -> None:
    # q = (1/2, 1/2), (1/4, 3/4). Equal weights: f = 3/4, 5/4 -> (5/8, 3/8), (5/32, 27/32).
    # Weights 1 and 2: f = 1, 2 -> (1/4, 1/8), (1/16, 9/32) -> (2/3, 1/3), (2/11, 9/11).
    q = np.array([[0.5, 0.5], [0.25, 0.75]])
    assert oracle.target_distribution(q) == pytest.approx(np.array([[5 / 8, 3 / 8], [5 / 32, 27 / 32]]), abs=1e-15)
    weighted = np.array([[2 / 3, 1 / 3], [2 / 11, 9 / 11]])
    assert oracle.target_distribution(q, [1.0, 2.0]) == pytest.approx(weighted, abs=1e-15)


@pytest.mark.parametrize("alpha", [1.0, 10.0])
def test_clustering_equations_are_those_of_sccl(alpha: float) -> None:
    rng = np.random.default_rng(0)
    z, centers, weights = rng.normal(size=(6, 3)), rng.normal(size=(4, 3)), [1.0, 2.0, 1.0, 5.0, 1.0, 3.0]
    q = oracle.student_t(z, centers, alpha)
    p = oracle.target_distribution(q, weights)
    assert q == pytest.approx(sccl.student_t(z, centers, alpha), abs=1e-14)
    assert p == pytest.approx(sccl.target_distribution(q, weights), abs=1e-14)
    empty = oracle.target_distribution(np.column_stack([q, np.zeros(6)]), weights)
    assert empty == pytest.approx(np.column_stack([p, np.zeros(6)]), abs=1e-14)
    assert oracle.labels(q) == q.argmax(axis=1).tolist()
    # A batch of the corpus keeps the corpus's target and its own weights.
    batch = [4, 1, 3]
    expected = sccl.kl_divergence(p[batch], q[batch], [weights[i] for i in batch])
    assert oracle.cluster_loss(p[batch], q[batch], [weights[i] for i in batch]) == pytest.approx(expected, abs=1e-14)


def test_total_by_hand() -> None:
    assert oracle.uftc_total(2.0, 3.0) == 5.0
    assert oracle.uftc_total(2.0, 3.0, use_masked_language=False) == 3.0
