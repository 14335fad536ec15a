"""Optimal transport and losses of RSTC (Zheng et al., ACL 2023), slow and in float64.

``weights`` and ``rows`` are this project's addition: how often each text occurs. Equal ones give back the paper.

The transport is the authors' iteration, from the Lagrangian: scalings u and v of the kernel exp(-cost / epsilon) in
turn, the multiplier g = epsilon log v, the sizes b from their quadratic equation, and the multiplier h that makes
them add up to one, here by bisection. ``damping`` mixes old and new sizes, since for small penalties the iteration
swings; it does not move the point where it rests.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from .deccrl_oracle import softmax
from .sccl_oracle import FloatArray, _weight_list, _weighted_mean, nt_xent_anchor_losses


def size_of(difference: float, penalty: float) -> float:
    """b in (0, 1) with (g - h) b^2 - (g - h + 2 penalty) b + penalty = 0."""
    if difference == 0.0:
        return 0.5
    root = math.sqrt(difference**2 + 4 * penalty**2)
    return (difference + 2 * penalty - root) / (2 * difference)


def sizes_for(g: FloatArray, penalty: float) -> FloatArray:
    """The sizes for multipliers g, with the h for which they add up to one."""
    low, high = float(g.min()) - 1e4 * penalty, float(g.max()) + 1e4 * penalty
    for _ in range(200):
        h = (low + high) / 2
        total = sum(size_of(float(each) - h, penalty) for each in g)
        low, high = (h, high) if total < 1 else (low, h)
    return np.array([size_of(float(each) - h, penalty) for each in g])


def sinkhorn(cost: npt.ArrayLike, rows: npt.ArrayLike, sizes: npt.ArrayLike, epsilon: float, rounds: int) -> FloatArray:
    """The plan diag(u) exp(-cost / epsilon) diag(v)."""
    kernel = np.exp(-np.asarray(cost, dtype=np.float64) / epsilon)
    a, b = (np.asarray(each, dtype=np.float64) / np.sum(each) for each in (rows, sizes))
    u = np.ones(len(a))
    for _ in range(rounds):
        v = b / (kernel.T @ u)
        u = a / (kernel @ v)
    return u[:, None] * kernel * v[None, :]


def self_adaptive_transport(
    cost: npt.ArrayLike, rows: npt.ArrayLike, epsilon: float, penalty: float, rounds: int, damping: float
) -> tuple[FloatArray, FloatArray]:
    """The plan and the sizes."""
    kernel = np.exp(-np.asarray(cost, dtype=np.float64) / epsilon)
    a = np.asarray(rows, dtype=np.float64) / np.sum(rows)
    b = np.full(kernel.shape[1], 1 / kernel.shape[1])
    u = np.ones(len(a))
    for _ in range(rounds):
        v = b / (kernel.T @ u)
        u = a / (kernel @ v)
        b = (1 - damping) * b + damping * sizes_for(epsilon * np.log(v), penalty)
    return u[:, None] * kernel * v[None, :], b


def transport_objective(plan: FloatArray, cost: FloatArray, epsilon: float, penalty: float) -> float:
    """What is minimised: <plan, cost> + epsilon <plan, log plan - 1> + penalty sum_j -log b_j - log(1 - b_j)."""
    total = 0.0
    for i in range(plan.shape[0]):
        for j in range(plan.shape[1]):
            mass = float(plan[i, j])
            total += mass * float(cost[i, j]) + epsilon * mass * (math.log(mass) - 1)
    for size in plan.sum(axis=0):
        total += penalty * (-math.log(float(size)) - math.log(1 - float(size)))
    return total


def assignment_loss(
    first: npt.ArrayLike, second: npt.ArrayLike, labels: npt.ArrayLike, weights: npt.ArrayLike | None = None
) -> float:
    """Cross entropy of both views' logits to hard labels, added up."""
    losses = []
    for one, other, label in zip(np.asarray(first), np.asarray(second), np.asarray(labels), strict=True):
        losses.append(-math.log(softmax(one)[label]) - math.log(softmax(other)[label]))
    return _weighted_mean(losses, _weight_list(weights, len(losses)))


def contrast(first: npt.ArrayLike, second: npt.ArrayLike, temperature: float, weights: npt.ArrayLike | None) -> float:
    """The mean over the anchors of the first view plus that over the anchors of the second."""
    anchors = nt_xent_anchor_losses(first, second, temperature)
    count = len(anchors) // 2
    w = _weight_list(weights, count)
    return _weighted_mean(anchors[:count], w) + _weighted_mean(anchors[count:], w)
