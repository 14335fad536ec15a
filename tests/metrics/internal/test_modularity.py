"""Modularity and its normalised form, against loops and by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest

from coterie.metrics.internal.modularity import modularity, normalised_modularity

NONE = np.zeros(0, dtype=np.int64)


@pytest.mark.parametrize("seed", range(4))
def test_both_are_those_of_the_loops(seed: int) -> None:
    random = np.random.default_rng(seed)
    labels = random.integers(4, size=30)
    first, second = random.integers(30, size=(2, 80))
    together = sum(labels[a] == labels[b] for a, b in zip(first, second, strict=True)) / 80
    by_chance = 0.0
    for cluster in range(4):
        begin = sum(labels[a] == cluster for a in first) / 80
        end = sum(labels[b] == cluster for b in second) / 80
        by_chance += begin * end
    assert modularity(labels, first, second) == pytest.approx(together - by_chance, abs=1e-12)
    possible = (together - by_chance) / (1 - by_chance)
    assert normalised_modularity(labels, first, second) == pytest.approx(possible, abs=1e-12)


def test_normalised_modularity_is_1_whatever_the_sizes() -> None:
    """Of clusters that separate no neighbours, modularity is larger for equal sizes; normalised it is 1 for both."""
    first, second = np.arange(20), np.arange(20) // 2 * 2
    even, uneven = np.repeat([0, 1], 10), np.repeat([0, 1], [18, 2])
    assert normalised_modularity(even, first, second) == normalised_modularity(uneven, first, second) == 1
    assert modularity(even, first, second) == pytest.approx(0.5)
    assert modularity(uneven, first, second) == pytest.approx(1 - 0.81 - 0.01)


def test_one_cluster_has_modularity_0() -> None:
    labels, first, second = np.zeros(6, dtype=np.int64), np.arange(6), np.arange(6)[::-1]
    assert modularity(labels, first, second) == normalised_modularity(labels, first, second) == 0


def test_without_neighbours_modularity_is_nan() -> None:
    labels = np.array([0, 1])
    assert math.isnan(modularity(labels, NONE, NONE)) and math.isnan(normalised_modularity(labels, NONE, NONE))
