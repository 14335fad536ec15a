"""The oracle itself: tiny cases worked out by hand, and what the equations must satisfy whatever the data."""

from __future__ import annotations

import math

import numpy as np
import pytest

from . import sccl_oracle as oracle


def _random(*shape: int, seed: int = 0) -> oracle.FloatArray:
    return np.random.default_rng(seed).normal(size=shape)


def _random_q(m: int, n_clusters: int, seed: int = 0) -> oracle.FloatArray:
    return np.random.default_rng(seed).dirichlet(np.ones(n_clusters), size=m)


# --- Eq. 1-2 ---


def test_nt_xent_by_hand() -> None:
    # Two instances, each augmented to itself: z = (1,0), (0,1), (1,0), (0,1); temperature 0.5.
    # Every anchor sees its positive at sim 1 -> e^2, and two negatives at sim 0 -> e^0 = 1 each.
    # loss = -log(e^2 / (e^2 + 1 + 1)) = log(e^2 + 2) - 2 = log(9.3890561) - 2 = 0.2395448
    z = np.array([[1.0, 0.0], [0.0, 1.0]])
    expected = math.log(math.e**2 + 2) - 2
    assert expected == pytest.approx(0.2395448, abs=1e-7)
    assert oracle.nt_xent(z, z, 0.5) == pytest.approx(expected, abs=1e-14)


def test_nt_xent_by_hand_when_the_anchors_differ() -> None:
    # first = (2,0), (0,3); second = (0,1), (0,5). Normalised: a=(1,0), b=(0,1), a'=(0,1), b'=(0,1).
    # Temperature 1, e^sim is e for equal directions and 1 for orthogonal ones.
    # a : positive a' 1; others b 1, b' 1           -> -log(1 / 3)        = log 3
    # b : positive b' e; others a 1, a' e           -> -log(e / (2e + 1)) = log(2e + 1) - 1
    # a': positive a  1; others b e, b' e           -> -log(1 / (2e + 1)) = log(2e + 1)
    # b': positive b  e; others a 1, a' e           -> log(2e + 1) - 1
    first = np.array([[2.0, 0.0], [0.0, 3.0]])
    second = np.array([[0.0, 1.0], [0.0, 5.0]])
    big = math.log(2 * math.e + 1)
    losses = oracle.nt_xent_anchor_losses(first, second, 1.0)
    assert losses == pytest.approx([math.log(3), big - 1, big, big - 1], abs=1e-14)
    # Mean: (log 3 + 3 log(2e + 1) - 2) / 4
    assert oracle.nt_xent(first, second, 1.0) == pytest.approx((math.log(3) + 3 * big - 2) / 4, abs=1e-14)
    # Weights 3 and 1: instance a's two anchors count three times, b's once; 2 * (3 + 1) = 8 anchors.
    # (3 log 3 + 3 log(2e + 1) + 2 (log(2e + 1) - 1)) / 8
    expected = (3 * math.log(3) + 3 * big + 2 * (big - 1)) / 8
    assert oracle.nt_xent(first, second, 1.0, [3.0, 1.0]) == pytest.approx(expected, abs=1e-14)


@pytest.mark.parametrize("temperature", [0.1, 0.5, 1.0])
@pytest.mark.parametrize("m", [1, 2, 7])
def test_nt_xent_of_equal_outputs_is_the_log_of_the_other_examples(m: int, temperature: float) -> None:
    same = np.ones((m, 3))
    # All 2M - 1 terms of the denominator equal the numerator: -log(1 / (2M - 1)).
    assert oracle.nt_xent(same, same, temperature) == pytest.approx(math.log(2 * m - 1), abs=1e-12)


def test_nt_xent_of_one_instance_is_zero() -> None:
    # Without negatives the denominator is the numerator.
    assert oracle.nt_xent(_random(1, 4), _random(1, 4, seed=1), 0.5) == pytest.approx(0.0, abs=1e-15)


