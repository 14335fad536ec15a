"""Texts laid end to end: every token in its place, the way back, and the gradients of both."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from coterie.encoders.packing import (
    PackedBatch,
    _Gather,
    _Scatter,
    _TextMeans,
    pack,
    pack_windows,
    pad,
    text_means,
    unpad,
)
from coterie.encoders.window_packing import plan_windows

SOME = settings(max_examples=80, deadline=None, derandomize=True)
LENGTHS = st.lists(st.integers(1, 64), min_size=1, max_size=30)
EDGES = [[1], [64], [64, 64], [5, 5, 5, 5], [32, 32, 7], [1, 64, 1], [20, 44, 64, 3]]


def _table(lengths: list[int]) -> Any:
    """Texts with gaps between them, and ids that occur only once; room for the longest filler behind them."""
    wide = torch.tensor(lengths)
    starts = (wide + 3).cumsum(0) - wide
    return SimpleNamespace(ids=torch.arange(1000, 1000 + int(starts[-1]) + 200).int(), starts=starts, lengths=wide)


def _text(table: Any, row: int) -> Tensor:
    begin = int(table.starts[row])
    return table.ids[begin : begin + int(table.lengths[row])].long()


def _plain(lengths: list[int], rows: list[int]) -> tuple[Any, PackedBatch]:
    table = _table(lengths)
    chosen = [lengths[row] for row in rows]
    longest = max(chosen)
    uniform = len(set(chosen)) == 1
    return table, pack(table, torch.tensor(rows), sum(chosen), longest, uniform=uniform)


def _windowed(lengths: list[int], rows: list[int], step: int = 1) -> tuple[Any, PackedBatch]:
    table = _table(lengths)
    layout = plan_windows(np.array(rows), np.array([lengths[row] for row in rows]), 64, step)
    arrays = (torch.from_numpy(each) for each in (layout.rows, layout.lengths, layout.places))
    return table, pack_windows(table, *arrays, layout.n_windows, layout.width)


def _check(table: Any, packed: PackedBatch, rows: list[int]) -> None:
    """Each wanted text whole and in order, at consecutive places, its positions from 0."""
    assert packed.n_texts == len(rows)
    wanted = range(packed.n_all) if packed.needed is None else packed.needed.tolist()
    for row, place in zip(rows, wanted, strict=True):
        begin, end = packed.offsets[place : place + 2].tolist()
        assert torch.equal(packed.ids[begin:end], _text(table, row))
        assert packed.positions[begin:end].tolist() == list(range(end - begin))
        assert packed.owners[begin:end].eq(place).all()
    # Nothing besides: the texts and fillers cover the row, and a text's tokens occur nowhere else.
    assert packed.offsets.dtype == torch.int32
    assert packed.offsets[0] == 0 and packed.offsets[-1] == len(packed.ids)
    assert torch.equal(packed.owners.bincount(minlength=packed.n_all), packed.offsets.diff().long())
    assert len(set(packed.slots.tolist())) == len(packed.ids)


@SOME
@given(lengths=LENGTHS, data=st.data())
def test_packed_texts_are_whole_and_in_order(lengths: list[int], data: st.DataObject) -> None:
    rows = data.draw(st.lists(st.integers(0, len(lengths) - 1), min_size=1, max_size=40))
    table, packed = _plain(lengths, rows)
    _check(table, packed, rows)
    assert len(packed.ids) == sum(lengths[row] for row in rows)


@SOME
@given(lengths=LENGTHS, step=st.integers(1, 5), data=st.data())
def test_texts_in_windows_are_whole_and_in_order(lengths: list[int], step: int, data: st.DataObject) -> None:
    rows = data.draw(st.lists(st.integers(0, len(lengths) - 1), min_size=1, max_size=40))
    table, packed = _windowed(lengths, rows, step)
    _check(table, packed, rows)
    assert packed.window == packed.longest == 64
    assert len(packed.ids) % (64 * step) == 0
    # Whatever shares a window's owner shares the window: attention may be cut there.
    windows = torch.arange(len(packed.ids)) // 64
    for place in range(packed.n_all):
        assert len(windows[packed.owners == place].unique()) <= 1


@pytest.mark.parametrize("lengths", EDGES)
def test_edges(lengths: list[int]) -> None:
    rows = list(range(len(lengths)))
    for make in (_plain, _windowed):
        table, packed = make(lengths, rows)
        _check(table, packed, rows)


# --- There and back ---


@pytest.mark.parametrize("make", [_plain, _windowed])
@pytest.mark.parametrize("lengths", EDGES)
def test_padded_and_unpadded_are_each_others_way_back(make: Any, lengths: list[int]) -> None:
    _, packed = make(lengths, list(range(len(lengths))))
    rows = torch.randn(len(packed.ids), 2, 3)
    table = pad(rows, packed)
    assert table.shape == (packed.n_all, packed.longest, 2, 3)
    assert torch.equal(unpad(table, packed), rows)
    # Row by row the texts' own tokens, then zeros.
    for place, (begin, end) in enumerate(packed.offsets.unfold(0, 2, 1).tolist()):
        assert torch.equal(table[place, : end - begin], rows[begin:end])
        assert not table[place, end - begin :].any()


@pytest.mark.parametrize("make", [_plain, _windowed])
@pytest.mark.parametrize("lengths", EDGES)
def test_text_means_are_means_of_the_wanted_texts(make: Any, lengths: list[int]) -> None:
    rows = [*range(len(lengths)), 0]
    _, packed = make(lengths, rows)
    states = torch.randn(len(packed.ids), 4)
    found = text_means(states, packed)
    wanted = range(packed.n_all) if packed.needed is None else packed.needed.tolist()
    expected = [states[packed.offsets[place] : packed.offsets[place + 1]].mean(dim=0) for place in wanted]
    torch.testing.assert_close(found, torch.stack(expected))
    assert len(found) == len(rows)


# --- Gradients ---


def _wide(*shape: int) -> Tensor:
    return torch.randn(*shape, dtype=torch.float64, requires_grad=True)


def test_gradients_of_spread_and_collect() -> None:
    places = torch.tensor([6, 0, 3, 2])
    assert torch.autograd.gradcheck(lambda rows: _Scatter.apply(rows, places, 8), _wide(4, 2, 3))
    assert torch.autograd.gradcheck(lambda table: _Gather.apply(table, places), _wide(8, 2, 3))


def test_gradients_of_means_with_texts_of_no_tokens() -> None:
    offsets = torch.tensor([0, 3, 3, 4, 9, 9], dtype=torch.int32)
    owners = torch.repeat_interleave(torch.arange(5), offsets.diff())
    states = _wide(9, 3)
    assert torch.autograd.gradcheck(lambda given: _TextMeans.apply(given, offsets, owners), states)
    means = _TextMeans.apply(states, offsets, owners)
    torch.testing.assert_close(means[3], states[4:9].mean(dim=0))
    assert not means[[1, 4]].any()


@pytest.mark.parametrize("make", [_plain, _windowed])
@pytest.mark.parametrize("lengths", [[3, 5, 2], [4, 4, 4], [1]])
def test_gradients_of_the_whole_way(make: Any, lengths: list[int]) -> None:
    _, packed = make(lengths, list(range(len(lengths))))
    states = _wide(len(packed.ids), 2)
    for function in (
        lambda given: pad(given, packed),
        lambda given: unpad(pad(given, packed).square(), packed),
        lambda given: text_means(given, packed),
    ):
        assert torch.autograd.gradcheck(function, states)
