"""Pack texts end to end instead of padding them to the longest, and unpack the results."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import torch
from torch import Tensor


class TokenTable(Protocol):
    """Tokens of many texts on a device: those of text ``i`` are ``ids[starts[i] : starts[i] + lengths[i]]``."""

    ids: Tensor
    starts: Tensor
    lengths: Tensor


@dataclass(frozen=True)
class PackedBatch:
    """Tokens of some texts in one row, one text after the other.

    Attributes
    ----------
    ids, positions, owners:
        For every token: its id, its position in its text, and the number of its text.
    offsets:
        The start of each text, and the end of the last one (int32).
    longest:
        The most tokens that a text may have.
    uniform:
        Whether all texts have exactly ``longest`` tokens.
    needed:
        The positions of the texts whose result is needed, where there are fillers between them; ``None`` for all.
    window:
        The width of a window in tokens: no text crosses a multiple of it; 0 without windows.
    """

    ids: Tensor
    positions: Tensor
    owners: Tensor
    offsets: Tensor
    longest: int
    uniform: bool = False
    needed: Tensor | None = None
    window: int = 0

    @property
    def n_all(self) -> int:
        """The number of texts, fillers included."""
        return len(self.offsets) - 1

    @property
    def n_texts(self) -> int:
        return self.n_all if self.needed is None else len(self.needed)

    def select_needed(self, by_text: Tensor) -> Tensor:
        """Return the rows of the texts whose result is needed, from one row per text."""
        return by_text if self.needed is None else by_text.index_select(0, self.needed)

    @property
    def slots(self) -> Tensor:
        """The position of each token in a flat table of ``n_all x longest``."""
        return self.owners * self.longest + self.positions


def pack(tokens: TokenTable, rows: Tensor, size: int, longest: int, *, uniform: bool = False) -> PackedBatch:
    """Pack the texts ``rows``, ``size`` tokens in total, without waiting for the device."""
    return PackedBatch(*_concatenate_texts(tokens, rows, tokens.lengths[rows], size), longest, uniform)


def pack_windows(
    tokens: TokenTable, rows: Tensor, lengths: Tensor, needed: Tensor, n_windows: int, width: int
) -> PackedBatch:
    """Pack texts by a :class:`~coterie.encoders.window_packing.WindowPlan` whose arrays are on the device."""
    whole = _concatenate_texts(tokens, rows, lengths, n_windows * width)
    return PackedBatch(*whole, width, needed=needed, window=width)


def _concatenate_texts(
    tokens: TokenTable, rows: Tensor, lengths: Tensor, size: int
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Return ids, positions, owners and offsets."""
    device = lengths.device
    ends = lengths.cumsum(0)
    owners = torch.repeat_interleave(torch.arange(len(lengths), device=device), lengths, output_size=size)
    positions = torch.arange(size, device=device) - (ends - lengths)[owners]
    ids = tokens.ids[tokens.starts[rows][owners] + positions].long()
    return ids, positions, owners, torch.cat([ends.new_zeros(1), ends]).int()


class _Scatter(torch.autograd.Function):
    """Copy rows into distinct places of a larger table of zeros."""

    @staticmethod
    def forward(ctx: Any, rows: Tensor, places: Tensor, size: int) -> Tensor:
        ctx.save_for_backward(places)
        return rows.new_zeros(size, *rows.shape[1:]).index_copy_(0, places, rows)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None, None]:
        (places,) = ctx.saved_tensors
        return gradient.index_select(0, places), None, None


class _Gather(torch.autograd.Function):
    """Return the rows at distinct places: the inverse of :class:`_Scatter`."""

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
    """Compute the mean over each text's tokens, adding in a fixed order: results are the same every time."""

    @staticmethod
    def forward(ctx: Any, states: Tensor, offsets: Tensor, owners: Tensor) -> Tensor:
        lengths = offsets.diff().clamp_min(1).unsqueeze(1).to(states.dtype)
        ctx.save_for_backward(lengths, owners)
        return torch.segment_reduce(states, "sum", offsets=offsets, unsafe=True, initial=0) / lengths

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None, None]:
        lengths, owners = ctx.saved_tensors
        return (gradient / lengths).index_select(0, owners), None, None


def pad(rows: Tensor, packed: PackedBatch) -> Tensor:
    """Return the tokens of packed texts as ``n_all x longest x ...``, with zeros after the end of each text."""
    if packed.uniform:
        return rows.view(packed.n_all, packed.longest, *rows.shape[1:])
    size = packed.n_all * packed.longest
    padded: Tensor = _Scatter.apply(rows, packed.slots, size)
    return padded.view(packed.n_all, packed.longest, *rows.shape[1:])


def unpad(table: Tensor, packed: PackedBatch) -> Tensor:
    """Return the tokens of a padded table as packed rows: the inverse of :func:`pad`."""
    flat = table.reshape(-1, *table.shape[2:])
    if packed.uniform:
        return flat
    collected: Tensor = _Gather.apply(flat, packed.slots)
    return collected


def text_means(states: Tensor, packed: PackedBatch) -> Tensor:
    """Return the mean over the tokens of each text whose result is needed."""
    if packed.uniform:
        return packed.select_needed(states.view(packed.n_all, packed.longest, -1).mean(dim=1))
    if states.device.type not in {"cpu", "cuda"}:  # other devices have no segment_reduce
        lengths = packed.offsets.diff().clamp_min(1).unsqueeze(1)
        return packed.select_needed(pad(states, packed).sum(dim=1) / lengths)
    means: Tensor = _TextMeans.apply(states, packed.offsets, packed.owners)
    return packed.select_needed(means)
