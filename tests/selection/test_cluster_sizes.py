"""How even the classes are: the estimate by loops, the weights that follow from it, and made-up classes."""

from __future__ import annotations

import math

import numpy as np
import pytest
from numpy.typing import NDArray

from coterie.metrics.internal.modularity import NeighbourPairs
from coterie.selection.candidates import Clustering, balance_sizes
from coterie.selection.cluster_sizes import PENALTIES, UNEVEN, SizeEstimate, effect_size, estimate_sizes
from coterie.selection.neighbour_graphs import build_graphs

Labels = NDArray[np.int64]
KINDS = (*PENALTIES, UNEVEN)


# --- Cohen's h ---


@pytest.mark.parametrize(("first", "second"), [(0.5, 0.75), (0.75, 0.5), (0.1, 0.9), (0.96, 0.99), (0.3, 0.3), (0, 1)])
def test_the_effect_size_by_hand(first: float, second: float) -> None:
    expected = 2 * math.asin(math.sqrt(second)) - 2 * math.asin(math.sqrt(first))
    assert effect_size(first, second) == pytest.approx(expected, abs=1e-12)


def test_known_effect_sizes() -> None:
    """From a half to three quarters is a twelfth of a turn; from 0 to 1 half a turn."""
    assert effect_size(0.5, 0.75) == pytest.approx(math.pi / 6)
    assert effect_size(0, 1) == pytest.approx(math.pi)
    # Near 1, a small difference counts more than in the middle.
    assert effect_size(0.95, 0.99) > 2 * effect_size(0.48, 0.52)


def test_shares_out_of_range_count_as_the_nearest() -> None:
    assert effect_size(-0.2, 0.5) == effect_size(0, 0.5) == pytest.approx(math.pi / 2)
    assert effect_size(0.5, 1 + 1e-12) == effect_size(0.5, 1)


# --- Weights ---


@pytest.mark.parametrize(
    ("cost", "evidence", "expected"),
    [
        (0.0, 0.0, (1, 1, 1, 0)),
        (-0.3, -2.0, (1, 1, 1, 0)),
        (0.10, 0.18, (1, 1, 1, 0)),
        (0.15, 0.0, (1, 1, 0.5, 0)),
        (0.20, 0.0, (1, 1, 0, 0)),
        (0.0, 0.21, (0.6, 0.5, 0.5, 4)),
        (0.175, 0.195, (0.8, 0.75, 0.25 * 0.75, 2)),
        (0.9, 0.24, (0.2, 0, 0, 8)),
        (0.0, 3.0, (0.2, 0, 0, 8)),
    ],
)
def test_weights_by_hand(cost: float, evidence: float, expected: tuple[float, ...]) -> None:
    found = [SizeEstimate(cost, evidence).weight(kind) for kind in ("free", "penalised", "equal", "uneven")]
    assert found == pytest.approx(expected)


