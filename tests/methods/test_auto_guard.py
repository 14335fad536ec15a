"""What is kept, the start or what training made of it: modularity by hand, ties, and the sentence that tells."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from coterie.methods.auto_guard import Kept, best_kept, told, weigh

Labels = NDArray[np.int64]
Pairs = tuple[Labels, Labels]
NONE: Pairs = (np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64))


def _modularity(labels: Labels, pairs: Pairs) -> float:
    first, second = (labels[side].tolist() for side in pairs)
    n = len(first)
    together = sum(int(a == b) for a, b in zip(first, second, strict=True)) / n
    return float(together - sum(first.count(c) / n * (second.count(c) / n) for c in set(labels.tolist())))


def _kept(name: str, neighbours: float, words: float) -> Kept:
    return Kept(name, np.zeros(3, dtype=np.int64), neighbours, words)


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10**6), st.integers(1, 5), st.integers(1, 30), st.integers(1, 30))
def test_a_clustering_is_weighed_by_the_modularity_of_its_pairs(seed: int, k: int, near: int, akin: int) -> None:
    random = np.random.default_rng(seed)
    labels = random.integers(k, size=12)
    near_pairs, akin_pairs = ((random.integers(12, size=n), random.integers(12, size=n)) for n in (near, akin))
    kept = weigh("trained", labels, near_pairs, akin_pairs)
    assert kept.name == "trained" and np.array_equal(kept.labels, labels)
    assert kept.neighbours == pytest.approx(_modularity(labels, near_pairs), abs=1e-9)
    assert kept.words == pytest.approx(_modularity(labels, akin_pairs), abs=1e-9)
    assert kept.score == pytest.approx(kept.neighbours + kept.words)


def test_modularity_by_hand() -> None:
    labels = np.array([0, 0, 1, 1])
    near = np.array([0, 1, 2, 3]), np.array([1, 0, 3, 2])
    akin = np.array([0, 1, 2, 3]), np.array([2, 3, 0, 1])
    kept = weigh("k-means", labels, near, akin)
    assert (kept.neighbours, kept.words) == pytest.approx((0.5, -0.5))
    assert kept.score == pytest.approx(0)


def test_one_cluster_of_everything_is_worth_nothing() -> None:
    random = np.random.default_rng(0)
    pairs = random.integers(9, size=20), random.integers(9, size=20)
    assert weigh("one", np.zeros(9, dtype=np.int64), pairs, pairs).score == pytest.approx(0)


def test_words_that_are_not_known_count_nothing() -> None:
    labels = np.array([0, 0, 1, 1])
    kept = weigh("trained", labels, (np.arange(4), np.array([1, 0, 3, 2])), NONE)
    assert np.isnan(kept.words)
    assert kept.score == pytest.approx(0.5)
    assert _kept("a", 0.25, float("nan")).score == pytest.approx(0.25)
    assert _kept("a", 0.25, -0.5).score == pytest.approx(-0.25)


def test_the_highest_score_is_kept_and_the_first_of_equals() -> None:
    start, middle, last = _kept("start", 0.25, 0.25), _kept("middle", 0.5, 0.25), _kept("last", 0.25, 0.5)
    assert best_kept([start, middle, last]) is middle
    assert best_kept([last, start, middle]) is last
    assert best_kept([start]) is start
    assert best_kept([_kept("start", 0.5, float("nan")), start, _kept("c", 0.5, 0.0)]).name == "start"
    assert best_kept([_kept("a", 0.1, float("nan")), _kept("b", -0.3, 0.5)]).name == "b"


@pytest.mark.parametrize("words", [0.3, float("nan")])
def test_it_is_told_whether_training_helped(words: float) -> None:
    start, trained = _kept("k-means", 0.25, words), _kept("trained", 0.5, words)
    assert "did not help" in told(start, start) and "helped" not in told(start, start)
    assert "helped" in told(start, trained) and "did not help" not in told(start, trained)
    for sentence in (told(start, start), told(start, trained)):
        assert "nan" not in sentence.lower().split()
