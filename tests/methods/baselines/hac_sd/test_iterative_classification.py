"""Iterative classification: what a round learns from, what it moves, when it ends."""

from __future__ import annotations

import numpy as np
import pytest

from coterie.methods.baselines.hac_sd import iterative_classification as module
from coterie.methods.baselines.hac_sd.iterative_classification import iterative_classification, training_part


def _ones(n: int) -> np.ndarray:
    return np.ones(n, dtype=np.int64)


def _blobs(sizes: list[int], seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Well separated clusters and the cluster of each row."""
    generator = np.random.default_rng(seed)
    clusters = np.repeat(np.arange(len(sizes)), sizes)
    return (np.eye(len(sizes), 5)[clusters] * 4 + generator.normal(scale=0.3, size=(sum(sizes), 5))), clusters


def _part(features: np.ndarray, labels: np.ndarray, counts: np.ndarray, most: float, seed: int = 0) -> np.ndarray:
    return training_part(features, labels, counts, most, np.random.default_rng(seed))


def test_outliers_are_not_learned_from() -> None:
    features, labels = _blobs([40, 40])
    features[[0, 1]] = 30
    kept = _part(features, labels, _ones(80), most=1000)
    assert not kept[[0, 1]].any()
    # A tenth of each cluster.
    assert [int((~kept)[labels == k].sum()) for k in (0, 1)] == [4, 4]


def test_large_clusters_are_thinned_out_and_small_ones_are_not() -> None:
    features, labels = _blobs([60, 20])
    first, again, other = (_part(features, labels, _ones(80), 25, seed) for seed in (0, 0, 1))
    assert first[labels == 0].sum() == 25
    assert first[labels == 1].sum() == 18
    np.testing.assert_array_equal(first, again)
    assert (first != other).any(), "drawn at random"


def test_weights_count_in_the_size() -> None:
    features, labels = _blobs([30, 30])
    counts = np.where(labels == 0, 5, 1)
    kept = _part(features, labels, counts, most=27)
    assert kept[labels == 0].sum() == 5
    assert kept[labels == 1].sum() == 27


def test_a_row_stays_of_every_cluster() -> None:
    features, labels = _blobs([9, 1, 2])
    kept = _part(features, labels, np.full(12, 50), most=1.5)
    assert [int(kept[labels == k].sum()) for k in range(3)] == [1, 1, 1]
    # Rows that nothing tells apart are no outliers.
    assert _part(np.ones((4, 3)), np.zeros(4, dtype=np.int64), _ones(4), most=9).all()


def test_wrong_labels_are_mended() -> None:
    features, clusters = _blobs([50, 50, 50])
    labels = clusters.copy()
    labels[:6], labels[50:56] = 1, 2
    found = iterative_classification(features, labels, 3, _ones(150), seed=0)
    assert (found.labels == clusters).mean() > (labels == clusters).mean()
    assert found.converged and 1 <= found.rounds < 50
    np.testing.assert_array_equal(labels[:6], 1)  # the caller's are left alone
    again = iterative_classification(features, labels, 3, _ones(150), seed=0)
    np.testing.assert_array_equal(again.labels, found.labels)


def test_only_what_was_removed_moves(monkeypatch: pytest.MonkeyPatch) -> None:
    features, labels = _blobs([30, 30])
    kept = np.arange(60) % 3 > 0
    # Nothing but the removed rows may follow a classifier that was taught nonsense.
    nonsense = np.where(features[:, 0] > 2, 1, 0) ^ (np.random.default_rng(0).random(60) < 0.1)
    monkeypatch.setattr(module, "training_part", lambda *_: kept)
    found = iterative_classification(features, nonsense.astype(np.int64), 2, _ones(60), seed=0, max_rounds=1)
    np.testing.assert_array_equal(found.labels[kept], nonsense[kept])
    assert (found.labels[~kept] == 1 - labels[~kept]).all()


def test_it_ends_when_sizes_converge_or_rounds_are_used_up(monkeypatch: pytest.MonkeyPatch) -> None:
    features = np.random.default_rng(0).normal(size=(90, 3))
    labels = np.random.default_rng(1).integers(0, 3, 90)
    monkeypatch.setattr(module, "TREES", 5)
    monkeypatch.setattr(module, "CONVERGENCE_TOLERANCE", -1)
    found = iterative_classification(features, labels, 3, _ones(90), seed=0, max_rounds=4)
    assert (found.rounds, found.converged) == (4, False)
    monkeypatch.setattr(module, "CONVERGENCE_TOLERANCE", 2)
    found = iterative_classification(features, labels, 3, _ones(90), seed=0, max_rounds=4)
    assert (found.rounds, found.converged) == (1, True)
    # One cluster alone teaches nothing.
    same = iterative_classification(features, np.zeros(90, dtype=np.int64), 2, _ones(90), seed=0)
    assert (same.labels == 0).all() and same.converged


def test_the_cap_is_drawn_between_the_bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    caps: list[float] = []

    def recorded(features: np.ndarray, labels: np.ndarray, counts: np.ndarray, most: float, _: object) -> np.ndarray:
        caps.append(most)
        return np.arange(len(labels)) % 2 == 0

    monkeypatch.setattr(module, "training_part", recorded)
    monkeypatch.setattr(module, "CONVERGENCE_TOLERANCE", -1)
    features, labels = _blobs([50, 50])
    iterative_classification(features, labels, 2, np.full(100, 2), seed=0, max_rounds=30)
    shares = np.array(caps) / 100  # two hundred rows in two clusters
    assert shares.min() >= 0.5 and shares.max() <= 0.95
    assert shares.min() < 0.6 and shares.max() > 0.85
