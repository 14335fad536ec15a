"""Words predicted by clusters: the table of words by hand, the gain against loops, chance and names of clusters."""

from __future__ import annotations

import math
import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import sparse

from coterie.metrics.internal.likelihood import word_likelihood_gain as gain_of
from coterie.metrics.internal.likelihood import word_presence

Labels = NDArray[np.int64]


def _gain(words: NDArray[np.float64], labels: Labels, seed: int) -> float:
    """The mean gain of an entry, entry by entry."""
    n, n_words = words.shape
    half = np.random.default_rng(seed).permutation(n) % 2
    gained, entries = 0.0, 0
    for h in (0, 1):
        counts = {(int(k), v): 0 for k in labels for v in range(n_words)}
        for i in range(n):
            for v in range(n_words):
                if half[i] != h and words[i, v]:
                    counts[int(labels[i]), v] += 1
        clusters = sorted(set(labels.tolist()))
        anywhere = [sum(counts[k, v] for k in clusters) + 0.5 for v in range(n_words)]
        for i in range(n):
            own = max(sum(counts[int(labels[i]), v] for v in range(n_words)), 1)
            for v in range(n_words):
                if half[i] == h and words[i, v]:
                    ratio = (counts[int(labels[i]), v] / own) / (anywhere[v] / sum(anywhere))
                    gained += math.log(0.5 * ratio + 0.5)
                    entries += 1
    return gained / entries


def _worded(n: int, k: int, seed: int, own: float = 0.7) -> tuple[NDArray[np.float64], Labels]:
    """Texts of five draws: of their cluster's eight words, and of twelve that all share."""
    random = np.random.default_rng([seed, 1])  # not the generator that deals the halves: clusters would be halves
    labels = random.permutation(np.arange(n) % k)
    words = np.zeros((n, 8 * k + 12))
    for i, label in enumerate(labels):
        for _ in range(5):
            words[i, 8 * label + random.integers(8) if random.random() < own else 8 * k + random.integers(12)] = 1
    return words, labels


# --- The table ---


def _tokens(text: str) -> set[str]:
    return set(re.findall(r"\b\w\w+\b", text.lower()))


def _columns(table: NDArray[np.float64]) -> list[tuple[float, ...]]:
    """Columns whatever their order."""
    return sorted(tuple(column) for column in table.T.tolist())


def test_words_by_hand() -> None:
    texts = ["Late parcel, late PARCEL!", "a parcel is late", "a refund", "Refund I a lonely"]
    table = word_presence(texts)
    assert sparse.issparse(table) and table.format == "csr" and table.shape == (4, 3)
    # Late, parcel and refund; "is" and "lonely" stand in one text alone, "a" and "I" are too short.
    assert _columns(table.toarray()) == sorted([(1, 1, 0, 0), (1, 1, 0, 0), (0, 0, 1, 1)])


def test_words_are_those_of_a_loop() -> None:
    random = np.random.default_rng(0)
    vocabulary = [
        "Ä",
        "Über",
        "über",
        "x",
        "Late",
        "late",
        "e-mail",
        "mail",
        "42",
        "7",
        "don't",
        "to_do",
        "rare",
        "日本",
    ]
    texts = [" ".join(random.choice(vocabulary, size=4)) for _ in range(12)] + ["", "?!", "never elsewhere"]
    shared = sorted(word for word in set().union(*map(_tokens, texts)) if sum(word in _tokens(t) for t in texts) > 1)
    expected = np.array([[float(word in _tokens(text)) for word in shared] for text in texts])
    table = word_presence(texts)
    assert set(np.unique(table.data)) == {1.0}
    assert table.toarray().shape == expected.shape and _columns(table.toarray()) == _columns(expected)


@pytest.mark.parametrize(
    "texts",
    [["one two", "three four"], ["only one text, only one"], ["", "?"], ["a b", "a b"], []],
    ids=["nothing in common", "one text", "no words", "letters", "no texts"],
)
def test_without_a_word_in_two_texts_there_is_no_table(texts: list[str]) -> None:
    assert word_presence(texts) is None


# --- The gain ---


