"""Clusters counted by the values and dates of other columns."""

from __future__ import annotations

import json
from collections import Counter
from datetime import date, datetime, timedelta
from itertools import pairwise

import numpy as np
import pytest

from coterie import describe_clusters
from coterie.describe.breakdown import break_down, with_breakdowns
from coterie.describe.cards import ClusterCard, build_cards
from coterie.describe.dates import MAX_BINS, make_bins, read_dates
from coterie.errors import InputError


def test_values_with_share_and_lift_against_a_count_by_hand() -> None:
    generator = np.random.default_rng(0)
    cells = generator.choice(["a", "b", "c", "d", ""], 500, p=[0.4, 0.3, 0.15, 0.05, 0.1]).tolist()
    labels = generator.integers(-1, 4, 500)
    found = break_down("column", cells, labels)
    assert (found.kind, found.distinct, found.note, len(found.clusters)) == ("values", 4, None, 4)
    inside = [cell for cell, label in zip(cells, labels, strict=True) if label >= 0 and cell]
    for k, content in enumerate(found.clusters):
        here = Counter(cell for cell, label in zip(cells, labels, strict=True) if label == k)
        assert content.empty == here.pop("")
        assert {each.value: each.count for each in content.values} == dict(here)
        assert [each.count for each in content.values] == sorted(here.values(), reverse=True)
        for each in content.values:
            share, overall = here[each.value] / here.total(), inside.count(each.value) / len(inside)
            assert (each.share, each.overall) == pytest.approx((share, overall))
            assert each.lift == pytest.approx(share / overall)


def test_the_rest_is_counted_as_other() -> None:
    cells = ["a"] * 5 + ["b"] * 3 + ["c", "d", "e"] + ["z"]
    found = break_down("column", cells, np.array([0] * 11 + [1]), max_values=2)
    first, second = found.clusters
    assert [(each.value, each.count) for each in first.values] == [("a", 5), ("b", 3)]
    assert (first.other, first.other_values) == (3, 3)
    assert (second.other, second.other_values) == (0, 0)
    assert sum(each.count for each in first.values) + first.other + first.empty == 11


def test_ten_thousand_values() -> None:
    cells = [f"id {i}" for i in range(10_000)]
    found = break_down("ids", cells, np.arange(10_000) % 50)
    assert found.distinct == 10_000
    assert found.note is not None and "'ids' has 10,000 distinct values" in found.note
    for content in found.clusters:
        assert len(content.values) == 6
        assert (content.other, content.other_values) == (194, 194)
        assert [each.lift for each in content.values] == pytest.approx([50] * 6)


def test_what_is_empty_and_what_is_long() -> None:
    cells = [None, "", "  ", float("nan"), "nan", "NaT", 0, False, " a\n b ", "x" * 200]
    found = break_down("column", cells, np.zeros(len(cells), dtype=np.int64))
    content = found.clusters[0]
    assert content.empty == 6
    assert {each.value for each in content.values} == {"0", "False", "a b", "x" * 79 + "…"}


def test_nothing_to_count() -> None:
    found = break_down("column", ["", None], np.array([0, 1]))
    assert [(content.values, content.other, content.empty) for content in found.clusters] == [((), 0, 1), ((), 0, 1)]
    assert break_down("column", ["a"], np.array([-1])).clusters == ()
    with pytest.raises(InputError, match="'column' has 1 rows, but the run has 2"):
        break_down("column", ["a"], np.array([0, 1]))


def test_a_cluster_between_without_rows() -> None:
    found = break_down("column", ["a", "b"], np.array([0, 2]))
    assert [len(content.values) for content in found.clusters] == [1, 0, 1]
    assert found.counts_of(1).values == found.counts_of(9).values == ()


@pytest.mark.parametrize(
    "cell",
    [
        "2024-03-05",
        "2024/03/05",
        "2024/3/5",
        "2024.03.05",
        "05.03.2024",
        "5.3.2024",
        "2024-03-05T10:11:12",
        "2024-03-05 10:11",
        "2024-03-05T23:59:59.999Z",
        "2024-03-05 10:11:12+02:00",
        "2024-03-05T10:11:12.5-0500",
        "05.03.2024 14:30",
    ],
)
def test_these_are_dates(cell: str) -> None:
    assert read_dates([cell]).dates == {cell: date(2024, 3, 5)}


@pytest.mark.parametrize(
    "cell",
    [
        "20240305",
        "2024",
        "2024-13-01",
        "2024-02-30",
        "30.02.2024",
        "2024-03/05",
        "05.03.24",
        "March 5, 2024",
        "10:11",
        "2024-03-05x",
        "1.2.3",
    ],
)
def test_these_are_none(cell: str) -> None:
    assert read_dates([cell]).dates is None
    assert read_dates([cell]).note is None


def test_a_column_tells_which_number_is_the_day() -> None:
    assert read_dates(["03/04/2024", "25/04/2024"]).dates == {
        "03/04/2024": date(2024, 4, 3),
        "25/04/2024": date(2024, 4, 25),
    }
    american = read_dates(["03-04-2024", "04-25-2024", "12/31/2023 4:05 PM"]).dates
    assert american is not None
    assert list(american.values()) == [date(2024, 3, 4), date(2024, 4, 25), date(2023, 12, 31)]
    for unclear in (["03/04/2024", "05/06/2024"], ["25/04/2024", "04/25/2024"]):
        read = read_dates(unclear)
        assert read.dates is None
        assert read.note is not None and "two ways" in read.note


