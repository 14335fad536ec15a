"""The Triton kernels of :mod:`coterie.encoders.fused_operations`; importing this needs Triton."""

from __future__ import annotations

from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

# All sizes below were the fastest ones on the GPUs of benchmarks/speed.
# Rows that one program computes together in the forward pass.
ROWS = 4
# Warps of such a program.
WARPS = 4
# Rows that one program computes together in the backward pass.
ROWS_BACK = 2
# Warps of such a program.
WARPS_BACK = 1
# Rows that one program sums for the gradients of biases and norms.
ROWS_EACH = 16
# Columns of one program where columns are independent (bias and GELU).
COLUMNS = 512


@triton.jit
def _residual_norm(
    states, update, bias, weight, shift, out, half, hat, scale, keep_mask, seed, place, rate, eps, n_rows,
    WIDTH: tl.constexpr, BLOCK: tl.constexpr, ROWS: tl.constexpr, DROP: tl.constexpr,
):  # fmt: skip
    rows = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    columns = tl.arange(0, BLOCK)
    inside = (rows[:, None] < n_rows) & (columns[None, :] < WIDTH)
    at = rows[:, None] * WIDTH + columns[None, :]
    b = tl.load(bias + columns, mask=columns < WIDTH, other=0.0)
    added = tl.load(update + at, mask=inside, other=0.0).to(tl.float32) + b[None, :]
    if DROP:
        keep = tl.rand(tl.load(seed) + place, at) >= rate
        added = tl.where(keep, added / (1 - rate), 0.0)
        tl.store(keep_mask + at, keep.to(tl.int8), mask=inside)
    x = tl.load(states + at, mask=inside, other=0.0) + added
    mean = tl.sum(tl.where(inside, x, 0.0), axis=1) / WIDTH
    centred = tl.where(inside, x - mean[:, None], 0.0)
    s = 1.0 / tl.sqrt(tl.sum(centred * centred, axis=1) / WIDTH + eps)
    h = centred * s[:, None]
    w = tl.load(weight + columns, mask=columns < WIDTH, other=0.0)
    c = tl.load(shift + columns, mask=columns < WIDTH, other=0.0)
    y = h * w[None, :] + c[None, :]
    tl.store(out + at, y, mask=inside)
    tl.store(half + at, y.to(half.dtype.element_ty), mask=inside)
    tl.store(hat + at, h, mask=inside)
    tl.store(scale + rows, s, mask=rows < n_rows)


@triton.jit
def _residual_norm_backward(
    wide, narrow, hat, scale, keep_mask, weight, d_states, d_update, sums, rate, n_rows,
    WIDTH: tl.constexpr, BLOCK: tl.constexpr, ROWS: tl.constexpr, EACH: tl.constexpr,
    DROP: tl.constexpr, WIDE: tl.constexpr, NARROW: tl.constexpr,
):  # fmt: skip
    program = tl.program_id(0)
    columns = tl.arange(0, BLOCK)
    w = tl.load(weight + columns, mask=columns < WIDTH, other=0.0)
    d_weight = tl.zeros([BLOCK], dtype=tl.float32)
    d_shift = tl.zeros([BLOCK], dtype=tl.float32)
    d_bias = tl.zeros([BLOCK], dtype=tl.float32)
    for begin in range(0, EACH, ROWS):
        rows = program * EACH + begin + tl.arange(0, ROWS)
        inside = (rows[:, None] < n_rows) & (columns[None, :] < WIDTH)
        at = rows[:, None] * WIDTH + columns[None, :]
        g = tl.zeros([ROWS, BLOCK], dtype=tl.float32)
        if WIDE:
            g += tl.load(wide + at, mask=inside, other=0.0)
        if NARROW:
            g += tl.load(narrow + at, mask=inside, other=0.0).to(tl.float32)
        h = tl.load(hat + at, mask=inside, other=0.0)
        s = tl.load(scale + rows, mask=rows < n_rows, other=0.0)
        d_weight += tl.sum(g * h, axis=0)
        d_shift += tl.sum(g, axis=0)
        gw = g * w[None, :]
        m1 = tl.sum(gw, axis=1) / WIDTH
        m2 = tl.sum(gw * h, axis=1) / WIDTH
        dx = (gw - m1[:, None] - h * m2[:, None]) * s[:, None]
        tl.store(d_states + at, dx, mask=inside)
        if DROP:
            keep = tl.load(keep_mask + at, mask=inside, other=0) > 0
            dx = tl.where(keep, dx / (1 - rate), 0.0)
        dx = tl.where(inside, dx, 0.0)
        d_bias += tl.sum(dx, axis=0)
        tl.store(d_update + at, dx.to(d_update.dtype.element_ty), mask=inside)
    part = program * 3 * WIDTH + columns
    tl.store(sums + part, d_weight, mask=columns < WIDTH)
    tl.store(sums + WIDTH + part, d_shift, mask=columns < WIDTH)
    tl.store(sums + 2 * WIDTH + part, d_bias, mask=columns < WIDTH)


@triton.jit
def _bias_gelu(states, bias, out, n_rows, WIDTH: tl.constexpr, BLOCK: tl.constexpr, ROWS: tl.constexpr):
    rows = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    columns = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    inside = (rows[:, None] < n_rows) & (columns[None, :] < WIDTH)
    at = rows[:, None] * WIDTH + columns[None, :]
    b = tl.load(bias + columns, mask=columns < WIDTH, other=0.0)
    x = tl.load(states + at, mask=inside, other=0.0).to(tl.float32) + b[None, :]
    y = 0.5 * x * (1.0 + tl.erf(x * 0.7071067811865476))
    tl.store(out + at, y.to(out.dtype.element_ty), mask=inside)