def test_the_gain_by_hand() -> None:
    # Two halves of three texts; the first word is that of cluster 0, the second that of cluster 1.
    half = np.random.default_rng(0).permutation(6) % 2
    labels = np.zeros(6, dtype=np.int64)
    for h in (0, 1):
        labels[np.flatnonzero(half == h)[0]] = 1
    words = np.eye(2)[labels]
    # Elsewhere cluster 0 has its word twice and cluster 1 once: shares of 2.5 and 1.5 of 4.
    expected = (4 * math.log(0.5 * 4 / 2.5 + 0.5) + 2 * math.log(0.5 * 4 / 1.5 + 0.5)) / 6
    assert gain_of(sparse.csr_matrix(words), labels) == pytest.approx(expected, rel=1e-12)


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10**6), st.integers(2, 25), st.integers(1, 5), st.integers(0, 3))
def test_the_gain_is_that_of_the_loops(seed: int, n: int, k: int, dealt: int) -> None:
    random = np.random.default_rng(seed)
    words = (random.random((n, 9)) < random.choice([0.1, 0.3, 0.8])).astype(np.float64)
    words[0, 0] = 1
    labels = random.integers(k, size=n)
    found = gain_of(sparse.csr_matrix(words), labels, seed=dealt)
    assert isinstance(found, float)
    assert found == pytest.approx(_gain(words, labels, dealt), rel=1e-9, abs=1e-12)
    assert found >= -math.log(2) - 1e-12


@pytest.mark.parametrize("seed", [0, 1])
def test_the_gain_of_clusters_with_their_words_is_that_of_the_loops(seed: int) -> None:
    words, labels = _worded(60, 3, seed)
    found = gain_of(sparse.csr_matrix(words), labels, seed=seed)
    assert found == pytest.approx(_gain(words, labels, seed), rel=1e-9)
    assert gain_of(sparse.csr_matrix(words), labels) == gain_of(sparse.csr_matrix(words), labels, seed=0)


@pytest.mark.parametrize("seed", range(3))
def test_true_clusters_beat_shuffled_ones(seed: int) -> None:
    words, labels = _worded(400, 4, seed)
    table = sparse.csr_matrix(words)
    shuffled = np.random.default_rng(seed).permutation(labels)
    assert gain_of(table, labels) > 0.5
    assert gain_of(table, shuffled) < 0.02
    half_right = np.where(np.arange(400) % 2, labels, shuffled)
    assert gain_of(table, labels) > gain_of(table, half_right) + 0.2 > gain_of(table, shuffled) + 0.2


@pytest.mark.parametrize("k", [2, 10, 60])
def test_random_clusters_gain_nothing_and_lose_little(k: int) -> None:
    words, _ = _worded(300, 3, seed=5)
    gains = [gain_of(sparse.csr_matrix(words), np.random.default_rng(s).integers(k, size=300)) for s in range(4)]
    assert -math.log(2) <= min(gains) and max(gains) < 0.02


def test_one_cluster_gains_nothing() -> None:
    words, labels = _worded(300, 3, seed=2)
    assert gain_of(sparse.csr_matrix(words), np.zeros_like(labels)) == pytest.approx(0, abs=0.02)


def test_every_text_a_cluster_of_its_own_is_the_worst() -> None:
    words, _ = _worded(30, 3, seed=3)
    assert gain_of(sparse.csr_matrix(words), np.arange(30)) == pytest.approx(-math.log(2))


def test_names_of_clusters_do_not_matter() -> None:
    words, labels = _worded(80, 4, seed=4)
    table = sparse.csr_matrix(words)
    assert gain_of(table, np.array([2, 0, 3, 1])[labels]) == pytest.approx(gain_of(table, labels), rel=1e-12)


def test_numbers_that_no_text_has_do_no_harm() -> None:
    words, labels = _worded(80, 4, seed=4)
    table = sparse.csr_matrix(words)
    assert gain_of(table, np.array([1, 2, 5, 9])[labels]) == pytest.approx(gain_of(table, labels), rel=1e-12)


def test_texts_without_words_are_dealt_too() -> None:
    words, labels = _worded(50, 3, seed=6)
    words[::3] = 0
    assert gain_of(sparse.csr_matrix(words), labels) == pytest.approx(_gain(words, labels, 0), rel=1e-9)


def test_the_table_and_the_labels_are_left_as_they_are() -> None:
    words, labels = _worded(40, 3, seed=7)
    table, before = sparse.csr_matrix(words), labels.copy()
    gain_of(table, labels)
    assert np.array_equal(table.toarray(), words) and np.array_equal(labels, before)


def test_texts_themselves() -> None:
    texts = [f"{['parcel late', 'refund money'][i % 2]} please {['today', 'again', 'why'][i % 3]}" for i in range(60)]
    table, labels = word_presence(texts), np.arange(60) % 2
    assert gain_of(table, labels) > 0.2 > gain_of(table, np.arange(60) % 3) > 0
    assert gain_of(table, labels) == pytest.approx(_gain(table.toarray(), labels, 0), rel=1e-9)
