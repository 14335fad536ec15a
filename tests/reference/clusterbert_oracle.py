"""Every loss of ClusterBERT ("Multi-stage fine-tuning of transformers"), one loop per sum, in float64.

Slow on purpose: each line that is an equation of the paper names it, and nothing is rearranged for speed or
for numerical range. ``weights`` are this project's addition: how often each text occurs in the corpus. A mean
over texts or their tokens becomes the weighted mean and a soft frequency the weighted one; equal weights give
back the paper's equations.

Where the paper leaves room:

* Eq. 1 does not say how the tokens of a sentence are averaged; as in TSDAE, the mean is over all target tokens
  of the batch that are not padding.
* Eq. 3 is also the loss of stage 3, where Eq. 5 takes the place of the k-means labels; it is a cross-entropy
  there too, which differs from the divergence by the entropy of the targets.
* Eq. 5's frequencies run over the whole corpus; 0/0 for a cluster nobody belongs to is 0.
* The head starts at each clustering from the centroids: w_k = mu_k, b_k = -|mu_k|^2 / 2.
* Table 5: a pair is close throughout by its lowest similarity over all stages; it rises or falls by the last
  similarity minus the first, and only a pair that rose (fell) is listed as such. Of equals the earlier pair
  comes first.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from .deccrl_oracle import softmax
from .sccl_oracle import FloatArray, _weight_list, _weighted_mean, similarity

STAGE_LAMBDA = {1: 0.0, 2: 0.8, 3: 0.75}
WITHOUT_RECONSTRUCTION = {1: 0.0, 2: 1.0, 3: 1.0}

Pair = tuple[int, int]


# --- reconstruction ---


def reconstruction_loss(
    logits: npt.ArrayLike, targets: npt.ArrayLike, is_token: npt.ArrayLike, weights: npt.ArrayLike | None = None
) -> float:
    """L_rec from M x T x V decoder scores, the M x T tokens they should name, and which of those are no padding.

    Position t of ``targets`` is what position t of ``logits`` predicts: the shift by one is already made.
    """
    scores, names, real = np.asarray(logits, dtype=np.float64), np.asarray(targets), np.asarray(is_token, dtype=bool)
    w = _weight_list(weights, len(scores))
    losses, of_token = [], []
    for i in range(len(scores)):
        for t in range(scores.shape[1]):
            if real[i, t]:
                losses.append(-math.log(softmax(scores[i, t])[int(names[i, t])]))  # Eq. 1, CE of one token
                of_token.append(w[i])
    return _weighted_mean(losses, of_token)  # Eq. 1


# --- cluster prediction ---


def head_from_centroids(centroids: npt.ArrayLike) -> tuple[FloatArray, FloatArray]:
    """Weight (K x D) and bias (K) of the head whose prediction is the softmax of minus half the squared distance."""
    mu = np.asarray(centroids, dtype=np.float64)
    bias = np.zeros(len(mu), dtype=np.float64)
    for k in range(len(mu)):
        for d in range(mu.shape[1]):
            bias[k] -= mu[k, d] ** 2 / 2.0
    return mu.copy(), bias


def head_logits(z: npt.ArrayLike, weight: npt.ArrayLike, bias: npt.ArrayLike) -> FloatArray:
    """h(z) = z W^T + b (M x K)."""
    z, w, b = (np.asarray(array, dtype=np.float64) for array in (z, weight, bias))
    logits = np.zeros((len(z), len(w)), dtype=np.float64)
    for i in range(len(z)):
        for k in range(len(w)):
            logits[i, k] = b[k]
            for d in range(z.shape[1]):
                logits[i, k] += z[i, d] * w[k, d]
    return logits


def cluster_probabilities(logits: npt.ArrayLike) -> FloatArray:
    """P (M x K) from the scores of the head."""
    return np.array([softmax(row) for row in np.asarray(logits, dtype=np.float64)])  # Eq. 2


def one_hot(labels: Sequence[int], n_clusters: int) -> FloatArray:
    """Stage 2's targets Q: all mass on the k-means label."""
    q = np.zeros((len(labels), n_clusters), dtype=np.float64)
    for i, label in enumerate(labels):
        q[i, label] = 1.0
    return q


