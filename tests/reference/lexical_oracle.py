"""Every loss of the lexical view, a variational auto-encoder of TF-IDF with neighbour contrast, in float64.

Slow on purpose: one loop per sum, nothing is rearranged for speed or for numerical range. Matrices act from the
left, ``A x``, so they have one row per output, as ``torch.nn.Linear.weight`` has: A is H x V, M and S are Z x H,
D is V x Z. A batch is B texts and one neighbour of each; its 2B rows are the texts, then the neighbours.

``weights`` count how often each text occurs in the corpus. Both rows of a pair have the weight of its text in every
mean. The denominators of the contrast are not weighted: a text that occurs twice is one negative of the others.

Without dropout. The noise of the latents is an argument.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from .sccl_oracle import FloatArray, _weight_list, _weighted_mean, numerical_gradient, similarity

MEAN_BOUND = 3.0  # each coordinate of mu lies between minus this and this
KL_WEIGHT = 0.1  # factor of L_KL in L
CONTRAST_WEIGHT = 10.0  # factor of L_con in L
TEMPERATURE = 0.5  # of L_con, divides cosines
LABEL_WEIGHT = 1.0  # factor of L_lab where it is added to L
LABEL_TEMPERATURE = 0.1  # of L_lab, divides cosines
LEAST_TRUST = 1e-6  # a text that is trusted less counts as if trusted this much


class Losses(NamedTuple):
    """L_rec, L_KL and L_con, without their factors, and L."""

    reconstruction: float
    kl: float
    contrast: float
    total: float


def _affine(matrix: npt.ArrayLike, vector: npt.ArrayLike, offset: npt.ArrayLike) -> FloatArray:
    """``matrix vector + offset``."""
    table, column = np.asarray(matrix, dtype=np.float64), np.asarray(vector, dtype=np.float64)
    result = np.array(offset, dtype=np.float64)
    for row in range(len(table)):
        for entry in range(len(column)):
            result[row] += table[row, entry] * column[entry]
    return result


def word_shares(x: npt.ArrayLike) -> FloatArray:
    """p (B x V): TF-IDF rows divided by their sums; a row of zeros stays one."""
    p = np.array(x, dtype=np.float64)
    for i in range(len(p)):
        total = sum(float(value) for value in p[i])
        if total > 0.0:
            p[i] = p[i] / total  # p_i = x_i / sum_w x_iw
    return p


def encode(
    x: npt.ArrayLike,
    A: npt.ArrayLike,
    a: npt.ArrayLike,
    M: npt.ArrayLike,
    m: npt.ArrayLike,
    S: npt.ArrayLike,
    s: npt.ArrayLike,
) -> tuple[FloatArray, FloatArray]:
    """mu and log s2 (both B x Z) of TF-IDF rows (B x V), without dropout, whether or not a row has words."""
    means, log_variances = [], []
    for row in np.asarray(x, dtype=np.float64):
        h = [max(float(value), 0.0) for value in _affine(A, row, a)]  # h_i = relu(A x_i + a)
        means.append([MEAN_BOUND * math.tanh(float(u) / MEAN_BOUND) for u in _affine(M, h, m)])  # mu_i
        log_variances.append(_affine(S, h, s))  # log s2_i
    return np.array(means, dtype=np.float64), np.array(log_variances, dtype=np.float64)


def lexical_view(
    x: npt.ArrayLike, A: npt.ArrayLike, a: npt.ArrayLike, M: npt.ArrayLike, m: npt.ArrayLike
) -> FloatArray:
    """The vectors of texts (B x Z): latent means of unit length, zero for a text without a known word."""
    rows = np.asarray(x, dtype=np.float64)
    mu, _ = encode(rows, A, a, M, m, M, m)  # the variance has no part in the view
    view = np.zeros_like(mu)
    for i in range(len(rows)):
        length = math.sqrt(sum(float(value) ** 2 for value in mu[i]))
        if any(float(value) != 0.0 for value in rows[i]) and length > 0.0:
            view[i] = mu[i] / length
    return view


def sample_latents(mu: npt.ArrayLike, log_variance: npt.ArrayLike, noise: npt.ArrayLike) -> FloatArray:
    """z (B x Z) for standard normal ``noise`` (B x Z)."""
    z = np.array(mu, dtype=np.float64)
    spread, eps = np.asarray(log_variance, dtype=np.float64), np.asarray(noise, dtype=np.float64)
    for i, d in np.ndindex(*z.shape):
        z[i, d] += math.exp(float(spread[i, d]) / 2) * float(eps[i, d])  # z_i = mu_i + exp(log s2_i / 2) eps
    return z


def decoder_log_probabilities(z: npt.ArrayLike, D: npt.ArrayLike, d: npt.ArrayLike) -> FloatArray:
    """log q (B x V) of latents (B x Z)."""
    rows = []
    for latent in np.asarray(z, dtype=np.float64):
        logits = [float(value) for value in _affine(D, latent, d)]
        normaliser = sum(math.exp(logit) for logit in logits)
        rows.append([math.log(math.exp(logit) / normaliser) for logit in logits])  # q_i = softmax(D z_i + d)
    return np.array(rows, dtype=np.float64)


def reconstruction_losses(p: npt.ArrayLike, log_q: npt.ArrayLike) -> list[float]:
    """The cross entropy of each row's words: - sum_w p_iw log q_iw."""
    losses = []
    for shares, logs in zip(np.asarray(p, dtype=np.float64), np.asarray(log_q, dtype=np.float64), strict=True):
        losses.append(-sum(float(share) * float(log) for share, log in zip(shares, logs, strict=True)))
    return losses


