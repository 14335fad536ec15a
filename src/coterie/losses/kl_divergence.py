"""The clustering loss of DEC: the divergence of assignments from their sharpened targets."""

from __future__ import annotations

import torch
from torch import Tensor

from coterie.losses.nt_xent import weighted_mean


def kl_divergence(p: Tensor, q: Tensor, weights: Tensor | None = None) -> Tensor:
    """Return the mean over texts of KL[p_j || q_j] (SCCL Eq. 5-6).

    Parameters
    ----------
    p, q:
        Target and assignment probabilities, ``M x K``; ``0 log 0`` is 0.
    weights:
        ``M``, occurrences of each text in the corpus: its weight in the mean.

    References
    ----------
    Xie et al., Unsupervised Deep Embedding for Clustering Analysis, ICML 2016.
    """
    tiny = torch.finfo(q.dtype).tiny
    texts = (torch.xlogy(p, p) - p * q.clamp_min(tiny).log()).sum(dim=-1)  # Eq. 5
    return weighted_mean(texts, weights)  # Eq. 6