def cluster_loss(p: npt.ArrayLike, q: npt.ArrayLike, weights: npt.ArrayLike | None = None) -> float:
    """L_cl: cross-entropy of the noised texts' predictions ``p`` under the targets ``q``; 0 log 0 is 0."""
    p, q = np.asarray(p, dtype=np.float64), np.asarray(q, dtype=np.float64)
    losses = []
    for i in range(len(p)):
        loss = 0.0
        for j in range(p.shape[1]):
            if q[i, j] > 0.0:
                loss -= float(q[i, j]) * math.log(float(p[i, j]))  # Eq. 3
        losses.append(loss)
    return _weighted_mean(losses, _weight_list(weights, len(losses)))  # Eq. 3


def hardened_targets(p: npt.ArrayLike, weights: npt.ArrayLike | None = None) -> FloatArray:
    """Stage 3's targets Q from the predictions of the whole corpus, clean."""
    p = np.asarray(p, dtype=np.float64)
    w = _weight_list(weights, len(p))
    q = np.zeros_like(p)
    for i in range(len(p)):
        normaliser = 0.0
        for j in range(p.shape[1]):
            f_j = 0.0
            for n in range(len(p)):
                f_j += w[n] * float(p[n, j])  # Eq. 5, f_j
            q[i, j] = float(p[i, j]) ** 2 / f_j if f_j > 0.0 else 0.0  # Eq. 5, numerator
            normaliser += float(q[i, j])  # Eq. 5, denominator
        for j in range(p.shape[1]):
            q[i, j] = q[i, j] / normaliser  # Eq. 5
    return q


def full_loss(cluster: float, reconstruction: float, lam: float) -> float:
    """L_full; ``STAGE_LAMBDA`` and, for the ablation, ``WITHOUT_RECONSTRUCTION`` hold each stage's lambda."""
    return lam * cluster + (1.0 - lam) * reconstruction  # Eq. 4


# --- Table 5 ---


def cosine_matrix(embeddings: npt.ArrayLike) -> FloatArray:
    """The cosine similarity of every pair of rows."""
    z = np.asarray(embeddings, dtype=np.float64)
    matrix = np.zeros((len(z), len(z)), dtype=np.float64)
    for i in range(len(z)):
        for j in range(len(z)):
            matrix[i, j] = similarity(z[i], z[j])
    return matrix


def _ranked(scores: dict[Pair, float], count: int) -> list[Pair]:
    """The pairs with the highest scores, the earlier pair first among equals."""
    return sorted(scores, key=lambda pair: (-scores[pair], pair))[:count]


def pair_kinds(
    stages: Sequence[npt.ArrayLike], labels: Sequence[int] | None = None, count: int = 10
) -> dict[str, list[Pair]]:
    """Table 5's pairs i < j, up to ``count`` of each kind, from one similarity matrix a stage, first to last."""
    matrices = [np.asarray(stage, dtype=np.float64) for stage in stages]
    close: dict[str, dict[Pair, float]] = {"same": {}, "different": {}}
    change: dict[str, dict[Pair, float]] = {"same": {}, "different": {}}
    for i in range(len(matrices[0])):
        for j in range(i + 1, len(matrices[0])):
            group = "same" if labels is None or labels[i] == labels[j] else "different"
            lowest = math.inf
            for matrix in matrices:
                lowest = min(lowest, float(matrix[i, j]))
            close[group][i, j] = lowest
            change[group][i, j] = float(matrices[-1][i, j]) - float(matrices[0][i, j])
    rises = {g: {pair: d for pair, d in change[g].items() if d > 0.0} for g in change}
    falls = {g: {pair: -d for pair, d in change[g].items() if d < 0.0} for g in change}
    if labels is None:
        return {"rise": _ranked(rises["same"], count), "fall": _ranked(falls["same"], count)}
    return {
        "same_close": _ranked(close["same"], count),
        "same_rise": _ranked(rises["same"], count),
        "different_rise": _ranked(rises["different"], count),
        "different_fall": _ranked(falls["different"], count),
        "same_fall": _ranked(falls["same"], count),
    }