def test_nt_xent_ignores_the_length_of_each_row() -> None:
    first, second = _random(5, 3), _random(5, 3, seed=1)
    scales = np.array([[0.01], [1.0], [7.0], [1e3], [2.0]])
    expected = oracle.nt_xent(first, second, 0.5)
    assert oracle.nt_xent(first * scales, second, 0.5) == pytest.approx(expected, abs=1e-12)
    assert oracle.nt_xent(first, second * scales, 0.5) == pytest.approx(expected, abs=1e-12)


def test_nt_xent_ignores_order_views_and_rotation() -> None:
    first, second = _random(6, 3), _random(6, 3, seed=1)
    weights = np.array([1.0, 2.0, 5.0, 1.0, 3.0, 1.0])
    expected = oracle.nt_xent(first, second, 0.5, weights)
    order = np.array([3, 1, 5, 0, 4, 2])
    rotation, _ = np.linalg.qr(_random(3, 3, seed=2))
    permuted = oracle.nt_xent(first[order], second[order], 0.5, weights[order])
    assert permuted == pytest.approx(expected, abs=1e-12)
    assert oracle.nt_xent(second, first, 0.5, weights) == pytest.approx(expected, abs=1e-12)
    assert oracle.nt_xent(first @ rotation, second @ rotation, 0.5, weights) == pytest.approx(expected, abs=1e-12)


def test_nt_xent_notices_broken_pairs() -> None:
    first = _random(6, 3)
    second = first + 0.01 * _random(6, 3, seed=1)
    assert oracle.nt_xent(first, second, 0.5) < oracle.nt_xent(first, np.roll(second, 1, axis=0), 0.5)


# --- Eq. 3 ---


def test_student_t_by_hand() -> None:
    # e = 0, centers 1 and 2 on a line: squared distances 1 and 4.
    # alpha 1: (1 + 1)^-1 = 1/2, (1 + 4)^-1 = 1/5; sum 7/10 -> 5/7, 2/7
    assert oracle.student_t([[0.0]], [[1.0], [2.0]], 1.0) == pytest.approx(np.array([[5 / 7, 2 / 7]]), abs=1e-15)
    # alpha 3: (1 + 1/3)^-2 = 9/16, (1 + 4/3)^-2 = 9/49; ratio 49 : 16 -> 49/65, 16/65
    assert oracle.student_t([[0.0]], [[1.0], [2.0]], 3.0) == pytest.approx(np.array([[49 / 65, 16 / 65]]), abs=1e-15)
    # On a center: 1 and, at (3,4), (1 + 25)^-1 = 1/26; sum 27/26 -> 26/27, 1/27
    on_center = oracle.student_t([[0.0, 0.0]], [[0.0, 0.0], [3.0, 4.0]], 1.0)
    assert on_center == pytest.approx(np.array([[26 / 27, 1 / 27]]), abs=1e-15)


@pytest.mark.parametrize("alpha", [1.0, 10.0])
def test_student_t_rows_are_distributions_that_prefer_the_nearest_center(alpha: float) -> None:
    embeddings, centers = _random(8, 3), _random(4, 3, seed=1)
    q = oracle.student_t(embeddings, centers, alpha)
    assert q.shape == (8, 4)
    assert (q > 0).all()
    assert q.sum(axis=1) == pytest.approx(np.ones(8), abs=1e-14)
    distances = np.linalg.norm(embeddings[:, None] - centers[None], axis=2)
    assert (q.argmax(axis=1) == distances.argmin(axis=1)).all()


def test_student_t_follows_permutations_and_ignores_translation() -> None:
    embeddings, centers = _random(6, 3), _random(4, 3, seed=1)
    q = oracle.student_t(embeddings, centers, 1.0)
    rows, columns = np.array([2, 0, 5, 1, 4, 3]), np.array([3, 1, 0, 2])
    permuted = oracle.student_t(embeddings[rows], centers[columns], 1.0)
    assert permuted == pytest.approx(q[rows][:, columns], abs=1e-14)
    assert oracle.student_t(embeddings + 5.0, centers + 5.0, 1.0) == pytest.approx(q, abs=1e-12)


def test_student_t_of_equal_centers_is_uniform() -> None:
    q = oracle.student_t(_random(3, 2), np.zeros((5, 2)), 1.0)
    assert q == pytest.approx(np.full((3, 5), 0.2), abs=1e-15)


