"""The oracle itself: cases worked out by hand, and what the equations must satisfy whatever the data."""

from __future__ import annotations

import math

import numpy as np
import pytest

from . import rstc_oracle as oracle


def test_sizes_by_hand() -> None:
    # penalty (1/b - 1/(1-b)) = g - h; for b = 1/4 that is 3 (4 - 4/3) = 8.
    assert oracle.size_of(8.0, 3.0) == pytest.approx(0.25, abs=1e-12)
    assert oracle.size_of(-8.0, 3.0) == pytest.approx(0.75, abs=1e-12)
    assert oracle.size_of(0.0, 3.0) == 0.5
    assert oracle.sizes_for(np.array([8.0, -8.0]), 3.0) == pytest.approx(np.array([0.25, 0.75]), abs=1e-9)
    assert oracle.sizes_for(np.array([2.0, 2.0, 2.0, 2.0]), 0.1) == pytest.approx(np.full(4, 0.25), abs=1e-9)


def test_sinkhorn_by_hand() -> None:
    # By symmetry the plan is (x, 1/2 - x; 1/2 - x, x) with x / (1/2 - x) = exp(1): the kernel's own ratio.
    plan = oracle.sinkhorn([[0.0, 1.0], [1.0, 0.0]], [1, 1], [1, 1], 1.0, 50)
    x = math.e / (1 + math.e) / 2
    assert plan == pytest.approx(np.array([[x, 0.5 - x], [0.5 - x, x]]), abs=1e-12)


@pytest.mark.parametrize(("penalty", "damping"), [(1.0, 1.0), (0.1, 0.5), (0.01, 0.05)])
def test_the_iteration_rests_at_the_minimum(penalty: float, damping: float) -> None:
    generator = np.random.default_rng(0)
    cost = -np.log(generator.dirichlet([0.5, 1.0, 2.0], size=6))
    rows = np.array([1.0, 2.0, 1.0, 3.0, 1.0, 1.0])
    plan, sizes = oracle.self_adaptive_transport(cost, rows, 0.5, penalty, 600, damping)
    assert plan.sum(axis=1) == pytest.approx(rows / 9, abs=1e-12)
    assert plan.sum(axis=0) == pytest.approx(sizes, abs=1e-9)
    best = oracle.transport_objective(plan, cost, 0.5, penalty)
    for _ in range(20):
        # Any small change that keeps the rows makes it worse.
        other = plan * (1 + 0.01 * generator.normal(size=plan.shape))
        other *= (plan.sum(axis=1) / other.sum(axis=1))[:, None]
        assert oracle.transport_objective(other, cost, 0.5, penalty) > best


def test_losses_by_hand() -> None:
    # Two clusters with odds 3 to 1: -log 3/4 - log 1/4 for the first text, twice log 2 for the second.
    first, second = [[math.log(3), 0.0], [0.0, 0.0]], [[0.0, math.log(3)], [1.0, 1.0]]
    one, two = math.log(16 / 3), 2 * math.log(2)
    assert oracle.assignment_loss(first, second, [0, 1]) == pytest.approx((one + two) / 2)
    assert oracle.assignment_loss(first, second, [0, 1], [3, 1]) == pytest.approx((3 * one + two) / 4)
    # Orthogonal pairs: each anchor has one positive (similarity 1) and two negatives (0).
    views = [[1.0, 0.0], [0.0, 1.0]]
    assert oracle.contrast(views, views, 1.0, None) == pytest.approx(2 * math.log(1 + 2 / math.e))


def test_without_damping_a_small_penalty_swings() -> None:
    """Why the package solves the equations in another way."""
    cost = -np.log(np.random.default_rng(0).dirichlet([0.5, 1.0, 2.0], size=12))
    for penalty, rests in ((1.0, True), (0.001, False)):
        plan, sizes = oracle.self_adaptive_transport(cost, np.ones(12), 0.1, penalty, 300, 1.0)
        assert (np.abs(plan.sum(axis=0) - sizes).max() < 1e-6) == rests
