"""Distances, near ties, and the names of clusters. Soft assignment is tested with the losses, by the oracle."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from scipy import sparse

from coterie.clustering import assignment
from coterie.clustering.assignment import (
    align_labels,
    alignment,
    exact_squared_distances,
    near_ties,
    order_by_size,
    relabel,
    squared_distances,
    student_t,
    student_t_from_distances,
)

MAKES = pytest.mark.parametrize("make", [np.asarray, sparse.csr_matrix], ids=["dense", "sparse"])


def _naive(features: np.ndarray, centers: np.ndarray) -> np.ndarray:
    return np.array(
        [[sum((float(a) - float(b)) ** 2 for a, b in zip(x, c, strict=True)) for c in centers] for x in features]
    )


def _data(n: int = 23, k: int = 4, dimension: int = 37) -> tuple[np.ndarray, np.ndarray]:
    generator = np.random.default_rng(0)
    features = generator.normal(size=(n, dimension)).astype(np.float32)
    features[np.abs(features) < 0.4] = 0
    return features, generator.normal(size=(k, dimension)).astype(np.float32)


@MAKES
def test_squared_distances_are_what_a_loop_gives(make: Callable[[Any], Any]) -> None:
    features, centers = _data()
    result = squared_distances(make(features), centers)
    assert result.dtype == np.float64
    np.testing.assert_allclose(result, _naive(features, centers), rtol=1e-12)


@MAKES
def test_a_distance_does_not_depend_on_its_company(make: Callable[[Any], Any], monkeypatch: pytest.MonkeyPatch) -> None:
    features, centers = _data(n=101, dimension=384)
    together = squared_distances(make(features), centers)
    for i in range(0, 101, 9):
        alone = squared_distances(make(features[i : i + 1]), centers)
        np.testing.assert_allclose(alone, together[i : i + 1], rtol=1e-12)
    order = np.random.default_rng(1).permutation(101)
    np.testing.assert_allclose(squared_distances(make(features[order]), centers), together[order], rtol=1e-12)
    monkeypatch.setattr(assignment, "DISTANCE_BLOCK", 7)
    np.testing.assert_allclose(squared_distances(make(features), centers), together, rtol=1e-12)


def _settled(features: Any, centers: Any) -> Any:
    """Distances as methods use them: in bulk, near ties row by row."""
    distances = squared_distances(features, centers)
    ties = near_ties(distances)
    if len(ties):
        distances[ties] = exact_squared_distances(features[ties], centers)
    return distances


@MAKES
def test_exact_distances_depend_on_the_row_alone(make: Callable[[Any], Any]) -> None:
    features, centers = _data()
    together = exact_squared_distances(make(features), centers)
    np.testing.assert_allclose(together, _naive(features, centers), rtol=1e-12)
    for i in range(len(features)):
        np.testing.assert_array_equal(exact_squared_distances(make(features[i : i + 1]), centers)[0], together[i])


def test_between_equal_centres_the_choice_does_not_depend_on_the_company() -> None:
    """Training can let two centres fall together; a text must not change cluster with the texts beside it."""
    generator = np.random.default_rng(0)
    for k, n in itertools.product((2, 3, 4, 5, 8, 20, 33), (1, 2, 3, 5, 8, 17)):
        centers = generator.normal(size=(k, 384)).astype(np.float32)
        first, second = sorted(generator.choice(k, 2, replace=False))
        centers[second] = centers[first]
        features = (centers[first] + 0.1 * generator.normal(size=(n, 384))).astype(np.float32)
        together = _settled(features, centers).argmin(axis=1)
        alone = [int(_settled(features[i : i + 1], centers).argmin()) for i in range(n)]
        assert together.tolist() == alone == [first] * n, f"{k} centres, {n} rows"


@MAKES
def test_a_row_on_its_centre_has_no_distance(make: Callable[[Any], Any]) -> None:
    features, _ = _data()
    distances = squared_distances(make(features), features[:5])
    assert (distances >= 0).all()
    np.testing.assert_allclose(np.diag(distances), 0, atol=1e-5)


def test_the_numpy_kernel_is_the_torch_one() -> None:
    features, centers = _data()
    for alpha in (1.0, 10.0):
        mine = student_t_from_distances(squared_distances(features, centers), alpha)
        other = student_t(torch.from_numpy(features).double(), torch.from_numpy(centers).double(), alpha).numpy()
        np.testing.assert_allclose(mine, other, rtol=1e-9)
        np.testing.assert_allclose(mine.sum(axis=1), 1, rtol=1e-12)
        kernel = (1 + _naive(features, centers) / alpha) ** (-(alpha + 1) / 2)
        np.testing.assert_allclose(mine, kernel / kernel.sum(axis=1, keepdims=True), rtol=1e-9)


def test_near_ties_are_the_rows_that_rounding_could_turn() -> None:
    distances = np.array(
        [
            [1.0, 2.0, 3.0],  # clear
            [1.0, 1.00001, 3.0],  # the nearest two
            [3.0, 5.0, 5.0],  # a tie, but not for the first place
            [5.0, 0.5, 0.5],  # two equal centres
            [0.0, 1e-6, 9.0],  # both next to nothing
            [1000.0, 1000.01, 4000.0],  # near in proportion
        ]
    )
    assert near_ties(distances).tolist() == [1, 3, 4, 5]
    assert near_ties(distances, tolerance=1e-9).tolist() == [3]
    assert near_ties(distances[:, :1]).tolist() == []


# --- Names of clusters ---


def test_order_by_size_counts_weights() -> None:
    labels = np.array([0, 0, 0, 1, 2, 2])
    assert order_by_size(labels, 4, np.ones(6)).tolist() == [0, 2, 1, 3]
    assert order_by_size(labels, 4, np.array([1, 1, 1, 9, 1, 1])).tolist() == [1, 0, 2, 3]


def test_order_by_size_keeps_equals_in_their_order() -> None:
    assert order_by_size(np.array([2, 1, 0, 2, 1, 0]), 3, np.ones(6)).tolist() == [0, 1, 2]


def test_relabel_gives_each_cluster_its_place_in_the_order() -> None:
    labels = np.array([0, 0, 1, 2, 2, 2])
    order = order_by_size(labels, 3, np.ones(6))
    renamed = relabel(labels, order)
    assert renamed.tolist() == [1, 1, 2, 0, 0, 0]
    assert np.array_equal(order[renamed], labels)
    assert np.bincount(renamed).tolist() == [3, 2, 1]


@pytest.mark.parametrize("seed", range(6))
def test_align_labels_finds_the_best_renaming(seed: int) -> None:
    generator = np.random.default_rng(seed)
    labels, reference = generator.integers(0, 4, size=30), generator.integers(0, 4, size=30)
    weights = generator.integers(1, 6, size=30)
    aligned = align_labels(labels, reference, 4, weights)
    best = max(int(weights[np.array(names)[labels] == reference].sum()) for names in itertools.permutations(range(4)))
    assert int(weights[aligned == reference].sum()) == best
    pairs = set(zip(labels.tolist(), aligned.tolist(), strict=True))
    assert len(pairs) == len({a for a, _ in pairs}) == len({b for _, b in pairs})


def test_align_labels_undoes_a_renaming() -> None:
    reference = np.random.default_rng(0).integers(0, 5, size=40)
    renamed = np.array([3, 0, 4, 1, 2])[reference]
    assert np.array_equal(align_labels(renamed, reference, 5, np.ones(40)), reference)


def test_align_labels_with_a_cluster_that_is_empty_on_one_side() -> None:
    labels, reference = np.array([2, 2, 1, 1, 1]), np.array([0, 0, 2, 2, 1])
    assert align_labels(labels, reference, 3, np.ones(5)).tolist() == [0, 0, 2, 2, 2]


def test_alignment_names_every_cluster_once() -> None:
    labels, reference = np.array([2, 2, 1, 1, 1]), np.array([0, 0, 2, 2, 1])
    names = alignment(labels, reference, 3, np.ones(5))
    assert names[[1, 2]].tolist() == [2, 0]
    assert sorted(names.tolist()) == [0, 1, 2]