# --- Eq. 4 ---


def test_target_distribution_by_hand() -> None:
    # q = (1/2, 1/2), (1/4, 3/4); f = 3/4, 5/4.
    # Row 1: (1/4)/(3/4) = 1/3, (1/4)/(5/4) = 1/5; sum 8/15       -> 5/8, 3/8
    # Row 2: (1/16)/(3/4) = 1/12, (9/16)/(5/4) = 9/20; sum 32/60  -> (5/60)/(32/60) = 5/32, 27/32
    q = np.array([[0.5, 0.5], [0.25, 0.75]])
    expected = np.array([[5 / 8, 3 / 8], [5 / 32, 27 / 32]])
    assert oracle.target_distribution(q) == pytest.approx(expected, abs=1e-15)
    # Weights 1 and 2: f = 1/2 + 2/4 = 1, 1/2 + 6/4 = 2.
    # Row 1: 1/4, 1/8 -> 2/3, 1/3.  Row 2: 1/16, 9/32; sum 11/32 -> 2/11, 9/11
    expected = np.array([[2 / 3, 1 / 3], [2 / 11, 9 / 11]])
    assert oracle.target_distribution(q, [1.0, 2.0]) == pytest.approx(expected, abs=1e-15)


@pytest.mark.parametrize("n_clusters", [2, 5])
def test_target_of_uniform_is_uniform(n_clusters: int) -> None:
    uniform = np.full((4, n_clusters), 1 / n_clusters)
    assert oracle.target_distribution(uniform) == pytest.approx(uniform, abs=1e-15)
    assert oracle.target_distribution(uniform, [1.0, 2.0, 3.0, 4.0]) == pytest.approx(uniform, abs=1e-15)


def test_target_of_one_instance_is_the_assignment_itself() -> None:
    # M = 1: f_k = q_k, so q_k^2 / f_k = q_k.
    q = _random_q(1, 4)
    assert oracle.target_distribution(q) == pytest.approx(q, abs=1e-15)


def test_target_rows_are_distributions_and_follow_permutations() -> None:
    q = _random_q(6, 3)
    weights = np.array([1.0, 2.0, 5.0, 1.0, 3.0, 1.0])
    p = oracle.target_distribution(q, weights)
    assert p.sum(axis=1) == pytest.approx(np.ones(6), abs=1e-14)
    rows, columns = np.array([2, 0, 5, 1, 4, 3]), np.array([2, 0, 1])
    permuted = oracle.target_distribution(q[rows][:, columns], weights[rows])
    assert permuted == pytest.approx(p[rows][:, columns], abs=1e-14)


def test_target_sharpens_when_the_clusters_are_equally_frequent() -> None:
    q = np.array([[0.7, 0.3], [0.3, 0.7]])
    # f = 1, 1: 0.49 / (0.49 + 0.09) = 0.49 / 0.58 > 0.7
    assert oracle.target_distribution(q)[0, 0] == pytest.approx(0.49 / 0.58, abs=1e-15)


def test_target_of_a_cluster_without_members_is_zero() -> None:
    q = np.array([[0.5, 0.5, 0.0], [0.25, 0.75, 0.0]])
    p = oracle.target_distribution(q)
    assert (p[:, 2] == 0).all()
    assert p[:, :2] == pytest.approx(oracle.target_distribution(q[:, :2]), abs=1e-15)


def test_target_weight_two_is_the_row_twice() -> None:
    q = _random_q(3, 4)
    twice = oracle.target_distribution(q[[0, 1, 1, 2]])
    assert oracle.target_distribution(q, [1.0, 2.0, 1.0]) == pytest.approx(twice[[0, 1, 3]], abs=1e-14)
    assert oracle.target_distribution(q, [3.0, 3.0, 3.0]) == pytest.approx(oracle.target_distribution(q), abs=1e-14)


# --- Eq. 5-6 ---


