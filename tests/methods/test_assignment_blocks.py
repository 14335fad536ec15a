"""Texts among centres, block by block: the same answers as one table of all of them gives."""

from __future__ import annotations

import tracemalloc
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from coterie import AECL, FrozenEncoder
from coterie.clustering import assignment as distance_tables
from coterie.clustering.assignment import order_by_size, squared_distances
from coterie.methods.assignment import Assigner, Assignment, Block
from coterie.methods.results import Encoded, Learned, lead


def _by_table(distances: NDArray[np.float64], counts: NDArray[np.int64]) -> tuple[Any, Any]:
    """Order and labels from one table of all distances, as it is defined."""
    k = distances.shape[1]
    order = np.arange(k)
    for _ in range(k + 1):
        again = order_by_size(distances[:, order].argmin(axis=1), k, counts)
        if np.array_equal(again, np.arange(k)):
            break
        order = order[again]
    return order, distances[:, order].argmin(axis=1)


def _assignment(distances: NDArray[np.float64], size: int, labels: NDArray[np.int64] | None = None) -> Assignment:
    assignment = Assignment(len(distances), distances.shape[1])
    for begin in range(0, len(distances), size):
        some = slice(begin, begin + size)
        part = distances[some]
        mine = None if labels is None else labels[some]
        here = np.arange(len(distances))[some]
        assignment.add(Block(here, part, 1 / (1 + part), mine, np.zeros(len(part), dtype=bool)))
    return assignment


@pytest.mark.parametrize("seed", range(40))
def test_ties_go_where_one_table_sends_them(seed: int) -> None:
    generator = np.random.default_rng(seed)
    n, k = int(generator.integers(5, 60)), int(generator.integers(2, 7))
    # Few values: most rows are equally near to several centres.
    distances = generator.integers(0, 3, size=(n, k)).astype(np.float64)
    counts = generator.integers(1, 4, size=n)
    order, labels = _by_table(distances, counts)
    for size in (1, 7, 100):
        assignment = _assignment(distances, size)
        np.testing.assert_array_equal(assignment.order(counts), order)
        np.testing.assert_array_equal(assignment.labels(order), labels)
        np.testing.assert_array_equal(assignment.nearest(order), labels)
        np.testing.assert_array_equal(assignment.squared, distances.min(axis=1))


@pytest.mark.parametrize("seed", range(10))
def test_given_labels_decide_and_the_nearest_is_still_known(seed: int) -> None:
    generator = np.random.default_rng(seed)
    distances = generator.integers(0, 3, size=(30, 4)).astype(np.float64)
    counts, labels = generator.integers(1, 4, size=30), generator.integers(0, 4, size=30)
    order = order_by_size(labels, 4, counts)
    assignment = _assignment(distances, 8, labels)
    np.testing.assert_array_equal(assignment.order(counts), order)
    np.testing.assert_array_equal(order[assignment.labels(order)], labels)
    np.testing.assert_array_equal(assignment.nearest(order), distances[:, order].argmin(axis=1))
    np.testing.assert_array_equal(assignment.squared, distances[np.arange(30), labels])
    np.testing.assert_allclose(assignment.confidence, lead(1 / (1 + distances), labels))


def test_lead_leaves_the_table_as_it_was() -> None:
    table = np.array([[0.5, 0.3, 0.2], [0.1, 0.1, 0.8]])
    kept = table.copy()
    np.testing.assert_allclose(lead(table, np.array([0, 1])), [1 - 0.3 / 0.5, 0])
    np.testing.assert_array_equal(table, kept)


def test_near_ties_leave_the_table_as_it_was() -> None:
    table = np.array([[1.0, 1.0, 2.0], [3.0, 1.0, 2.0]])
    kept = table.copy()
    assert distance_tables.near_ties(table).tolist() == [0]
    np.testing.assert_array_equal(table, kept)


def test_blocks_are_smaller_where_centres_are_many(monkeypatch: pytest.MonkeyPatch) -> None:
    assert distance_tables.rows_at_a_time(10) == distance_tables.TABLE_ROWS
    assert distance_tables.rows_at_a_time(2**14) == 2**10
    assert distance_tables.rows_at_a_time(2**40) == 1
    generator = np.random.default_rng(0)
    vectors = generator.normal(size=(300, 5)).astype(np.float32)
    texts = [f"t{i}" for i in range(300)]
    whole = FrozenEncoder(4).fit(texts, embeddings=vectors)
    monkeypatch.setattr(distance_tables, "TABLE_CELLS", 4 * 7)
    parts = FrozenEncoder(4).fit(texts, embeddings=vectors)
    np.testing.assert_array_equal(parts.labels_, whole.labels_)
    np.testing.assert_allclose(parts.confidence_, whole.confidence_, atol=1e-12)
    np.testing.assert_allclose(parts.center_distance_, whole.center_distance_, atol=1e-9)
    np.testing.assert_allclose(
        parts.predict_proba(texts, embeddings=vectors), whole.predict_proba(texts, embeddings=vectors), atol=1e-12
    )


def test_memory_of_fit_and_assign_does_not_hold_a_table(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two thousand clusters: the table of all texts would be fifty times what is kept."""
    n, k = 20_000, 2_000
    generator = np.random.default_rng(0)
    vectors = generator.normal(size=(n, 3)).astype(np.float32)
    texts = [f"t{i}" for i in range(n)]
    monkeypatch.setattr(distance_tables, "TABLE_CELLS", 2**20)
    model = FrozenEncoder(k)

    def learned(*_: Any) -> Any:
        model.from_embeddings_ = True
        return Learned(vectors, vectors[:k].copy())

    monkeypatch.setattr(model, "_learn", learned)
    table = n * k * 8
    tracemalloc.start()
    try:
        model.fit(texts, embeddings=vectors)
        assert tracemalloc.get_traced_memory()[1] < table / 4
        tracemalloc.reset_peak()
        answer = model.assign(texts, embeddings=vectors)
        assert tracemalloc.get_traced_memory()[1] < table / 4
    finally:
        tracemalloc.stop()
    np.testing.assert_array_equal(answer.labels, model.labels_)
    nearest = squared_distances(vectors[:500], model.cluster_centers_).argmin(axis=1)
    np.testing.assert_array_equal(model.labels_[:500], nearest)


def test_distances_are_not_made_where_a_head_decides(monkeypatch: pytest.MonkeyPatch) -> None:
    model = AECL(2)
    monkeypatch.setattr(model, "_encode", lambda texts: Encoded(np.tile(np.float32([1, 0]), (len(texts), 1))))
    monkeypatch.setattr(model, "_head_probabilities", lambda texts, _: np.tile([0.2, 0.8], (len(texts), 1)))
    assigner = Assigner(model, np.eye(2, dtype=np.float32), precomputed=False)
    (block,) = assigner.new_texts(["a", "b", "c"], None)
    assert block.distances is None
    assert block.labels.tolist() == [1, 1, 1]
    (block,) = assigner.new_texts(["a", "b", "c"], None, np.array([2, 0]), with_distances=True)
    assert block.distances is not None and block.rows.tolist() == [2, 0]
