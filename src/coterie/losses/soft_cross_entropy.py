"""The cross entropy of soft pseudo-labels, some of which are trusted more than others."""

from __future__ import annotations

from torch import Tensor

from coterie.losses.nt_xent import weighted_mean

# Smallest trust of a text: if all texts of a batch had trust 0, the mean would divide by zero.
SMALLEST_TRUST = 1e-6


def soft_cross_entropy(logits: Tensor, targets: Tensor, trust: Tensor, weights: Tensor) -> Tensor:
    """Return the cross entropy of soft targets: ``-sum_i w_i t_i sum_k p_ik log q_ik / sum_i w_i t_i``.

    Parameters
    ----------
    logits, targets:
        ``B x K``: the logits of q, and the target probabilities p.
    trust:
        ``B``, how much each target is trusted (t), from 0 to 1.
    weights:
        ``B``, occurrences of each text (w).
    """
    per_text = -(targets * logits.float().log_softmax(dim=1)).sum(dim=1)
    return weighted_mean(per_text, weights * trust.clamp_min(SMALLEST_TRUST))