@triton.jit
def _bias_gelu_backward(
    gradient, states, bias, d_states, sums, n_rows,
    WIDTH: tl.constexpr, BLOCK: tl.constexpr, ROWS: tl.constexpr, EACH: tl.constexpr,
):  # fmt: skip
    columns = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    b = tl.load(bias + columns, mask=columns < WIDTH, other=0.0)
    d_bias = tl.zeros([BLOCK], dtype=tl.float32)
    for begin in range(0, EACH, ROWS):
        rows = tl.program_id(0) * EACH + begin + tl.arange(0, ROWS)
        inside = (rows[:, None] < n_rows) & (columns[None, :] < WIDTH)
        at = rows[:, None] * WIDTH + columns[None, :]
        x = tl.load(states + at, mask=inside, other=0.0).to(tl.float32) + b[None, :]
        g = tl.load(gradient + at, mask=inside, other=0.0).to(tl.float32)
        below = 0.5 * (1.0 + tl.erf(x * 0.7071067811865476))
        density = 0.3989422804014327 * tl.exp(-0.5 * x * x)
        dx = g * (below + x * density)
        d_bias += tl.sum(dx, axis=0)
        tl.store(d_states + at, dx.to(d_states.dtype.element_ty), mask=inside)
    tl.store(sums + tl.program_id(0) * WIDTH + columns, d_bias, mask=columns < WIDTH)


def residual_norm(
    states: Tensor,
    update: Tensor,
    bias: Tensor,
    weight: Tensor,
    shift: Tensor,
    seed: Tensor,
    place: int,
    rate: float,
    eps: float,
) -> tuple[Tensor, ...]:
    """Return the normalised states in two precisions, and for the backward pass: rows, scales and dropout mask."""
    n_rows, width = states.shape
    states, update = states.contiguous(), update.contiguous()
    out, half, hat = torch.empty_like(states), torch.empty_like(update), torch.empty_like(states)
    scale = states.new_empty(n_rows)
    keep_mask = torch.empty(states.shape if rate else (1,), dtype=torch.int8, device=states.device)
    _residual_norm[(triton.cdiv(n_rows, ROWS),)](
        states, update, bias, weight, shift, out, half, hat, scale, keep_mask, seed, place, rate, eps, n_rows,
        WIDTH=width, BLOCK=triton.next_power_of_2(width), ROWS=ROWS, DROP=rate > 0, num_warps=WARPS,
    )  # fmt: skip
    return out, half, hat, scale, keep_mask


def residual_norm_backward(
    wide: Tensor | None,
    narrow: Tensor | None,
    hat: Tensor,
    scale: Tensor,
    keep_mask: Tensor,
    weight: Tensor,
    rate: float,
    dtype: torch.dtype,
) -> tuple[Tensor, Tensor, Tensor]:
    """Return the gradients of states and update, and those of weight, shift and bias in one table."""
    n_rows, width = hat.shape
    n_programs = triton.cdiv(n_rows, ROWS_EACH)
    d_states, d_update = torch.empty_like(hat), torch.empty_like(hat, dtype=dtype)
    sums = hat.new_empty(n_programs, 3 * width)
    _residual_norm_backward[(n_programs,)](
        hat if wide is None else wide.contiguous(), hat if narrow is None else narrow.contiguous(),
        hat, scale, keep_mask, weight, d_states, d_update, sums, rate, n_rows,
        WIDTH=width, BLOCK=triton.next_power_of_2(width), ROWS=ROWS_BACK, EACH=ROWS_EACH,
        DROP=rate > 0, WIDE=wide is not None, NARROW=narrow is not None, num_warps=WARPS_BACK,
    )  # fmt: skip
    return d_states, d_update, _sum_rows(sums).view(3, width)


def bias_gelu(states: Tensor, bias: Tensor) -> Tensor:
    n_rows, width = states.shape
    states = states.contiguous()
    out = torch.empty_like(states)
    grid: Any = (triton.cdiv(n_rows, ROWS), triton.cdiv(width, COLUMNS))
    _bias_gelu[grid](states, bias, out, n_rows, WIDTH=width, BLOCK=COLUMNS, ROWS=ROWS, num_warps=WARPS)
    return out


def bias_gelu_backward(gradient: Tensor, states: Tensor, bias: Tensor) -> tuple[Tensor, Tensor]:
    n_rows, width = states.shape
    n_programs = triton.cdiv(n_rows, ROWS_EACH)
    d_states, sums = torch.empty_like(states), bias.new_empty(n_programs, width)
    grid: Any = (n_programs, triton.cdiv(width, COLUMNS))
    _bias_gelu_backward[grid](
        gradient.contiguous(), states, bias, d_states, sums, n_rows,
        WIDTH=width, BLOCK=COLUMNS, ROWS=ROWS_BACK, EACH=ROWS_EACH, num_warps=WARPS_BACK,
    )  # fmt: skip
    return d_states, _sum_rows(sums)


def _sum_rows(sums: Tensor) -> Tensor:
    """Sum over the first dimension as a matrix product: faster for a few hundred rows, and as exact."""
    return (sums.new_ones(1, len(sums)) @ sums)[0]
