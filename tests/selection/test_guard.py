"""Which partition the guard selects, the start or a trained one: the gain by hand, and ties."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from coterie.metrics.internal.likelihood import word_likelihood_gain
from coterie.selection.guard import Candidate, best_candidate, score_candidate
from coterie.selection.neighbour_graphs import LexicalGraph, build_graphs

Labels = NDArray[np.int64]
TEXTS = [f"{kind} word{i % 3} again" for kind in ("parcel late", "password lost", "refund money") for i in range(6)]
TRUTH = np.repeat(np.arange(3), 6)


def _modularity(labels: Labels, pairs: tuple[Labels, Labels]) -> float:
    first, second = (labels[side].tolist() for side in pairs)
    n = len(first)
    together = sum(int(a == b) for a, b in zip(first, second, strict=True)) / n
    return float(together - sum(first.count(c) / n * (second.count(c) / n) for c in set(labels.tolist())))


def _candidate(
    name: str, semantic: float, lexical: float = float("nan"), gain: float = float("nan"), weight: float = 1
) -> Candidate:
    criteria = {"semantic_modularity": semantic, "lexical_modularity": lexical, "word_likelihood_gain": gain}
    return Candidate(name, np.zeros(3, dtype=np.int64), criteria, weight)


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 10**6), st.integers(1, 5))
def test_the_criteria_of_a_candidate_are_those_of_the_loops(seed: int, k: int) -> None:
    random = np.random.default_rng(seed)
    labels = random.integers(k, size=len(TEXTS))
    words = LexicalGraph.build(TEXTS)
    graphs = build_graphs(random.normal(size=(len(TEXTS), 5)), words, 3)
    assert words is not None
    scored = score_candidate("trained", labels, graphs)
    assert scored.name == "trained" and np.array_equal(scored.labels, labels)
    assert scored.criteria["semantic_modularity"] == pytest.approx(_modularity(labels, graphs.semantic_pairs), abs=1e-9)
    assert scored.criteria["lexical_modularity"] == pytest.approx(_modularity(labels, words.pairs), abs=1e-9)
    assert scored.criteria["word_likelihood_gain"] == pytest.approx(word_likelihood_gain(words.word_presence, labels))
    assert scored.lexical_weight == graphs.lexical_weight


def test_the_gain_by_hand() -> None:
    start = _candidate("start", 0.8, 0.6, 0.5, weight=0.5)
    trained = _candidate("trained", 0.76, 0.66, 0.52, weight=0.5)
    assert trained.gain_over(start) == pytest.approx(-0.05 + 0.5 * (0.1 + 0.04))
    assert start.gain_over(start) == 0
    # Small criteria are noisy, so relative changes are computed against at least 0.5.
    assert _candidate("b", 0.8, 0.6, 0.12).gain_over(_candidate("a", 0.8, 0.6, 0.1)) == pytest.approx(0.02 / 0.5)


def test_lexical_criteria_count_by_their_weight() -> None:
    for weight, better in ((0.0, False), (0.2, False), (0.9, True)):
        start, trained = _candidate("start", 0.8, 0.6, 0.6, weight), _candidate("trained", 0.77, 0.63, 0.6, weight)
        assert (best_candidate([start, trained]) is trained) == better, weight


def test_without_words_the_semantic_criterion_decides() -> None:
    labels = np.array([0, 0, 1, 1])
    scored = score_candidate("trained", labels, build_graphs(np.array([[1, 0], [1, 0.1], [0, 1], [0.1, 1]])))
    assert np.isnan(scored.criteria["lexical_modularity"]) and np.isnan(scored.criteria["word_likelihood_gain"])
    assert _candidate("b", 0.6).gain_over(_candidate("a", 0.5)) == pytest.approx(0.2)


def test_one_cluster_of_everything_is_worth_nothing() -> None:
    scored = score_candidate(
        "one",
        np.zeros(len(TEXTS), dtype=np.int64),
        build_graphs(np.eye(len(TEXTS)) + 0.1, LexicalGraph.build(TEXTS), 3),
    )
    assert (scored.criteria["semantic_modularity"], scored.criteria["lexical_modularity"]) == pytest.approx((0, 0))
    assert scored.criteria["word_likelihood_gain"] == pytest.approx(0, abs=0.1)
    true = score_candidate("true", TRUTH, build_graphs(np.eye(3)[TRUTH] + 0.01, LexicalGraph.build(TEXTS), 3))
    assert true.gain_over(scored) > 1


def test_the_largest_gain_is_selected_and_the_first_of_equals() -> None:
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