def kl_losses(mu: npt.ArrayLike, log_variance: npt.ArrayLike) -> list[float]:
    """KL[N(mu_i, s2_i) || N(0, I)] of each row."""
    losses = []
    for means, logs in zip(np.asarray(mu, dtype=np.float64), np.asarray(log_variance, dtype=np.float64), strict=True):
        total = 0.0
        for mean, log in zip(means, logs, strict=True):
            total += float(mean) ** 2 + math.exp(float(log)) - 1.0 - float(log)
        losses.append(total / 2)  # 1/2 sum_d (mu_id^2 + exp(log s2_id) - 1 - log s2_id)
    return losses


def contrast_losses(texts: npt.ArrayLike, neighbours: npt.ArrayLike, temperature: float = TEMPERATURE) -> list[float]:
    """The 2B anchor losses of latent means (B x Z each): the texts', then the neighbours'.

    The positive of an anchor is the other row of its pair. The denominator runs over all 2B - 1 other rows: the
    positive and 2B - 2 negatives, also where a negative is the same text.
    """
    rows = [*np.asarray(texts, dtype=np.float64), *np.asarray(neighbours, dtype=np.float64)]
    units = [row / math.sqrt(sum(float(value) ** 2 for value in row)) for row in rows]
    pairs = len(units) // 2
    losses = []
    for r in range(2 * pairs):
        partner = (r + pairs) % (2 * pairs)
        scores = {}
        for other in range(2 * pairs):
            if other != r:
                cosine = sum(float(x) * float(y) for x, y in zip(units[r], units[other], strict=True))
                scores[other] = math.exp(cosine / temperature)
        losses.append(-math.log(scores[partner] / sum(scores.values())))
    return losses


