"""Optimal transport: margins, sizes that follow the penalty, float32 on large tables, and the naive oracle."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from reference import rstc_oracle as oracle
from torch import Tensor

from coterie.clustering.optimal_transport import Transport, self_adaptive_transport, sinkhorn, sizes_from

PENALTIES = pytest.mark.parametrize(("penalty", "damping"), [(1.0, 1.0), (0.1, 0.5), (0.01, 0.05), (0.001, 0.01)])


def _cost(n: int, k: int, *, sharp: float = 2.0, skew: float = 0.0, seed: int = 0) -> tuple[Tensor, np.ndarray]:
    """-log P of texts in clusters of unlike sizes, and those sizes."""
    generator = np.random.default_rng(seed)
    shares = np.arange(1, k + 1) ** -skew
    shares /= shares.sum()
    logits = 0.4 * sharp * generator.normal(size=(n, k))
    logits[np.arange(n), generator.choice(k, n, p=shares)] += sharp
    return -torch.from_numpy(logits).log_softmax(dim=1), shares


def _assert_margins(found: Transport, rows: Tensor, tolerance: float = 1e-6) -> None:
    rows = rows.double() / rows.double().sum()
    torch.testing.assert_close(found.plan.double().sum(dim=1), rows, rtol=1e-5, atol=0)
    assert (found.plan.double().sum(dim=0) - found.sizes).abs().max() <= 2 * tolerance
    assert found.error <= tolerance
    assert (found.plan >= 0).all()
    assert found.sizes.sum().item() == pytest.approx(1, abs=1e-4)


@PENALTIES
def test_sizes_and_plan_are_those_of_the_authors_iteration(penalty: float, damping: float) -> None:
    cost, _ = _cost(14, 4, skew=1.0)
    rows = torch.tensor([1, 4, 2, 1, 1, 3, 1, 1, 2, 1, 1, 5, 1, 1])
    plan, sizes = oracle.self_adaptive_transport(cost.numpy(), rows.numpy(), 0.2, penalty, 1500, damping)
    assert plan.sum(axis=0) == pytest.approx(sizes, abs=1e-8), "the oracle has come to rest"
    found = self_adaptive_transport(cost, rows, 0.2, penalty, tolerance=1e-12)
    np.testing.assert_allclose(found.plan.numpy(), plan, atol=1e-7)
    np.testing.assert_allclose(found.sizes.numpy(), sizes, atol=1e-7)


def test_given_sizes_are_those_of_the_oracle() -> None:
    cost, _ = _cost(14, 4, skew=1.0)
    rows, sizes = torch.arange(1, 15), torch.tensor([4.0, 1.0, 2.0, 3.0])
    found = sinkhorn(cost, rows, sizes, 0.2, tolerance=1e-12, max_iterations=5000)
    np.testing.assert_allclose(
        found.plan.numpy(), oracle.sinkhorn(cost.numpy(), rows.numpy(), sizes.numpy(), 0.2, 5000), atol=1e-9
    )
    _assert_margins(found, rows)
    assert found.sizes.tolist() == pytest.approx([0.4, 0.1, 0.2, 0.3])


@pytest.mark.parametrize("sharp", [0.5, 5.0, 50.0])
@pytest.mark.parametrize("skew", [0.0, 1.5])
@pytest.mark.parametrize("penalty", [1e6, 0.1, 1e-3, 1e-6])
def test_margins_hold_in_float32_however_sure_the_costs(sharp: float, skew: float, penalty: float) -> None:
    cost, _ = _cost(300, 12, sharp=sharp, skew=skew)
    rows = torch.randint(1, 5, (300,), generator=torch.Generator().manual_seed(0))
    found = self_adaptive_transport(cost.float(), rows, 0.1, penalty)
    assert found.plan.dtype == torch.float32
    _assert_margins(found, rows)
    exact = self_adaptive_transport(cost, rows, 0.1, penalty, tolerance=1e-10)
    assert (found.sizes - exact.sizes).abs().max() < 1e-5


def test_a_strong_penalty_makes_equal_sizes() -> None:
    cost, _ = _cost(400, 8, sharp=6.0, skew=1.5)
    rows = torch.ones(400)
    found = self_adaptive_transport(cost.float(), rows, 0.1, 1e7)
    assert (found.sizes - 1 / 8).abs().max() < 1e-6
    equal = sinkhorn(cost.float(), rows, torch.ones(8), 0.1, max_iterations=5000)
    assert (found.plan - equal.plan).abs().max() < 1e-5
    assert (found.plan.argmax(dim=1) == equal.plan.argmax(dim=1)).float().mean() > 0.99


def test_a_weak_penalty_lets_unlike_sizes_live() -> None:
    cost, shares = _cost(2000, 8, sharp=20.0, skew=1.5)
    largest_alone = cost.argmin(dim=1).bincount().max().item() / 2000
    assert largest_alone > 0.4 and shares[0] > 0.5
    largest = {
        penalty: self_adaptive_transport(cost, torch.ones(2000), 0.1, penalty).sizes.max().item()
        for penalty in (10.0, 1.0, 0.1, 0.01, 0.001)
    }
    assert list(largest.values()) == sorted(largest.values())
    assert largest[10.0] < 0.2
    assert largest[0.001] == pytest.approx(largest_alone, abs=0.01)


def test_no_cluster_dies_that_no_text_prefers() -> None:
    """Every text prefers the first two of three clusters; argmax alone would leave the third empty."""
    generator = np.random.default_rng(0)
    p = generator.dirichlet([1.0, 1.0], size=60)
    cost = -torch.from_numpy(np.column_stack([0.95 * p, np.full(60, 0.05)])).log()
    assert (cost.argmin(dim=1) == 2).sum() < 10
    sizes = [self_adaptive_transport(cost, torch.ones(60), 0.1, each).sizes[2].item() for each in (0.1, 0.01)]
    assert sizes[0] > 2 * sizes[1] > 0.005
    free = (-cost / 0.1).softmax(dim=1).mean(dim=0)[2].item()
    assert sizes[1] > free


def test_a_large_table_in_float32() -> None:
    """The largest of the papers' sets, four times over in texts: few steps, margins to rounding."""
    cost, _ = _cost(20_000, 150, sharp=10.0, skew=1.0)
    rows = torch.ones(20_000)
    found = self_adaptive_transport(cost.float(), rows, 0.1, 0.01)
    assert found.iterations < 25
    assert found.plan.isfinite().all()
    assert (found.plan.double().sum(dim=0) - found.sizes).abs().max() < 2e-6
    assert found.error <= 1e-6


