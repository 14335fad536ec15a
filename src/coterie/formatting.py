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
