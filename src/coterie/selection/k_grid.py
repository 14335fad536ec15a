"""Numbers of clusters to compare: a range, a geometric grid over it, and a finer grid around the best number."""

from __future__ import annotations

import math
import re

import numpy as np

from coterie.errors import InputError, SettingError

# Fewest distinct texts from which a number of clusters is chosen: fewer do not show how many clusters they form.
FEWEST_TEXTS = 10
# Most clusters if no range is given: people do not read more, and a sample of some thousand texts has too few of each.
MOST_BY_DEFAULT = 200
# Numbers of clusters in the first pass: from 2 to 200, each is about an eighth larger than the one before.
GRID_SIZE = 40
# Most numbers of clusters in the second pass, around the best of the first: it costs a fifth of the first pass.
REFINEMENT_SIZE = 8


def parse_range(text: str) -> tuple[int, int]:
    """Return ``"5-60"`` as 5 and 60."""
    found = re.fullmatch(r"\s*(\d+)\s*[-–:]\s*(\d+)\s*", text)
    if found is None:
        raise SettingError(f"--k-range {text!r} is not of the form A-B, such as --k-range 5-60")
    return int(found[1]), int(found[2])


def resolve_range(k_range: tuple[int, int] | None, n_texts: int, n_sampled: int) -> tuple[int, int]:
    """Return the lowest and the highest number of clusters to compare on ``n_sampled`` of ``n_texts`` distinct texts.

    Without ``k_range``: from 2 to three times the square root of the number of texts, at most 200. The highest number
    is never above half of the sampled texts, because clusters of one text each are always stable.
    """
    if n_sampled < FEWEST_TEXTS:
        raise InputError(
            f"the number of clusters cannot be chosen from {n_sampled} distinct texts (at least {FEWEST_TEXTS} are "
            "needed); give it: -k 2"
        )
    most = n_sampled // 2
    if k_range is None:
        return 2, max(3, min(MOST_BY_DEFAULT, round(3 * math.sqrt(n_texts)), most))
    low, high = k_range
    shown = f"k_range {low}-{high}"
    if low < 2:
        raise SettingError(f"{shown}: the lowest number of clusters is 2")
    if low >= high:
        raise SettingError(f"{shown}: the first number must be below the second")
    if high > most:
        among = f"of {n_texts:,} distinct texts" if n_sampled == n_texts else f"on a sample of {n_sampled:,} texts"
        raise SettingError(f"{shown}: at most {most:,} clusters can be judged {among}")
    return low, high


def geometric_grid(low: int, high: int) -> list[int]:
    """Return numbers from ``low`` to ``high``, about evenly on a logarithmic scale."""
    return [int(k) for k in np.unique(np.geomspace(low, high, GRID_SIZE).round().astype(int))]


def refine_grid(best: int, compared: list[int]) -> list[int]:
    """Return new numbers between the neighbours of ``best`` in the sorted list ``compared``."""
    place = compared.index(best)
    low, high = compared[max(0, place - 1)], compared[min(len(compared) - 1, place + 1)]
    between = [k for k in range(low + 1, high) if k not in compared]
    if len(between) <= REFINEMENT_SIZE:
        return between
    return [between[at] for at in np.linspace(0, len(between) - 1, REFINEMENT_SIZE).round().astype(int)]
