"""DEC, IDEC and DCN in float64 loops, from the papers' equations."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Table = NDArray[np.float64]


def assignments(latents: Table, centers: Table) -> Table:
    """DEC Eq. 1 with one degree of freedom."""
    q = np.zeros((len(latents), len(centers)))
    for i, z in enumerate(latents):
        for j, center in enumerate(centers):
            q[i, j] = 1 / (1 + ((z - center) ** 2).sum())
        q[i] /= q[i].sum()
    return q


def targets(q: Table) -> Table:
    """DEC Eq. 3; repeated texts are repeated rows."""
    p = q**2 / q.sum(axis=0)
    return p / p.sum(axis=1, keepdims=True)


def divergence(p: Table, q: Table) -> float:
    """DEC Eq. 2 over the number of texts."""
    return float((p * np.log(p / q)).sum() / len(p))


def gradients(latents: Table, centers: Table, p: Table) -> tuple[Table, Table]:
    """DEC Eq. 4 and 5 over the number of texts, for one degree of freedom."""
    q = assignments(latents, centers)
    by_latent, by_center = np.zeros_like(latents), np.zeros_like(centers)
    for i, z in enumerate(latents):
        for j, center in enumerate(centers):
            pull = 2 / (1 + ((z - center) ** 2).sum()) * (p[i, j] - q[i, j]) * (z - center)
            by_latent[i] += pull / len(latents)
            by_center[j] -= pull / len(latents)
    return by_latent, by_center


def forward(widths: list[tuple[Table, Table]], inputs: Table, linear: int) -> Table:
    """A stack of layers ``x W^T + b``, rectified but for the one at place ``linear``."""
    states = inputs
    for i, (weight, bias) in enumerate(widths):
        states = states @ weight.T + bias
        if i != linear:
            states = np.maximum(states, 0)
    return states


def mean_squares(inputs: Table, outputs: Table) -> float:
    """IDEC's reconstruction loss as its code computes it: a mean over texts and entries."""
    return float(np.mean([np.mean((x - y) ** 2) for x, y in zip(inputs, outputs, strict=True)]))


def dcn_loss(inputs: Table, outputs: Table, latents: Table, own_centers: Table, weight: float) -> float:
    """DCN: the squared error of a text plus half of lambda times its squared distance, averaged over texts."""
    total = 0.0
    for x, y, z, m in zip(inputs, outputs, latents, own_centers, strict=True):
        total += ((x - y) ** 2).sum() + weight / 2 * ((z - m) ** 2).sum()
    return float(total / len(inputs))


def dcn_centers(centers: Table, uses: Table, latents: Table, labels: NDArray[np.int64]) -> tuple[Table, Table]:
    """DCN's update of the centres: each text moves its own by one part in as many as the centre was used for."""
    centers, uses = centers.copy(), uses.copy()
    for z, k in zip(latents, labels, strict=True):
        uses[k] += 1
        centers[k] -= (centers[k] - z) / uses[k]
    return centers, uses
