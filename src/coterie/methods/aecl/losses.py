"""The loss terms of AECL, each a function of tensors."""

from __future__ import annotations

import math

import torch
from torch import Tensor
from torch.nn import functional

from coterie.losses.nt_xent import weighted_mean


def _exp_cosine(left: Tensor, right: Tensor, temperature: float) -> Tensor:
    """Return exp(sim / tau) of every pair of rows."""
    cosine = functional.normalize(left, dim=-1) @ functional.normalize(right, dim=-1).T  # Eq. 8
    return (cosine / temperature).exp()


def _others(pairs: Tensor) -> Tensor:
    """Return for each row i the sum over k != i."""
    itself = torch.eye(len(pairs), dtype=torch.bool, device=pairs.device)
    return pairs.masked_fill(itself, 0).sum(dim=1)


def _negative_entropy(p: Tensor) -> Tensor:
    """Return the sum of p log p over the last dimension; a probability of 0 adds nothing to it or to its gradient."""
    return (p * p.clamp_min(torch.finfo(p.dtype).tiny).log()).sum(dim=-1)


def similarity_guided(
    z0: Tensor,
    z1: Tensor,
    labels: Tensor,
    temperature: float,
    weights: Tensor,
    guide: tuple[tuple[Tensor, Tensor], tuple[Tensor, Tensor]] | None,
) -> Tensor:
    """Return L_I (Eq. 9). ``guide`` is H and S of both views; without it Eq. 7 is left out.

    The loss of a batch of one text, which has no negatives, is 0.
    """
    if len(z0) < 2:
        return (z0.sum() + z1.sum()) * 0
    crossed = _exp_cosine(z0, z1, temperature)
    within = [_exp_cosine(z, z, temperature) for z in (z0, z1)]
    own = crossed.diagonal()
    first = own / (_others(within[0]) + _others(crossed)) + own / (_others(within[1]) + _others(crossed.T))  # Eq. 6
    if guide is None:
        return weighted_mean(-first.log(), weights)  # Eq. 9 without Eq. 7
    same = labels[:, None] == labels[None, :]  # Lambda_i, which holds i itself
    losses = []
    for z, (h, similarities), z_pairs in zip((z0, z1), guide, within, strict=True):
        z_to_h = _exp_cosine(z, h, temperature)
        h_pairs = _exp_cosine(h, h, temperature)
        positives = similarities * same
        second = (positives * z_to_h).sum(dim=1) / (_others(z_pairs) + _others(z_to_h)) + (positives * z_to_h.T).sum(
            dim=1
        ) / (_others(h_pairs) + _others(z_to_h.T))  # Eq. 7
        losses.append(-(first + second).log())
    return weighted_mean((losses[0] + losses[1]) / 2, weights)  # Eq. 9


def confidence_contrast(
    z0: Tensor, z1: Tensor, labels: Tensor, confident: Tensor, temperature: float, weights: Tensor
) -> Tensor:
    """Return the contrastive loss with confident texts of one pseudo-label as positives (CCSSL).

    Without confident texts, it is NT-Xent.
    """
    views = torch.cat([z0, z1])
    count = len(z0)
    pairs = _exp_cosine(views, views, temperature)
    text = torch.arange(count, device=views.device).repeat(2)
    labels, confident = labels.repeat(2), confident.repeat(2)
    alike = (labels[:, None] == labels[None, :]) & confident[:, None] & confident[None, :]
    itself = torch.eye(2 * count, dtype=torch.bool, device=views.device)
    positives = ((text[:, None] == text[None, :]) | alike) & ~itself
    others = pairs.masked_fill(itself, 0)
    anchors = -((others * positives).sum(dim=1) / others.sum(dim=1)).log()
    return weighted_mean(anchors, weights.repeat(2))


def cluster_contrast(
    p0: Tensor, p1: Tensor, temperature: float, weights: Tensor, positive_in_denominator: bool
) -> Tensor:
    """Return L_C (Eq. 10-11): the contrastive loss of each cluster's column over the batch in the two views."""
    scale = weights.to(p0.dtype).sqrt()[:, None]
    columns = [functional.normalize((p * scale).T, dim=-1) for p in (p0, p1)]
    crossed = (columns[0] @ columns[1].T / temperature).exp()
    own = crossed.diagonal()
    total = torch.zeros((), dtype=p0.dtype, device=p0.device)
    for column, across in ((columns[0], crossed), (columns[1], crossed.T)):
        negatives = _others((column @ column.T / temperature).exp()) + _others(across)
        total = total - (own / (negatives + own if positive_in_denominator else negatives)).log().sum()  # Eq. 10
    return total / (2 * p0.shape[1])  # Eq. 11


def pseudo_label_loss(logits: Tensor, labels: Tensor, trusted: Tensor, weights: Tensor) -> Tensor:
    """Return L_P (Eq. 12): the cross entropy of the other view for trusted pseudo-labels, divided by all texts."""
    texts = functional.cross_entropy(
        logits.float() if logits.dtype != torch.float64 else logits, labels, reduction="none"
    )
    return weighted_mean(texts * trusted, weights)  # Eq. 12


def mean_entropy(p: Tensor, weights: Tensor) -> Tensor:
    """Return L_E1 (Eq. 5): the mean entropy of single assignments."""
    return weighted_mean(-_negative_entropy(p), weights)  # Eq. 5


def balance_penalty(p0: Tensor, p1: Tensor, weights: Tensor) -> Tensor:
    """Return log K minus the entropy of the mean assignment (Eq. 13), a mean over the views: 0 for equal clusters."""
    share = (weights / weights.sum()).to(p0.dtype)[:, None]
    penalties = []
    for p in (p0, p1):
        mean = (share * p).sum(dim=0)
        penalties.append(math.log(p.shape[1]) + _negative_entropy(mean))  # Eq. 13
    return (penalties[0] + penalties[1]) / 2
