"""How badly a network predicts binary codes."""

from __future__ import annotations

from torch import Tensor, nn

from coterie.losses.nt_xent import weighted_mean


def code_loss(logits: Tensor, codes: Tensor, weights: Tensor) -> Tensor:
    """Mean over texts of the negative log-likelihood of all bits, each bit a logistic regression (STCC).

    ``weights`` is how often each text occurs.
    """
    bits = nn.functional.binary_cross_entropy_with_logits(logits, codes, reduction="none")
    return weighted_mean(bits.sum(dim=1), weights)
