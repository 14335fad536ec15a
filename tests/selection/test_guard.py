"""What is kept, the start or what training made of it: the gain by hand, ties, and the sentence that tells."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from coterie.metrics.internal.wording import words_told
from coterie.selection.guard import Kept, best_kept, told, weigh
from coterie.selection.neighbour_graphs import Words, see

Labels = NDArray[np.int64]
TEXTS = [f"{kind} word{i % 3} again" for kind in ("parcel late", "password lost", "refund money") for i in range(6)]
TRUTH = np.repeat(np.arange(3), 6)


def _modularity(labels: Labels, pairs: tuple[Labels, Labels]) -> float:
    first, second = (labels[side].tolist() for side in pairs)
    n = len(first)
    together = sum(int(a == b) for a, b in zip(first, second, strict=True)) / n
    return float(together - sum(first.count(c) / n * (second.count(c) / n) for c in set(labels.tolist())))


def _kept(
    name: str, neighbours: float, words: float = float("nan"), told: float = float("nan"), say: float = 1
) -> Kept:
    return Kept(name, np.zeros(3, dtype=np.int64), neighbours, words, told, say)


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 10**6), st.integers(1, 5))
def test_a_clustering_is_weighed_by_neighbours_in_both_views_and_by_its_words(seed: int, k: int) -> None:
    random = np.random.default_rng(seed)
    labels = random.integers(k, size=len(TEXTS))
    words = Words.of(TEXTS)
    seen = see(random.normal(size=(len(TEXTS), 5)), words, 3)
    assert words is not None
    kept = weigh("trained", labels, seen)
    assert kept.name == "trained" and np.array_equal(kept.labels, labels)
    assert kept.neighbours == pytest.approx(_modularity(labels, seen.pairs), abs=1e-9)
    assert kept.words == pytest.approx(_modularity(labels, words.akin), abs=1e-9)
    assert kept.told == pytest.approx(words_told(words.table, labels))
    assert kept.say_of_words == seen.say_of_words


def test_the_gain_by_hand() -> None:
    start = _kept("start", 0.8, 0.6, 0.5, say=0.5)
    trained = _kept("trained", 0.76, 0.66, 0.52, say=0.5)
    assert trained.gain_over(start) == pytest.approx(-0.05 + 0.5 * (0.1 + 0.04))
    assert start.gain_over(start) == 0
    # Small signs, which chance moves by large shares, are taken by halves of one.
    assert _kept("b", 0.8, 0.6, 0.12).gain_over(_kept("a", 0.8, 0.6, 0.1)) == pytest.approx(0.02 / 0.5)


def test_words_have_as_much_to_say_as_they_agree_with_the_encoder() -> None:
    for say, better in ((0.0, False), (0.2, False), (0.9, True)):
        start, trained = _kept("start", 0.8, 0.6, 0.6, say), _kept("trained", 0.77, 0.63, 0.6, say)
        assert (best_kept([start, trained]) is trained) == better, say


def test_without_words_the_neighbours_decide() -> None:
    labels = np.array([0, 0, 1, 1])
    kept = weigh("trained", labels, see(np.array([[1, 0], [1, 0.1], [0, 1], [0.1, 1]])))
    assert np.isnan(kept.words) and np.isnan(kept.told)
    assert _kept("b", 0.6).gain_over(_kept("a", 0.5)) == pytest.approx(0.2)


def test_one_cluster_of_everything_is_worth_nothing() -> None:
    kept = weigh("one", np.zeros(len(TEXTS), dtype=np.int64), see(np.eye(len(TEXTS)) + 0.1, Words.of(TEXTS), 3))
    assert (kept.neighbours, kept.words) == pytest.approx((0, 0))
    assert kept.told == pytest.approx(0, abs=0.1)
    true = weigh("true", TRUTH, see(np.eye(3)[TRUTH] + 0.01, Words.of(TEXTS), 3))
    assert true.gain_over(kept) > 1


def test_the_highest_gain_is_kept_and_the_first_of_equals() -> None:
    start, middle, last = _kept("start", 0.5, 0.5, 0.5), _kept("middle", 0.5, 0.6, 0.6), _kept("last", 0.6, 0.5, 0.6)
    assert best_kept([start, middle, last]) is middle
    assert best_kept([start, last, middle]) is last
    assert best_kept([start]) is start
    assert best_kept([start, _kept("as good", 0.5, 0.5, 0.5)]) is start
    assert best_kept([start, _kept("worse", 0.4, 0.5, 0.5)]) is start


@pytest.mark.parametrize("words", [0.3, float("nan")])
def test_it_is_told_whether_training_helped(words: float) -> None:
    start, trained = _kept("k-means", 0.25, words, words), _kept("trained", 0.5, words, words)
    assert "did not help" in told(start, start) and "helped" not in told(start, start)
    assert "helped" in told(start, trained) and "did not help" not in told(start, trained)
    for sentence in (told(start, start), told(start, trained)):
        assert "nan" not in sentence.lower().split()


def test_a_sign_that_fell_is_not_passed_over() -> None:
    start = _kept("start", 0.8, 0.6, 0.5)
    assert "helped by the label-free signs" in told(start, _kept("round 1", 0.8, 0.66, 0.52))
    for trained in (
        _kept("round 1", 0.76, 0.66, 0.52),
        _kept("round 1", 0.9, 0.59, 0.6),
        _kept("round 1", 0.9, 0.6, 0.4),
    ):
        assert "helped on balance by the label-free signs" in told(start, trained)
