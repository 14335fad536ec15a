"""How the rows of each cluster spread over the values, or the dates, of another column."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from coterie.describe.cards import ClusterCard
from coterie.describe.dates import Bins, ReadDates, make_bins, read_dates
from coterie.errors import InputError

# Values listed per cluster; the others are counted together.
MAX_VALUES = 6
# Characters of a value that are kept.
MAX_VALUE_LENGTH = 80
# Distinct values above which a note is added: such a column probably holds ids.
MANY_VALUES = 1_000
# How files write a missing number or time.
MISSING = frozenset({"", "nan", "NaN", "NaT", "<NA>"})

Codes: TypeAlias = NDArray[np.int64]


@dataclass(frozen=True)
class ValueCount:
    """A value of the column in a cluster.

    Attributes
    ----------
    value, count:
        The value, and the number of rows of the cluster that have it.
    share, overall:
        Its share of the cluster's rows with a value, and of all clusters' rows with one.
    lift:
        ``share`` divided by ``overall``: 2 where the value is twice as common in the cluster as in all clusters.
    """

    value: str
    count: int
    share: float
    overall: float
    lift: float


@dataclass(frozen=True)
class ClusterCounts:
    """The rows of one cluster, counted by one column.

    Attributes
    ----------
    kind:
        ``values`` or ``dates``.
    values:
        The most common values, the most common first; none for dates.
    other, other_values:
        Rows with any other value, and the number of these values.
    unit, dates:
        The length of a bin (day, week, month, quarter, year, or several years), and the rows by the first day of
        their bin (``2024-03-01``); empty bins are left out.
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
        """Return the fields that belong to the kind, for JSON."""
        content = asdict(self)
        for name in ("values", "other", "other_values") if self.kind == "dates" else ("unit", "dates"):
            del content[name]
        return content


@dataclass(frozen=True)
class Breakdown:
    """All clusters of a run, counted by one column.

    Attributes
    ----------
    column:
        Its name.
    kind:
        ``values`` or ``dates``.
    clusters:
        One entry per cluster, by id, up to the last one that has rows.
    distinct:
        The number of distinct values of the column.
    unit, dates:
        For dates: the length of a bin (day, week, month, quarter, year, or several years), and the rows of all
        clusters together by the first day of their bin, with empty bins in between.
    note:
        What a reader should know about how the column was read.
    """

    column: str
    kind: Literal["values", "dates"]
    clusters: tuple[ClusterCounts, ...]
    distinct: int
    unit: str | None = None
    dates: dict[str, int] | None = None
    note: str | None = None

    def counts_of(self, cluster: int) -> ClusterCounts:
        """Return the counts of one cluster, which are empty for a cluster without rows."""
        return self.clusters[cluster] if cluster < len(self.clusters) else ClusterCounts(self.kind, unit=self.unit)

    def to_dict(self) -> dict[str, Any]:
        """Return what concerns the column as a whole, for JSON."""
        dates = {} if self.dates is None else {"unit": self.unit, "dates": self.dates}
        return {"kind": self.kind, "distinct": self.distinct, **dates, "note": self.note}


