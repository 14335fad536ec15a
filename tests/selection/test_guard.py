"""Which partition the guard selects, the start or a trained one: the gain by hand, and ties."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from coterie.metrics.internal.wording import words_told
from coterie.selection.guard import Candidate, best_candidate, score_candidate
from coterie.selection.neighbour_graphs import Words, see

Labels = NDArray[np.int64]
TEXTS = [f"{kind} word{i % 3} again" for kind in ("parcel late", "password lost", "refund money") for i in range(6)]
TRUTH = np.repeat(np.arange(3), 6)


def _modularity(labels: Labels, pairs: tuple[Labels, Labels]) -> float:
    first, second = (labels[side].tolist() for side in pairs)
    n = len(first)
    together = sum(int(a == b) for a, b in zip(first, second, strict=True)) / n
    return float(together - sum(first.count(c) / n * (second.count(c) / n) for c in set(labels.tolist())))


def _candidate(
    name: str, neighbours: float, words: float = float("nan"), gain: float = float("nan"), say: float = 1
) -> Candidate:
    return Candidate(name, np.zeros(3, dtype=np.int64), neighbours, words, gain, say)


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 10**6), st.integers(1, 5))
def test_a_clustering_is_weighed_by_neighbours_in_both_views_and_by_its_words(seed: int, k: int) -> None:
    random = np.random.default_rng(seed)
    labels = random.integers(k, size=len(TEXTS))
    words = Words.of(TEXTS)
    seen = see(random.normal(size=(len(TEXTS), 5)), words, 3)
    assert words is not None
    scored = score_candidate("trained", labels, seen)
    assert scored.name == "trained" and np.array_equal(scored.labels, labels)
    assert scored.semantic_modularity == pytest.approx(_modularity(labels, seen.pairs), abs=1e-9)
    assert scored.lexical_modularity == pytest.approx(_modularity(labels, words.akin), abs=1e-9)
    assert scored.word_gain == pytest.approx(words_told(words.table, labels))
    assert scored.lexical_weight == seen.say_of_words


def test_the_gain_by_hand() -> None:
    start = _candidate("start", 0.8, 0.6, 0.5, say=0.5)
    trained = _candidate("trained", 0.76, 0.66, 0.52, say=0.5)
    assert trained.gain_over(start) == pytest.approx(-0.05 + 0.5 * (0.1 + 0.04))
    assert start.gain_over(start) == 0
    # Small signs, which chance moves by large shares, are taken by halves of one.
    assert _candidate("b", 0.8, 0.6, 0.12).gain_over(_candidate("a", 0.8, 0.6, 0.1)) == pytest.approx(0.02 / 0.5)


def test_words_have_as_much_to_say_as_they_agree_with_the_encoder() -> None:
    for say, better in ((0.0, False), (0.2, False), (0.9, True)):
        start, trained = _candidate("start", 0.8, 0.6, 0.6, say), _candidate("trained", 0.77, 0.63, 0.6, say)
        assert (best_candidate([start, trained]) is trained) == better, say


def test_without_words_the_neighbours_decide() -> None:
    labels = np.array([0, 0, 1, 1])
    scored = score_candidate("trained", labels, see(np.array([[1, 0], [1, 0.1], [0, 1], [0.1, 1]])))
    assert np.isnan(scored.lexical_modularity) and np.isnan(scored.word_gain)
    assert _candidate("b", 0.6).gain_over(_candidate("a", 0.5)) == pytest.approx(0.2)


def test_one_cluster_of_everything_is_worth_nothing() -> None:
    scored = score_candidate(
        "one", np.zeros(len(TEXTS), dtype=np.int64), see(np.eye(len(TEXTS)) + 0.1, Words.of(TEXTS), 3)
    )
    assert (scored.semantic_modularity, scored.lexical_modularity) == pytest.approx((0, 0))
    assert scored.word_gain == pytest.approx(0, abs=0.1)
    true = score_candidate("true", TRUTH, see(np.eye(3)[TRUTH] + 0.01, Words.of(TEXTS), 3))
    assert true.gain_over(scored) > 1


def test_the_highest_gain_is_kept_and_the_first_of_equals() -> None:
    start, middle, last = (
        _candidate("start", 0.5, 0.5, 0.5),
        _candidate("middle", 0.5, 0.6, 0.6),
        _candidate("last", 0.6, 0.5, 0.6),
    )
    assert best_candidate([start, middle, last]) is middle
    assert best_candidate([start, last, middle]) is last
    assert best_candidate([start]) is start
    assert best_candidate([start, _candidate("as good", 0.5, 0.5, 0.5)]) is start
    assert best_candidate([start, _candidate("worse", 0.4, 0.5, 0.5)]) is start
