"""The oracle itself: tiny cases worked out by hand, and what the equations must satisfy whatever the data."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from . import aecl_oracle as oracle
from .sccl_oracle import FloatArray, nt_xent

E = math.e
LABELS = [0, 0]


def _random(*shape: int, seed: int = 0) -> FloatArray:
    return np.random.default_rng(seed).normal(size=shape)


def _random_p(n: int, n_clusters: int, seed: int = 0) -> FloatArray:
    return np.random.default_rng(seed).dirichlet(np.ones(n_clusters), size=n)


# --- networks ---


def test_bare_attention_by_hand() -> None:
    # Z = I, so K1 = W_K1 and K2 = W_K2 = I; scores = W_K1 / sqrt 2 = (0, log 3), (0, 0).
    # S = (1, 3) / 4, (1, 1) / 2. T = W_T = (0, 2), (4, 0).
    # h_1 = 1/4 (0, 2) + 3/4 (4, 0) = (3, 1/2); h_2 = (2, 1)
    z = np.eye(2)
    w_k1 = math.sqrt(2) * np.array([[0.0, math.log(3)], [0.0, 0.0]])
    s = oracle.attention_similarity(z, w_k1, z)
    assert s == pytest.approx(np.array([[0.25, 0.75], [0.5, 0.5]]), abs=1e-15)
    h = oracle.consistent_representation(s, z, [[0.0, 2.0], [4.0, 0.0]])
    assert h == pytest.approx(np.array([[3.0, 0.5], [2.0, 1.0]]), abs=1e-14)
    # The two maps are not interchangeable: scores transposed give S = (1, 1) / 2, (3, 1) / 4.
    swapped = oracle.attention_similarity(z, z, w_k1)
    assert swapped == pytest.approx(np.array([[0.5, 0.5], [0.75, 0.25]]), abs=1e-15)


def test_encoder_layer_is_the_known_post_norm_layer() -> None:
    torch.manual_seed(0)
    layer = torch.nn.TransformerEncoderLayer(6, 1, dim_feedforward=10, dropout=0.1, batch_first=True).double().eval()
    with torch.no_grad():
        for parameter in layer.parameters():  # the defaults hide the norms (1 and 0) and the zero biases
            parameter.add_(0.3 * torch.randn_like(parameter))
    attention = layer.self_attn
    parts: dict[str, torch.Tensor] = {
        "out_weight": attention.out_proj.weight,
        "out_bias": attention.out_proj.bias,
        "norm1_weight": layer.norm1.weight,
        "norm1_bias": layer.norm1.bias,
        "ffn1_weight": layer.linear1.weight,
        "ffn1_bias": layer.linear1.bias,
        "ffn2_weight": layer.linear2.weight,
        "ffn2_bias": layer.linear2.bias,
        "norm2_weight": layer.norm2.weight,
        "norm2_bias": layer.norm2.bias,
    }
    for name, weight, bias in zip(
        "qkv", attention.in_proj_weight.chunk(3), attention.in_proj_bias.chunk(3), strict=True
    ):
        parts |= {f"{name}_weight": weight, f"{name}_bias": bias}
    z = _random(5, 6)
    s, h = oracle.encoder_layer(z, {name: tensor.detach().numpy() for name, tensor in parts.items()})
    texts = torch.tensor(z)[None]
    with torch.no_grad():
        expected_h = layer(texts)[0].numpy()
        expected_s = attention(texts, texts, texts)[1][0].numpy()
    assert h == pytest.approx(expected_h, abs=1e-12)
    assert s == pytest.approx(expected_s, abs=1e-12)


def test_feed_forward_by_hand() -> None:
    # x = (1, 2): first layer (1 - 2, 1 + 2) + (0, 1) = (-1, 4) -> ReLU (0, 4); second 0 - 2 * 4 + 3 = -5, kept.
    layers = [([[1.0, -1.0], [1.0, 1.0]], [0.0, 1.0]), ([[7.0, -2.0]], [3.0])]
    assert oracle.feed_forward([[1.0, 2.0]], layers) == pytest.approx(np.array([[-5.0]]))


# --- Eq. 4-5 ---


def test_confidence_counts_the_threshold_itself() -> None:
    p = [[0.95, 0.05], [0.94, 0.06], [0.02, 0.98], [0.5, 0.5]]
    assert oracle.confident_labels(p) == ([True, False, True, False], [0, 0, 1, 0])
    assert oracle.confident_labels(p, 0.5)[0] == [True, True, True, True]


def test_mean_entropy_by_hand() -> None:
    # Entropies log 2 and 0; weights 3 and 1: 3/4 log 2.
    p = [[0.5, 0.5], [1.0, 0.0]]
    assert oracle.mean_entropy(p) == pytest.approx(math.log(2) / 2, abs=1e-15)
    assert oracle.mean_entropy(p, [3.0, 1.0]) == pytest.approx(0.75 * math.log(2), abs=1e-15)


# --- Eq. 6-9 ---


def test_view_ratios_by_hand() -> None:
    # Directions: z0 = (1,0), (0,1); z1 = (1,0), (1,0); temperature 1, lengths do not matter.
    # Text 0: z0 anchor e / (1 + e); z1 anchor e / (e + 1).          Text 1: 1 / (1 + 1); 1 / (e + e).
    ratios = oracle.view_ratios([[2.0, 0.0], [0.0, 3.0]], [[5.0, 0.0], [1.0, 0.0]], 1.0)
    assert ratios == pytest.approx([2 * E / (1 + E), 0.5 + 0.5 / E], abs=1e-14)


Z = np.array([[1.0, 0.0], [0.0, 1.0]])
H = np.array([[0.0, 1.0], [0.0, 2.0]])
S = np.array([[0.25, 0.75], [0.5, 0.5]])
# Temperature 1, both texts in one cluster.
# Text 0, from z: (1/4 e^0 + 3/4 e^0) / (e^0 + e^0) = 1/2; from h: (1/4 e^0 + 3/4 e) / (e + e).
# Text 1, from z: (1/2 e + 1/2 e) / (e^0 + e);             from h: (1/2 e^0 + 1/2 e) / (e + e^0) = 1/2.
SHARED = [0.5 + (0.25 + 0.75 * E) / (2 * E), E / (1 + E) + 0.5]


def test_consistency_ratios_by_hand() -> None:
    assert oracle.consistency_ratios(Z, H, S, LABELS, 1.0) == pytest.approx(SHARED, abs=1e-14)
    # In clusters of their own only j = i is left: text 0: 1/4 / 2 + 1/4 / 2e; text 1: 1/2 e / (1 + e), twice.
    alone = [0.125 + 0.125 / E, E / (1 + E)]
    assert oracle.consistency_ratios(Z, H, S, [0, 1], 1.0) == pytest.approx(alone, abs=1e-14)


def test_similarity_guided_loss_by_hand() -> None:
    # Both views Z: l_1 = e/2 + e/2 = e for both texts. View 1 has S = 0, so l_2 = 0 there.
    # Text i: 1/2 (-log(e + l_2) - log e); weights 3 and 1.
    texts = [-0.5 * (math.log(E + ratio) + 1.0) for ratio in SHARED]
    views = ((Z, Z), (H, H), (S, np.zeros((2, 2))))
    assert oracle.similarity_guided_loss(*views, LABELS, 1.0) == pytest.approx(sum(texts) / 2, abs=1e-14)
    weighted = oracle.similarity_guided_loss(*views, LABELS, 1.0, [3.0, 1.0])
    assert weighted == pytest.approx((3 * texts[0] + texts[1]) / 4, abs=1e-14)
    # Without Eq. 7: -log e for both.
    assert oracle.similarity_guided_loss(*views, LABELS, 1.0, use_consistency=False) == pytest.approx(-1.0, abs=1e-14)


def test_similarity_guided_loss_ignores_the_order_of_texts_and_of_views() -> None:
    z, h = (_random(5, 3), _random(5, 3, seed=1)), (_random(5, 3, seed=2), _random(5, 3, seed=3))
    s, labels, w = (_random_p(5, 5), _random_p(5, 5, seed=1)), [0, 1, 0, 2, 1], np.array([1.0, 2.0, 1.0, 4.0, 1.0])
    expected = oracle.similarity_guided_loss(z, h, s, labels, 0.5, w)
    assert oracle.similarity_guided_loss(z[::-1], h[::-1], s[::-1], labels, 0.5, w) == pytest.approx(expected)
    order = np.array([3, 1, 4, 0, 2])
    z_o, h_o, s_o = (z[0][order], z[1][order]), (h[0][order], h[1][order]), tuple(m[order][:, order] for m in s)
    permuted = oracle.similarity_guided_loss(z_o, h_o, (s_o[0], s_o[1]), [labels[i] for i in order], 0.5, w[order])
    assert permuted == pytest.approx(expected)


# --- the rivals of Fig. 5 ---


def test_class_aware_loss_by_hand() -> None:
    # Both views (1,0), (0,1), (-1,0); texts 0 and 1 confident in one cluster; temperature 1.
    # Anchor 0: own e, text 1 twice 1 | text 2 twice 1/e.   Anchor 1: own e, text 0 twice 1 | text 2 twice 1.
    # Anchor 2: own e | text 0 twice 1/e, text 1 twice 1.
    z = np.array([[1.0, 0.0], [0.0, 1.0], [-1.0, 0.0]])
    text_0, text_1 = -math.log((E + 2) / (E + 2 + 2 / E)), -math.log((E + 2) / (E + 4))
    text_2 = -math.log(E / (E + 2 + 2 / E))
    arguments = ([0, 0, 0], [True, True, False], 1.0)
    assert oracle.class_aware_loss(z, z, *arguments) == pytest.approx((text_0 + text_1 + text_2) / 3, abs=1e-14)
    weighted = oracle.class_aware_loss(z, z, *arguments, [1.0, 2.0, 1.0])
    assert weighted == pytest.approx((text_0 + 2 * text_1 + text_2) / 4, abs=1e-14)


def test_class_aware_loss_lies_between_nothing_and_plain_contrast() -> None:
    first, second, w = _random(4, 3), _random(4, 3, seed=1), [1.0, 2.0, 3.0, 1.0]
    plain = nt_xent(first, second, 0.5, w)
    assert oracle.plain_contrast(first, second, 0.5, w) == pytest.approx(plain, abs=1e-14)
    everybody = [True] * 4
    # Confident, yet every text in a cluster of its own: plain. All in one: everything is a positive.
    assert oracle.class_aware_loss(first, second, [0, 1, 2, 3], everybody, 0.5, w) == pytest.approx(plain, abs=1e-14)
    assert oracle.class_aware_loss(first, second, [0] * 4, everybody, 0.5, w) == pytest.approx(0.0, abs=1e-14)


# --- Eq. 10-13 ---


def test_cluster_contrast_by_hand() -> None:
    # P0 columns (1,0), (0,1); P1 columns both (1/2, 1/2). Cosines: P0_0 P0_1 0; P1_0 P1_1 1; across all 1/sqrt 2.
    # Temperature 1, r = e^(1/sqrt 2). P0 anchors: positive r, negatives 1 and r. P1: positive r, negatives e and r.
    p_0, p_1 = np.eye(2), np.full((2, 2), 0.5)
    r = math.exp(1 / math.sqrt(2))
    printed = (math.log((1 + r) / r) + math.log((E + r) / r)) / 2
    assert oracle.cluster_contrast(p_0, p_1, 1.0, positive_in_denominator=False) == pytest.approx(printed, abs=1e-14)
    whole = (math.log((1 + 2 * r) / r) + math.log((E + 2 * r) / r)) / 2
    assert oracle.cluster_contrast(p_0, p_1, 1.0) == pytest.approx(whole, abs=1e-14)
    # Weights 3 and 1: P0_0 with either P1 column 3/2 / (sqrt 3 * 1) = sqrt 3 / 2; P0_1: 1/2 / (1 * 1) = 1/2.
    a, b = math.exp(math.sqrt(3) / 2), math.exp(0.5)
    anchors = [(1 + 2 * a) / a, (a + E + b) / a, (1 + 2 * b) / b, (b + E + a) / b]
    weighted = sum(math.log(anchor) for anchor in anchors) / 4
    assert oracle.cluster_contrast(p_0, p_1, 1.0, [3.0, 1.0]) == pytest.approx(weighted, abs=1e-14)


@pytest.mark.parametrize("positive_in_denominator", [True, False])
def test_cluster_contrast_weight_two_is_the_row_twice(positive_in_denominator: bool) -> None:
    p_0, p_1, twice = _random_p(3, 4), _random_p(3, 4, seed=1), [0, 1, 1, 2]
    form = {"positive_in_denominator": positive_in_denominator}
    expected = oracle.cluster_contrast(p_0[twice], p_1[twice], 0.5, **form)
    assert oracle.cluster_contrast(p_0, p_1, 0.5, [1.0, 2.0, 1.0], **form) == pytest.approx(expected, abs=1e-14)
    # The positive in the denominator makes it NT-Xent between columns.
    if positive_in_denominator:
        assert expected == pytest.approx(nt_xent(p_0[twice].T, p_1[twice].T, 0.5), abs=1e-14)


def test_pseudo_label_loss_by_hand() -> None:
    # -log 1/4, -log 1/2, -log 1/8; the second text is not confident but stays in the divisor.
    p_1, labels = [[0.25, 0.75], [0.5, 0.5], [0.875, 0.125]], [0, 0, 1]
    two = math.log(2)
    assert oracle.pseudo_label_loss(p_1, labels, [True, False, True]) == pytest.approx(5 * two / 3, abs=1e-14)
    assert oracle.pseudo_label_loss(p_1, labels) == pytest.approx(6 * two / 3, abs=1e-14)
    weighted = oracle.pseudo_label_loss(p_1, labels, [True, False, True], [1.0, 4.0, 2.0])
    assert weighted == pytest.approx((2 + 2 * 3) * two / 7, abs=1e-14)


def test_balance_penalty_by_hand() -> None:
    # View 0: q = (1/2, 1/2), entropy log 2. View 1: q = (1, 0), entropy 0. L_E2 = 1/2 log 2.
    even, single = np.eye(2), np.array([[1.0, 0.0], [1.0, 0.0]])
    assert oracle.cluster_size_entropy(even, single) == pytest.approx(math.log(2) / 2, abs=1e-15)
    assert oracle.balance_penalty(even, single) == pytest.approx(math.log(2) / 2, abs=1e-15)
    assert oracle.balance_penalty(even, even) == pytest.approx(0.0, abs=1e-15)
    assert oracle.balance_penalty(single, single) == pytest.approx(math.log(2), abs=1e-15)
    # Weights 3 and 1: q = (3/4, 1/4) in both views.
    entropy = -0.75 * math.log(0.75) - 0.25 * math.log(0.25)
    assert oracle.balance_penalty(even, even, [3.0, 1.0]) == pytest.approx(math.log(2) - entropy, abs=1e-15)


# --- Eq. 14-15, 18-19 ---


def test_totals_put_each_lambda_where_it_belongs() -> None:
    assert oracle.stage_two_total(2.0, 3.0) == 10 * 2 + 5 * 3
    # L_E1 is maximised: it lowers the total.
    total = oracle.stage_three_total(1.0, 2.0, 3.0, 4.0, 5.0, lambda_4=0.5)
    assert total == pytest.approx(1 + 20 + 15 - 0.04 + 2.5)


def test_negative_and_positive_similarity_by_hand() -> None:
    # Other labels get 3/4 from text 0, 1/2 from text 1, and 0.1 + 0.2 from text 2, whose own label is 2.
    s = [[0.25, 0.75, 0.0], [0.5, 0.5, 0.0], [0.1, 0.2, 0.7]]
    assert oracle.negative_similarity(s, [0, 1, 2]) == pytest.approx(1.55 / 3)
    assert oracle.positive_similarity(s, [0, 1, 2]) == pytest.approx(1.45 / 3)
    assert oracle.negative_similarity(s, [0, 0, 2]) == pytest.approx(0.1)
    assert oracle.negative_similarity(s, [0, 0, 2], [1.0, 1.0, 2.0]) == pytest.approx(0.15)
