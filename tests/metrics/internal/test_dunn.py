"""Dunn index against a loop over all pairs."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from coterie.errors import InputError
from coterie.metrics.internal import inputs
from coterie.metrics.internal.dunn import dunn


def dunn_by_loop(points: NDArray[np.float64], labels: NDArray[np.int64]) -> float:
    gap, diameter = math.inf, 0.0
    for i in range(len(points)):
        for j in range(i):
            if -1 in (labels[i], labels[j]):
                continue
            between = float(np.linalg.norm(points[i] - points[j]))
            if labels[i] == labels[j]:
                diameter = max(diameter, between)
            else:
                gap = min(gap, between)
    if gap == 0.0:
        return 0.0
    return gap / diameter if diameter else math.inf


def test_hand_made_case():
    # Clusters {0, 1}, {4, 6} and {20}: gap 3, diameter 2. The row labelled -1 would make the gap 0.
    assert dunn([[0.0], [1.0], [4.0], [6.0], [20.0], [1.0]], [5, 5, 2, 2, 9, -1]) == 1.5


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10**6), st.integers(2, 30), st.integers(2, 6), st.sampled_from([2**22, 50, 1]))
def test_against_loop(seed, n_rows, n_clusters, cells):
    generator = np.random.default_rng(seed)
    points = generator.normal(size=(n_rows, 3)) + 5.0
    labels = np.concatenate([[0, 1], generator.integers(-1, n_clusters, n_rows - 2)])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(inputs, "BLOCK_CELLS", cells)
        index = dunn(points, labels)
        order = generator.permutation(n_rows)
        assert dunn(points[order], labels[order]) == pytest.approx(index)
    assert index == pytest.approx(dunn_by_loop(points, labels))
    assert dunn(points * 7.0 - 3.0, labels) == pytest.approx(index)


@pytest.mark.parametrize("seed", range(20))
def test_points_on_a_grid_with_ties_and_duplicates(seed):
    generator = np.random.default_rng(seed)
    points = generator.integers(0, 6, size=(20, 3)).astype(np.float64)
    labels = np.concatenate([[0, 1], generator.integers(0, 3, 18)])
    assert dunn(points, labels) == pytest.approx(dunn_by_loop(points, labels), rel=1e-12)


def test_zero_diameter_is_infinite():
    assert dunn(np.eye(3), [0, 1, 2]) == math.inf
    first, second = np.random.default_rng(0).normal(size=(2, 30))
    duplicates = np.vstack([np.tile(first, (4, 1)), np.tile(second, (3, 1))])
    assert dunn(duplicates, [0] * 4 + [1] * 3) == math.inf


def test_shared_point_is_zero():
    point, other = np.random.default_rng(0).normal(size=(2, 30))
    assert dunn([point, other, point], [0, 0, 1]) == 0.0
    assert dunn([point, point], [0, 1]) == 0.0


def test_small_cluster_far_from_the_origin_keeps_its_size():
    offsets = np.array([[0.0, 0.0], [1e-6, 0.0], [3e-6, 0.0]]) + 100.0
    assert dunn(offsets, [0, 0, 1]) == pytest.approx(2.0, rel=1e-6)


def test_single_cluster():
    with pytest.raises(InputError, match=r"labels holds 1 cluster\(s\).*needs at least 2.*larger n_clusters"):
        dunn(np.eye(3), [0, 0, -1])
