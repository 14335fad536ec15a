"""Which cluster is next to a text, and how clusters lie, block by block."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest

from coterie.describe import geometry as neighbours
from coterie.describe.geometry import find_runner_ups, measure_geometry


def _oracle(vectors: np.ndarray, centers: np.ndarray, labels: np.ndarray) -> list[int]:
    found = []
    for vector, label in zip(vectors, labels, strict=True):
        distances = np.linalg.norm(centers - vector, axis=1)
        distances[label] = np.inf
        found.append(int(distances.argmin()))
    return found


@pytest.mark.parametrize("kind", [np.float16, np.float32, np.float64])
def test_the_nearest_other_centre(kind: type, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(neighbours, "BLOCK_SIZE", 500)
    generator = np.random.default_rng(0)
    centers = generator.normal(size=(12, 8)) * 3 + 5
    labels = generator.integers(0, 12, size=300)
    vectors = (centers[labels] + generator.normal(size=(300, 8))).astype(kind)
    found = find_runner_ups(vectors, centers, labels)
    assert found.tolist() == _oracle(vectors.astype(np.float64), centers, labels)
    assert (found != labels).all()


def test_the_own_cluster_need_not_be_the_nearest() -> None:
    centers = np.array([[0.0], [1.0], [5.0]])
    assert find_runner_ups(np.array([[0.1], [0.1], [4.0]]), centers, np.array([0, 2, 0])).tolist() == [1, 0, 2]


def test_rows_in_no_cluster_and_single_centres_have_no_runner_up() -> None:
    vectors = np.array([[0.0], [1.0]])
    assert find_runner_ups(vectors, np.array([[0.0], [1.0]]), np.array([-1, 1])).tolist() == [-1, 0]
    assert find_runner_ups(vectors, np.array([[0.0]]), np.array([0, 0])).tolist() == [-1, -1]
    assert find_runner_ups(vectors, np.array([[np.nan]]), np.array([0, 0])).tolist() == [-1, -1]
    assert find_runner_ups(np.empty((0, 1)), np.array([[0.0]]), np.empty(0, np.int64)).tolist() == []


def test_centres_of_empty_clusters_are_nobodys() -> None:
    centers = np.array([[0.0], [np.nan], [1.0], [9.0]])
    assert find_runner_ups(np.array([[0.1], [0.9], [8.0]]), centers, np.array([0, 2, 1])).tolist() == [2, 0, 3]


def test_many_rows_and_centres_take_little_memory() -> None:
    generator = np.random.default_rng(0)
    vectors = generator.normal(size=(40_000, 8)).astype(np.float32)
    labels = np.arange(40_000) % 1_000
    tracemalloc.start()
    found = find_runner_ups(vectors, vectors[:1_000], labels)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    # All distances at once would be 160 MB.
    assert peak < 60e6
    assert found.tolist()[:20] == _oracle(vectors[:20].astype(np.float64), vectors[:1_000], labels[:20])


def test_blocks_do_not_change_what_is_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    generator = np.random.default_rng(0)
    vectors = generator.normal(size=(500, 6)).astype(np.float32)
    labels = generator.integers(-1, 20, size=500)
    whole = measure_geometry(vectors, labels, 20)
    monkeypatch.setattr(neighbours, "BLOCK_SIZE", 70)
    parts = measure_geometry(vectors, labels, 20)
    np.testing.assert_allclose(parts.cohesion, whole.cohesion, atol=1e-6)
    np.testing.assert_allclose(parts.separation, whole.separation, atol=1e-6)
    assert parts.nearest == whole.nearest


def test_twins_are_each_others_nearest_and_not_apart() -> None:
    vectors = np.array([[1.0, 0.0], [2.0, 0.0], [0.0, 1.0]])
    geometry = measure_geometry(vectors, np.array([0, 1, 2]), 3)
    assert geometry.separation.tolist() == [0, 0, 1]
    assert geometry.nearest == ((1, 2), (0, 2), (0, 1))
