"""Texts laid end to end instead of padded to the longest, and what is needed to go there and back."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import torch
from torch import Tensor


class TokenTable(Protocol):
    """Tokens of many texts on a device: ``ids[starts[i] : starts[i] + lengths[i]]`` are text ``i``'s."""

    ids: Tensor
    starts: Tensor
    lengths: Tensor


@dataclass(frozen=True)
class PackedBatch:
    """Tokens of some texts in one row, text after text.

    Attributes
    ----------
    ids, positions, owners:
        For every token: its id, its place in its text, which text it belongs to.
    offsets:
        Where each text begins, and the end of the last one (int32).
    longest:
        No text has more tokens.
    uniform:
        Whether all texts have exactly ``longest`` tokens.
    wanted:
        Which of the texts are wanted, where others only fill the row; ``None`` for all.
    window:
        No text reaches over a multiple of this; 0 for no such promise.
    """

    ids: Tensor
    positions: Tensor
    owners: Tensor
    offsets: Tensor
    longest: int
    uniform: bool = False
    wanted: Tensor | None = None
    window: int = 0

    @property
    def n_all(self) -> int:
        """Texts, those that only fill the row included."""
        return len(self.offsets) - 1

    @property
    def n_texts(self) -> int:
        return self.n_all if self.wanted is None else len(self.wanted)

    def chosen(self, by_text: Tensor) -> Tensor:
        """The rows of the wanted texts."""
        return by_text if self.wanted is None else by_text.index_select(0, self.wanted)

    @property
    def slots(self) -> Tensor:
        """Where each token stands in a table of ``n_all x longest``."""
        return self.owners * self.longest + self.positions


def pack(tokens: TokenTable, rows: Tensor, size: int, longest: int, *, uniform: bool = False) -> PackedBatch:
    """Lay the texts ``rows``, ``size`` tokens in all, end to end, without waiting for the device."""
    return PackedBatch(*_end_to_end(tokens, rows, tokens.lengths[rows], size), longest, uniform)


def pack_windows(
    tokens: TokenTable, rows: Tensor, lengths: Tensor, wanted: Tensor, n_windows: int, width: int
) -> PackedBatch:
    """The same for a :class:`~coterie.encoders.window_packing.WindowPlan` whose arrays are on the device."""
    whole = _end_to_end(tokens, rows, lengths, n_windows * width)
    return PackedBatch(*whole, width, wanted=wanted, window=width)


def _end_to_end(tokens: TokenTable, rows: Tensor, lengths: Tensor, size: int) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Ids, positions, owners and offsets."""
    device = lengths.device
    ends = lengths.cumsum(0)
    owners = torch.repeat_interleave(torch.arange(len(lengths), device=device), lengths, output_size=size)
    positions = torch.arange(size, device=device) - (ends - lengths)[owners]
    ids = tokens.ids[tokens.starts[rows][owners] + positions].long()
    return ids, positions, owners, torch.cat([ends.new_zeros(1), ends]).int()


class _Spread(torch.autograd.Function):
    """Rows into the given, distinct places of a larger table of zeros."""

    @staticmethod
    def forward(ctx: Any, rows: Tensor, places: Tensor, size: int) -> Tensor:
        ctx.save_for_backward(places)
        return rows.new_zeros(size, *rows.shape[1:]).index_copy_(0, places, rows)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None, None]:
        (places,) = ctx.saved_tensors
        return gradient.index_select(0, places), None, None


class _Collect(torch.autograd.Function):
    """The rows at the given, distinct places: the way back of :class:`_Spread`."""

    @staticmethod
    def forward(ctx: Any, table: Tensor, places: Tensor) -> Tensor:
        ctx.save_for_backward(places)
        ctx.size = len(table)
        return table.index_select(0, places)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None]:
        (places,) = ctx.saved_tensors
        return gradient.new_zeros(ctx.size, *gradient.shape[1:]).index_copy_(0, places, gradient), None


class _TextMeans(torch.autograd.Function):
    """Mean of each text's tokens. In a fixed order of addition, forwards and backwards: the same sum every time."""

    @staticmethod
    def forward(ctx: Any, states: Tensor, offsets: Tensor, owners: Tensor) -> Tensor:
        lengths = offsets.diff().clamp_min(1).unsqueeze(1).to(states.dtype)
        ctx.save_for_backward(lengths, owners)
        return torch.segment_reduce(states, "sum", offsets=offsets, unsafe=True, initial=0) / lengths

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None, None]:
        lengths, owners = ctx.saved_tensors
        return (gradient / lengths).index_select(0, owners), None, None


def padded(rows: Tensor, packed: PackedBatch) -> Tensor:
    """``n_all x longest`` and whatever a row is, zeros behind the end of each text."""
    if packed.uniform:
        return rows.view(packed.n_all, packed.longest, *rows.shape[1:])
    size = packed.n_all * packed.longest
    spread: Tensor = _Spread.apply(rows, packed.slots, size)
    return spread.view(packed.n_all, packed.longest, *rows.shape[1:])


def unpadded(table: Tensor, packed: PackedBatch) -> Tensor:
    """The way back of :func:`padded`."""
    flat = table.reshape(-1, *table.shape[2:])
    if packed.uniform:
        return flat
    collected: Tensor = _Collect.apply(flat, packed.slots)
    return collected


def text_means(states: Tensor, packed: PackedBatch) -> Tensor:
    """Mean over the tokens of each wanted text."""
    if packed.uniform:
        return packed.chosen(states.view(packed.n_all, packed.longest, -1).mean(dim=1))
    if states.device.type not in {"cpu", "cuda"}:  # others have no such sum
        lengths = packed.offsets.diff().clamp_min(1).unsqueeze(1)
        return packed.chosen(padded(states, packed).sum(dim=1) / lengths)
    means: Tensor = _TextMeans.apply(states, packed.offsets, packed.owners)
    return packed.chosen(means)
