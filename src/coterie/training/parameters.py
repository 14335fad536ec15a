"""Holding parameters still, and how far they moved."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import torch
from torch import Tensor, nn


@contextmanager
def frozen(*modules: nn.Module) -> Iterator[None]:
    """Without gradients for ``modules``: also what others share with them gets none."""
    parameters = [each for module in modules for each in module.parameters() if each.requires_grad]
    for each in parameters:
        each.requires_grad_(False)
    try:
        yield
    finally:
        for each in parameters:
            each.requires_grad_(True)


@torch.no_grad()
def mean_change(before: Sequence[Tensor], after: Sequence[Tensor]) -> float:
    """Mean absolute difference, number by number."""
    total = sum(float((old - new).abs().sum()) for old, new in zip(before, after, strict=True))
    return total / sum(old.numel() for old in before)
