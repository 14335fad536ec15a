"""The label-free stop: what counts as a change, and when it is calm enough."""

from __future__ import annotations

import numpy as np
import pytest

from coterie.training.stopping import LabelWatch

PLACES = np.array([[0.0, 0.0], [10.0, 0.0], [0.0, 10.0]], dtype=np.float32)


def _embeddings(clusters: list[int]) -> np.ndarray:
    jitter = np.random.default_rng(0).normal(scale=0.1, size=(len(clusters), 2))
    return (PLACES[clusters] + jitter).astype(np.float32)


def _watch(clusters: list[int], patience: int = 2, weights: list[int] | None = None) -> LabelWatch:
    mass = np.ones(len(clusters), dtype=np.int64) if weights is None else np.array(weights)
    return LabelWatch(np.array(clusters), PLACES.copy(), mass, patience)


START = [0, 0, 0, 0, 1, 1, 1, 2, 2, 2]


def test_nothing_moved_is_no_change() -> None:
    watch = _watch(START)
    assert watch.measure_change(_embeddings(START), 0.01) == 0
    assert watch.labels.tolist() == START


def test_the_change_is_the_share_that_moved() -> None:
    watch = _watch(START)
    moved = [1, 0, 0, 0, 1, 1, 1, 2, 2, 1]
    assert watch.measure_change(_embeddings(moved), 0.01) == pytest.approx(0.2)
    assert watch.labels.tolist() == moved
    # The next check compares with this one, not with the start.
    assert watch.measure_change(_embeddings(moved), 0.01) == 0
    assert watch.measure_change(_embeddings(START), 0.01) == pytest.approx(0.2)


def test_a_text_counts_as_often_as_it_occurs() -> None:
    watch = _watch(START, weights=[4, 1, 1, 1, 1, 1, 1, 1, 1, 1])
    assert watch.measure_change(_embeddings([1, *START[1:]]), 0.01) == pytest.approx(4 / 13)


def test_the_centres_follow_the_embeddings() -> None:
    watch = _watch(START)
    watch.measure_change(_embeddings(START) + np.float32(3.0), 0.01)
    np.testing.assert_allclose(watch.centers, PLACES + 3, atol=0.2)
    # Followed like this, a drift of all texts is not a change, however far it leads in the end.
    for _ in range(10):
        assert watch.measure_change(_embeddings(START) + watch.centers[0] + np.float32(3.0), 0.01) == 0


def test_a_partition_can_be_seen_without_a_look() -> None:
    watch = _watch(START, patience=1)
    partition = watch.partition(_embeddings([1, *START[1:]]))
    assert partition.labels.tolist() == [1, *START[1:]]
    assert watch.labels.tolist() == START
    assert np.array_equal(watch.centers, PLACES)
    assert not watch.converged


def test_settled_after_as_many_calm_looks_in_a_row_as_asked() -> None:
    watch = _watch(START, patience=3)
    states = []
    moved = [1, *START[1:]]
    for clusters in (START, START, moved, moved, moved, moved):
        watch.measure_change(_embeddings(clusters), 0.05)
        states.append(watch.converged)
    # Two checks with little change, then a tenth of the texts moves: the count starts again.
    assert states == [False, False, False, False, False, True]


def test_calm_is_below_the_tolerance() -> None:
    for tolerance, converged in ((0.1, False), (0.11, True)):
        watch = _watch(START, patience=1)
        assert watch.measure_change(_embeddings([1, *START[1:]]), tolerance) == pytest.approx(0.1)
        assert watch.converged is converged


def test_a_tolerance_of_zero_never_settles() -> None:
    watch = _watch(START, patience=1)
    watch.measure_change(_embeddings(START), 0.0)
    assert not watch.converged


def test_a_new_stage_forgets_calm_looks() -> None:
    watch = _watch(START, patience=2)
    watch.measure_change(_embeddings(START), 0.01)
    watch.start_over()
    watch.measure_change(_embeddings(START), 0.01)
    assert not watch.converged
    watch.measure_change(_embeddings(START), 0.01)
    assert watch.converged
