"""Dropout on a CPU: the share, the scale, the gradient, the seed."""

from __future__ import annotations

import pytest
import torch

from coterie.encoders.packed_bert import dropout


@pytest.mark.parametrize("rate", [0.1, 0.5, 0.9])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_the_share_and_the_scale(rate: float, dtype: torch.dtype) -> None:
    torch.manual_seed(0)
    dropped = dropout(torch.ones(1000, 301, dtype=dtype), rate)
    assert dropped.dtype == dtype and dropped.shape == (1000, 301)
    assert float((dropped == 0).float().mean()) == pytest.approx(rate, abs=0.005)
    kept = dropped[dropped != 0].float()
    assert torch.allclose(kept, torch.full_like(kept, 1 / (1 - rate)), rtol=1e-2)


def test_the_gradient_passes_where_the_number_passed() -> None:
    states = torch.randn(50, 7, requires_grad=True)
    dropped = dropout(states, 0.4)
    dropped.sum().backward()
    assert states.grad is not None
    assert torch.equal(states.grad, torch.where(dropped == 0, 0.0, 1 / 0.6).to(torch.float32))


def test_torch_s_seed_decides() -> None:
    def drawn(seed: int) -> torch.Tensor:
        torch.manual_seed(seed)
        return torch.stack([dropout(torch.ones(33, 5), 0.5), dropout(torch.ones(33, 5), 0.5)])

    assert torch.equal(drawn(1), drawn(1))
    assert not torch.equal(drawn(1), drawn(2))
    assert not torch.equal(*drawn(1))


def test_neighbours_are_independent() -> None:
    torch.manual_seed(0)
    zero = (dropout(torch.ones(2000, 400), 0.3) == 0).float()
    for shifted in (zero[:, 1:] * zero[:, :-1], zero[1:] * zero[:-1]):
        assert float(shifted.mean()) == pytest.approx(0.09, abs=0.003)
