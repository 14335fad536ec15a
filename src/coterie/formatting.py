"""Format numbers for users: the same way on every page and in every message."""

from __future__ import annotations


def percent(share: float, digits: int = 0) -> str:
    """Format a share as a percentage, as the report's script does.

    Examples
    --------
    >>> percent(0.574), percent(0.574, 1)
    ('57 %', '57.4 %')
    """
    return f"{100 * share:.{digits}f} %"


def duration(seconds: float) -> str:
    """Format a duration for a message: in seconds up to 90, then in minutes, then in hours and minutes.

    Examples
    --------
    >>> duration(40), duration(180), duration(9_000)
    ('40 s', '3 min', '2 h 30 min')
    """
    if seconds < 90:
        return f"{max(1, round(seconds))} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 90 else f"{minutes // 60} h {minutes % 60} min"


def counted(number: int, noun: str) -> str:
    """Format a number with its noun, in the plural unless it is one.

    Examples
    --------
    >>> counted(1, "edit"), counted(2_000, "row")
    ('1 edit', '2,000 rows')
    """
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"
