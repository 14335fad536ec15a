"""How the rows of each cluster spread over the values, or the dates, of another column."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from coterie.describe.cards import ClusterCard
from coterie.describe.dates import Bins, ReadDates, bins_of, read_dates
from coterie.errors import InputError

# Values told of a cluster; the others are counted together.
MOST_VALUES = 6
LONGEST_VALUE = 80
# So many values are worth a note: the column may be one of ids.
MANY_VALUES = 1_000
# How a number or a time that is missing is written.
MISSING = frozenset({"", "nan", "NaN", "NaT", "<NA>"})

Codes: TypeAlias = NDArray[np.int64]


@dataclass(frozen=True)
class ValueCount:
    """A value of the column in a cluster.

    Attributes
    ----------
    value, count:
        The value, and how many rows of the cluster have it.
    share, overall:
        Their part of the cluster's rows with a value, and of all clusters' rows with one.
    lift:
        ``share`` over ``overall``: 2 where the value is twice as common in the cluster as elsewhere and here together.
    """

    value: str
    count: int
    share: float
    overall: float
    lift: float


@dataclass(frozen=True)
class ClusterCounts:
    """The rows of one cluster over one column.

    Attributes
    ----------
    kind:
        ``values`` or ``dates``.
    values:
        The most common values, the most common first; none for dates.
    other, other_values:
        Rows with another value, and how many such values there are.
    unit, dates:
        What a bin of dates is (day, week, month, quarter, year, or some years), and the rows by the first day of their
        bin (``2024-03-01``); bins without a row are left out.
    empty:
        Rows without a value.
    """

    kind: Literal["values", "dates"]
    values: tuple[ValueCount, ...] = ()
    other: int = 0
    other_values: int = 0
    unit: str | None = None
    dates: dict[str, int] = field(default_factory=dict)
    empty: int = 0

    def to_dict(self) -> dict[str, Any]:
        """Ready for JSON: what belongs to its kind."""
        told = asdict(self)
        for name in ("values", "other", "other_values") if self.kind == "dates" else ("unit", "dates"):
            del told[name]
        return told


@dataclass(frozen=True)
class Breakdown:
    """All clusters of a run over one column.

    Attributes
    ----------
    column:
        Its name.
    kind:
        ``values`` or ``dates``.
    clusters:
        One entry a cluster, by id, up to the last that holds a row.
    distinct:
        How many values the column has.
    unit, dates:
        Of dates: what a bin is (day, week, month, quarter, year, or some years), and the rows of all clusters together
        by the first day of their bin; no bin in between is left out.
    note:
        What a reader should know of how the column was read.
    """

    column: str
    kind: Literal["values", "dates"]
    clusters: tuple[ClusterCounts, ...]
    distinct: int
    unit: str | None = None
    dates: dict[str, int] | None = None
    note: str | None = None

    def of(self, cluster: int) -> ClusterCounts:
        """The counts of one cluster; none of one that holds no row."""
        return self.clusters[cluster] if cluster < len(self.clusters) else ClusterCounts(self.kind, unit=self.unit)

    def to_dict(self) -> dict[str, Any]:
        """What is told of the column as a whole, ready for JSON."""
        of_dates = {} if self.dates is None else {"unit": self.unit, "dates": self.dates}
        return {"kind": self.kind, "distinct": self.distinct, **of_dates, "note": self.note}


def break_down(column: str, cells: Sequence[object], labels: Codes, *, most: int = MOST_VALUES) -> Breakdown:
    """Count the rows of each cluster by what they have in a column.

    A column whose cells are all dates, as :func:`~coterie.describe.dates.read_dates` reads them, is counted by time;
    any other by value. Empty cells are counted apart, rows in no cluster (-1) not at all.

    Parameters
    ----------
    column, cells:
        The column's name and its cells, row for row.
    labels:
        The cluster of each row.
    most:
        Values told of a cluster at most.

    Examples
    --------
    >>> found = break_down("country", ["DE", "DE", "FR", "FR", "FR", ""], np.array([0, 0, 0, 1, 1, 1]))
    >>> [(each.value, each.count, round(each.lift, 2)) for each in found.clusters[0].values]
    [('DE', 2, 1.67), ('FR', 1, 0.56)]
    >>> found.clusters[1].empty
    1
    """
    if len(cells) != len(labels):
        raise InputError(f"column {column!r} has {len(cells):,} rows, the run {len(labels):,}: one of each is needed")
    inside = np.flatnonzero(np.asarray(labels) >= 0)
    clusters = np.asarray(labels, dtype=np.int64)[inside]
    n = int(clusters.max(initial=-1)) + 1
    known: dict[str, int] = {}
    written = (_written(cells[row]) for row in inside.tolist())
    codes = np.fromiter((known.setdefault(cell, len(known)) for cell in written), np.int64, len(inside))
    nothing = known.get("", -1)
    empty = np.bincount(clusters[codes == nothing], minlength=n)
    there = codes != nothing
    distinct = len(known) - ("" in known)
    read = read_dates(cell for cell in known if cell)
    if read.dates is not None:
        return _by_date(column, list(known), codes[there], clusters[there], empty, read, distinct)
    told = _by_value(list(known), codes[there], clusters[there], empty, most)
    note = None
    if read.note is not None:
        note = f"column {column!r} is counted by value: {read.note}"
    elif distinct > MANY_VALUES:
        note = f"column {column!r} has {distinct:,} different values, of which each cluster's most common are told"
    return Breakdown(column, "values", told, distinct, note=note)


def _written(cell: object) -> str:
    """A cell as a file of the run holds it; empty where it says nothing."""
    written = "" if cell is None else " ".join(str(cell).split())
    return "" if written in MISSING else written


def _by_value(names: list[str], codes: Codes, clusters: Codes, empty: Codes, most: int) -> tuple[ClusterCounts, ...]:
    overall = np.bincount(codes, minlength=len(names)) / max(1, len(codes))
    # Pairs that occur, not all: a column of ten thousand values times a thousand clusters would be a large table.
    pairs, counts = np.unique(clusters * max(1, len(names)) + codes, return_counts=True)
    cluster_of, code_of = pairs // max(1, len(names)), pairs % max(1, len(names))
    bounds = np.searchsorted(cluster_of, np.arange(len(empty) + 1))
    told = []
    for k, (begin, end) in enumerate(zip(bounds[:-1].tolist(), bounds[1:].tolist(), strict=True)):
        here, rows = code_of[begin:end], counts[begin:end]
        n_rows = int(rows.sum())
        # Of values alike common, the one that is rarer elsewhere, then the one that came first.
        order = np.lexsort((here, overall[here], -rows))[:most]
        values = tuple(
            ValueCount(
                value=_cut(names[here[i]]),
                count=int(rows[i]),
                share=float(rows[i] / n_rows),
                overall=float(overall[here[i]]),
                lift=float(rows[i] / n_rows / overall[here[i]]),
            )
            for i in order
        )
        other = n_rows - sum(value.count for value in values)
        told.append(ClusterCounts("values", values, other, len(here) - len(values), empty=int(empty[k])))
    return tuple(told)


def _by_date(
    column: str, names: list[str], codes: Codes, clusters: Codes, empty: Codes, read: ReadDates, distinct: int
) -> Breakdown:
    assert read.dates is not None
    bins: Bins = bins_of(list(read.dates.values()), at_least_months=read.of_months)
    # The empty cell has a name too, and no date.
    place_of = np.array([bins.place(read.dates[name]) if name else -1 for name in names], dtype=np.int64)
    starts = [start.isoformat() for start in bins.starts]
    table = np.bincount(clusters * len(starts) + place_of[codes], minlength=len(empty) * len(starts))
    told = tuple(
        ClusterCounts(
            "dates",
            unit=bins.unit,
            dates={start: n for start, n in zip(starts, counts, strict=True) if n},
            empty=int(without),
        )
        for counts, without in zip(table.reshape(len(empty), -1).tolist(), empty, strict=True)
    )
    overall = table.reshape(len(empty), -1).sum(axis=0).tolist()
    return Breakdown(column, "dates", told, distinct, bins.unit, dict(zip(starts, overall, strict=True)))


def _cut(value: str) -> str:
    return value if len(value) <= LONGEST_VALUE else f"{value[: LONGEST_VALUE - 1]}…"


def with_breakdowns(cards: Iterable[ClusterCard], breakdowns: Sequence[Breakdown]) -> list[ClusterCard]:
    """The same cards, each with how its cluster's rows spread over these columns."""
    return [
        replace(card, by={each.column: each.of(card.summary.id).to_dict() for each in breakdowns}) for card in cards
    ]
