"""The two losses of the default method; tensors in, a scalar out."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional

from coterie.losses.nt_xent import weighted_mean


def taught(logits: Tensor, targets: Tensor, trust: Tensor, weights: Tensor) -> Tensor:
    """Cross entropy of the logits to soft targets: ``-sum_i w_i t_i sum_k p_ik log q_ik / sum_i w_i t_i``.

    ``trust`` says how far each text's target is believed, ``weights`` how often the text occurs.
    """
    each = -(targets * logits.float().log_softmax(dim=1)).sum(dim=1)
    return weighted_mean(each, weights * trust.clamp_min(1e-6))


def neighbour_contrast(anchors: Tensor, keys: Tensor, labels: Tensor, temperature: float, weights: Tensor) -> Tensor:
    """Each anchor to its own key, against the keys of the batch that belong to other clusters.

    ``-log(exp(s_ii) / (exp(s_ii) + sum over j with another label of exp(s_ij)))`` with ``s`` the cosines over
    ``temperature``: a text of the same cluster is no negative. A mean over the texts, each counted ``weights`` times.
    """
    first, second = functional.normalize(anchors.float(), dim=1), functional.normalize(keys.float(), dim=1)
    likeness = first @ second.T / temperature
    same = labels[:, None] == labels[None, :]
    own = torch.eye(len(labels), dtype=torch.bool, device=labels.device)
    likeness = likeness.masked_fill(same & ~own, float("-inf"))
    each = likeness.logsumexp(dim=1) - likeness.diagonal()
    return weighted_mean(each, weights)
