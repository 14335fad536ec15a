"""Names of clusters: readable, short, no two alike."""

from __future__ import annotations

import io

import numpy as np
import pytest
from call_count import calls_of

from coterie.describe.names import names_from_keywords


def test_a_name_is_made_of_the_best_keywords() -> None:
    assert names_from_keywords([["reset password", "login", "account"], ["parcel"]]) == [
        "Reset password, login",
        "Parcel",
    ]


def test_a_phrase_takes_the_place_of_its_words() -> None:
    assert names_from_keywords([["password", "reset password", "login"]]) == ["Reset password, login"]
    assert names_from_keywords([["reset password", "password", "reset", "login"]]) == ["Reset password, login"]


def test_keywords_with_new_words_come_first() -> None:
    assert names_from_keywords([["apple pay", "apple watch", "google"]]) == ["Apple pay, google"]
    assert names_from_keywords([["apple pay", "apple watch"]]) == ["Apple pay, apple watch"]


def test_a_cluster_without_keywords_is_named_by_its_id() -> None:
    assert names_from_keywords([["late"], [], [""]]) == ["Late", "Cluster 1", "Cluster 2"]
    assert names_from_keywords([[], []], ids=[7, 9]) == ["Cluster 7", "Cluster 9"]
    assert names_from_keywords([]) == []


def test_more_keywords_tell_alike_names_apart() -> None:
    names = names_from_keywords(
        [["parcel", "late", "courier"], ["late", "parcel", "depot"], ["refund", "bank", "card"]]
    )
    assert names == ["Parcel, late, courier", "Late, parcel, depot", "Refund, bank"]


def test_a_number_at_last() -> None:
    assert names_from_keywords([["parcel", "late"]] * 3) == ["Parcel, late", "Parcel, late (2)", "Parcel, late (3)"]
    assert names_from_keywords([["parcel", "late"], ["late", "parcel"]]) == ["Parcel, late", "Late, parcel (2)"]
    assert names_from_keywords([["parcel"], ["Parcel"]]) == ["Parcel", "Parcel (2)"]
    # A keyword may look like the name of a cluster without keywords, or like a numbered one.
    assert len(set(names_from_keywords([["cluster 1"], [], ["cluster 1"], ["cluster 1 (2)"]]))) == 4


def test_names_stay_short_where_they_can() -> None:
    long = "a remarkably long keyword of many words"
    assert names_from_keywords([[long, "second"]]) == [long[0].upper() + long[1:]]
    (cut,) = names_from_keywords([["w" * 100_000, "late"]])
    assert len(cut) == 40 and cut.endswith("…")
    assert len(set(names_from_keywords([["w" * 100 + "a"], ["w" * 100 + "b"]]))) == 2


@pytest.mark.parametrize(
    ("keyword", "name"),
    [("größe", "Größe"), ("été", "Été"), ("iPhone case", "iPhone case"), ("כלב גדול", "כלב גדול"), ("👍", "👍")],
)
def test_the_first_letter_is_a_capital_where_there_is_one(keyword: str, name: str) -> None:
    assert names_from_keywords([[keyword]]) == [name]


def test_a_thousand_clusters_with_few_words_are_told_apart() -> None:
    generator = np.random.default_rng(0)
    words = ["late", "parcel", "login", "refund", "card", "app", "depot", "email"]
    keywords = [list(generator.permutation(words)[: generator.integers(0, 8)]) for _ in range(1_000)]
    names = names_from_keywords(keywords)
    assert calls_of(lambda: names_from_keywords(keywords)) < 5 * calls_of(lambda: names_from_keywords(keywords[:250]))
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
    from coterie.describe.names import name_clusters

    texts = ["where is my parcel", "my parcel is late", "the parcel is not here", "wo ist mein Paket", "ich warte noch"]
    summaries = describe_clusters(texts, [0, 0, 0, 1, 1])
    assert [each.language for each in summaries] == [None, "german"]
    assert "language" not in summaries[0].to_dict() and summaries[1].to_dict()["language"] == "german"
    names = name_clusters(summaries)
    assert names[0].startswith("Parcel") and names[1].startswith("German: ")


def test_a_word_of_an_earlier_phrase_adds_nothing() -> None:
    assert names_from_keywords([["reset password", "password"], ["late parcel", "late", "depot"]]) == [
        "Reset password",
        "Late parcel, depot",
    ]
