"""Names of clusters: readable, short, no two alike."""

from __future__ import annotations

import io
import time

import numpy as np
import pytest

from coterie.describe.names import cluster_names


def test_a_name_is_made_of_the_best_keywords() -> None:
    assert cluster_names([["reset password", "login", "account"], ["parcel"]]) == ["Reset password, login", "Parcel"]


def test_a_phrase_takes_the_place_of_its_words() -> None:
    assert cluster_names([["password", "reset password", "login"]]) == ["Reset password, login"]
    assert cluster_names([["reset password", "password", "reset", "login"]]) == ["Reset password, login"]


def test_keywords_with_new_words_come_first() -> None:
    assert cluster_names([["apple pay", "apple watch", "google"]]) == ["Apple pay, google"]
    assert cluster_names([["apple pay", "apple watch"]]) == ["Apple pay, apple watch"]


def test_a_cluster_without_keywords_is_named_by_its_id() -> None:
    assert cluster_names([["late"], [], [""]]) == ["Late", "Cluster 1", "Cluster 2"]
    assert cluster_names([[], []], ids=[7, 9]) == ["Cluster 7", "Cluster 9"]
    assert cluster_names([]) == []


def test_more_keywords_tell_alike_names_apart() -> None:
    names = cluster_names([["parcel", "late", "courier"], ["late", "parcel", "depot"], ["refund", "bank", "card"]])
    assert names == ["Parcel, late, courier", "Late, parcel, depot", "Refund, bank"]


def test_a_number_at_last() -> None:
    assert cluster_names([["parcel", "late"]] * 3) == ["Parcel, late", "Parcel, late (2)", "Parcel, late (3)"]
    assert cluster_names([["parcel", "late"], ["late", "parcel"]]) == ["Parcel, late", "Late, parcel (2)"]
    assert cluster_names([["parcel"], ["Parcel"]]) == ["Parcel", "Parcel (2)"]
    # A keyword may look like the name of a cluster without keywords, or like a numbered one.
    assert len(set(cluster_names([["cluster 1"], [], ["cluster 1"], ["cluster 1 (2)"]]))) == 4


def test_names_stay_short_where_they_can() -> None:
    long = "a remarkably long keyword of many words"
    assert cluster_names([[long, "second"]]) == [long[0].upper() + long[1:]]
    (cut,) = cluster_names([["w" * 100_000, "late"]])
    assert len(cut) == 40 and cut.endswith("…")
    assert len(set(cluster_names([["w" * 100 + "a"], ["w" * 100 + "b"]]))) == 2


@pytest.mark.parametrize(
    ("keyword", "name"),
    [("größe", "Größe"), ("été", "Été"), ("iPhone case", "iPhone case"), ("כלב גדול", "כלב גדול"), ("👍", "👍")],
)
def test_the_first_letter_is_a_capital_where_there_is_one(keyword: str, name: str) -> None:
    assert cluster_names([[keyword]]) == [name]


def test_a_thousand_clusters_with_few_words_are_told_apart() -> None:
    generator = np.random.default_rng(0)
    words = ["late", "parcel", "login", "refund", "card", "app", "depot", "email"]
    keywords = [list(generator.permutation(words)[: generator.integers(0, 8)]) for _ in range(1_000)]
    began = time.perf_counter()
    names = cluster_names(keywords)
    assert time.perf_counter() - began < 5
    assert len({name.casefold() for name in names}) == 1_000


def test_the_table_of_clusters_shows_the_names() -> None:
    from rich.console import Console

    from coterie import describe_clusters
    from coterie.cli.tables import print_clusters

    console = Console(width=160, record=True, file=io.StringIO())
    print_clusters(describe_clusters(["late parcel", "lost login", "12"], [0, 1, 2]), console=console)
    shown = console.export_text()
    assert all(name in shown for name in ("Late, parcel", "Login, lost", "Cluster 2"))
    assert "late, parcel" in shown


def test_a_cluster_that_is_a_language_says_so() -> None:
    from coterie import describe_clusters
    from coterie.describe.names import names_of

    texts = ["where is my parcel", "my parcel is late", "the parcel is not here", "wo ist mein Paket", "ich warte noch"]
    summaries = describe_clusters(texts, [0, 0, 0, 1, 1])
    assert [each.language for each in summaries] == [None, "german"]
    assert "language" not in summaries[0].to_dict() and summaries[1].to_dict()["language"] == "german"
    names = names_of(summaries)
    assert names[0].startswith("Parcel") and names[1].startswith("German: ")
