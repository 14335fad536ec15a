"""Every loss of AECL (Yao and Li, "Attention-Enhanced Contrastive Learning"), one loop per sum, in float64.

Slow on purpose: each line that is an equation of the paper names it, and nothing is rearranged for speed or
for numerical range. ``weights`` are this project's addition: how often each text occurs in the corpus. A mean
over texts becomes the weighted mean; among the negatives and positives of an anchor a repeated text counts
once, and so it does among the texts attended to. Equal weights give back the paper's equations.

Where the paper is misprinted or leaves room:

* Eq. 4 prints ``>``; here a text at the threshold is confident.
* Eq. 6, 7 and the printed Eq. 10 leave the positive out of their denominators: they need two texts (clusters).
* Eq. 7's set of positives holds the text itself, as printed.
* Eq. 10 has two forms: cross-entropy over positive and negatives, and the printed one.
* Eq. 12 is summed over the confident texts and divided by all of them.
* Eq. 15 would sharpen by L_E1 and collapse by L_E2 as printed: the first is maximised, and the second becomes
  the penalty log M - L_E2.
* Attention is either the bare Eq. 1-3 or a post-norm encoder layer with one head, in evaluation mode.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

from .deccrl_oracle import linear, relu, softmax
from .sccl_oracle import FloatArray, _weight_list, _weighted_mean, similarity

# --- networks ---


def feed_forward(inputs: npt.ArrayLike, layers: Sequence[tuple[npt.ArrayLike, npt.ArrayLike]]) -> FloatArray:
    """Layers of (weight, bias) with ReLU between them and none after the last: G_z, and G_p before its softmax."""
    x = np.asarray(inputs, dtype=np.float64)
    for number, (weight, bias) in enumerate(layers):
        x = linear(x, weight, bias)
        if number < len(layers) - 1:
            x = relu(x)
    return x


def attend(queries: FloatArray, keys: FloatArray) -> FloatArray:
    """S (N x N), each row a distribution over the texts attended to."""
    s = np.zeros((len(queries), len(keys)), dtype=np.float64)
    for i in range(len(queries)):
        scores = []
        for j in range(len(keys)):
            dot = 0.0
            for d in range(queries.shape[1]):
                dot += float(queries[i, d]) * float(keys[j, d])
            scores.append(dot / math.sqrt(queries.shape[1]))
        s[i] = softmax(scores)  # Eq. 2
    return s


def attention_similarity(z: npt.ArrayLike, w_k1: npt.ArrayLike, w_k2: npt.ArrayLike) -> FloatArray:
    """S from Z and the two maps, which multiply Z from the right as printed."""
    k_1 = linear(z, np.asarray(w_k1).T)  # Eq. 1
    k_2 = linear(z, np.asarray(w_k2).T)  # Eq. 1
    return attend(k_1, k_2)  # Eq. 2


def aggregate(s: npt.ArrayLike, t: npt.ArrayLike) -> FloatArray:
    """Row i is the sum of the rows of ``t``, each times its similarity to i."""
    s, t = np.asarray(s, dtype=np.float64), np.asarray(t, dtype=np.float64)
    h = np.zeros((len(s), t.shape[1]), dtype=np.float64)
    for i in range(len(s)):
        for j in range(len(t)):
            for d in range(t.shape[1]):
                h[i, d] += s[i, j] * t[j, d]  # Eq. 3
    return h


def consistent_representation(s: npt.ArrayLike, z: npt.ArrayLike, w_t: npt.ArrayLike) -> FloatArray:
    """H from S, Z and the map W_T."""
    return aggregate(s, linear(z, np.asarray(w_t).T))  # Eq. 1, 3


def layer_norm(inputs: npt.ArrayLike, weight: npt.ArrayLike, bias: npt.ArrayLike, epsilon: float = 1e-5) -> FloatArray:
    """Each row minus its mean, over the root of its variance (divided by D, not D - 1) plus epsilon."""
    x, g, b = (np.asarray(array, dtype=np.float64) for array in (inputs, weight, bias))
    y = np.zeros_like(x)
    width = x.shape[1]
    for i in range(len(x)):
        mean = 0.0
        for d in range(width):
            mean += float(x[i, d]) / width
        variance = 0.0
        for d in range(width):
            variance += (float(x[i, d]) - mean) ** 2 / width
        for d in range(width):
            y[i, d] = (x[i, d] - mean) / math.sqrt(variance + epsilon) * g[d] + b[d]
    return y


def encoder_layer(z: npt.ArrayLike, parameters: Mapping[str, npt.ArrayLike]) -> tuple[FloatArray, FloatArray]:
    """(S, H) of a post-norm encoder layer with one head, in evaluation mode; the texts are its sequence.

    ``parameters`` has a ``_weight`` (outputs x inputs) and a ``_bias`` of each of q, k, v, out, norm1, ffn1,
    ffn2 and norm2.
    """

    def pair(name: str) -> tuple[npt.ArrayLike, npt.ArrayLike]:
        return parameters[f"{name}_weight"], parameters[f"{name}_bias"]

    x = np.asarray(z, dtype=np.float64)
    s = attend(linear(x, *pair("q")), linear(x, *pair("k")))  # Eq. 2
    attended = linear(aggregate(s, linear(x, *pair("v"))), *pair("out"))  # Eq. 3
    x = layer_norm(x + attended, *pair("norm1"))
    fed = linear(relu(linear(x, *pair("ffn1"))), *pair("ffn2"))
    return s, layer_norm(x + fed, *pair("norm2"))


# --- pseudo-labels ---


def confident_labels(p: npt.ArrayLike, threshold: float = 0.95) -> tuple[list[bool], list[int]]:
    """Which texts are confident, and every text's most probable cluster (the first of equals)."""
    mask, labels = [], []
    for row in np.asarray(p, dtype=np.float64):
        best = 0
        for k in range(len(row)):
            if row[k] > row[best]:
                best = k
        labels.append(best)
        mask.append(bool(row[best] >= threshold))  # Eq. 4
    return mask, labels


