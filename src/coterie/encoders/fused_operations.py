"""Fused kernels for training on CUDA: bias, dropout, residual and norm in one; bias and GELU in one.

Between its matrix products a layer adds a bias, applies dropout, adds the residual and normalises. Single operations
would read the same memory a dozen times. The kernels are written in Triton, which is installed with torch for CUDA.
Where it cannot run (no compiler, an old GPU), plain operations compute the same.
"""

from __future__ import annotations

import functools
import logging
from typing import Any

import torch
from torch import Tensor

logger = logging.getLogger(__name__)

# Distance between the seeds of two steps: larger than the number of dropouts in a model, so each has its own seed.
SEED_STRIDE = 1024


class FusedOperations:
    """Run the fused kernels, and seed their dropout.

    Parameters
    ----------
    seed:
        One whole number on the device. :meth:`next_step` advances it there, so that a step replayed from a CUDA graph
        gets new random numbers.
    """

    def __init__(self, seed: Tensor) -> None:
        self._seed = seed
        self._place = 0

    def next_step(self) -> None:
        self._seed.add_(SEED_STRIDE)
        self._place = 0

    def residual_norm(
        self, states: Tensor, update: Tensor, bias: Tensor, norm: tuple[Tensor, Tensor], rate: float, eps: float
    ) -> tuple[Tensor, Tensor]:
        """Return ``norm(states + dropout(update + bias))`` in float32, and the same in the precision of ``update``."""
        self._place += 1
        found: tuple[Tensor, Tensor] = _ResidualNorm.apply(
            states, update, bias, *norm, self._seed, self._place, rate, eps
        )
        return found

    def bias_gelu(self, states: Tensor, bias: Tensor) -> Tensor:
        """Return ``gelu(states + bias)``."""
        found: Tensor = _BiasGelu.apply(states, bias)
        return found


class _ResidualNorm(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        states: Tensor,
        update: Tensor,
        bias: Tensor,
        weight: Tensor,
        shift: Tensor,
        seed: Tensor,
        place: int,
        rate: float,
        eps: float,
    ) -> tuple[Tensor, Tensor]:
        from coterie.encoders import triton_kernels

        ctx.set_materialize_grads(False)
        out, half, *rest = triton_kernels.residual_norm(states, update, bias, weight, shift, seed, place, rate, eps)
        ctx.save_for_backward(*rest, weight)
        ctx.rate, ctx.dtype = rate, update.dtype
        return out, half

    @staticmethod
    def backward(ctx: Any, wide: Tensor | None, narrow: Tensor | None) -> tuple[Tensor | None, ...]:
        from coterie.encoders import triton_kernels

        hat, scale, keep_mask, weight = ctx.saved_tensors
        d_states, d_update, sums = triton_kernels.residual_norm_backward(
            wide, narrow, hat, scale, keep_mask, weight, ctx.rate, ctx.dtype
        )
        return d_states, d_update, sums[2], sums[0], sums[1], None, None, None, None


class _BiasGelu(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, states: Tensor, bias: Tensor) -> Tensor:
        from coterie.encoders import triton_kernels

        ctx.save_for_backward(states, bias)
        return triton_kernels.bias_gelu(states, bias)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, Tensor]:
        from coterie.encoders import triton_kernels

        states, bias = ctx.saved_tensors
        return triton_kernels.bias_gelu_backward(gradient, states, bias)


@functools.cache
def can_fuse() -> bool:
    """Return whether the kernels compile and agree with plain operations on the current GPU."""
    if not torch.cuda.is_available():
        return False
    try:
        _check_against_plain()
    except Exception as error:  # compilers raise exceptions of many types
        logger.info("no fused kernels: %s", error)
        return False
    return True


def _check_against_plain() -> None:
    """Raise if values or gradients differ from those of plain operations on a few numbers, without dropout."""
    from torch.nn import functional

    generator = torch.Generator().manual_seed(0)
    rows, columns = torch.randn(3, 37, 48, generator=generator).cuda(), torch.randn(3, 48, generator=generator).cuda()
    target = rows[2]
    with torch.enable_grad():
        inputs = [each.clone().requires_grad_() for each in (rows[0], rows[1].bfloat16(), *columns)]
        fused = FusedOperations(torch.zeros((), dtype=torch.int64, device="cuda"))

        def gradients(value: Tensor) -> list[Tensor]:
            return list(torch.autograd.grad((value.float() * target).sum(), inputs))

        wide, narrow = fused.residual_norm(inputs[0], inputs[1], inputs[2], (inputs[3], inputs[4]), 0.0, 1e-12)
        found = [wide, *gradients(fused.bias_gelu(narrow, inputs[2]) + wide)]
        plain = functional.layer_norm(inputs[0] + inputs[1] + inputs[2], (48,), inputs[3], inputs[4], 1e-12)
        expected = [plain, *gradients(functional.gelu(plain.bfloat16() + inputs[2]) + plain)]
    for ours, theirs in zip(found, expected, strict=True):
        error = float((ours - theirs).detach().float().norm() / theirs.detach().float().norm())
        if not error < 2e-2:  # bfloat16 has three digits
            raise RuntimeError(f"the fused kernels differ from plain operations by {error:.1%}")
