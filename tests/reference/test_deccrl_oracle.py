"""The oracle itself: tiny cases worked out by hand, and what the equations must satisfy whatever the data."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt
import pytest

from . import deccrl_oracle as oracle
from . import sccl_oracle as sccl

E = math.e


def _random(*shape: int, seed: int = 0) -> sccl.FloatArray:
    return np.random.default_rng(seed).normal(size=shape)


# --- Eq. 1-4 ---


def test_linear_by_hand() -> None:
    # (1, 2): 3 * 1 + 4 * 2 + 5 = 16; 0 * 1 - 1 * 2 + 1 = -1, which only ReLU removes.
    y = oracle.linear([[1.0, 2.0]], [[3.0, 4.0], [0.0, -1.0]], [5.0, 1.0])
    assert y.tolist() == [[16.0, -1.0]]
    assert oracle.relu(y).tolist() == [[16.0, 0.0]]
    assert oracle.linear([[1.0, 2.0]], [[3.0, 4.0]]).tolist() == [[11.0]]


def test_contrast_by_hand() -> None:
    # Directions: first = (1,0), (0,1); second = (0,1), (0,1); temperature 1.
    # Printed: text 0: 1 / 1 (other text's second) -> 0, and 1 / e (other text's first) -> 1.
    #          text 1: e / e -> 0, and e / 1 (other text's first is orthogonal) -> -1.
    first, second = np.array([[2.0, 0.0], [0.0, 3.0]]), np.array([[0.0, 1.0], [0.0, 5.0]])
    assert oracle.contrast(first, second, 1.0, printed=True) == pytest.approx((1 - 1) / 2, abs=1e-14)
    assert oracle.contrast(first, second, 1.0, [3.0, 1.0], printed=True) == pytest.approx((3 - 1) / 4, abs=1e-14)
    # NT-Xent: text 0: log 3 and log(2e + 1); text 1: log(2e + 1) - 1, twice.
    big = math.log(2 * E + 1)
    text_0, text_1 = math.log(3) + big, 2 * (big - 1)
    assert oracle.contrast(first, second, 1.0) == pytest.approx((text_0 + text_1) / 2, abs=1e-14)
    assert oracle.contrast(first, second, 1.0, [3.0, 1.0]) == pytest.approx((3 * text_0 + text_1) / 4, abs=1e-14)


def test_contrast_is_twice_that_of_sccl() -> None:
    first, second, weights = _random(5, 3), _random(5, 3, seed=1), [1.0, 2.0, 1.0, 5.0, 1.0]
    expected = 2 * sccl.nt_xent(first, second, 0.5, weights)
    assert oracle.contrast(first, second, 0.5, weights) == pytest.approx(expected, abs=1e-13)


# --- Eq. 5-9 ---


def test_cluster_selection_by_hand() -> None:
    # h = 0, centers 1 and 2: alpha 1: 1/2, 1/5 -> 5/7, 2/7; alpha 3: (4/3)^-2, (7/3)^-2 -> 49/65, 16/65
    assert oracle.student_t([[0.0]], [[1.0], [2.0]], 1.0) == pytest.approx(np.array([[5 / 7, 2 / 7]]), abs=1e-15)
    assert oracle.student_t([[0.0]], [[1.0], [2.0]], 3.0) == pytest.approx(np.array([[49 / 65, 16 / 65]]), abs=1e-15)
    # o = (1/2, 1/2), (1/4, 3/4); f = 3/4, 5/4: row 1: 1/3, 1/5 -> 5/8, 3/8; row 2: 1/12, 9/20 -> 5/32, 27/32
    # The printed denominator, with o_ik in the place of o_ik', would not make the rows sum to 1.
    o = np.array([[0.5, 0.5], [0.25, 0.75]])
    expected = np.array([[5 / 8, 3 / 8], [5 / 32, 27 / 32]])
    assert oracle.target_distribution(o) == pytest.approx(expected, abs=1e-15)
    # KL of (1/2, 1/2) from (1/4, 3/4) = 1/2 log(4/3); of (1, 0) from (1/2, 1/2) = log 2; weights 3 and 1.
    t = np.array([[0.5, 0.5], [1.0, 0.0]])
    loss = oracle.cluster_loss(t, [[0.25, 0.75], [0.5, 0.5]], [3.0, 1.0])
    assert loss == pytest.approx((1.5 * math.log(4 / 3) + math.log(2)) / 4, abs=1e-15)


@pytest.mark.parametrize("alpha", [1.0, 10.0])
def test_cluster_selection_is_that_of_sccl(alpha: float) -> None:
    h, centers, weights = _random(6, 3), _random(4, 3, seed=1), [1.0, 2.0, 1.0, 5.0, 1.0, 3.0]
    o = oracle.student_t(h, centers, alpha)
    t = oracle.target_distribution(o, weights)
    assert o == pytest.approx(sccl.student_t(h, centers, alpha), abs=1e-14)
    assert t == pytest.approx(sccl.target_distribution(o, weights), abs=1e-14)
    empty = oracle.target_distribution(np.column_stack([o, np.zeros(6)]), weights)
    assert empty == pytest.approx(np.column_stack([t, np.zeros(6)]), abs=1e-14)
    assert oracle.cluster_loss(t, o, weights) == pytest.approx(sccl.kl_divergence(t, o, weights), abs=1e-14)


def test_printed_assignment_is_nearly_uniform_and_names_the_same_cluster() -> None:
    o = np.random.default_rng(0).dirichlet(np.ones(5), size=20)
    s = oracle.printed_assignment(o)
    assert s.sum(axis=1) == pytest.approx(np.ones(20))
    assert (s.argmax(axis=1) == o.argmax(axis=1)).all()
    assert (s.max(axis=1) / s.min(axis=1)).max() <= E


# --- Eq. 10-13 ---


def test_topic_embeddings_by_hand() -> None:
    # c = 1, 2; u = 10, 20; one output 3 c - u + 5: the center comes first, and every center meets every topic.
    alpha = oracle.topic_embeddings([[1.0], [2.0]], [[10.0], [20.0]], [[3.0, -1.0]], [5.0])
    assert alpha[:, :, 0].tolist() == [[-2.0, -12.0], [1.0, -9.0]]


def test_word_distributions_by_hand() -> None:
    # rho = log 2, 0, log 4 (E = 1), alpha of one cluster 2 and -1:
    # topic 1: 4, 1, 16 -> /21; topic 2: 1/2, 1, 1/4 -> 2/7, 4/7, 1/7. The words of a topic sum to 1.
    beta = oracle.word_distributions([[math.log(2)], [0.0], [math.log(4)]], [[[2.0], [-1.0]]])
    assert beta == pytest.approx(np.array([[[4, 6], [1, 12], [16, 3]]]) / 21, abs=1e-15)


# One text, two clusters, words and topics.
BETA = np.array([[[1 / 2, 1 / 4], [1 / 2, 3 / 4]], [[1.0, 1 / 2], [0.0, 1 / 2]]])
MU, LOGVAR, NOISE = [[1.0, 0.0]], [[0.0, math.log(4)]], [[-1.0, math.log(2) / 2]]
# Sample: 1 - 1 * 1 = 0, 0 + log 2 / 2 * 2 = log 2: theta = (1/3, 2/3).
# beta_1 theta = (1/3, 2/3); beta_2 theta = (2/3, 1/3); o = (1/4, 3/4): p = (7/12, 5/12).
# KL: 1/2 (1 + 1 - 0 - 1) + 1/2 (0 + 4 - log 4 - 1) = 2 - log 2.
NEGATIVE_ELBO = -2 * math.log(7 / 12) - math.log(5 / 12) + 2 - math.log(2)


def test_reconstruction_by_hand() -> None:
    theta = oracle.topic_proportions(MU, LOGVAR, NOISE)
    assert theta == pytest.approx(np.array([[1 / 3, 2 / 3]]), abs=1e-15)
    p = oracle.word_probabilities([[0.25, 0.75]], BETA, theta)
    assert p == pytest.approx(np.array([[7 / 12, 5 / 12]]), abs=1e-15)
    assert oracle.normal_divergence(MU, LOGVAR) == pytest.approx([2 - math.log(2)], abs=1e-15)
    # Counts 2 and 1: three words.
    loss = oracle.reconstruction_loss([[2, 1]], [[0.25, 0.75]], BETA, MU, LOGVAR, NOISE)
    assert loss == pytest.approx(NEGATIVE_ELBO / 3, abs=1e-14)


def test_reconstruction_leaves_out_texts_without_words_and_weighs_the_others() -> None:
    # A second text with the standard normal, no noise and one word: theta = (1/2, 1/2), KL 0, all in cluster 1:
    # p of word 2 = 1/2 (1/2 + 3/4) = 5/8. The third text has no word.
    counts, o = [[2, 1], [0, 1], [0, 0]], [[0.25, 0.75], [1.0, 0.0], [0.5, 0.5]]
    zeros = [[0.0, 0.0]]
    mu, logvar, noise = MU + zeros + [[9.0, 9.0]], LOGVAR + zeros + [[1.0, 1.0]], NOISE + zeros + zeros
    text_0, text_1 = NEGATIVE_ELBO / 3, -math.log(5 / 8)
    plain = oracle.reconstruction_loss(counts, o, BETA, mu, logvar, noise)
    assert plain == pytest.approx((text_0 + text_1) / 2, abs=1e-14)
    weighted = oracle.reconstruction_loss(counts, o, BETA, mu, logvar, noise, [3.0, 1.0, 7.0])
    assert weighted == pytest.approx((3 * text_0 + text_1) / 4, abs=1e-14)
    assert oracle.reconstruction_loss([[0, 0]], [[0.5, 0.5]], BETA, MU, LOGVAR, NOISE) == 0.0


def test_words_are_a_distribution_for_every_text() -> None:
    rng = np.random.default_rng(0)
    alpha = oracle.topic_embeddings(_random(3, 2), _random(4, 2, seed=1), _random(5, 4, seed=2), _random(5, seed=3))
    beta = oracle.word_distributions(_random(7, 5, seed=4), alpha)
    assert beta.shape == (3, 7, 4)
    assert beta.sum(axis=1) == pytest.approx(np.ones((3, 4)))
    p = oracle.word_probabilities(rng.dirichlet(np.ones(3), size=6), beta, rng.dirichlet(np.ones(4), size=6))
    assert p.sum(axis=1) == pytest.approx(np.ones(6))


# --- Eq. 14-16 ---


def test_inference_network_by_hand() -> None:
    # Counts (3, 1) -> (3/4, 1/4); hidden 4 * 3/4 + 0 - 1 = 2, 0 - 4 * 1/4 + 0.5 = -0.5 -> 0.
    # mu = 2 * 2 + 9 * 0 + 1 = 5; log-variance = -2 + 0 + 0 = -2. No words: hidden = ReLU(-1, 0.5) = (0, 0.5).
    mu, logvar = oracle.inference_network(
        [[3, 1], [0, 0]],
        hidden_weight=[[4.0, 0.0], [0.0, -4.0]],
        hidden_bias=[-1.0, 0.5],
        mean_weight=[[2.0, 9.0]],
        mean_bias=[1.0],
        logvar_weight=[[-1.0, 4.0]],
        logvar_bias=[0.0],
    )
    assert mu.tolist() == [[5.0], [5.5]]
    assert logvar.tolist() == [[-2.0], [2.0]]


def test_normal_divergence_is_zero_at_the_prior_alone() -> None:
    assert oracle.normal_divergence(np.zeros((1, 3)), np.zeros((1, 3))) == [0.0]
    assert min(oracle.normal_divergence(_random(20, 3), _random(20, 3, seed=1))) > 0.0


def test_latent_reconstruction_by_hand() -> None:
    # h = (1, 2): hidden 1 + 2 = 3; rebuilt (3 - 1, 3 * 2) = (2, 6): errors 1, 16 -> 17/2.
    # h = (-1, -2): hidden ReLU(-3) = 0; rebuilt (-1, 0): errors 0, 4 -> 2. Weights 3 and 1.
    layers: dict[str, npt.ArrayLike] = {"down_weight": [[1.0, 1.0]], "down_bias": [0.0]}
    layers |= {"up_weight": [[1.0], [2.0]], "up_bias": [-1.0, 0.0]}
    loss = oracle.latent_reconstruction([[1.0, 2.0], [-1.0, -2.0]], **layers)
    assert loss == pytest.approx((8.5 + 2.0) / 2)
    weighted = oracle.latent_reconstruction([[1.0, 2.0], [-1.0, -2.0]], **layers, weights=[3.0, 1.0])
    assert weighted == pytest.approx((3 * 8.5 + 2.0) / 4)


def test_total_puts_each_lambda_where_it_belongs() -> None:
    assert oracle.deccrl_total(1.0, 2.0, 3.0) == pytest.approx(1 + 2 + 0.3)
    assert oracle.deccrl_total(1.0, 2.0, 3.0, lambda_c=5.0, lambda_r=7.0) == pytest.approx(1 + 10 + 21)
