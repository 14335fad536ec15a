"""Cells of a table as dates, and the dates of a run in bins."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date

MOST_BINS = 60
# Which part of a column's cells must be dates for the others to be spoken of.
WORTH_SAYING = 0.1
# Years in a bin, where single years are too many.
YEARS_IN_A_BIN = (1, 2, 5, 10, 20, 50, 100, 200)

_TIME = r"(?:[T ]\s*\d{1,2}:\d{2}(?::\d{2}(?:[.,]\d+)?)?\s*(?:[AaPp]\.?[Mm]\.?)?\s*(?:Z|UTC|[+-]\d{2}(?::?\d{2})?)?)?"
_YEAR_FIRST = re.compile(rf"(\d{{4}})([-/.])(\d{{1,2}})\2(\d{{1,2}}){_TIME}")
_MONTH = re.compile(r"(\d{4})-(\d{2})")
_DAY_FIRST = re.compile(rf"(\d{{1,2}})\.(\d{{1,2}})\.(\d{{4}}){_TIME}")
_EITHER_FIRST = re.compile(rf"(\d{{1,2}})([-/])(\d{{1,2}})\2(\d{{4}}){_TIME}")


@dataclass(frozen=True)
class ReadDates:
    """The dates that a column's cells are.

    Attributes
    ----------
    dates:
        The date of each distinct cell; ``None`` where they are not all dates.
    of_months:
        Some cells name a month and no day.
    note:
        Why cells that look like dates are not read as such, in a sentence.
    """

    dates: dict[str, date] | None
    of_months: bool = False
    note: str | None = None


def read_dates(cells: Iterable[str]) -> ReadDates:
    """Read distinct cells as dates, all of them or none.

    Read are, each with or without a time of day behind it, which is not looked at (nor is its time zone: a date is
    the one that is written):

    - year, month, day: ``2024-03-05``, ``2024/3/5``, ``2024.03.05``, ``2024-03-05T10:11:12Z``;
    - a month: ``2024-03``;
    - day, month, year with full stops: ``05.03.2024``;
    - day and month in either order, with slashes or hyphens: ``25/03/2024``, ``03-25-2024``, where some cell of the
      column tells the order (a 25 is no month) and none speaks against it.

    Years have four digits. Eight digits without signs between them are a number, and so is a year alone.

    Examples
    --------
    >>> read_dates(["2024-03-05", "06.03.2024 14:00"]).dates["06.03.2024 14:00"]
    datetime.date(2024, 3, 6)
    >>> read_dates(["03/04/2024", "05/06/2024"]).note
    "dates such as '03/04/2024' can be read in two ways; write them as 2024-12-31"
    """
    found: dict[str, date] = {}
    either: dict[str, tuple[int, int, int]] = {}
    others: list[str] = []
    of_months = False
    for cell in cells:
        if match := _EITHER_FIRST.fullmatch(cell):
            either[cell] = int(match[1]), int(match[3]), int(match[4])
            continue
        month = _MONTH.fullmatch(cell)
        read = _date(month[1], month[2], "1") if month else _plain(cell)
        if read is None:
            others.append(cell)
        else:
            found[cell] = read
            of_months = of_months or month is not None
    day_first = _day_first(either.values())
    unclear = list(either) if day_first is None else []
    if day_first is not None:
        for cell, (first, second, year) in either.items():
            day, number = (first, second) if day_first else (second, first)
            read = _date(str(year), str(number), str(day))
            if read is None:
                others.append(cell)
            else:
                found[cell] = read
    if not others and not unclear:
        return ReadDates(found or None, of_months)
    alike = len(found) + len(unclear)
    if alike < max(1.0, WORTH_SAYING * (alike + len(others))):
        return ReadDates(None)
    if others:
        return ReadDates(None, note=f"it holds dates and other values such as {_short(others[0])}")
    return ReadDates(None, note=f"dates such as {_short(unclear[0])} can be read in two ways; write them as 2024-12-31")


def _short(cell: str) -> str:
    return repr(cell if len(cell) <= 40 else f"{cell[:39]}…")


def _plain(cell: str) -> date | None:
    if match := _YEAR_FIRST.fullmatch(cell):
        return _date(match[1], match[3], match[4])
    if match := _DAY_FIRST.fullmatch(cell):
        return _date(match[3], match[2], match[1])
    return None


def _date(year: str, month: str, day: str) -> date | None:
    try:
        return date(int(year), int(month), int(day))
    except ValueError:
        return None


def _day_first(numbers: Iterable[tuple[int, int, int]]) -> bool | None:
    """Whether the day stands before the month; ``None`` where nothing tells, or some say so and some the opposite."""
    first_is_day = second_is_day = False
    for first, second, _ in numbers:
        first_is_day = first_is_day or first > 12
        second_is_day = second_is_day or second > 12
    return None if first_is_day == second_is_day else first_is_day


@dataclass(frozen=True)
class Bins:
    """Spans of time, one after the other without a gap.

    Attributes
    ----------
    unit:
        What a bin is: day, week (from Monday), month, quarter, year, or some years.
    starts:
        The first day of each.
    """

    unit: str
    starts: tuple[date, ...]
    _first: int

    def place(self, day: date) -> int:
        """The bin that a day is in."""
        return _number(day, self.unit) - self._first


def bins_of(days: Sequence[date], *, at_least_months: bool = False) -> Bins:
    """The finest bins of which at most 60 reach from the first day to the last."""
    first, last = min(days), max(days)
    units = ["day", "week", "month", "quarter", "year", *(f"{years} years" for years in YEARS_IN_A_BIN[1:])]
    for unit in units[2 if at_least_months else 0 :]:
        begin, end = _number(first, unit), _number(last, unit)
        if end - begin < MOST_BINS:
            break
    return Bins(unit, tuple(_start(number, unit) for number in range(begin, end + 1)), begin)


def _number(day: date, unit: str) -> int:
    """Bins of a unit are numbered through from the year 1 on."""
    if unit == "day":
        return day.toordinal()
    if unit == "week":
        return (day.toordinal() - 1) // 7  # the first day of the year 1 is a Monday
    if unit == "month":
        return 12 * day.year + day.month - 1
    if unit == "quarter":
        return 4 * day.year + (day.month - 1) // 3
    return day.year // _years(unit)


def _start(number: int, unit: str) -> date:
    if unit == "day":
        return date.fromordinal(number)
    if unit == "week":
        return date.fromordinal(7 * number + 1)
    if unit == "month":
        return date(number // 12, number % 12 + 1, 1)
    if unit == "quarter":
        return date(number // 4, 3 * (number % 4) + 1, 1)
    return date(max(1, number * _years(unit)), 1, 1)


def _years(unit: str) -> int:
    return 1 if unit == "year" else int(unit.removesuffix(" years"))