def _weights(kind: str, costs: NDArray[np.float64], evidence: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.array([SizeEstimate(*both).weight(kind) for both in zip(costs.tolist(), evidence.tolist(), strict=True)])


@pytest.mark.parametrize("kind", KINDS)
def test_weights_change_gradually_and_in_one_direction(kind: str) -> None:
    grid, fixed = np.linspace(-0.2, 0.6, 1601), np.full(1601, 0.05)
    by_cost, by_evidence = np.diff(_weights(kind, grid, fixed)), np.diff(_weights(kind, fixed, grid))
    # Steps of 0.0005: the steepest ramp rises by 8 within 0.06.
    assert max(np.abs(by_cost).max(), np.abs(by_evidence).max()) < 0.067
    assert (by_cost <= 0).all()
    assert (by_cost < 0).any() == (kind == "equal")
    assert (by_evidence >= 0).all() if kind == UNEVEN else (by_evidence <= 0).all()
    assert by_evidence.any()


@pytest.mark.parametrize("only", KINDS)
def test_one_kind_of_sizes_alone(only: str) -> None:
    for cost, evidence in ((0.0, 0.0), (0.9, 0.9)):
        estimate = SizeEstimate(cost, evidence, only)
        assert [estimate.weight(kind) for kind in KINDS] == [float(kind == only) for kind in KINDS]


# --- The estimate ---


def _shares(labels: Labels, pairs: NeighbourPairs) -> tuple[float, float]:
    """The share of pairs in one cluster, and the share by chance."""
    both = [(int(labels[i]), int(labels[j])) for i, j in zip(*pairs, strict=True)]
    by_chance = sum(
        sum(a == k for a, _ in both) / len(both) * (sum(b == k for _, b in both) / len(both))
        for k in set(labels.tolist())
    )
    return sum(a == b for a, b in both) / len(both), by_chance


def _normalised(labels: Labels, pairs: NeighbourPairs) -> float:
    together, by_chance = _shares(labels, pairs)
    return (together - by_chance) / (1 - by_chance)


def _mean(values: list[float]) -> float:
    return sum(values) / len(values)


def _pairs(near: Labels) -> NeighbourPairs:
    rows = [(i, int(j)) for i, row in enumerate(near) for j in row]
    return np.array([i for i, _ in rows]), np.array([j for _, j in rows])


@pytest.fixture(scope="module")
def partitions() -> dict[str, list[Labels]]:
    """Noisy partitions of 60 rows in a ring, whose neighbours are those beside them."""
    random = np.random.default_rng(0)
    even, uneven = np.arange(60) // 20, np.searchsorted([40, 52], np.arange(60), side="right")
    made = {}
    for name, base, wrong in (("free", uneven, 0.2), ("equal", even, 0.4), ("uneven", uneven, 0.1)):
        made[name] = [np.where(random.random(60) < wrong, random.integers(3, size=60), base) for _ in range(2)]
    return made


def _ring(reach: int = 4) -> Labels:
    """The neighbours of each row: the rows beside it, the nearest first."""
    steps = np.array([step for each in range(1, reach + 1) for step in (each, -each)])
    return (np.arange(60)[:, None] + steps) % 60


def test_the_estimate_is_that_of_the_loops(partitions: dict[str, list[Labels]]) -> None:
    free, equal, uneven = (partitions[name] for name in ("free", "equal", "uneven"))
    near = _ring()
    # Every second row has one lexical neighbour.
    lexical = (np.arange(0, 60, 2), _ring(1)[::2, 0])
    found = estimate_sizes(free, equal, uneven, near, lexical)
    cost = sum(
        _mean([1 - _normalised(b, pairs) / _normalised(a, pairs) for a, b in zip(free, equal, strict=True)])
        for pairs in (_pairs(near), lexical)
    )
    assert found.cost == pytest.approx(cost, abs=1e-9)
    assert cost > 0.1
    # The evidence counts five neighbours of the eight.
    nearest = _pairs(near[:, :5])
    before, after = (
        _mean([together - by_chance for together, by_chance in (_shares(each, nearest) for each in some)])
        for some in (free, uneven)
    )
    of_equal, of_uneven = (_mean([_normalised(each, nearest) for each in some]) for some in (equal, uneven))
    h = 2 * math.asin(math.sqrt(of_uneven)) - 2 * math.asin(math.sqrt(of_equal))
    assert found.evidence == pytest.approx(h - max(0, 1 - after / before), abs=1e-9)
    assert found.only == ""


def test_without_words_the_semantic_neighbours_count_twice(partitions: dict[str, list[Labels]]) -> None:
    free, equal = partitions["free"], partitions["equal"]
    pairs = _pairs(_ring())
    losses = [1 - _normalised(b, pairs) / _normalised(a, pairs) for a, b in zip(free, equal, strict=True)]
    found = estimate_sizes(free, equal, partitions["uneven"], _ring(), None)
    assert found.cost == pytest.approx(2 * _mean(losses), abs=1e-9)


def test_without_average_linkage_there_is_no_evidence(partitions: dict[str, list[Labels]]) -> None:
    found = estimate_sizes(partitions["free"], partitions["equal"], [], _ring(), None)
    assert found.evidence == 0 and found.weight(UNEVEN) == 0 and found.cost > 0


def test_one_cluster_of_many_classes_is_no_evidence() -> None:
    """Average linkage that joins three of four classes separates few neighbours, and tells little about the others."""
    truth = np.repeat(np.arange(4), 15)
    joined = np.where(truth < 3, 0, truth)
    near = _ring(3)
    found = estimate_sizes([truth], [truth], [joined], near, None)
    assert _normalised(joined, _pairs(near[:, :5])) > _normalised(truth, _pairs(near[:, :5])) - 0.1
    assert found.evidence < -0.3
    assert found.weight(UNEVEN) == 0


def test_partitions_without_any_neighbours_cost_nothing() -> None:
    one = np.zeros(60, dtype=np.int64)
    found = estimate_sizes([one], [np.arange(60) % 3], [one], _ring(), None)
    assert found.cost == 0 and math.isfinite(found.evidence)


@pytest.mark.parametrize(
    ("sizes", "expected"),
    [
        ([50, 50, 50, 50], {"free": 1, "penalised": 1, "equal": 1, "uneven": 0}),
        ([160, 53, 18, 9], {"free": 0.2, "penalised": 0, "equal": 0, "uneven": 8}),
    ],
)
def test_weights_of_made_up_classes(sizes: list[int], expected: dict[str, float]) -> None:
    """The right partition, and the same with its sizes made equal, tell even classes from uneven ones."""
    truth = np.repeat(np.arange(4), sizes)
    noise = np.random.default_rng(0).normal(scale=0.15, size=(len(truth), 10))
    graphs = build_graphs(np.eye(4, 10)[truth] + noise)
    equal = balance_sizes(graphs, Clustering("the classes", truth), np.ones(len(truth))).labels
    found = estimate_sizes([truth], [equal], [truth], graphs.nearest_rows, None)
    assert {kind: found.weight(kind) for kind in KINDS} == pytest.approx(expected, abs=0.05)
