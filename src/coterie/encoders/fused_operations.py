"""A layer's sums, dropout, norm and activation in one kernel each, for training on CUDA.

Between its matrix products a layer adds a bias, drops, adds the residual and normalises: a dozen passes over the same
memory when done one by one. The kernels are written in Triton, which comes with torch for CUDA; where it cannot run
(no compiler, an old card) the plain operations do the same.
"""

from __future__ import annotations

import functools
import logging
from typing import Any

import torch
from torch import Tensor

logger = logging.getLogger(__name__)

# Seeds of two steps lie this far apart; in between, every place in the model has its own.
SEED_STRIDE = 1024


class FusedOperations:
    """The kernels, and the random numbers of their dropout.

    Parameters
    ----------
    seed:
        One whole number on the device. :meth:`next_step` moves it on, there, so that a recorded step draws anew.
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
        """``norm(states + dropout(update + bias))`` in float32, and the same in the precision of ``update``."""
        self._place += 1
        found: tuple[Tensor, Tensor] = _ResidualNorm.apply(
            states, update, bias, *norm, self._seed, self._place, rate, eps
        )
        return found

    def bias_gelu(self, states: Tensor, bias: Tensor) -> Tensor:
        """``gelu(states + bias)``."""
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

        hat, scale, kept, weight = ctx.saved_tensors
        d_states, d_update, sums = triton_kernels.residual_norm_backward(
            wide, narrow, hat, scale, kept, weight, ctx.rate, ctx.dtype
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
    """Whether the kernels compile and agree with plain operations on the current GPU."""
    if not torch.cuda.is_available():
        return False
    try:
        _check_against_plain()
    except Exception as error:  # whatever a compiler raises
        logger.info("no fused kernels: %s", error)
        return False
    return True


def _check_against_plain() -> None:
    """Values and gradients on a few numbers, without dropout."""
    from torch.nn import functional

    generator = torch.Generator().manual_seed(0)
    rows, columns = torch.randn(3, 37, 48, generator=generator).cuda(), torch.randn(3, 48, generator=generator).cuda()
    target = rows[2]
    with torch.enable_grad():
        given = [each.clone().requires_grad_() for each in (rows[0], rows[1].bfloat16(), *columns)]
        fused = FusedOperations(torch.zeros((), dtype=torch.int64, device="cuda"))

        def gradients(value: Tensor) -> list[Tensor]:
            return list(torch.autograd.grad((value.float() * target).sum(), given))

        wide, narrow = fused.residual_norm(given[0], given[1], given[2], (given[3], given[4]), 0.0, 1e-12)
        found = [wide, *gradients(fused.bias_gelu(narrow, given[2]) + wide)]
        plain = functional.layer_norm(given[0] + given[1] + given[2], (48,), given[3], given[4], 1e-12)
        wanted = [plain, *gradients(functional.gelu(plain.bfloat16() + given[2]) + plain)]
    for ours, theirs in zip(found, wanted, strict=True):
        error = float((ours - theirs).detach().float().norm() / theirs.detach().float().norm())
        if not error < 2e-2:  # bfloat16 has three digits
            raise RuntimeError(f"they differ from plain operations by {error:.1%}")
