"""The reconstruction error of an auto-encoder."""

from __future__ import annotations

from torch import Tensor

from coterie.losses.nt_xent import weighted_mean


def reconstruction_error(inputs: Tensor, outputs: Tensor, weights: Tensor | None = None) -> Tensor:
    """Return the mean over texts of a row's mean squared difference, weighted by the occurrences ``weights``."""
    return weighted_mean((outputs - inputs).square().mean(dim=-1), weights)