def entropy(distribution: Sequence[float] | FloatArray) -> float:
    """Minus the sum of p log p, 0 log 0 being 0."""
    total = 0.0
    for value in distribution:
        if value > 0.0:
            total -= float(value) * math.log(float(value))
    return total


def mean_entropy(p_0: npt.ArrayLike, weights: npt.ArrayLike | None = None) -> float:
    """L_E1: the (weighted) mean over texts of the entropy of their assignments."""
    p = np.asarray(p_0, dtype=np.float64)
    return _weighted_mean([entropy(row) for row in p], _weight_list(weights, len(p)))  # Eq. 5


# --- instance level ---


def _cosines(left: npt.ArrayLike, right: npt.ArrayLike, temperature: float) -> FloatArray:
    """exp(sim / temperature) of every row of ``left`` with every row of ``right``."""
    a, b = np.asarray(left, dtype=np.float64), np.asarray(right, dtype=np.float64)
    kernels = np.zeros((len(a), len(b)), dtype=np.float64)
    for i in range(len(a)):
        for j in range(len(b)):
            kernels[i, j] = math.exp(similarity(a[i], b[j]) / temperature)  # Eq. 8
    return kernels


def _negatives(within: FloatArray, across: FloatArray, i: int) -> float:
    """The denominator of Eq. 6 and 7: what text i has with all other texts, in its own set and in the other."""
    total = 0.0
    for k in range(len(within)):
        if k != i:
            total += float(within[i, k]) + float(across[i, k])
    return total


def view_ratios(z_0: npt.ArrayLike, z_1: npt.ArrayLike, temperature: float) -> list[float]:
    """l_1 of every text: its two views against the views of the other texts."""
    k_00, k_11 = _cosines(z_0, z_0, temperature), _cosines(z_1, z_1, temperature)
    k_01, k_10 = _cosines(z_0, z_1, temperature), _cosines(z_1, z_0, temperature)
    ratios = []
    for i in range(len(k_00)):
        first = float(k_01[i, i]) / _negatives(k_00, k_01, i)
        second = float(k_10[i, i]) / _negatives(k_11, k_10, i)
        ratios.append(first + second)  # Eq. 6
    return ratios


