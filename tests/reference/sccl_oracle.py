"""Every loss of SCCL (Zhang et al., NAACL 2021), one loop per sum, in float64.

Slow on purpose: each line that is an equation of the paper names it, and nothing is rearranged for speed or
for numerical range. ``weights`` are this project's addition: how often each instance occurs in the corpus.
A mean over instances becomes the weighted mean and a soft frequency the weighted one; equal weights give
back the paper's equations.

Where the paper leaves room:

* Eq. 7 is printed twice, once without eta; the second line and the text put eta on the contrastive term.
* Eq. 8 and 9 do not say over which set Eq. 4 takes its frequencies; here each view is its own batch of M.
* Eq. 4 is 0/0 for a cluster nobody belongs to; its limit is 0, because q_jk^2 / f_k <= q_jk / w_j.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float64]


def _weight_list(weights: npt.ArrayLike | None, count: int) -> list[float]:
    """One positive weight per instance; ones where none are given."""
    if weights is None:
        return [1.0] * count
    listed = [float(weight) for weight in np.asarray(weights, dtype=np.float64)]
    if len(listed) != count or min(listed) <= 0.0:
        raise ValueError(f"weights must be {count} positive numbers, got {listed}")
    return listed


def _weighted_mean(values: list[float], weights: list[float]) -> float:
    """The sum of weight times value over the sum of weights; equal weights give the plain mean."""
    total = 0.0
    mass = 0.0
    for value, weight in zip(values, weights, strict=True):
        total += weight * value
        mass += weight
    return total / mass


def similarity(left: FloatArray, right: FloatArray) -> float:
    """The dot product of two normalised vectors: sim in Eq. 1."""
    dot = 0.0
    left_square = 0.0
    right_square = 0.0
    for d in range(len(left)):
        dot += float(left[d]) * float(right[d])
        left_square += float(left[d]) ** 2
        right_square += float(right[d]) ** 2
    return dot / (math.sqrt(left_square) * math.sqrt(right_square))  # Eq. 1, sim


def nt_xent_anchor_losses(first: npt.ArrayLike, second: npt.ArrayLike, temperature: float) -> list[float]:
    """The 2M anchor losses of Eq. 1: those of ``first``, row by row, then those of ``second``."""
    z_first = np.asarray(first, dtype=np.float64)
    z_second = np.asarray(second, dtype=np.float64)
    m = len(z_first)
    z = list(z_first) + list(z_second)
    losses = []
    for i1 in range(2 * m):
        i2 = i1 + m if i1 < m else i1 - m
        numerator = math.exp(similarity(z[i1], z[i2]) / temperature)  # Eq. 1, numerator
        denominator = 0.0
        for j in range(2 * m):
            if j != i1:
                denominator += math.exp(similarity(z[i1], z[j]) / temperature)  # Eq. 1, denominator
        losses.append(-math.log(numerator / denominator))  # Eq. 1
    return losses


def nt_xent(
    first: npt.ArrayLike,
    second: npt.ArrayLike,
    temperature: float,
    weights: npt.ArrayLike | None = None,
) -> float:
    """Instance-wise contrastive loss of two M x D augmentations, not normalised, paired by row."""
    losses = nt_xent_anchor_losses(first, second, temperature)
    instance_weights = _weight_list(weights, len(losses) // 2)
    return _weighted_mean(losses, instance_weights + instance_weights)  # Eq. 2


def student_t(embeddings: npt.ArrayLike, centers: npt.ArrayLike, alpha: float) -> FloatArray:
    """Soft assignment q (M x K) of each embedding to each center."""
    e = np.asarray(embeddings, dtype=np.float64)
    mu = np.asarray(centers, dtype=np.float64)
    q = np.zeros((len(e), len(mu)), dtype=np.float64)
    for j in range(len(e)):
        kernels = []
        for k in range(len(mu)):
            squared_distance = 0.0
            for d in range(e.shape[1]):
                squared_distance += (float(e[j, d]) - float(mu[k, d])) ** 2
            kernels.append((1.0 + squared_distance / alpha) ** (-(alpha + 1.0) / 2.0))  # Eq. 3, numerator
        normaliser = 0.0
        for kernel in kernels:
            normaliser += kernel  # Eq. 3, denominator
        for k in range(len(mu)):
            q[j, k] = kernels[k] / normaliser  # Eq. 3
    return q


def target_distribution(q: npt.ArrayLike, weights: npt.ArrayLike | None = None) -> FloatArray:
    """Sharpened target p (M x K), each cluster discounted by its (weighted) soft frequency."""
    q = np.asarray(q, dtype=np.float64)
    m, n_clusters = q.shape
    w = _weight_list(weights, m)
    frequencies = []
    for k in range(n_clusters):
        f_k = 0.0
        for j in range(m):
            f_k += w[j] * float(q[j, k])  # Eq. 4, f_k
        frequencies.append(f_k)
    p = np.zeros((m, n_clusters), dtype=np.float64)
    for j in range(m):
        sharpened = []
        for k in range(n_clusters):
            f_k = frequencies[k]
            sharpened.append(float(q[j, k]) ** 2 / f_k if f_k > 0.0 else 0.0)  # Eq. 4, numerator
        normaliser = 0.0
        for value in sharpened:
            normaliser += value  # Eq. 4, denominator
        for k in range(n_clusters):
            p[j, k] = sharpened[k] / normaliser  # Eq. 4
    return p


def kl_row(p_row: FloatArray, q_row: FloatArray) -> float:
    """KL[p_j || q_j] of one instance; 0 log 0 is 0, and mass where q has none is infinite."""
    total = 0.0
    for k in range(len(p_row)):
        p_jk = float(p_row[k])
        q_jk = float(q_row[k])
        if p_jk == 0.0:
            continue
        if q_jk == 0.0:
            return math.inf
        total += p_jk * math.log(p_jk / q_jk)  # Eq. 5
    return total


def kl_divergence(p: npt.ArrayLike, q: npt.ArrayLike, weights: npt.ArrayLike | None = None) -> float:
    """Clustering loss: the (weighted) mean over instances of KL[p_j || q_j]."""
    p = np.asarray(p, dtype=np.float64)
    q = np.asarray(q, dtype=np.float64)
    losses = []
    for j in range(len(p)):
        losses.append(kl_row(p[j], q[j]))  # Eq. 5
    return _weighted_mean(losses, _weight_list(weights, len(losses)))  # Eq. 6


def alternative_1(q_first: npt.ArrayLike, q_second: npt.ArrayLike, weights: npt.ArrayLike | None = None) -> float:
    """Each augmentation follows the target of the other one."""
    q_1 = np.asarray(q_first, dtype=np.float64)
    q_2 = np.asarray(q_second, dtype=np.float64)
    p_1 = target_distribution(q_1, weights)  # Eq. 4
    p_2 = target_distribution(q_2, weights)  # Eq. 4
    losses = []
    for j in range(len(q_1)):
        losses.append(kl_row(p_1[j], q_2[j]) + kl_row(p_2[j], q_1[j]))  # Eq. 8
    return _weighted_mean(losses, _weight_list(weights, len(losses)))  # Eq. 6


def alternative_2(
    q_anchor: npt.ArrayLike,
    q_first: npt.ArrayLike,
    q_second: npt.ArrayLike,
    weights: npt.ArrayLike | None = None,
) -> float:
    """Both augmentations follow the target of the original text."""
    q_0 = np.asarray(q_anchor, dtype=np.float64)
    q_1 = np.asarray(q_first, dtype=np.float64)
    q_2 = np.asarray(q_second, dtype=np.float64)
    p_0 = target_distribution(q_0, weights)  # Eq. 4
    losses = []
    for j in range(len(q_0)):
        losses.append(kl_row(p_0[j], q_1[j]) + kl_row(p_0[j], q_2[j]))  # Eq. 9
    return _weighted_mean(losses, _weight_list(weights, len(losses)))  # Eq. 6


def sccl_total(
    embeddings: npt.ArrayLike,
    centers: npt.ArrayLike,
    first: npt.ArrayLike,
    second: npt.ArrayLike,
    *,
    temperature: float = 0.5,
    alpha: float = 1.0,
    eta: float = 10.0,
    weights: npt.ArrayLike | None = None,
    target: npt.ArrayLike | None = None,
) -> float:
    """The whole objective, from the original embeddings and the contrastive head's two outputs.

    ``target`` holds p fixed, as a training step that takes no gradient through Eq. 4 does; without it p is
    computed from q.
    """
    q = student_t(embeddings, centers, alpha)  # Eq. 3
    p = target_distribution(q, weights) if target is None else target  # Eq. 4
    cluster = kl_divergence(p, q, weights)  # Eq. 5-6
    instance = nt_xent(first, second, temperature, weights)  # Eq. 1-2
    return cluster + eta * instance  # Eq. 7


def numerical_gradient(function: Callable[[FloatArray], float], array: npt.ArrayLike, step: float = 1e-6) -> FloatArray:
    """Central differences of a scalar function at ``array``, entry by entry; ``array`` is left as it was."""
    point = np.array(array, dtype=np.float64)
    gradient = np.zeros_like(point)
    for index in np.ndindex(*point.shape):
        above = point.copy()
        above[index] += step
        below = point.copy()
        below[index] -= step
        gradient[index] = (function(above) - function(below)) / (2.0 * step)
    return gradient
