"""Keywords tell clusters apart."""

from __future__ import annotations

import os

import numpy as np
import pytest
from call_count import calls_of, stopped_when_endless
from conftest import TOPICS, topic_texts

from coterie.describe.keywords import cluster_keywords


def _keywords(texts: list[str], labels: list[int], n_clusters: int | None = None, n: int = 10) -> list[tuple[str, ...]]:
    return cluster_keywords(texts, np.array(labels), max(labels) + 1 if n_clusters is None else n_clusters, n)


def test_keywords_are_the_words_of_their_cluster() -> None:
    texts, names = topic_texts(60)
    order = list(TOPICS)
    for name, words in zip(order, _keywords(texts, [order.index(name) for name in names], n=5), strict=True):
        assert len(words) == 5
        assert set(words) <= set(TOPICS[name])


def test_a_word_of_all_clusters_says_less_than_a_word_of_one() -> None:
    texts = ["order late", "order late", "order refund", "order refund", "order login", "order login"]
    assert [words[0] for words in _keywords(texts, [0, 0, 1, 1, 2, 2])] == ["late", "refund", "login"]
    assert all(words[1] == "order" for words in _keywords(texts, [0, 0, 1, 1, 2, 2]))


def test_the_score_is_class_based_tf_idf() -> None:
    # Cluster 0: parcel 4, late 2 (6 words); cluster 1: parcel 1, money 3 (4 words). The mean is 5 words a cluster.
    texts = ["parcel parcel late", "parcel parcel late", "parcel money", "money money"]
    score = {
        "parcel": 3.5 / 6 * np.log(1 + 5 / 5),
        "late": 1.5 / 6 * np.log(1 + 5 / 2),
    }
    assert score["parcel"] > score["late"]
    assert _keywords(texts, [0, 0, 1, 1]) == [("parcel", "late"), ("money", "parcel")]


def test_function_words_are_left_out() -> None:
    assert _keywords(["the parcel is on the way", "the refund is not here"], [0, 1]) == [("parcel", "way"), ("refund",)]


def test_function_words_are_better_than_nothing() -> None:
    keywords = _keywords(["who are you", "who are they", "why not"], [0, 0, 1])
    assert set(keywords[0]) == {"who", "are", "you", "they"}
    assert set(keywords[1]) == {"why", "not"}


def test_numbers_alone_are_no_keywords() -> None:
    assert _keywords(["12345", "2024 99", "7"], [0, 0, 1]) == [(), ()]
    assert _keywords(["covid19 12345", "b2b 77"], [0, 1]) == [("covid19",), ("b2b",)]


def test_an_empty_cluster_has_no_keywords() -> None:
    assert _keywords(["late parcel", "lost password"], [0, 2], n_clusters=4) == [
        ("late", "parcel"),
        (),
        ("lost", "password"),
        (),
    ]


def test_texts_in_no_cluster_do_not_count() -> None:
    with_noise = _keywords(["late parcel", "lost password", "late late password"], [0, 1, -1], n_clusters=2)
    assert with_noise == _keywords(["late parcel", "lost password"], [0, 1])
    assert _keywords(["late parcel"], [-1], n_clusters=2) == [(), ()]


def test_no_more_keywords_than_asked_for() -> None:
    texts, _ = topic_texts(30)
    assert [len(words) for words in _keywords(texts, [0] * 15 + [1] * 15, n=3)] == [3, 3]


def test_words_keep_their_apostrophes_and_other_letters() -> None:
    keywords = _keywords(["größe größe", "l'été l'été", "パスワード パスワード"], [0, 1, 2])
    assert keywords[0] == ("größe",)
    assert keywords[2] == ("パスワード",)
    assert keywords[1][0].endswith("été")


def test_english_contractions_are_no_keywords() -> None:
    keywords = _keywords(["it's late they're late", "don’t pay I've paid"], [0, 1])
    assert keywords == [("late",), ("paid", "pay")]


@pytest.mark.skipif(os.name != "posix", reason="signals of POSIX")
def test_many_words_in_many_clusters_are_counted_in_one_pass() -> None:
    # A list of words searched for every word would take some minutes.
    texts = [f"word{i} other{i} late parcel" for i in range(60_000)]
    with stopped_when_endless():
        keywords = cluster_keywords(texts, np.arange(60_000) % 50, 50)
    assert all(words[0] == "late parcel" for words in keywords)


def test_calls_grow_with_the_texts() -> None:
    def work(n: int) -> int:
        texts = [f"word{i} other{i} late parcel" for i in range(n)]
        return calls_of(lambda: cluster_keywords(texts, np.arange(n) % 50, 50))

    assert work(4_000) < 2.2 * work(2_000)
