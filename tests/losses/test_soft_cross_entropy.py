"""The cross entropy of soft targets against plain loops in float64: values, gradients, trust, extremes."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from torch import Tensor

from coterie.losses.soft_cross_entropy import soft_cross_entropy

Array = NDArray[np.float64]
TRUST = np.array([1.0, 0.3, 0.0, 1.0, 1e-9, 0.7, 1.0, 0.5])
COUNTS = np.array([1.0, 3.0, 2.0, 1.0, 5.0, 1.0, 2.0, 4.0])


def _cross_entropy(logits: Array, targets: Array, trust: Array, weights: Array) -> float:
    above = below = 0.0
    for i in range(len(logits)):
        top = max(logits[i])
        log_total = top + math.log(sum(math.exp(each - top) for each in logits[i]))
        t = max(float(trust[i]), 1e-6)
        for k in range(logits.shape[1]):
            above -= weights[i] * t * targets[i, k] * (logits[i, k] - log_total)
        below += weights[i] * t
    return float(above / below)


def _slopes(function: Callable[[Array], float], at: Array, step: float = 1e-5) -> Array:
    slopes = np.zeros_like(at)
    for place in np.ndindex(*at.shape):
        more, less = at.copy(), at.copy()
        more[place] += step
        less[place] -= step
        slopes[place] = (function(more) - function(less)) / (2 * step)
    return slopes


def _tensor(array: NDArray[np.generic], dtype: torch.dtype = torch.float64) -> Tensor:
    return torch.tensor(array).to(dtype)


def _logits_and_targets(n: int, k: int, seed: int = 0) -> tuple[Array, Array]:
    random = np.random.default_rng(seed)
    return 3 * random.normal(size=(n, k)), random.dirichlet(np.full(k, 0.5), size=n)


@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float64, 1e-6), (torch.float32, 1e-5)])
@pytest.mark.parametrize(("n", "k"), [(1, 2), (8, 2), (8, 7)])
def test_the_cross_entropy_is_that_of_the_loops(n: int, k: int, dtype: torch.dtype, tolerance: float) -> None:
    logits, targets = _logits_and_targets(n, k)
    given_ = [_tensor(each, dtype) for each in (logits, targets, TRUST[:n], COUNTS[:n])]
    loss = soft_cross_entropy(*given_)
    assert loss.shape == ()
    assert loss.item() == pytest.approx(_cross_entropy(logits, targets, TRUST[:n], COUNTS[:n]), rel=tolerance)


def test_the_gradient_of_the_cross_entropy() -> None:
    logits, targets = _logits_and_targets(8, 4)
    leaf = _tensor(logits).requires_grad_()
    (gradient,) = torch.autograd.grad(soft_cross_entropy(leaf, *map(_tensor, (targets, TRUST, COUNTS))), leaf)
    expected = _slopes(lambda x: _cross_entropy(x, targets, TRUST, COUNTS), logits)
    np.testing.assert_allclose(gradient.numpy(), expected, rtol=1e-4, atol=1e-7)


def test_without_any_trust_all_texts_count() -> None:
    logits, targets = _logits_and_targets(8, 3)
    nothing, everything = (
        soft_cross_entropy(*map(_tensor, (logits, targets, t, COUNTS))) for t in (np.zeros(8), np.ones(8))
    )
    assert nothing.item() == pytest.approx(everything.item(), rel=1e-6)


def test_a_text_without_trust_counts_next_to_nothing() -> None:
    logits, targets = _logits_and_targets(8, 3)
    trust = np.ones(8)
    trust[2] = 0
    rest = np.arange(8) != 2
    loss = soft_cross_entropy(*map(_tensor, (logits, targets, trust, COUNTS))).item()
    assert loss == pytest.approx(_cross_entropy(logits[rest], targets[rest], trust[rest], COUNTS[rest]), rel=1e-5)


def test_a_text_that_occurs_twice_counts_as_two_texts() -> None:
    logits, targets = _logits_and_targets(3, 4)
    twice, trust = [0, 1, 1, 2], np.array([1.0, 0.5, 0.2])
    once = soft_cross_entropy(*map(_tensor, (logits, targets, trust, np.array([1.0, 2.0, 1.0]))))
    again = soft_cross_entropy(*map(_tensor, (logits[twice], targets[twice], trust[twice], np.ones(4))))
    assert once.item() == pytest.approx(again.item(), rel=1e-6)


def test_the_cross_entropy_is_least_at_the_target() -> None:
    _, targets = _logits_and_targets(8, 4)
    targets = (targets + 0.01) / (targets + 0.01).sum(axis=1, keepdims=True)
    leaf = _tensor(np.log(targets)).requires_grad_()
    (gradient,) = torch.autograd.grad(soft_cross_entropy(leaf, *map(_tensor, (targets, TRUST, COUNTS))), leaf)
    assert gradient.abs().max() < 1e-6


def test_the_cross_entropy_is_finite_for_a_confident_head() -> None:
    logits = torch.tensor([[300.0, 0.0], [0.0, 300.0]], requires_grad=True)
    targets = torch.tensor([[1.0, 0.0], [1.0, 0.0]])
    loss = soft_cross_entropy(logits, targets, torch.ones(2), torch.ones(2))
    assert loss.item() == pytest.approx(150)
    (gradient,) = torch.autograd.grad(loss, logits)
    assert gradient.isfinite().all()


def test_the_order_of_the_batch_does_not_matter() -> None:
    arrays = (*_logits_and_targets(8, 3), TRUST, COUNTS)
    order = np.random.default_rng(4).permutation(8)
    one, other = (soft_cross_entropy(*(_tensor(each[rows]) for each in arrays)) for rows in (np.arange(8), order))
    assert one.item() == pytest.approx(other.item(), rel=1e-6)
