"""Attention within each of many packed texts, by the fastest kernel of the device."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from coterie.encoders.packing import PackedBatch, pad, unpad

# Most tokens of the longest text for which matrix products are faster than torch's attention on a CPU.
LONGEST_FOR_PRODUCTS = 64


def attend(mixed: Tensor, packed: PackedBatch, dropout: float, bias: Tensor | None) -> Tensor:
    """Return the attended values of packed texts.

    Parameters
    ----------
    mixed:
        Queries, keys and values: tokens x 3 x heads x size.
    packed:
        Which token belongs to which text.
    dropout:
        The rate of dropout of the attention weights.
    bias:
        The result of :func:`window_bias` for ``packed``.

    Returns
    -------
    Tokens x (heads * size).
    """
    tokens, _, heads, size = mixed.shape
    if _has_kernel(mixed):
        windows = mixed.view(-1, packed.window or tokens, 3, heads, size)
        offsets = None if packed.window else packed.offsets
        attended: Tensor = _CudaAttention.apply(windows, bias, offsets, packed.longest, dropout)
        return attended.reshape(tokens, heads * size)
    if bias is not None:
        query, key, value = mixed.view(-1, packed.window, 3, heads, size).permute(2, 0, 3, 1, 4)
        attended = functional.scaled_dot_product_attention(query, key, value, attn_mask=bias, dropout_p=dropout)
        return attended.transpose(1, 2).reshape(tokens, heads * size)
    query, key, value = pad(mixed, packed).permute(2, 0, 3, 1, 4)
    mask = None
    if not packed.uniform:
        lengths = packed.offsets.diff().unsqueeze(1)
        mask = (torch.arange(packed.longest, device=mixed.device) < lengths)[:, None, None, :]
    if packed.longest <= LONGEST_FOR_PRODUCTS and not dropout:
        attended = _attend_by_products(query, key, value, mask)
    else:
        attended = functional.scaled_dot_product_attention(query, key, value, attn_mask=mask, dropout_p=dropout)
    return unpad(attended.transpose(1, 2), packed).reshape(tokens, heads * size)


def _attend_by_products(query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None) -> Tensor:
    """Return attention by matrix products: on a CPU, for short texts, they are faster than a kernel for long texts."""
    scores = query * query.shape[-1] ** -0.5 @ key.transpose(-1, -2)
    if mask is not None:
        scores = scores.masked_fill(~mask, float("-inf"))
    return scores.softmax(dim=-1, dtype=torch.float32).to(value.dtype) @ value


def _has_kernel(mixed: Tensor) -> bool:
    """Return whether :class:`_CudaAttention` can be used: GPUs before Ampere support it in float32 only."""
    if not mixed.is_cuda:
        return False
    return mixed.dtype == torch.float32 or torch.cuda.get_device_capability(mixed.device) >= (8, 0)


def window_bias(packed: PackedBatch, dtype: torch.dtype) -> Tensor | None:
    """Return 0 for two tokens of one text in a window, minus infinity otherwise; ``None`` without windows."""
    if not packed.window:
        return None
    owners = packed.owners.view(-1, 1, packed.window)
    apart = owners.unsqueeze(-1) != owners.unsqueeze(-2)
    return torch.zeros(apart.shape, dtype=dtype, device=apart.device).masked_fill_(apart, float("-inf"))


class _CudaAttention(torch.autograd.Function):
    """Call torch's memory-efficient attention kernel below its public function, for two reasons.

    It accepts concatenated texts of any length (``offsets``). It can write the three gradients into one block of
    memory, which the matrix product before it needs; the public function would copy them.
    """

    @staticmethod
    def forward(
        ctx: Any, mixed: Tensor, bias: Tensor | None, offsets: Tensor | None, longest: int, dropout: float
    ) -> Tensor:
        query, key, value = mixed.unbind(2)
        if bias is not None:
            bias = bias.expand(-1, mixed.shape[3], -1, -1)
        out, *random, longest_query, longest_key = torch.ops.aten._efficient_attention_forward(
            query, key, value, bias, offsets, offsets, longest, longest, dropout, 0, any(ctx.needs_input_grad)
        )
        ctx.save_for_backward(mixed, bias, offsets, out, *random)
        ctx.longest, ctx.dropout = (longest_query, longest_key), dropout
        return out

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None, None, None, None]:
        mixed, bias, offsets, out, sums, seed, offset = ctx.saved_tensors
        query, key, value = mixed.unbind(2)
        first, *_ = torch.ops.aten._efficient_attention_backward(
            gradient.contiguous(), query, key, value, bias, out, offsets, offsets, *ctx.longest, sums, ctx.dropout,
            seed, offset, 0, False, shared_storage_dqdkdv=True,
        )  # fmt: skip
        # The gradient of the queries is the first third of the memory that holds all three.
        return first.as_strided(mixed.shape, _strides(mixed.shape), first.storage_offset()), None, None, None, None


def _strides(shape: torch.Size) -> tuple[int, ...]:
    """Return the strides of a contiguous tensor."""
    strides = [1]
    for size in reversed(shape[1:]):
        strides.append(strides[-1] * size)
    return tuple(reversed(strides))
