"""Whether fine-tuning helped, told by neighbours that it cannot have moved."""

from __future__ import annotations

import numpy as np
import pytest
from conftest import topic_texts

from coterie.selection.training_verdict import SAMPLE, Kept, neighbours_kept, verdict


def _groups(n: int) -> tuple[list[str], np.ndarray, np.ndarray]:
    """Texts, the group of each, and vectors that know the groups."""
    texts, names = topic_texts(n)
    groups = np.unique(names, return_inverse=True)[1]
    vectors = np.eye(3)[groups] + np.random.default_rng(0).normal(scale=0.2, size=(n, 3))
    return texts, groups, vectors


def test_a_partition_by_the_groups_keeps_neighbours_and_a_random_one_does_not() -> None:
    texts, groups, vectors = _groups(90)
    chance = np.random.default_rng(1).permutation(groups)
    by_words, by_encoder = neighbours_kept(texts, vectors, chance, groups)
    assert abs(by_words.before) < 0.1
    assert abs(by_encoder.before) < 0.1
    assert by_words.after > 0.5
    assert by_encoder.after > 0.9
    # Turned round, it is the same with before and after exchanged.
    turned = neighbours_kept(texts, vectors, groups, chance)
    assert (turned[0].before, turned[0].after) == (by_words.after, by_words.before)


def test_beyond_chance_by_hand() -> None:
    """Of four texts each is asked about the three others, one of which is of its group."""
    texts = ["a one", "a two", "b one", "b two"]
    vectors = np.array([[1, 0.0], [0.9, 0.1], [0, 1], [0.1, 0.9]])
    kept = neighbours_kept(texts, vectors, np.array([0, 0, 1, 1]), np.array([0, 1, 0, 1]))[-1]
    # (1/3 - 1/2) / (1 - 1/2)
    assert kept.before == pytest.approx(-1 / 3, abs=1e-3)
    assert kept.after == pytest.approx(-1 / 3, abs=1e-3)


def test_rows_in_no_cluster_are_not_asked() -> None:
    texts, groups, vectors = _groups(60)
    unsure = groups.copy()
    unsure[::5] = -1
    asked = [row for row in range(60) if row % 5]
    some = neighbours_kept([texts[row] for row in asked], vectors[asked], groups[asked], groups[asked])
    assert neighbours_kept(texts, vectors, unsure, groups) == some


def test_without_vectors_words_are_asked_alone_and_without_words_vectors() -> None:
    texts, groups, vectors = _groups(30)
    assert [each.name for each in neighbours_kept(texts, None, groups, groups)] == ["texts that share telling words"]
    lonely = [f"word{i}" for i in range(30)]
    assert [each.name for each in neighbours_kept(lonely, vectors, groups, groups)] == [
        "texts alike to the frozen encoder"
    ]
    assert neighbours_kept(texts[:2], vectors[:2], groups[:2], groups[:2]) == []


def test_many_texts_are_drawn_by_the_seed() -> None:
    vectors = np.random.default_rng(0).normal(size=(SAMPLE + 500, 4))
    texts, before = ["same words"] * len(vectors), np.arange(len(vectors)) % 7
    after = (vectors[:, 0] > 0).astype(np.int64)
    first, again, other = (neighbours_kept(texts, vectors, before, after, seed=seed) for seed in (0, 0, 1))
    assert first == again != other


@pytest.mark.parametrize(
    ("shares", "words"),
    [
        ([(0.5, 0.6), (0.7, 0.7)], "Fine-tuning helped"),
        ([(0.5, 0.4), (0.7, 0.7)], "did not help"),
        ([(0.5, 0.5), (0.7, 0.702)], "changed little"),
        ([(0.5, 0.6), (0.7, 0.6)], "disagree"),
        ([], "too few texts"),
    ],
)
def test_the_verdict(shares: list[tuple[float, float]], words: str) -> None:
    assert words in verdict([Kept(f"sign {i}", *pair) for i, pair in enumerate(shares)])


def test_shares_are_told_as_everywhere_else() -> None:
    told = verdict([Kept("texts that share telling words", 0.2, 0.574)])
    assert "20 % together before, 57 % after" in told