def consistency_ratios(
    z: npt.ArrayLike, h: npt.ArrayLike, s: npt.ArrayLike, labels: Sequence[int], temperature: float
) -> list[float]:
    """l_2 of every text in one view: z and h of the texts with its label, weighted by S."""
    weight = np.asarray(s, dtype=np.float64)
    k_zz, k_hh = _cosines(z, z, temperature), _cosines(h, h, temperature)
    k_zh, k_hz = _cosines(z, h, temperature), _cosines(h, z, temperature)
    ratios = []
    for i in range(len(k_zz)):
        from_z, from_h = 0.0, 0.0
        for j in range(len(k_zz)):
            if labels[j] == labels[i]:  # j in Lambda_i, which holds i
                from_z += float(weight[i, j]) * float(k_zh[i, j])  # Eq. 7, first numerator
                from_h += float(weight[i, j]) * float(k_hz[i, j])  # Eq. 7, second numerator
        ratios.append(from_z / _negatives(k_zz, k_zh, i) + from_h / _negatives(k_hh, k_hz, i))  # Eq. 7
    return ratios


def similarity_guided_loss(
    z: tuple[npt.ArrayLike, npt.ArrayLike],
    h: tuple[npt.ArrayLike, npt.ArrayLike],
    s: tuple[npt.ArrayLike, npt.ArrayLike],
    labels: Sequence[int],
    temperature: float,
    weights: npt.ArrayLike | None = None,
    *,
    use_consistency: bool = True,
) -> float:
    """L_I from (view 0, view 1) of Z, H and S; without ``use_consistency`` Eq. 7 is dropped ("No IC")."""
    l_1 = view_ratios(z[0], z[1], temperature)  # Eq. 6
    losses = [0.0] * len(l_1)
    for v in (0, 1):
        l_2 = consistency_ratios(z[v], h[v], s[v], labels, temperature)  # Eq. 7
        for i in range(len(l_1)):
            losses[i] += -math.log(l_1[i] + l_2[i] if use_consistency else l_1[i]) / 2.0  # Eq. 9
    return _weighted_mean(losses, _weight_list(weights, len(losses)))  # Eq. 9


def class_aware_loss(
    z_0: npt.ArrayLike,
    z_1: npt.ArrayLike,
    labels: Sequence[int],
    confident: Sequence[bool],
    temperature: float,
    weights: npt.ArrayLike | None = None,
) -> float:
    """Fig. 5's rival: confident texts with the same label are positives too. Nobody confident: plain NT-Xent."""
    z = np.concatenate([np.asarray(z_0, dtype=np.float64), np.asarray(z_1, dtype=np.float64)])
    n = len(z) // 2
    kernels = _cosines(z, z, temperature)
    losses = []
    for a in range(2 * n):
        positives, others = 0.0, 0.0
        for b in range(2 * n):
            if b == a:
                continue
            i, j = a % n, b % n
            others += float(kernels[a, b])
            if i == j or (confident[i] and confident[j] and labels[i] == labels[j]):
                positives += float(kernels[a, b])
        losses.append(-math.log(positives / others))
    w = _weight_list(weights, n)
    return _weighted_mean(losses, w + w)


def plain_contrast(
    z_0: npt.ArrayLike, z_1: npt.ArrayLike, temperature: float, weights: npt.ArrayLike | None = None
) -> float:
    """NT-Xent: the only positive of a view is the other view of its text."""
    nobody = [False] * len(np.asarray(z_0))
    return class_aware_loss(z_0, z_1, [0] * len(nobody), nobody, temperature, weights)


# --- cluster level, and the totals ---


def column_similarity(left: FloatArray, right: FloatArray, weights: list[float]) -> float:
    """Cosine of two columns over the texts, a text of weight two counting as two rows."""
    dot, left_square, right_square = 0.0, 0.0, 0.0
    for n in range(len(weights)):
        dot += weights[n] * float(left[n]) * float(right[n])
        left_square += weights[n] * float(left[n]) ** 2
        right_square += weights[n] * float(right[n]) ** 2
    return dot / (math.sqrt(left_square) * math.sqrt(right_square))  # Eq. 8


