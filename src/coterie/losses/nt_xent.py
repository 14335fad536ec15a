"""The contrastive loss of SimCLR, as SCCL uses it."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional


def nt_xent(first: Tensor, second: Tensor, temperature: float, weights: Tensor | None = None) -> Tensor:
    """Return the normalised temperature-scaled cross entropy between two views (SCCL Eq. 1-2).

    Row ``i`` of ``first`` and row ``i`` of ``second`` are a positive pair; the other 2M - 2 rows of both are its
    negatives. The loss is computed in float32 or, for float64 inputs, in float64.

    Parameters
    ----------
    first, second:
        Outputs of the projection head, ``M x D``, not normalised.
    temperature:
        tau of Eq. 1.
    weights:
        ``M``, occurrences of each text in the corpus: the weight of both of its anchors in the mean.

    References
    ----------
    Chen et al., A Simple Framework for Contrastive Learning of Visual Representations, ICML 2020.
    """
    count = first.shape[0]
    views = torch.cat([first, second])
    views = functional.normalize(views if views.dtype == torch.float64 else views.float(), dim=-1)
    similarity = views @ views.T / temperature
    itself = torch.eye(2 * count, dtype=torch.bool, device=views.device)
    similarity = similarity.masked_fill(itself, float("-inf"))
    positive = torch.arange(2 * count, device=views.device).roll(count)
    anchors = functional.cross_entropy(similarity, positive, reduction="none")  # Eq. 1
    return weighted_mean(anchors, None if weights is None else weights.repeat(2))  # Eq. 2


def weighted_mean(values: Tensor, weights: Tensor | None) -> Tensor:
    """Return the mean of ``values`` with ``weights``."""
    if weights is None:
        return values.mean()
    weights = weights.to(values.dtype)
    return (weights * values).sum() / weights.sum()