def test_kl_by_hand() -> None:
    # Row 1: p = (1/2, 1/2), q = (1/4, 3/4): 1/2 log 2 + 1/2 log(2/3) = 1/2 log(4/3)
    # Row 2: p = (1, 0),     q = (1/2, 1/2): log 2 + 0 = log 2
    p = np.array([[0.5, 0.5], [1.0, 0.0]])
    q = np.array([[0.25, 0.75], [0.5, 0.5]])
    one, two = 0.5 * math.log(4 / 3), math.log(2)
    assert oracle.kl_divergence(p, q) == pytest.approx((one + two) / 2, abs=1e-15)
    assert oracle.kl_divergence(p, q, [3.0, 1.0]) == pytest.approx((3 * one + two) / 4, abs=1e-15)
    # The two arguments are not interchangeable: KL[q_1 || p_1] = 1/4 log(1/2) + 3/4 log(3/2)
    other_way = 0.25 * math.log(0.5) + 0.75 * math.log(1.5)
    assert oracle.kl_divergence(q[:1], p[:1]) == pytest.approx(other_way, abs=1e-15)
    assert oracle.kl_divergence(q[1:], p[1:]) == math.inf


def test_kl_is_zero_for_equal_distributions_and_positive_otherwise() -> None:
    for seed in range(10):
        p, q = _random_q(4, 3, seed=seed), _random_q(4, 3, seed=seed + 100)
        assert oracle.kl_divergence(p, p) == 0.0
        for j in range(4):
            assert oracle.kl_row(p[j], q[j]) > 0.0
        assert oracle.kl_divergence(p, q) > 0.0


def test_kl_ignores_order_and_weight_two_is_the_row_twice() -> None:
    p, q = _random_q(4, 3), _random_q(4, 3, seed=1)
    rows, columns = np.array([2, 0, 3, 1]), np.array([2, 0, 1])
    expected = oracle.kl_divergence(p, q)
    assert oracle.kl_divergence(p[rows][:, columns], q[rows][:, columns]) == pytest.approx(expected, abs=1e-14)
    twice = oracle.kl_divergence(p[[0, 1, 1, 2, 3]], q[[0, 1, 1, 2, 3]])
    assert oracle.kl_divergence(p, q, [1.0, 2.0, 1.0, 1.0]) == pytest.approx(twice, abs=1e-14)


# --- Eq. 7-9 ---


def test_alternatives_by_hand() -> None:
    # With M = 1 a target is its own assignment: p = q (see above).
    # q_1 = (1/2, 1/2), q_2 = (1/4, 3/4), q_0 = (1/2, 1/2)
    # KL[q_1 || q_2] = 1/2 log(4/3); KL[q_2 || q_1] = 1/4 log(1/2) + 3/4 log(3/2); KL[q_0 || q_1] = 0
    q_1, q_2 = np.array([[0.5, 0.5]]), np.array([[0.25, 0.75]])
    forward = 0.5 * math.log(4 / 3)
    backward = 0.25 * math.log(0.5) + 0.75 * math.log(1.5)
    assert oracle.alternative_1(q_1, q_2) == pytest.approx(forward + backward, abs=1e-15)
    assert oracle.alternative_2(q_1, q_1, q_2) == pytest.approx(forward, abs=1e-15)


def test_alternatives_are_sums_of_two_clustering_losses() -> None:
    q_0, q_1, q_2 = (_random_q(5, 3, seed=seed) for seed in range(3))
    weights = [1.0, 2.0, 1.0, 4.0, 1.0]
    p_0, p_1, p_2 = (oracle.target_distribution(q, weights) for q in (q_0, q_1, q_2))
    crossed = oracle.kl_divergence(p_1, q_2, weights) + oracle.kl_divergence(p_2, q_1, weights)
    anchored = oracle.kl_divergence(p_0, q_1, weights) + oracle.kl_divergence(p_0, q_2, weights)
    assert oracle.alternative_1(q_1, q_2, weights) == pytest.approx(crossed, abs=1e-14)
    assert oracle.alternative_1(q_2, q_1, weights) == pytest.approx(crossed, abs=1e-14)
    assert oracle.alternative_2(q_0, q_1, q_2, weights) == pytest.approx(anchored, abs=1e-14)
    assert oracle.alternative_2(q_0, q_2, q_1, weights) == pytest.approx(anchored, abs=1e-14)


