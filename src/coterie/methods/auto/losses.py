"""The two losses of the default method: functions of tensors that return a scalar."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional

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


def neighbour_contrast(anchors: Tensor, keys: Tensor, labels: Tensor, temperature: float, weights: Tensor) -> Tensor:
    """Return the contrastive loss of each anchor and its key against the keys of other clusters in the batch.

    ``-log(exp(s_ii) / (exp(s_ii) + sum over j with another label of exp(s_ij)))`` with ``s`` the cosines over
    ``temperature``: texts of the same cluster are no negatives. The mean over texts, each weighted by ``weights``.

    Parameters
    ----------
    anchors, keys:
        ``B x D``; row i of ``keys`` is the positive of row i of ``anchors``.
    labels:
        ``B``, cluster of each text.
    weights:
        ``B``, how often each text occurs.
    """
    first, second = functional.normalize(anchors.float(), dim=1), functional.normalize(keys.float(), dim=1)
    similarity = first @ second.T / temperature
    same = labels[:, None] == labels[None, :]
    own = torch.eye(len(labels), dtype=torch.bool, device=labels.device)
    similarity = similarity.masked_fill(same & ~own, float("-inf"))
    per_text = similarity.logsumexp(dim=1) - similarity.diagonal()
    return weighted_mean(per_text, weights)