def pair_mean(losses: list[float], weights: npt.ArrayLike | None = None) -> float:
    """The mean over 2B rows; ``weights`` are B positive numbers, each for a text and for its neighbour."""
    of_text = _weight_list(weights, len(losses) // 2)
    return _weighted_mean(losses, of_text + of_text)


def batch_losses(
    texts: npt.ArrayLike,
    neighbours: npt.ArrayLike,
    parameters: Mapping[str, npt.ArrayLike],
    noise: npt.ArrayLike,
    weights: npt.ArrayLike | None = None,
) -> Losses:
    """The losses of a batch.

    ``texts`` and ``neighbours`` are TF-IDF rows (B x V each), ``noise`` is 2B x Z, and ``parameters`` has A, a, M, m,
    S, s, D and d. A row of zeros is an error: such a text is not trained on.
    """
    x = np.concatenate([np.asarray(texts, dtype=np.float64), np.asarray(neighbours, dtype=np.float64)])
    if any(not row.any() for row in x):
        raise ValueError("a text without a known word is not trained on")
    mu, log_variance = encode(x, *(parameters[name] for name in ("A", "a", "M", "m", "S", "s")))
    z = sample_latents(mu, log_variance, noise)
    log_q = decoder_log_probabilities(z, parameters["D"], parameters["d"])
    reconstruction = pair_mean(reconstruction_losses(word_shares(x), log_q), weights)  # L_rec
    kl = pair_mean(kl_losses(mu, log_variance), weights)  # L_KL
    pairs = len(x) // 2
    contrast = pair_mean(contrast_losses(mu[:pairs], mu[pairs:]), weights)  # L_con
    return Losses(reconstruction, kl, contrast, reconstruction + KL_WEIGHT * kl + CONTRAST_WEIGHT * contrast)


def total_gradients(
    texts: npt.ArrayLike,
    neighbours: npt.ArrayLike,
    parameters: Mapping[str, npt.ArrayLike],
    noise: npt.ArrayLike,
    weights: npt.ArrayLike | None = None,
    step: float = 1e-6,
) -> dict[str, FloatArray]:
    """Central differences of L by each parameter. Keep hidden units further from the kink of relu than ``step``."""
    gradients = {}
    for name, value in parameters.items():

        def total(array: FloatArray, name: str = name) -> float:
            return batch_losses(texts, neighbours, {**parameters, name: array}, noise, weights).total

        gradients[name] = numerical_gradient(total, value, step)
    return gradients


def label_probabilities(mu: npt.ArrayLike, centers: npt.ArrayLike) -> FloatArray:
    """Q (B x K) of latent means (B x Z) and trained centres (K x Z), none of them of length zero."""
    means, points = np.asarray(mu, dtype=np.float64), np.asarray(centers, dtype=np.float64)
    rows = []
    for mean in means:
        scores = [math.exp(similarity(mean, point) / LABEL_TEMPERATURE) for point in points]
        normaliser = sum(scores)
        rows.append([score / normaliser for score in scores])  # Q_i = softmax(cos(mu_i, c_k) / 0.1)
    return np.array(rows, dtype=np.float64)


def label_loss(
    mu: npt.ArrayLike,
    centers: npt.ArrayLike,
    targets: npt.ArrayLike,
    trust: npt.ArrayLike,
    weights: npt.ArrayLike | None = None,
) -> float:
    """L_lab, Eq. 11: the cross entropy of the pseudo-labels ``targets`` (B x K), whose rows sum to one.

    ``trust`` are B numbers from 0 to 1. Only the B texts of a batch take part, not their neighbours. L_lab is no part
    of ``batch_losses``; it is added to L with the factor ``LABEL_WEIGHT``.
    """
    losses = []
    for shares, q in zip(np.asarray(targets, dtype=np.float64), label_probabilities(mu, centers), strict=True):
        losses.append(-sum(float(share) * math.log(float(value)) for share, value in zip(shares, q, strict=True)))
    factors = []
    for w, t in zip(_weight_list(weights, len(losses)), np.asarray(trust, dtype=np.float64), strict=True):
        factors.append(w * max(float(t), LEAST_TRUST))  # w_i t'_i
    return _weighted_mean(losses, factors)


def label_gradients(
    mu: npt.ArrayLike,
    centers: npt.ArrayLike,
    targets: npt.ArrayLike,
    trust: npt.ArrayLike,
    weights: npt.ArrayLike | None = None,
    step: float = 1e-6,
) -> tuple[FloatArray, FloatArray]:
    """Central differences of L_lab by the latent means and by the centres."""
    by_mu = numerical_gradient(lambda array: label_loss(array, centers, targets, trust, weights), mu, step)
    by_centers = numerical_gradient(lambda array: label_loss(mu, array, targets, trust, weights), centers, step)
    return by_mu, by_centers