def test_a_repeated_text_weighs_as_often_as_it_occurs() -> None:
    cost, _ = _cost(10, 3)
    counts = torch.tensor([1, 3, 1, 2, 1, 1, 1, 4, 1, 1])
    once = self_adaptive_transport(cost, counts, 0.1, 0.05, tolerance=1e-12)
    each = self_adaptive_transport(cost.repeat_interleave(counts, dim=0), torch.ones(16), 0.1, 0.05, tolerance=1e-12)
    torch.testing.assert_close(once.sizes, each.sizes, rtol=0, atol=1e-9)


def test_sizes_solve_their_equation() -> None:
    g = torch.tensor([-1e8, -30.0, -1.0, 0.0, 1e-12, 2.0, 1e3, 1e8], dtype=torch.float64)
    b = sizes_from(g, 0.5)
    assert ((b > 0) & (b <= 1)).all()
    assert (b.diff() <= 0).all()
    inner = b[1:7]
    torch.testing.assert_close(0.5 * (1 / inner - 1 / (1 - inner)), g[1:7], rtol=1e-9, atol=1e-12)
    assert b[3] == 0.5 and b[4] == pytest.approx(0.5)


def test_too_few_iterations_show_in_the_error() -> None:
    cost, _ = _cost(300, 12, sharp=30.0, skew=1.5)
    rows = torch.ones(300)
    for found in (
        self_adaptive_transport(cost, rows, 0.1, 1e3, max_iterations=1),
        sinkhorn(cost, rows, torch.ones(12), 0.1, max_iterations=1),
    ):
        assert found.iterations == 1
        assert found.error > 1e-3
        assert (found.plan.sum(dim=0) - found.sizes).abs().max() == pytest.approx(found.error, rel=1e-6)


@pytest.mark.parametrize("penalty", [10.0, 0.05])
def test_a_similar_problem_begins_with_the_potential_of_another(penalty: float) -> None:
    """The solution is the same, in fewer steps; from a useless potential too."""
    cost, _ = _cost(400, 8, sharp=5.0, skew=1.0)
    similar = cost + 0.05 * torch.from_numpy(np.random.default_rng(0).normal(size=(400, 8)))
    rows = torch.ones(400)
    known = self_adaptive_transport(cost, rows, 0.2, penalty).potential
    cold = self_adaptive_transport(similar, rows, 0.2, penalty)
    useless = torch.linspace(-1e3, 1e3, 8, dtype=torch.float64)
    for begin_with in (known, useless):
        found = self_adaptive_transport(similar, rows, 0.2, penalty, begin_with=begin_with)
        torch.testing.assert_close(found.sizes, cold.sizes, rtol=0, atol=2e-6)
        assert (found.plan.argmax(dim=1) == cold.plan.argmax(dim=1)).float().mean() > 0.995
        assert found.error <= 1e-6
        if begin_with is known:
            assert found.iterations < cold.iterations
    again = self_adaptive_transport(cost, rows, 0.2, penalty, begin_with=known)
    assert again.iterations == 0
