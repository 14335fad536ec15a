"""Which numbers of clusters are tried: a range, a geometric grid in it, and the numbers around the best."""

from __future__ import annotations

import math
import re

import numpy as np

from coterie.errors import InputError, SettingError

# Fewer distinct texts say nothing about how many clusters they are.
FEWEST_TEXTS = 10
# Beyond, people read no longer, and a sample of some thousand texts has too few of each cluster.
MOST_BY_DEFAULT = 200
# First look: so many candidates from the lowest to the highest, each the same factor above the one before.
GRID = 24
# Second look: so many more, around the best.
REFINED = 8


def parse_range(given: str) -> tuple[int, int]:
    """``"5-60"`` as 5 and 60."""
    found = re.fullmatch(r"\s*(\d+)\s*[-–:]\s*(\d+)\s*", given)
    if found is None:
        raise SettingError(f"--k-range {given!r} is not of the form A-B, such as --k-range 5-60")
    return int(found[1]), int(found[2])


def range_of(given: tuple[int, int] | None, n_texts: int, looked_at: int) -> tuple[int, int]:
    """The lowest and the highest number tried among ``looked_at`` of ``n_texts`` distinct texts.

    Unless ``given``: from 2 to three times the square root of the texts, at most 200. Half the texts looked at is the
    limit in any case: clusters of one text each are always stable.
    """
    if looked_at < FEWEST_TEXTS:
        raise InputError(
            f"how many clusters cannot be told from {looked_at} distinct texts ({FEWEST_TEXTS} at least are needed); "
            "say it: -k 2"
        )
    most = looked_at // 2
    if given is None:
        return 2, max(3, min(MOST_BY_DEFAULT, round(3 * math.sqrt(n_texts)), most))
    low, high = given
    shown = f"k_range {low}-{high}"
    if low < 2:
        raise SettingError(f"{shown}: the lowest number of clusters is 2")
    if low >= high:
        raise SettingError(f"{shown}: the first number must be below the second")
    if high > most:
        among = f"of {n_texts:,} distinct texts" if looked_at == n_texts else f"on a sample of {looked_at:,} texts"
        raise SettingError(f"{shown}: at most {most:,} clusters can be judged {among}")
    return low, high


def grid(low: int, high: int) -> list[int]:
    """Numbers from ``low`` to ``high``, about evenly on a logarithmic scale."""
    return [int(k) for k in np.unique(np.geomspace(low, high, GRID).round().astype(int))]


def around(best: int, tried: list[int]) -> list[int]:
    """Numbers not tried yet, between the neighbours of ``best``."""
    place = tried.index(best)
    low, high = tried[max(0, place - 1)], tried[min(len(tried) - 1, place + 1)]
    between = [k for k in range(low + 1, high) if k not in tried]
    if len(between) <= REFINED:
        return between
    return [between[at] for at in np.linspace(0, len(between) - 1, REFINED).round().astype(int)]
