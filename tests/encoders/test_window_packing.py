"""Texts gathered into windows: none is lost, none is cut, and little room is left over."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coterie.encoders.window_packing import TILE, WindowPlan, plan_windows, window_width

SOME = settings(max_examples=120, deadline=None, derandomize=True)


def realistic_lengths(n: int, seed: int) -> np.ndarray:
    """Short texts with a few long ones among them."""
    generator = np.random.default_rng(seed)
    return np.clip(generator.normal(14, 5, n).round(), 3, 64).astype(np.int64)


def _check(layout: WindowPlan, rows: np.ndarray, lengths: np.ndarray, step: int) -> None:
    """What every layout promises."""
    n = len(rows)
    assert layout.n_windows % step == 0
    assert layout.lengths.sum() == layout.n_windows * layout.width
    assert len(layout.rows) == len(layout.lengths) == n + layout.n_windows
    # Every text once, as it was asked for.
    assert len(set(layout.places.tolist())) == n
    assert np.array_equal(layout.rows[layout.places], rows)
    assert np.array_equal(layout.lengths[layout.places], lengths)
    # None across the end of a window.
    ends = np.cumsum(layout.lengths)
    begins = ends - layout.lengths
    window = begins[layout.places] // layout.width
    assert np.array_equal(window, (ends[layout.places] - 1) // layout.width)
    # What the texts leave of a window is one filler at its end; where they leave nothing it has no tokens.
    fillers = np.setdiff1d(np.arange(n + layout.n_windows), layout.places)
    assert not layout.rows[fillers].any()
    used = np.bincount(window, weights=lengths, minlength=layout.n_windows).astype(np.int64)
    rests = {int(end): int(rest) for end, rest in zip(ends[fillers], layout.lengths[fillers], strict=True) if rest}
    assert rests == {(i + 1) * layout.width: layout.width - each for i, each in enumerate(used) if each < layout.width}


@SOME
@given(data=st.data(), width=st.sampled_from([64, 128]), step=st.integers(1, 9))
def test_every_text_is_there_once_and_whole(data: st.DataObject, width: int, step: int) -> None:
    lengths = np.array(data.draw(st.lists(st.integers(1, width), min_size=1, max_size=80)), dtype=np.int64)
    rows = np.array(data.draw(st.lists(st.integers(0, 500), min_size=len(lengths), max_size=len(lengths))))
    layout = plan_windows(rows, lengths, width, step)
    _check(layout, rows, lengths, step)
    # As many windows as are needed, rounded up to a step and no further.
    assert layout.n_windows == -(-plan_windows(rows, lengths, width).n_windows // step) * step


@pytest.mark.parametrize(
    ("lengths", "n_windows"),
    [
        ([1], 1),
        ([64], 1),
        ([64, 64, 64], 3),
        ([32, 32], 1),
        ([32] * 7, 4),
        ([33] * 5, 5),
        ([3] * 100, 5),  # 21 in a window
        ([63, 1, 62, 2, 61, 3], 3),
        ([40, 30, 24, 34], 2),
        ([40, 23, 1], 1),
    ],
)
def test_windows_are_filled_as_far_as_the_lengths_allow(lengths: list[int], n_windows: int) -> None:
    given_lengths, rows = np.array(lengths), np.arange(len(lengths)) + 7
    for step, expected in ((1, n_windows), (4, -(-n_windows // 4) * 4)):
        layout = plan_windows(rows, given_lengths, 64, step)
        _check(layout, rows, given_lengths, step)
        assert layout.n_windows == expected


def test_a_window_without_a_rest_has_a_filler_without_tokens() -> None:
    layout = plan_windows(np.array([5, 6, 7]), np.array([20, 44, 64]), 64)
    fillers = np.setdiff1d(np.arange(5), layout.places)
    assert layout.lengths[fillers].tolist() == [0, 0]


@pytest.mark.parametrize("seed", range(5))
def test_little_is_wasted_on_short_texts(seed: int) -> None:
    lengths = realistic_lengths(800, seed)
    layout = plan_windows(np.arange(800), lengths, 64)
    assert 1 <= layout.n_windows * 64 / lengths.sum() < 1.03


def test_a_layout_depends_on_the_lengths_alone() -> None:
    lengths = realistic_lengths(200, 0)
    first, second = (plan_windows(rows, lengths, 64, 2) for rows in (np.arange(200), np.arange(200)[::-1] * 3))
    assert np.array_equal(first.places, second.places)
    assert np.array_equal(first.lengths, second.lengths)


@pytest.mark.parametrize(("longest", "width"), [(1, 1), (TILE - 1, 1), (TILE, 1), (TILE + 1, 2), (2 * TILE, 2)])
def test_a_window_is_as_many_tiles_as_the_longest_text_needs(longest: int, width: int) -> None:
    assert window_width(longest) == width * TILE
