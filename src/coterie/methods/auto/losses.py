"""The contrastive loss of the default method: a function of tensors that returns a scalar."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional

from coterie.losses.nt_xent import weighted_mean


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
