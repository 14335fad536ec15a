"""Descriptions of clusters: size, share, keywords, and texts that differ."""

from __future__ import annotations

import json

import numpy as np
import pytest
from conftest import topic_texts

from coterie import describe_clusters
from coterie.errors import InputError


def test_sizes_shares_and_order() -> None:
    texts, _ = topic_texts(10)
    labels = [0, 0, 0, 0, 0, 2, 2, 2, -1, -1]
    clusters = describe_clusters(texts, labels)
    assert [cluster.id for cluster in clusters] == [0, 1, 2]
    assert [cluster.size for cluster in clusters] == [5, 0, 3]
    assert [cluster.share for cluster in clusters] == pytest.approx([5 / 8, 0, 3 / 8])


def test_an_empty_cluster_is_told_as_empty() -> None:
    empty = describe_clusters(["late parcel", "lost password"], [0, 2])[1]
    assert (empty.size, empty.share, empty.keywords, empty.representatives) == (0, 0.0, (), ())


def test_representatives_are_the_nearest_to_the_centre() -> None:
    texts = ["far away parcel", "parcel in between", "close by depot", "login trouble"]
    clusters = describe_clusters(texts, [0, 0, 0, 1], center_distance=np.array([0.9, 0.5, 0.1, 0.0]))
    assert clusters[0].representatives == ("close by depot", "parcel in between", "far away parcel")
    assert clusters[1].representatives == ("login trouble",)
    # Without distances, the order of the rows.
    assert describe_clusters(texts, [0, 0, 0, 1])[0].representatives == tuple(texts[:3])


def test_representatives_differ() -> None:
    texts = [
        "my parcel is late",
        "my parcel is late!",
        "My parcel is late again",
        "where is the courier",
        "tracking shows nothing at all",
    ]
    chosen = describe_clusters(texts, [0] * 5, center_distance=np.arange(5.0))[0].representatives
    assert chosen == (texts[0], texts[3], texts[4])


def test_alike_texts_fill_up_where_there_are_no_others() -> None:
    texts = ["my parcel is late", "my parcel is late!", "my parcel is late", "is late my parcel"]
    chosen = describe_clusters(texts, [0] * 4)[0].representatives
    assert chosen == ("my parcel is late", "my parcel is late!", "is late my parcel")


@pytest.mark.parametrize("texts", [["late parcel"] * 4, ["12345"] * 4, ["👍"] * 4, ["???", "👍", "???", "👍"]])
def test_no_text_represents_twice(texts: list[str]) -> None:
    chosen = describe_clusters(texts, [0] * 4)[0].representatives
    assert len(chosen) == len(set(chosen)) == len(set(texts))


def test_texts_of_digits_alone_have_representatives_but_no_keywords() -> None:
    clusters = describe_clusters(["12345", "67890", "2024 1", "2024 7"], [0, 0, 1, 1])
    assert [cluster.keywords for cluster in clusters] == [(), ()]
    assert clusters[0].representatives == ("12345", "67890")
    assert clusters[1].representatives == ("2024 1", "2024 7")


def test_as_many_as_asked_for() -> None:
    texts, _ = topic_texts(30)
    cluster = describe_clusters(texts, [0] * 30, n_keywords=4, n_representatives=2)[0]
    assert len(cluster.keywords) == 4
    assert len(cluster.representatives) == 2


def test_nothing_in_any_cluster_is_no_clusters() -> None:
    assert describe_clusters(["a text"], [-1]) == []
    assert describe_clusters([], []) == []


def test_a_summary_is_ready_for_json() -> None:
    cluster = describe_clusters(["late parcel", "lost password"], np.array([0, 1], dtype=np.int32))[0]
    content = json.loads(json.dumps(cluster.to_dict()))
    assert content == {
        "id": 0,
        "size": 1,
        "share": 0.5,
        "confidence": None,
        "keywords": ["late", "parcel"],
        "representatives": ["late parcel"],
    }


def test_a_label_a_text_is_needed() -> None:
    with pytest.raises(InputError, match="2 texts but 3 labels"):
        describe_clusters(["a", "b"], [0, 1, 1])


def test_rows_of_a_cluster_keep_their_order() -> None:
    generator = np.random.default_rng(0)
    texts = [f"word{i} thing{i}" for i in range(2_000)]
    labels = generator.integers(0, 3, size=2_000)
    for cluster in describe_clusters(texts, labels):
        first = [texts[i] for i in np.flatnonzero(labels == cluster.id)[:3]]
        assert cluster.representatives == tuple(first)
