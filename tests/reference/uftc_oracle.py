"""Every loss of UFTC (Huang et al., "Unsupervised Fine-tuning for Text Clustering"), one loop per sum, in float64.

Slow on purpose: each line that is an equation of the paper names it, and nothing is rearranged for speed or
for numerical range. ``weights`` are this project's addition: how often each text occurs in the corpus. A mean
over texts or their tokens becomes the weighted mean and a soft frequency the weighted one; equal weights give
back the paper's equations.

Where the paper leaves room:

* The masked-language loss is the mean over the masked tokens of the batch; a batch without one has loss 0.
* Eq. 2 is a sum over texts; here the (weighted) mean over the batch.
* Eq. 4 prints argmax over i; read over the clusters j, the first of equals.
* Eq. 5's frequencies run over the whole corpus, unmasked, once an epoch; 0/0 for a cluster nobody belongs to
  is 0.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from .sccl_oracle import FloatArray, _weight_list, _weighted_mean


def average_pooling(hidden: npt.ArrayLike, is_token: npt.ArrayLike) -> FloatArray:
    """z (M x D): the mean of each text's hidden vectors (M x T x D) that are not padding."""
    h, real = np.asarray(hidden, dtype=np.float64), np.asarray(is_token, dtype=bool)
    z = np.zeros((len(h), h.shape[2]), dtype=np.float64)
    for i in range(len(h)):
        length = 0
        for t in range(h.shape[1]):
            if real[i, t]:
                length += 1
                for d in range(h.shape[2]):
                    z[i, d] += h[i, t, d]
        for d in range(h.shape[2]):
            z[i, d] = z[i, d] / length  # Sec. 2.1, z_i
    return z


def masked_language_loss(
    logits: npt.ArrayLike, token_ids: npt.ArrayLike, masked: npt.ArrayLike, weights: npt.ArrayLike | None = None
) -> float:
    """L_m from M x T x V scores, the M x T tokens that stood there, and which of them were masked."""
    scores, names, hidden = np.asarray(logits, dtype=np.float64), np.asarray(token_ids), np.asarray(masked, dtype=bool)
    w = _weight_list(weights, len(scores))
    losses, of_token = [], []
    for i in range(len(scores)):
        for t in range(scores.shape[1]):
            if not hidden[i, t]:
                continue
            normaliser = 0.0
            for score in scores[i, t]:
                normaliser += math.exp(float(score))
            probability = math.exp(float(scores[i, t, int(names[i, t])])) / normaliser  # Sec. 2.1, softmax
            losses.append(-math.log(probability))  # Sec. 2.1, negative log-likelihood
            of_token.append(w[i])
    return _weighted_mean(losses, of_token) if losses else 0.0


def cluster_loss(p: npt.ArrayLike, q: npt.ArrayLike, weights: npt.ArrayLike | None = None) -> float:
    """L_c: the (weighted) mean over the batch of KL[p_i || q_i]; 0 log 0 is 0."""
    p, q = np.asarray(p, dtype=np.float64), np.asarray(q, dtype=np.float64)
    losses = []
    for i in range(len(p)):
        divergence = 0.0
        for j in range(p.shape[1]):
            if p[i, j] > 0.0:
                divergence += float(p[i, j]) * math.log(float(p[i, j]) / float(q[i, j]))  # Eq. 2
        losses.append(divergence)
    return _weighted_mean(losses, _weight_list(weights, len(losses)))  # Eq. 2, as a mean


def student_t(z: npt.ArrayLike, centers: npt.ArrayLike, alpha: float = 1.0) -> FloatArray:
    """Soft assignment q (M x K) of each representation to each center."""
    z, mu = np.asarray(z, dtype=np.float64), np.asarray(centers, dtype=np.float64)
    q = np.zeros((len(z), len(mu)), dtype=np.float64)
    for i in range(len(z)):
        normaliser = 0.0
        for j in range(len(mu)):
            squared_distance = 0.0
            for d in range(z.shape[1]):
                squared_distance += (float(z[i, d]) - float(mu[j, d])) ** 2
            q[i, j] = (1.0 + squared_distance / alpha) ** (-(alpha + 1.0) / 2.0)  # Eq. 3, numerator
            normaliser += float(q[i, j])  # Eq. 3, denominator
        for j in range(len(mu)):
            q[i, j] = q[i, j] / normaliser  # Eq. 3
    return q


def labels(q: npt.ArrayLike) -> list[int]:
    """The most probable cluster of each text."""
    found = []
    for row in np.asarray(q, dtype=np.float64):
        best = 0
        for j in range(len(row)):
            if row[j] > row[best]:
                best = j
        found.append(best)  # Eq. 4
    return found


def target_distribution(q: npt.ArrayLike, weights: npt.ArrayLike | None = None) -> FloatArray:
    """Sharpened target p (N x K) of the whole corpus, each cluster discounted by its (weighted) soft frequency."""
    q = np.asarray(q, dtype=np.float64)
    w = _weight_list(weights, len(q))
    p = np.zeros_like(q)
    for i in range(len(q)):
        normaliser = 0.0
        for j in range(q.shape[1]):
            f_j = 0.0
            for n in range(len(q)):
                f_j += w[n] * float(q[n, j])  # Eq. 5, f_j
            p[i, j] = float(q[i, j]) ** 2 / f_j if f_j > 0.0 else 0.0  # Eq. 5, numerator
            normaliser += float(p[i, j])  # Eq. 5, denominator
        for j in range(q.shape[1]):
            p[i, j] = p[i, j] / normaliser  # Eq. 5
    return p


def uftc_total(masked_language: float, cluster: float, *, use_masked_language: bool = True) -> float:
    """The whole objective; the ablation drops the masked-language loss."""
    return (masked_language if use_masked_language else 0.0) + cluster  # Eq. 1
