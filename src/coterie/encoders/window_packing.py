"""Plan windows of a fixed width for short texts, so that attention computes few full tiles, not many empty ones."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

# Tokens per tile of the attention kernels: a window has the width of one tile, or of several for longer texts.
TILE = 64


@dataclass(frozen=True)
class WindowPlan:
    """Concatenated texts of which none crosses the end of a window; a filler text fills the rest of each window.

    Attributes
    ----------
    rows, lengths:
        For every text in order, fillers included: its row (0 for a filler) and its number of tokens (0 for a filler of
        a full window).
    places:
        The position in that order of each text that is not a filler.
    n_windows, width:
        All windows together are ``n_windows * width`` tokens long.
    """

    rows: NDArray[np.int64]
    lengths: NDArray[np.int64]
    places: NDArray[np.int64]
    n_windows: int
    width: int


def window_width(longest: int) -> int:
    """Return the narrowest window, in tokens, that holds every text."""
    return -(-longest // TILE) * TILE


def plan_windows(rows: NDArray[np.int64], lengths: NDArray[np.int64], width: int, step: int = 1) -> WindowPlan:
    """Place the texts ``rows``, of ``lengths`` tokens, in windows, whose number is a multiple of ``step``."""
    begins, n_needed = _fill_windows(lengths, width)
    n_windows = -(-n_needed // step) * step
    used = np.bincount(begins // width, weights=lengths, minlength=n_windows).astype(np.int64)
    rests = width - used
    everything = np.concatenate([begins, np.arange(n_windows) * width + used])
    order = np.argsort(everything, kind="stable")
    places = np.empty_like(order)
    places[order] = np.arange(len(order))
    return WindowPlan(
        np.concatenate([rows, np.zeros(n_windows, dtype=np.int64)])[order],
        np.concatenate([lengths, rests])[order],
        places[: len(rows)],
        n_windows,
        width,
    )


def _fill_windows(lengths: NDArray[np.int64], width: int) -> tuple[NDArray[np.int64], int]:
    """Return where each text begins, and the number of windows.

    Each window takes the longest remaining text that fits, until none fits. The same filling is repeated while there
    are texts for it, so the time depends on the number of different lengths, not on the number of texts.
    """
    by_length = np.argsort(-lengths, kind="stable")
    left = np.bincount(lengths, minlength=width + 1).tolist()
    # Texts of one length are consecutive in `by_length`, the longest first.
    taken = np.concatenate([np.cumsum(left[::-1])[::-1][1:], [0]]).tolist()
    begins = np.zeros_like(lengths)  # where a text without tokens stays
    n_windows, longest = 0, width
    while True:
        while longest and not left[longest]:
            longest -= 1
        if not longest:
            return begins, n_windows
        filling: list[int] = []
        uses: dict[int, int] = {}
        room, length = width, longest
        while room:
            length = min(length, room)
            while length and left[length] <= uses.get(length, 0):
                length -= 1
            if not length:
                break
            filling.append(length)
            uses[length] = uses.get(length, 0) + 1
            room -= length
        times = min(left[length] // count for length, count in uses.items())
        starts = (n_windows + np.arange(times)) * width
        for length in filling:
            begins[by_length[taken[length] : taken[length] + times]] = starts
            taken[length] += times
            left[length] -= times
            starts = starts + length
        n_windows += times
