"""Numbers as people read them: the same on every page and in every sentence."""

from __future__ import annotations


def percent(share: float, digits: int = 0) -> str:
    """As the page's script writes it.

    Examples
    --------
    >>> percent(0.574), percent(0.574, 1)
    ('57 %', '57.4 %')
    """
    return f"{100 * share:.{digits}f} %"