def test_total_puts_eta_on_the_contrastive_term() -> None:
    # z as in the first case: instance = log(e^2 + 2) - 2. e = 0 and 2 with centers 0 and 2, alpha 1:
    # kernels 1 and 1/5 -> q = (5/6, 1/6), (1/6, 5/6); f = 1, 1;
    # p = (25/36, 1/36) / (26/36) = (25/26, 1/26), and mirrored.
    # KL of both rows = 25/26 log((25/26) / (5/6)) + 1/26 log((1/26) / (1/6))
    #                 = 25/26 log(15/13) + 1/26 log(3/13)
    z = np.array([[1.0, 0.0], [0.0, 1.0]])
    points = np.array([[0.0], [2.0]])
    instance = math.log(math.e**2 + 2) - 2
    cluster = 25 / 26 * math.log(15 / 13) + 1 / 26 * math.log(3 / 13)
    total = oracle.sccl_total(points, points, z, z, temperature=0.5, alpha=1.0, eta=10.0)
    assert total == pytest.approx(cluster + 10 * instance, abs=1e-14)
    assert oracle.sccl_total(points, points, z, z, eta=0.0) == pytest.approx(cluster, abs=1e-14)


def test_total_takes_a_fixed_target_and_weights() -> None:
    embeddings, centers = _random(4, 3), _random(2, 3, seed=1)
    first, second = _random(4, 5, seed=2), _random(4, 5, seed=3)
    weights = [1.0, 2.0, 3.0, 1.0]
    q = oracle.student_t(embeddings, centers, 10.0)
    p = oracle.target_distribution(q, weights)
    free = oracle.sccl_total(embeddings, centers, first, second, alpha=10.0, weights=weights)
    fixed = oracle.sccl_total(embeddings, centers, first, second, alpha=10.0, weights=weights, target=p)
    by_parts = oracle.kl_divergence(p, q, weights) + 10.0 * oracle.nt_xent(first, second, 0.5, weights)
    assert free == fixed == pytest.approx(by_parts, abs=1e-14)


# --- weights and the differentiator ---


@pytest.mark.parametrize("weights", [[1.0], [1.0, 0.0, 1.0], [1.0, -1.0, 1.0]])
def test_weights_must_be_positive_and_one_per_instance(weights: list[float]) -> None:
    with pytest.raises(ValueError, match="3 positive numbers"):
        oracle.kl_divergence(_random_q(3, 2), _random_q(3, 2), weights)


def test_nt_xent_weight_two_is_the_anchor_term_twice() -> None:
    first, second = _random(3, 4), _random(3, 4, seed=1)
    terms = oracle.nt_xent_anchor_losses(first, second, 0.5)
    # The anchors of instance 1 are terms 1 and 4; the negatives stay those of the batch.
    twice = [*terms, terms[1], terms[4]]
    assert oracle.nt_xent(first, second, 0.5, [1.0, 2.0, 1.0]) == pytest.approx(sum(twice) / 8, abs=1e-14)
    plain = oracle.nt_xent(first, second, 0.5)
    assert plain == pytest.approx(sum(terms) / 6, abs=1e-14)
    assert oracle.nt_xent(first, second, 0.5, [4.0, 4.0, 4.0]) == pytest.approx(plain, abs=1e-14)


def test_numerical_gradient_of_a_polynomial() -> None:
    # f = sum of x^3 + x_00 x_11: df/dx = 3 x^2, plus the other factor in the corners.
    point = np.array([[1.0, -2.0], [0.5, 3.0]])
    before = point.copy()
    gradient = oracle.numerical_gradient(lambda x: float((x**3).sum() + x[0, 0] * x[1, 1]), point)
    assert gradient == pytest.approx(np.array([[3.0 + 3.0, 12.0], [0.75, 27.0 + 1.0]]), abs=1e-7)
    assert (point == before).all()


def test_numerical_gradient_of_kl_is_minus_p_over_q() -> None:
    # dL/dq_jk = -p_jk / (M q_jk)
    p, q = _random_q(3, 4), _random_q(3, 4, seed=1)
    gradient = oracle.numerical_gradient(lambda x: oracle.kl_divergence(p, x), q)
    assert gradient == pytest.approx(-p / q / 3, rel=1e-6)