def break_down(column: str, cells: Sequence[object], labels: Codes, *, max_values: int = MAX_VALUES) -> Breakdown:
    """Count the rows of each cluster by what they have in a column.

    A column whose cells are all dates, as :func:`~coterie.describe.dates.read_dates` reads them, is counted by date,
    any other by value. Empty cells are counted separately; rows in no cluster (-1) are not counted.

    Parameters
    ----------
    column, cells:
        The column's name, and its cells, one per row.
    labels:
        The cluster of each row.
    max_values:
        The largest number of values per cluster.

    Examples
    --------
    >>> found = break_down("country", ["DE", "DE", "FR", "FR", "FR", ""], np.array([0, 0, 0, 1, 1, 1]))
    >>> [(each.value, each.count, round(each.lift, 2)) for each in found.clusters[0].values]
    [('DE', 2, 1.67), ('FR', 1, 0.56)]
    >>> found.clusters[1].empty
    1
    """
    if len(cells) != len(labels):
        raise InputError(
            f"column {column!r} has {len(cells):,} rows, but the run has {len(labels):,}: give one cell per row"
        )
    inside = np.flatnonzero(np.asarray(labels) >= 0)
    clusters = np.asarray(labels, dtype=np.int64)[inside]
    n = int(clusters.max(initial=-1)) + 1
    known: dict[str, int] = {}
    written = (_written(cells[row]) for row in inside.tolist())
    codes = np.fromiter((known.setdefault(cell, len(known)) for cell in written), np.int64, len(inside))
    empty_code = known.get("", -1)
    empty = np.bincount(clusters[codes == empty_code], minlength=n)
    filled = codes != empty_code
    distinct = len(known) - ("" in known)
    read = read_dates(cell for cell in known if cell)
    if read.dates is not None:
        return _by_date(column, list(known), codes[filled], clusters[filled], empty, read, distinct)
    counts = _by_value(list(known), codes[filled], clusters[filled], empty, max_values)
    note = None
    if read.note is not None:
        note = f"column {column!r} is counted by value: {read.note}"
    elif distinct > MANY_VALUES:
        note = f"column {column!r} has {distinct:,} distinct values; the most common ones of each cluster are listed"
    return Breakdown(column, "values", counts, distinct, note=note)


def _written(cell: object) -> str:
    """Return a cell as a file of the run would contain it; empty where the value is missing."""
    written = "" if cell is None else " ".join(str(cell).split())
    return "" if written in MISSING else written


def _by_value(
    names: list[str], codes: Codes, clusters: Codes, empty: Codes, max_values: int
) -> tuple[ClusterCounts, ...]:
    overall = np.bincount(codes, minlength=len(names)) / max(1, len(codes))
    # Only pairs that occur: ten thousand values times a thousand clusters would be a large table.
    pairs, counts = np.unique(clusters * max(1, len(names)) + codes, return_counts=True)
    cluster_of, code_of = pairs // max(1, len(names)), pairs % max(1, len(names))
    bounds = np.searchsorted(cluster_of, np.arange(len(empty) + 1))
    counted = []
    for k, (begin, end) in enumerate(zip(bounds[:-1].tolist(), bounds[1:].tolist(), strict=True)):
        here, rows = code_of[begin:end], counts[begin:end]
        n_rows = int(rows.sum())
        # Of equally common values first the one that is rarer overall, then the one that came first.
        order = np.lexsort((here, overall[here], -rows))[:max_values]
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
        counted.append(ClusterCounts("values", values, other, len(here) - len(values), empty=int(empty[k])))
    return tuple(counted)


def _by_date(
    column: str, names: list[str], codes: Codes, clusters: Codes, empty: Codes, read: ReadDates, distinct: int
) -> Breakdown:
    assert read.dates is not None
    bins: Bins = make_bins(list(read.dates.values()), at_least_months=read.of_months)
    # The empty cell is among the names, and has no date.
    bin_of = np.array([bins.index_of(read.dates[name]) if name else -1 for name in names], dtype=np.int64)
    starts = [start.isoformat() for start in bins.starts]
    table = np.bincount(clusters * len(starts) + bin_of[codes], minlength=len(empty) * len(starts))
    counted = tuple(
        ClusterCounts(
            "dates",
            unit=bins.unit,
            dates={start: n for start, n in zip(starts, counts, strict=True) if n},
            empty=int(without),
        )
        for counts, without in zip(table.reshape(len(empty), -1).tolist(), empty, strict=True)
    )
    overall = table.reshape(len(empty), -1).sum(axis=0).tolist()
    return Breakdown(column, "dates", counted, distinct, bins.unit, dict(zip(starts, overall, strict=True)))


def _cut(value: str) -> str:
    return value if len(value) <= MAX_VALUE_LENGTH else f"{value[: MAX_VALUE_LENGTH - 1]}…"


def with_breakdowns(cards: Iterable[ClusterCard], breakdowns: Sequence[Breakdown]) -> list[ClusterCard]:
    """Return the cards with the counts of their rows by these columns."""
    return [
        replace(card, by={each.column: each.counts_of(card.summary.id).to_dict() for each in breakdowns})
        for card in cards
    ]
