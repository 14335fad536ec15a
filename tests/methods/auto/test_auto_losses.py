"""The contrastive loss of the default method against plain loops in float64: values, gradients, extremes."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from torch import Tensor

from coterie.methods.auto.losses import neighbour_contrast

Array = NDArray[np.float64]
COUNTS = np.array([1.0, 3.0, 2.0, 1.0, 5.0, 1.0, 2.0, 4.0])
LABELS = np.array([0, 1, 0, 2, 1, 1, 3, 0])


def _contrast(anchors: Array, keys: Array, labels: NDArray[np.int64], temperature: float, weights: Array) -> float:
    def alike(i: int, j: int) -> float:
        lengths = math.sqrt(sum(x * x for x in anchors[i])) * math.sqrt(sum(x * x for x in keys[j]))
        return float(sum(x * y for x, y in zip(anchors[i], keys[j], strict=True))) / lengths / temperature

    total = 0.0
    for i in range(len(anchors)):
        others = [alike(i, j) for j in range(len(keys)) if labels[j] != labels[i]]
        own = alike(i, i)
        top = max([own, *others])
        both = sum(math.exp(each - top) for each in [own, *others])
        total += float(weights[i]) * (top + math.log(both) - own)
    return total / float(sum(weights))


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


def _views(n: int, dimension: int, seed: int = 0) -> tuple[Array, Array]:
    random = np.random.default_rng(seed)
    anchors = random.normal(size=(n, dimension))
    return anchors, anchors + random.normal(size=(n, dimension))


def _contrasted(
    anchors: Array, keys: Array, labels: NDArray[np.int64], temperature: float = 0.2, weights: Array = COUNTS
) -> float:
    """The loss that is tested, of arrays."""
    return neighbour_contrast(
        _tensor(anchors), _tensor(keys), torch.tensor(labels), temperature, _tensor(weights)
    ).item()


@pytest.mark.parametrize("temperature", [1.0, 0.5, 0.1])
@pytest.mark.parametrize(("n", "dimension"), [(2, 3), (8, 5), (8, 16)])
def test_the_contrast_is_that_of_the_loops(n: int, dimension: int, temperature: float) -> None:
    anchors, keys = _views(n, dimension)
    given_ = _tensor(anchors), _tensor(keys), torch.tensor(LABELS[:n]), temperature, _tensor(COUNTS[:n])
    loss = neighbour_contrast(*given_)
    assert loss.shape == ()
    expected = _contrast(anchors, keys, LABELS[:n], temperature, COUNTS[:n])
    assert loss.item() == pytest.approx(expected, rel=1e-5, abs=1e-6)


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 10**6), n=st.integers(1, 9), clusters=st.integers(1, 4), temperature=st.floats(0.05, 2))
def test_the_contrast_of_any_batch(seed: int, n: int, clusters: int, temperature: float) -> None:
    random = np.random.default_rng(seed)
    (anchors, keys), labels = _views(n, 4, seed), random.integers(clusters, size=n)
    weights = random.integers(1, 9, size=n).astype(np.float64)
    loss = _contrasted(anchors, keys, labels, temperature, weights)
    assert loss == pytest.approx(_contrast(anchors, keys, labels, temperature, weights), rel=2e-5, abs=1e-5)


@pytest.mark.parametrize("temperature", [0.5, 0.1])
def test_the_gradient_of_the_contrast(temperature: float) -> None:
    anchors, keys = _views(8, 4)
    leaves = [_tensor(each).requires_grad_() for each in (anchors, keys)]
    loss = neighbour_contrast(leaves[0], leaves[1], torch.tensor(LABELS), temperature, _tensor(COUNTS))
    of_anchors, of_keys = torch.autograd.grad(loss, leaves)
    expected = _slopes(lambda x: _contrast(x, keys, LABELS, temperature, COUNTS), anchors)
    np.testing.assert_allclose(of_anchors.numpy(), expected, rtol=1e-4, atol=1e-5)
    expected = _slopes(lambda x: _contrast(anchors, x, LABELS, temperature, COUNTS), keys)
    np.testing.assert_allclose(of_keys.numpy(), expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_the_contrast_of_short_floats_is_computed_in_float32(dtype: torch.dtype) -> None:
    anchors, keys = (_tensor(each, dtype) for each in _views(8, 5))
    loss = neighbour_contrast(anchors, keys, torch.tensor(LABELS), 0.2, torch.tensor(COUNTS, dtype=torch.float32))
    rounded = [each.double().numpy() for each in (anchors, keys)]
    assert loss.item() == pytest.approx(_contrast(rounded[0], rounded[1], LABELS, 0.2, COUNTS), rel=1e-5)


def test_texts_of_one_cluster_have_no_negatives() -> None:
    leaves = [_tensor(each).requires_grad_() for each in _views(8, 5)]
    loss = neighbour_contrast(leaves[0], leaves[1], torch.full((8,), 3), 0.1, _tensor(COUNTS))
    assert loss.item() == pytest.approx(0, abs=1e-6)
    for gradient in torch.autograd.grad(loss, leaves):
        assert gradient.isfinite().all() and gradient.abs().max() < 1e-6


def test_a_text_of_the_same_cluster_is_no_negative() -> None:
    anchors, keys = _views(8, 5)
    before = _contrasted(anchors, keys, LABELS, weights=np.eye(8)[0])
    keys[2], keys[7] = 9.0, -9.0  # of the first text's cluster, and only the first one counts
    after = _contrasted(anchors, keys, LABELS, weights=np.eye(8)[0])
    assert after == pytest.approx(before, rel=1e-6)
    keys[1] = anchors[0]
    worse = _contrasted(anchors, keys, LABELS, weights=np.eye(8)[0])
    assert worse > before + 0.01


@pytest.mark.parametrize("scale", [1e-3, 7.0, 1e4])
@pytest.mark.parametrize("which", [0, 1])
def test_lengths_do_not_matter_to_the_contrast(which: int, scale: float) -> None:
    views = list(_views(8, 5))
    before = _contrasted(views[0], views[1], LABELS)
    views[which] = views[which] * scale * np.linspace(0.5, 2, 8)[:, None]
    assert _contrasted(views[0], views[1], LABELS) == pytest.approx(before, rel=1e-5)


def test_the_order_of_the_batch_does_not_matter() -> None:
    anchors, keys = _views(8, 5)
    order = np.random.default_rng(4).permutation(8)
    before = _contrasted(anchors, keys, LABELS)
    after = _contrasted(anchors[order], keys[order], LABELS[order], weights=COUNTS[order])
    assert after == pytest.approx(before, rel=1e-5)


def test_names_of_clusters_do_not_matter() -> None:
    anchors, keys = map(_tensor, _views(8, 5))
    before = neighbour_contrast(anchors, keys, torch.tensor(LABELS), 0.2, _tensor(COUNTS))
    after = neighbour_contrast(anchors, keys, torch.tensor([7, 2, 9, 0])[torch.tensor(LABELS)], 0.2, _tensor(COUNTS))
    assert after.item() == pytest.approx(before.item(), rel=1e-6)


def test_a_temperature_whose_exponentials_overflow_float32() -> None:
    anchors, keys = _views(8, 5)
    leaf = _tensor(anchors, torch.float32).requires_grad_()
    others = _tensor(keys, torch.float32), torch.tensor(LABELS), 0.005, _tensor(COUNTS, torch.float32)
    loss = neighbour_contrast(leaf, *others)
    assert loss.item() == pytest.approx(_contrast(anchors, keys, LABELS, 0.005, COUNTS), rel=1e-4)
    (gradient,) = torch.autograd.grad(loss, leaf)
    assert gradient.isfinite().all()