def test_dates_and_words_are_values_and_that_is_said() -> None:
    cells = ["2024-01-01", "2024-01-01", "2024-02-01", "soon", ""]
    found = break_down("due", cells, np.zeros(5, dtype=np.int64))
    assert found.kind == "values"
    assert found.note == "column 'due' is counted by value: it contains dates and other values such as 'soon'"
    assert found.clusters[0].values[0].value == "2024-01-01"
    # One date among many words is nothing to speak of.
    assert break_down("due", [*map(str, range(300)), "2024-01-01"], np.zeros(301, dtype=np.int64)).note is None


def test_typed_dates_are_read_as_they_are_written_to_files() -> None:
    cells = [date(2024, 1, 31), datetime(2024, 1, 31, 23, 30), "2024-02-01", None]
    found = break_down("when", cells, np.array([0, 0, 1, 1]))
    assert (found.kind, found.unit, found.dates) == ("dates", "day", {"2024-01-31": 2, "2024-02-01": 1})
    assert [content.dates for content in found.clusters] == [{"2024-01-31": 2}, {"2024-02-01": 1}]
    assert [content.empty for content in found.clusters] == [0, 1]


@pytest.mark.parametrize(
    ("days", "unit", "first"),
    [
        (0, "day", date(2024, 5, 15)),
        (59, "day", date(2024, 5, 15)),
        (60, "week", date(2024, 5, 13)),
        (400, "week", date(2024, 5, 13)),
        (500, "month", date(2024, 5, 1)),
        (1_700, "month", date(2024, 5, 1)),
        (2_000, "quarter", date(2024, 4, 1)),
        (6_000, "year", date(2024, 1, 1)),
        (25_000, "2 years", date(2024, 1, 1)),
        (2_000_000, "100 years", date(2000, 1, 1)),
    ],
)
def test_bins_by_the_span(days: int, unit: str, first: date) -> None:
    begin = date(2024, 5, 15)
    end = begin + timedelta(days=days)
    bins = make_bins([end, begin])
    assert bins.unit == unit
    assert bins.starts[0] == first
    assert len(bins.starts) <= MAX_BINS
    assert (bins.index_of(begin), bins.index_of(end)) == (0, len(bins.starts) - 1)
    if unit == "week":
        assert {start.weekday() for start in bins.starts} == {0}
    generator = np.random.default_rng(0)
    for offset in generator.integers(0, days + 1, 50).tolist():
        day = begin + timedelta(days=offset)
        place = bins.index_of(day)
        assert bins.starts[place] <= day
        assert place + 1 == len(bins.starts) or day < bins.starts[place + 1]


def test_all_of_time_and_months_alone() -> None:
    assert len(make_bins([date.min, date.max]).starts) <= MAX_BINS
    found = break_down("month", ["2024-01", "2024-02", "2024-02-20"], np.zeros(3, dtype=np.int64))
    assert (found.unit, found.dates) == ("month", {"2024-01-01": 1, "2024-02-01": 2})


def test_dates_are_counted_in_every_cluster_and_in_all() -> None:
    generator = np.random.default_rng(0)
    days = [date(2022, 1, 1) + timedelta(days=int(offset)) for offset in generator.integers(0, 1_000, 300)]
    labels = generator.integers(-1, 3, 300)
    found = break_down("when", [day.strftime("%d.%m.%Y") for day in days], labels)
    assert found.unit == "month"
    for k, content in enumerate(found.clusters):
        here = Counter(day.replace(day=1).isoformat() for day, label in zip(days, labels, strict=True) if label == k)
        assert content.dates == dict(here)
    assert found.dates is not None
    assert sum(found.dates.values()) == (labels >= 0).sum()
    starts = [date.fromisoformat(start) for start in found.dates]
    assert all((b.year * 12 + b.month) - (a.year * 12 + a.month) == 1 for a, b in pairwise(starts))


def test_into_cards_and_out_again() -> None:
    texts, labels = ["late parcel", "parcel lost", "login trouble"], np.array([0, 0, 1])
    cards = build_cards(describe_clusters(texts, labels), texts, labels, vectors=None)
    assert "by" not in cards[0].to_dict()
    counted = [break_down("country", ["DE", "FR", "FR"], labels), break_down("day", ["2024-01-01"] * 3, labels)]
    content = json.loads(json.dumps([card.to_dict() for card in with_breakdowns(cards, counted)]))
    assert list(content[0]["by"]) == ["country", "day"]
    assert content[1]["by"]["country"]["values"] == [
        {"value": "FR", "count": 1, "share": 1.0, "overall": pytest.approx(2 / 3), "lift": pytest.approx(1.5)}
    ]
    assert content[0]["by"]["day"] == {"kind": "dates", "unit": "day", "dates": {"2024-01-01": 2}, "empty": 0}
    again = [ClusterCard.from_dict(each).to_dict() for each in content]
    assert json.loads(json.dumps(again)) == content
