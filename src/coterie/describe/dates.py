"""Read the cells of a column as dates, and count dates in bins."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date

# Bins of a chart: as many bars as a card has room for.
MAX_BINS = 60
# Share of a column's distinct cells that must look like dates for a note on why they are not read as dates.
MIN_DATE_SHARE = 0.1
# Years per bin, where single years would be too many bins.
YEARS_PER_BIN = (1, 2, 5, 10, 20, 50, 100, 200)

_TIME = r"(?:[T ]\s*\d{1,2}:\d{2}(?::\d{2}(?:[.,]\d+)?)?\s*(?:[AaPp]\.?[Mm]\.?)?\s*(?:Z|UTC|[+-]\d{2}(?::?\d{2})?)?)?"
_YEAR_FIRST = re.compile(rf"(\d{{4}})([-/.])(\d{{1,2}})\2(\d{{1,2}}){_TIME}")
_MONTH = re.compile(r"(\d{4})-(\d{2})")
_DAY_FIRST = re.compile(rf"(\d{{1,2}})\.(\d{{1,2}})\.(\d{{4}}){_TIME}")
_EITHER_FIRST = re.compile(rf"(\d{{1,2}})([-/])(\d{{1,2}})\2(\d{{4}}){_TIME}")


@dataclass(frozen=True)
class ReadDates:
    """The cells of a column, read as dates.

    Attributes
    ----------
    dates:
        The date of each distinct cell; ``None`` where not all cells are dates.
    of_months:
        Whether some cells are months without a day.
    note:
        Why cells that look like dates are not read as dates.
    """

    dates: dict[str, date] | None
    of_months: bool = False
    note: str | None = None


def read_dates(cells: Iterable[str]) -> ReadDates:
    """Read distinct cells as dates, all of them or none.

    A time of day and a time zone may follow the date; both are ignored. These formats are read:

    - year, month, day: ``2024-03-05``, ``2024/3/5``, ``2024.03.05``, ``2024-03-05T10:11:12Z``;
    - a month: ``2024-03``;
    - day, month, year with full stops: ``05.03.2024``;
    - day and month in either order, with slashes or hyphens: ``25/03/2024``, ``03-25-2024``, where some cell of the
      column shows the order (25 is not a month) and no cell contradicts it.

    Years have four digits. Eight digits without separators are a number, and so is a year alone.

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
        read = _date(month[1], month[2], "1") if month else _read_unambiguous(cell)
        if read is None:
            others.append(cell)
        else:
            found[cell] = read
            of_months = of_months or month is not None
    day_first = _is_day_first(either.values())
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
    n_dates = len(found) + len(unclear)
    if n_dates < max(1.0, MIN_DATE_SHARE * (n_dates + len(others))):
        return ReadDates(None)
    if others:
        return ReadDates(None, note=f"it contains dates and other values such as {_short(others[0])}")
    return ReadDates(None, note=f"dates such as {_short(unclear[0])} can be read in two ways; write them as 2024-12-31")


def _short(cell: str) -> str:
    return repr(cell if len(cell) <= 40 else f"{cell[:39]}…")


def _read_unambiguous(cell: str) -> date | None:
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


def _is_day_first(numbers: Iterable[tuple[int, int, int]]) -> bool | None:
    """Return whether the day comes before the month; ``None`` where no date shows it or dates contradict each other."""
    first_is_day = second_is_day = False
    for first, second, _ in numbers:
        first_is_day = first_is_day or first > 12
        second_is_day = second_is_day or second > 12
    return None if first_is_day == second_is_day else first_is_day


@dataclass(frozen=True)
class Bins:
    """Consecutive periods of time without gaps.

    Attributes
    ----------
    unit:
        The length of a bin: day, week (from Monday), month, quarter, year, or several years.
    starts:
        The first day of each bin.
    """

    unit: str
    starts: tuple[date, ...]
    _first: int

    def index_of(self, day: date) -> int:
        """Return the index of the bin that contains a day."""
        return _number(day, self.unit) - self._first


def make_bins(days: Sequence[date], *, at_least_months: bool = False) -> Bins:
    """Return the shortest bins of which at most 60 cover the days."""
    first, last = min(days), max(days)
    units = ["day", "week", "month", "quarter", "year", *(f"{years} years" for years in YEARS_PER_BIN[1:])]
    for unit in units[2 if at_least_months else 0 :]:
        begin, end = _number(first, unit), _number(last, unit)
        if end - begin < MAX_BINS:
            break
    return Bins(unit, tuple(_start(number, unit) for number in range(begin, end + 1)), begin)


def _number(day: date, unit: str) -> int:
    """Return the number of a day's bin, counted from the year 1."""
    if unit == "day":
        return day.toordinal()
    if unit == "week":
        return (day.toordinal() - 1) // 7  # 1 January of the year 1 is a Monday
    if unit == "month":
        return 12 * day.year + day.month - 1
    if unit == "quarter":
        return 4 * day.year + (day.month - 1) // 3
    return day.year // _years(unit)


def _start(number: int, unit: str) -> date:
    """Return the first day of a bin."""
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
