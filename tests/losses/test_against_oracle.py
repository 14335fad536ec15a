"""The fast losses and assignments against the naive float64 oracle: values, gradients, dtypes, extremes."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.autograd import backward

# The oracle lives beside this folder; found by place, so that pytest's import mode does not matter.
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from reference import sccl_oracle as oracle

Array = oracle.FloatArray

DTYPES = [torch.float64, torch.float32, torch.bfloat16]
# bfloat16 keeps 8 bits: only the right neighbourhood is asked of it, and that nothing blows up.
TOLERANCE = {torch.float64: 1e-10, torch.float32: 1e-5, torch.bfloat16: 0.1}
GRADIENT_TOLERANCE = 1e-5

# Shapes: M instances of D numbers, K clusters. Weights are corpus counts.
INSTANCES = [1, 2, 7]
CLUSTERS = [2, 5]
ALPHAS = [1.0, 10.0]
TEMPERATURES = [0.5, 0.1]
WEIGHTED = pytest.mark.parametrize("weighted", [False, True], ids=["plain", "weighted"])


def _normal(*shape: int, seed: int) -> Array:
    return np.random.default_rng(seed).normal(size=shape)


def _distributions(m: int, n_clusters: int, seed: int) -> Array:
    return np.random.default_rng(seed).dirichlet(np.full(n_clusters, 2.0), size=m)


def _counts(m: int, weighted: bool) -> Array | None:
    return np.array([1.0, 3.0, 2.0, 1.0, 5.0, 1.0, 2.0])[:m] if weighted else None


def _tensor(array: Array, dtype: torch.dtype = torch.float64, requires_grad: bool = False) -> Tensor:
    return torch.tensor(array, dtype=dtype, requires_grad=requires_grad)


def _optional(array: Array | None, dtype: torch.dtype = torch.float64) -> Tensor | None:
    return None if array is None else _tensor(array, dtype)


def _rounded(array: Array, dtype: torch.dtype) -> Array:
    """What the implementation is given, once rounded to its dtype, for the oracle to see the same numbers."""
    return _numpy(_tensor(array, dtype))


def _numpy(tensor: Tensor | None) -> Array:
    assert tensor is not None, "no gradient arrived"
    rounded: Array = tensor.detach().to(torch.float64).numpy()
    return rounded


def _assert_close(actual: Tensor, expected: Array | float, tolerance: float) -> None:
    assert bool(torch.isfinite(actual).all()), f"not finite: {actual}"
    np.testing.assert_allclose(_numpy(actual), expected, rtol=tolerance, atol=tolerance)


def _assert_gradient(leaf: Tensor, function: Callable[[Array], float], at: Array) -> None:
    expected = oracle.numerical_gradient(function, at)
    np.testing.assert_allclose(_numpy(leaf.grad), expected, rtol=GRADIENT_TOLERANCE, atol=GRADIENT_TOLERANCE * 0.01)


def _assert_finite_gradient(*leaves: Tensor) -> None:
    for leaf in leaves:
        assert np.isfinite(_numpy(leaf.grad)).all(), f"gradient not finite: {leaf.grad}"


# --- nt_xent, Eq. 1-2 ---


@WEIGHTED
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("temperature", TEMPERATURES)
@pytest.mark.parametrize("m", INSTANCES)
def test_nt_xent_value(m: int, temperature: float, dtype: torch.dtype, weighted: bool) -> None:
    from coterie.losses.nt_xent import nt_xent

    first, second, weights = _normal(m, 5, seed=m), _normal(m, 5, seed=m + 50), _counts(m, weighted)
    loss = nt_xent(_tensor(first, dtype), _tensor(second, dtype), temperature, _optional(weights, dtype))
    assert loss.shape == ()
    expected = oracle.nt_xent(_rounded(first, dtype), _rounded(second, dtype), temperature, weights)
    _assert_close(loss, expected, TOLERANCE[dtype])


@WEIGHTED
@pytest.mark.parametrize("temperature", TEMPERATURES)
@pytest.mark.parametrize("m", INSTANCES)
def test_nt_xent_gradient(m: int, temperature: float, weighted: bool) -> None:
    from coterie.losses.nt_xent import nt_xent

    first, second, weights = _normal(m, 3, seed=m), _normal(m, 3, seed=m + 50), _counts(m, weighted)
    leaf_1, leaf_2 = _tensor(first, requires_grad=True), _tensor(second, requires_grad=True)
    backward(nt_xent(leaf_1, leaf_2, temperature, _optional(weights)))
    _assert_gradient(leaf_1, lambda x: oracle.nt_xent(x, second, temperature, weights), first)
    _assert_gradient(leaf_2, lambda x: oracle.nt_xent(first, x, temperature, weights), second)


@pytest.mark.parametrize("dtype", DTYPES)
def test_nt_xent_without_negatives_is_zero(dtype: torch.dtype) -> None:
    from coterie.losses.nt_xent import nt_xent

    first = _tensor(_normal(1, 4, seed=0), dtype, requires_grad=True)
    second = _tensor(_normal(1, 4, seed=1), dtype, requires_grad=True)
    loss = nt_xent(first, second, 0.5)
    backward(loss)
    assert abs(loss.item()) <= 1e-6
    _assert_finite_gradient(first, second)
    assert np.abs(_numpy(first.grad)).max() <= 1e-6


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("scale", [1e-4, 1e4, 1e15])
def test_nt_xent_of_very_long_and_very_short_outputs(scale: float, dtype: torch.dtype) -> None:
    from coterie.losses.nt_xent import nt_xent

    first, second = scale * _normal(7, 5, seed=0), scale * _normal(7, 5, seed=1)
    leaf_1, leaf_2 = _tensor(first, dtype, requires_grad=True), _tensor(second, dtype, requires_grad=True)
    loss = nt_xent(leaf_1, leaf_2, 0.5)
    backward(loss)
    expected = oracle.nt_xent(_rounded(first, dtype), _rounded(second, dtype), 0.5)
    _assert_close(loss, expected, TOLERANCE[dtype])
    _assert_finite_gradient(leaf_1, leaf_2)


def test_nt_xent_at_a_temperature_whose_exponentials_overflow_float32() -> None:
    from coterie.losses.nt_xent import nt_xent

    # exp(1 / 0.005) = e^200 is beyond float32 (e^88) and well within the oracle's float64 (e^709).
    first, second = _normal(7, 5, seed=0), _normal(7, 5, seed=1)
    leaf = _tensor(first, torch.float32, requires_grad=True)
    loss = nt_xent(leaf, _tensor(second, torch.float32), 0.005)
    backward(loss)
    expected = oracle.nt_xent(_rounded(first, torch.float32), _rounded(second, torch.float32), 0.005)
    _assert_close(loss, expected, 1e-5)
    _assert_finite_gradient(leaf)


def test_nt_xent_weight_two_is_the_anchor_term_twice() -> None:
    from coterie.losses.nt_xent import nt_xent

    first, second = _normal(3, 4, seed=0), _normal(3, 4, seed=1)
    terms = oracle.nt_xent_anchor_losses(first, second, 0.5)
    # Instance 1 has the anchors 1 and 4 of the six; the negatives are not weighted.
    twice = [*terms, terms[1], terms[4]]
    loss = nt_xent(_tensor(first), _tensor(second), 0.5, _tensor(np.array([1.0, 2.0, 1.0])))
    _assert_close(loss, sum(twice) / 8, 1e-10)


# --- student_t, Eq. 3 ---


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("alpha", ALPHAS)
@pytest.mark.parametrize("n_clusters", CLUSTERS)
@pytest.mark.parametrize("m", INSTANCES)
def test_student_t_value(m: int, n_clusters: int, alpha: float, dtype: torch.dtype) -> None:
    from coterie.clustering.assignment import student_t

    embeddings, centers = _normal(m, 3, seed=m), _normal(n_clusters, 3, seed=n_clusters + 50)
    q = student_t(_tensor(embeddings, dtype), _tensor(centers, dtype), alpha)
    assert q.shape == (m, n_clusters)
    expected = oracle.student_t(_rounded(embeddings, dtype), _rounded(centers, dtype), alpha)
    _assert_close(q, expected, TOLERANCE[dtype])


def test_student_t_has_one_degree_of_freedom_unless_told() -> None:
    from coterie.clustering.assignment import student_t

    embeddings, centers = _normal(4, 3, seed=0), _normal(2, 3, seed=1)
    q = student_t(_tensor(embeddings), _tensor(centers))
    _assert_close(q, oracle.student_t(embeddings, centers, 1.0), 1e-10)


@pytest.mark.parametrize("alpha", ALPHAS)
@pytest.mark.parametrize("n_clusters", CLUSTERS)
def test_student_t_gradient(n_clusters: int, alpha: float) -> None:
    from coterie.clustering.assignment import student_t

    embeddings, centers = _normal(7, 3, seed=0), _normal(n_clusters, 3, seed=1)
    # A scalar that tells every entry of q apart.
    probe = _normal(7, n_clusters, seed=2)
    leaf_e, leaf_c = _tensor(embeddings, requires_grad=True), _tensor(centers, requires_grad=True)
    backward((student_t(leaf_e, leaf_c, alpha) * _tensor(probe)).sum())
    _assert_gradient(leaf_e, lambda x: float((oracle.student_t(x, centers, alpha) * probe).sum()), embeddings)
    _assert_gradient(leaf_c, lambda x: float((oracle.student_t(embeddings, x, alpha) * probe).sum()), centers)


@pytest.mark.parametrize("alpha", ALPHAS)
@pytest.mark.parametrize("scale", [1e4, 1e15])
def test_student_t_far_from_every_center(scale: float, alpha: float) -> None:
    from coterie.clustering.assignment import student_t

    # With alpha 10 each kernel is about scale^-11: zero in float32, so that a plain quotient would be 0 / 0.
    embeddings, centers = scale * _normal(7, 4, seed=0), scale * _normal(5, 4, seed=1)
    leaf_e = _tensor(embeddings, torch.float32, requires_grad=True)
    leaf_c = _tensor(centers, torch.float32, requires_grad=True)
    q = student_t(leaf_e, leaf_c, alpha)
    backward(q[:, 0].sum())
    _assert_close(q, oracle.student_t(_numpy(leaf_e), _numpy(leaf_c), alpha), 1e-3)
    _assert_finite_gradient(leaf_e, leaf_c)


def test_student_t_on_a_center_has_a_gradient() -> None:
    from coterie.clustering.assignment import student_t

    # A cluster of one starts with its center on its only member; a square root's slope there is infinite.
    embeddings, centers = _normal(3, 4, seed=0), _normal(2, 4, seed=1)
    centers[0] = embeddings[1]
    probe = _normal(3, 2, seed=2)
    leaf_e, leaf_c = _tensor(embeddings, requires_grad=True), _tensor(centers, requires_grad=True)
    backward((student_t(leaf_e, leaf_c, 1.0) * _tensor(probe)).sum())
    _assert_gradient(leaf_e, lambda x: float((oracle.student_t(x, centers, 1.0) * probe).sum()), embeddings)
    _assert_gradient(leaf_c, lambda x: float((oracle.student_t(embeddings, x, 1.0) * probe).sum()), centers)


# --- target_distribution, Eq. 4 ---


@WEIGHTED
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("n_clusters", CLUSTERS)
@pytest.mark.parametrize("m", INSTANCES)
def test_target_distribution_value(m: int, n_clusters: int, dtype: torch.dtype, weighted: bool) -> None:
    from coterie.clustering.assignment import target_distribution

    q, weights = _distributions(m, n_clusters, seed=m), _counts(m, weighted)
    p = target_distribution(_tensor(q, dtype), _optional(weights, dtype))
    assert p.shape == (m, n_clusters)
    _assert_close(p, oracle.target_distribution(_rounded(q, dtype), weights), TOLERANCE[dtype])


@WEIGHTED
def test_target_distribution_gradient(weighted: bool) -> None:
    from coterie.clustering.assignment import target_distribution

    # A method decides itself whether to detach its target, so the function must stay differentiable.
    q, probe, weights = _distributions(7, 5, seed=0), _normal(7, 5, seed=1), _counts(7, weighted)
    leaf = _tensor(q, requires_grad=True)
    backward((target_distribution(leaf, _optional(weights)) * _tensor(probe)).sum())
    _assert_gradient(leaf, lambda x: float((oracle.target_distribution(x, weights) * probe).sum()), q)


def test_target_distribution_weight_two_is_the_row_twice() -> None:
    from coterie.clustering.assignment import target_distribution

    q = _distributions(3, 4, seed=0)
    twice = oracle.target_distribution(q[[0, 1, 1, 2]])[[0, 1, 3]]
    _assert_close(target_distribution(_tensor(q), _tensor(np.array([1.0, 2.0, 1.0]))), twice, 1e-10)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_target_distribution_of_a_cluster_without_members_is_zero(dtype: torch.dtype) -> None:
    from coterie.clustering.assignment import target_distribution

    q = np.array([[0.5, 0.5, 0.0], [0.25, 0.75, 0.0]])
    _assert_close(target_distribution(_tensor(q, dtype)), oracle.target_distribution(q), TOLERANCE[dtype])


def test_target_distribution_of_tiny_assignments_in_float32() -> None:
    from coterie.clustering.assignment import target_distribution

    # 1e-30 squared is zero in float32.
    q = np.array([[1.0, 1e-30], [0.5, 0.5], [1.0, 1e-30]])
    p = target_distribution(_tensor(q, torch.float32))
    _assert_close(p, oracle.target_distribution(_rounded(q, torch.float32)), 1e-5)


# --- kl_divergence, Eq. 5-6 ---


@WEIGHTED
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("n_clusters", CLUSTERS)
@pytest.mark.parametrize("m", INSTANCES)
def test_kl_divergence_value(m: int, n_clusters: int, dtype: torch.dtype, weighted: bool) -> None:
    from coterie.losses.kl_divergence import kl_divergence

    p, q = _distributions(m, n_clusters, seed=m), _distributions(m, n_clusters, seed=m + 50)
    weights = _counts(m, weighted)
    loss = kl_divergence(_tensor(p, dtype), _tensor(q, dtype), _optional(weights, dtype))
    assert loss.shape == ()
    expected = oracle.kl_divergence(_rounded(p, dtype), _rounded(q, dtype), weights)
    _assert_close(loss, expected, TOLERANCE[dtype])


@WEIGHTED
@pytest.mark.parametrize("n_clusters", CLUSTERS)
@pytest.mark.parametrize("m", INSTANCES)
def test_kl_divergence_gradient(m: int, n_clusters: int, weighted: bool) -> None:
    from coterie.losses.kl_divergence import kl_divergence

    p, q = _distributions(m, n_clusters, seed=m), _distributions(m, n_clusters, seed=m + 50)
    weights = _counts(m, weighted)
    leaf = _tensor(q, requires_grad=True)
    backward(kl_divergence(_tensor(p), leaf, _optional(weights)))
    _assert_gradient(leaf, lambda x: oracle.kl_divergence(p, x, weights), q)


def test_kl_divergence_weight_two_is_the_row_twice() -> None:
    from coterie.losses.kl_divergence import kl_divergence

    p, q, rows = _distributions(3, 4, seed=0), _distributions(3, 4, seed=1), [0, 1, 1, 2]
    loss = kl_divergence(_tensor(p), _tensor(q), _tensor(np.array([1.0, 2.0, 1.0])))
    _assert_close(loss, oracle.kl_divergence(p[rows], q[rows]), 1e-10)


@pytest.mark.parametrize("dtype", DTYPES)
def test_kl_divergence_where_both_are_zero(dtype: torch.dtype) -> None:
    from coterie.losses.kl_divergence import kl_divergence

    p, q = np.array([[1.0, 0.0], [0.5, 0.5]]), np.array([[1.0, 0.0], [0.25, 0.75]])
    leaf = _tensor(q, dtype, requires_grad=True)
    loss = kl_divergence(_tensor(p, dtype), leaf)
    backward(loss)
    _assert_close(loss, oracle.kl_divergence(p, q), TOLERANCE[dtype])
    _assert_finite_gradient(leaf)


# --- the whole, Eq. 7 ---


@WEIGHTED
@pytest.mark.parametrize("alpha", ALPHAS)
def test_the_parts_add_up_to_the_objective(alpha: float, weighted: bool) -> None:
    from coterie.clustering.assignment import student_t, target_distribution
    from coterie.losses.kl_divergence import kl_divergence
    from coterie.losses.nt_xent import nt_xent

    embeddings, centers = _normal(7, 3, seed=0), _normal(2, 3, seed=1)
    first, second, counts = _normal(7, 3, seed=2), _normal(7, 3, seed=3), _counts(7, weighted)
    leaf_e, leaf_c = _tensor(embeddings, requires_grad=True), _tensor(centers, requires_grad=True)
    weights = _optional(counts)
    q = student_t(leaf_e, leaf_c, alpha)
    p = target_distribution(q, weights).detach()
    total = 10.0 * nt_xent(_tensor(first), _tensor(second), 0.5, weights) + kl_divergence(p, q, weights)
    backward(total)

    def objective(e: Array, c: Array, target: Array | None) -> float:
        return oracle.sccl_total(
            e, c, first, second, temperature=0.5, alpha=alpha, eta=10.0, weights=counts, target=target
        )

    _assert_close(total, objective(embeddings, centers, None), 1e-10)
    fixed = oracle.target_distribution(oracle.student_t(embeddings, centers, alpha), counts)
    _assert_gradient(leaf_e, lambda x: objective(x, centers, fixed), embeddings)
    _assert_gradient(leaf_c, lambda x: objective(embeddings, x, fixed), centers)


@pytest.mark.parametrize("alpha", ALPHAS)
def test_clustering_loss_of_far_embeddings_stays_finite_in_float32(alpha: float) -> None:
    from coterie.clustering.assignment import student_t, target_distribution
    from coterie.losses.kl_divergence import kl_divergence

    # Each point lies on a center and the others are far away: q is one-hot to the last bit of float32.
    corners = _tensor(1e6 * np.eye(4), torch.float32)
    leaf_e, leaf_c = corners.clone().requires_grad_(), corners.clone().requires_grad_()
    q = student_t(leaf_e, leaf_c, alpha)
    loss = kl_divergence(target_distribution(q).detach(), q)
    backward(loss)
    _assert_close(loss, 0.0, 1e-5)
    _assert_finite_gradient(leaf_e, leaf_c)
