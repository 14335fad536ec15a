"""Pairs of texts over the snapshots of a run, against the naive version of Table 5."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from reference import clusterbert_oracle as oracle

from coterie.errors import InputError, SettingError
from coterie.metrics.external.pairs import KINDS, SentencePair, labels_of_texts, sentence_pairs

Run = list[np.ndarray]


def snapshots_of(*embeddings: np.ndarray) -> Run:
    return [each.astype(np.float32) for each in embeddings]


def random_run(n: int, seed: int, moments: int = 3) -> Run:
    generator = np.random.default_rng(seed)
    return snapshots_of(*(generator.normal(size=(n, 5)) for _ in range(moments)))


def by_kind(pairs: list[SentencePair]) -> dict[str, list[tuple[int, int]]]:
    found: dict[str, list[tuple[int, int]]] = {}
    for pair in pairs:
        found.setdefault(pair.kind, []).append((pair.first, pair.second))
    return found


def expected(run: Run, labels: list[int] | None, count: int) -> dict[str, list[tuple[int, int]]]:
    matrices = [oracle.cosine_matrix(each.astype(np.float64)) for each in run]
    return {kind: pairs for kind, pairs in oracle.pair_kinds(matrices, labels, count).items() if pairs}


@settings(max_examples=20, deadline=None)
@given(st.integers(3, 9), st.integers(0, 1000), st.integers(2, 4), st.integers(1, 12), st.integers(1, 3))
def test_against_the_oracle(n: int, seed: int, moments: int, count: int, n_labels: int) -> None:
    run = random_run(n, seed, moments)
    labels = np.random.default_rng(seed).integers(0, n_labels, n).tolist()
    assert by_kind(sentence_pairs(run, labels, count=count)) == expected(run, labels, count)
    assert by_kind(sentence_pairs(run, count=count)) == expected(run, None, count)


def test_ten_of_each_kind_with_the_similarity_of_every_snapshot() -> None:
    run = random_run(30, 1)
    pairs = sentence_pairs(run, [i % 2 for i in range(30)])
    assert list(by_kind(pairs)) == list(KINDS)[:5]
    assert {len(of_kind) for of_kind in by_kind(pairs).values()} == {10}
    matrices = [oracle.cosine_matrix(each) for each in run]
    for pair in pairs:
        assert pair.similarities == pytest.approx([matrix[pair.first, pair.second] for matrix in matrices], abs=1e-9)
        assert pair.change == pair.similarities[-1] - pair.similarities[0]
    rising = [pair.change for pair in pairs if pair.kind == "same_rise"]
    assert rising == sorted(rising, reverse=True) and rising[-1] > 0


def test_equal_pairs_come_in_order_and_what_stays_is_listed_nowhere() -> None:
    start, end = np.eye(6), np.ones((6, 6))
    everything = [(i, j) for i in range(6) for j in range(i + 1, 6)]
    found = by_kind(sentence_pairs(snapshots_of(start, end), ["a"] * 6))
    assert found == {"same_close": everything[:10], "same_rise": everything[:10]}
    assert sentence_pairs(snapshots_of(end, end)) == []


def test_texts_without_a_label_are_left_out() -> None:
    run = random_run(8, 2)
    labels = ["a", None, "b", "", "a", float("nan"), "b", "a"]
    pairs = sentence_pairs(run, labels)
    assert {place for pair in pairs for place in (pair.first, pair.second)} <= {0, 2, 4, 6, 7}
    kept = [0, 2, 4, 6, 7]
    part = [embeddings[kept] for embeddings in run]
    wanted = by_kind(sentence_pairs(part, [labels[i] for i in kept]))
    assert by_kind(pairs) == {kind: [(kept[i], kept[j]) for i, j in both] for kind, both in wanted.items()}


def test_the_sample_of_texts_depends_on_the_seed() -> None:
    run = random_run(40, 3)

    def places(seed: int) -> set[int]:
        pairs = sentence_pairs(run, most_texts=6, seed=seed, count=100)
        return {place for pair in pairs for place in (pair.first, pair.second)}

    assert len(places(0)) == 6
    assert places(0) == places(0) != places(1)
    sampled = sorted(places(0))
    part = [embeddings[sampled] for embeddings in run]
    wanted = {(sampled[pair.first], sampled[pair.second]) for pair in sentence_pairs(part, count=3)}
    assert {(pair.first, pair.second) for pair in sentence_pairs(run, most_texts=6, count=3)} == wanted


def test_vectors_of_zeros_are_like_nothing() -> None:
    start = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 2.0]])
    pairs = sentence_pairs(snapshots_of(start, np.ones((3, 2))))
    assert [pair.similarities for pair in pairs] == [(0.0, pytest.approx(1.0))] * 3


def test_labels_of_texts() -> None:
    rows = np.array([0, 1, 0, -1, 2, 2])
    assert labels_of_texts(rows, ["", "b", "a", "x", "c", "d"], 3) == ["a", "b", "c"]
    assert labels_of_texts(rows, [None, "b", None, "x", 0, 1], 4) == [None, "b", 0, None]
    with pytest.raises(InputError, match="2 rows"):
        labels_of_texts(rows, ["a", "b"], 3)


def test_what_cannot_be_paired_is_refused() -> None:
    run = random_run(4, 4)
    with pytest.raises(InputError, match="two snapshots"):
        sentence_pairs(run[:1])
    with pytest.raises(InputError, match="labels has 3 rows for 4 texts"):
        sentence_pairs(run, ["a"] * 3)
    with pytest.raises(InputError, match="two texts with a label, and there are 1"):
        sentence_pairs(run, ["a", None, None, ""])
    with pytest.raises(SettingError, match="count"):
        sentence_pairs(run, count=0)