def cluster_contrast(
    p_0: npt.ArrayLike,
    p_1: npt.ArrayLike,
    temperature: float,
    weights: npt.ArrayLike | None = None,
    *,
    positive_in_denominator: bool = True,
) -> float:
    """L_C: the two columns of a cluster against the columns of the others."""
    p = (np.asarray(p_0, dtype=np.float64), np.asarray(p_1, dtype=np.float64))
    w = _weight_list(weights, len(p[0]))
    n_clusters = p[0].shape[1]
    total = 0.0
    for i in range(n_clusters):
        for v in (0, 1):
            own, other = p[v], p[1 - v]
            numerator = math.exp(column_similarity(own[:, i], other[:, i], w) / temperature)
            denominator = numerator if positive_in_denominator else 0.0
            for k in range(n_clusters):
                if k != i:
                    denominator += math.exp(column_similarity(own[:, i], own[:, k], w) / temperature)
                    denominator += math.exp(column_similarity(own[:, i], other[:, k], w) / temperature)
            total += -math.log(numerator / denominator)  # Eq. 10
    return total / (2 * n_clusters)  # Eq. 11


def pseudo_label_loss(
    p_1: npt.ArrayLike,
    labels: Sequence[int],
    confident: Sequence[bool] | None = None,
    weights: npt.ArrayLike | None = None,
) -> float:
    """L_P: the pseudo-labels against view 1, summed over the confident (all, in stage 2), over the mass of all."""
    p = np.asarray(p_1, dtype=np.float64)
    losses = []
    for i in range(len(p)):
        counts = confident is None or confident[i]
        losses.append(-math.log(float(p[i, labels[i]])) if counts else 0.0)
    return _weighted_mean(losses, _weight_list(weights, len(losses)))  # Eq. 12


def cluster_size_entropy(p_0: npt.ArrayLike, p_1: npt.ArrayLike, weights: npt.ArrayLike | None = None) -> float:
    """L_E2 as printed: the entropy of the (weighted) mean assignment, mean of the two views."""
    total = 0.0
    for view in (p_0, p_1):
        p = np.asarray(view, dtype=np.float64)
        w = _weight_list(weights, len(p))
        q = [_weighted_mean([float(value) for value in p[:, j]], w) for j in range(p.shape[1])]
        total += entropy(q) / 2.0  # Eq. 13
    return total


def balance_penalty(p_0: npt.ArrayLike, p_1: npt.ArrayLike, weights: npt.ArrayLike | None = None) -> float:
    """log M - L_E2: 0 for equally large clusters, log M for a single one."""
    return math.log(np.asarray(p_0).shape[1]) - cluster_size_entropy(p_0, p_1, weights)  # Eq. 13


def stage_two_total(instance: float, pseudo: float, *, lambda_1: float = 10.0, lambda_2: float = 5.0) -> float:
    """The loss of stage 2, from L_I and L_P; stage 1 has L_I alone."""
    return lambda_1 * instance + lambda_2 * pseudo  # Eq. 14


def stage_three_total(
    cluster: float,
    instance: float,
    pseudo: float,
    text_entropy: float,
    penalty: float,
    *,
    lambda_1: float = 10.0,
    lambda_2: float = 5.0,
    lambda_3: float = 0.01,
    lambda_4: float,
) -> float:
    """The loss of stage 3, from L_C, L_I, L_P, L_E1 (maximised) and the penalty in the place of L_E2."""
    return cluster + lambda_1 * instance + lambda_2 * pseudo - lambda_3 * text_entropy + lambda_4 * penalty  # Eq. 15


def negative_similarity(s: npt.ArrayLike, labels: Sequence[int], weights: npt.ArrayLike | None = None) -> float:
    """NS: the (weighted) mean over texts of what S gives to texts of other labels."""
    matrix = np.asarray(s, dtype=np.float64)
    masses = []
    for i in range(len(matrix)):
        mass = 0.0
        for j in range(len(matrix)):
            if labels[i] != labels[j]:
                mass += float(matrix[i, j])
        masses.append(mass)
    return _weighted_mean(masses, _weight_list(weights, len(masses)))  # Eq. 18


def positive_similarity(s: npt.ArrayLike, labels: Sequence[int], weights: npt.ArrayLike | None = None) -> float:
    """PS: the rest of the similarity."""
    return 1.0 - negative_similarity(s, labels, weights)  # Eq. 19
