"""How far an auto-encoder's output is from its input."""

from __future__ import annotations

from torch import Tensor

from coterie.losses.nt_xent import weighted_mean


def reconstruction_error(inputs: Tensor, outputs: Tensor, weights: Tensor | None = None) -> Tensor:
    """Mean over texts of the mean squared difference of a row; ``weights`` says how often each text occurs."""
    return weighted_mean((outputs - inputs).square().mean(dim=-1), weights)
