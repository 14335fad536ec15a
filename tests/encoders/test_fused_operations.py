"""The fused kernels: when they are used at all, and on CUDA what they compute."""

from __future__ import annotations

import logging
from collections.abc import Iterator

import pytest
import torch
from torch import Tensor
from torch.nn import functional

from coterie.encoders import fused_operations as fused_module
from coterie.encoders.fused_operations import SEED_STRIDE, FusedOperations, can_fuse

DEVICE = "cuda"


@pytest.fixture(autouse=True)
def asked_anew() -> Iterator[None]:
    """The answer is kept for the process."""
    can_fuse.cache_clear()
    yield
    can_fuse.cache_clear()


# --- Whether ---


def test_without_cuda_nothing_is_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    tried: list[int] = []
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr(fused_module, "_check_against_plain", lambda: tried.append(1))
    assert can_fuse() is False
    assert not tried


@pytest.mark.parametrize("error", [ImportError("no triton"), RuntimeError("no compiler"), AssertionError("old card")])
def test_kernels_that_fail_are_not_used(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, error: Exception
) -> None:
    def fails() -> None:
        raise error

    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(fused_module, "_check_against_plain", fails)
    with caplog.at_level(logging.INFO, logger=fused_module.__name__):
        assert can_fuse() is False
    assert str(error) in caplog.text


def test_kernels_that_agree_are_used_and_asked_once(monkeypatch: pytest.MonkeyPatch) -> None:
    tried: list[int] = []
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(fused_module, "_check_against_plain", lambda: tried.append(1))
    assert can_fuse() is True
    assert can_fuse() is True
    assert tried == [1]


def test_every_step_and_place_has_its_own_seed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The seed and the place as the kernel gets them, whatever computes."""
    asked: list[int] = []

    def spy(states: Tensor, update: Tensor, *rest: object) -> tuple[Tensor, Tensor]:
        seed, place = rest[3], rest[4]
        assert isinstance(seed, Tensor) and isinstance(place, int)
        asked.append(int(seed) + place)
        return states, update

    monkeypatch.setattr(fused_module._ResidualNorm, "apply", spy)
    fused = FusedOperations(torch.tensor(7))
    states, row = torch.zeros(2, 3), torch.zeros(3)
    for _ in range(3):
        fused.next_step()
        for _ in range(4):
            fused.residual_norm(states, states, row, (row, row), 0.1, 1e-5)
    assert len(set(asked)) == 12
    assert asked[4] - asked[0] == SEED_STRIDE


# --- What ---


@pytest.fixture
def kernels() -> FusedOperations:
    pytest.importorskip("triton")
    if not torch.cuda.is_available():
        pytest.skip("no CUDA")
    return FusedOperations(torch.tensor(11, device=DEVICE))


def _given(n_rows: int, width: int, dtype: torch.dtype) -> list[Tensor]:
    """States, update, bias, weight, shift."""
    torch.manual_seed(0)
    shapes = [(n_rows, width), (n_rows, width), (width,), (width,), (width,)]
    values = [torch.randn(shape, device=DEVICE) for shape in shapes]
    values[1] = values[1].to(dtype)
    return [value.requires_grad_() for value in values]


def _widened(values: list[Tensor]) -> list[Tensor]:
    return [value.detach().double().requires_grad_() for value in values]


def _close(found: Tensor, expected: Tensor, tolerance: float) -> None:
    error = (found.detach().double() - expected.detach()).abs().max() / expected.detach().abs().max()
    assert float(error) < tolerance


SIZES = pytest.mark.parametrize(("n_rows", "width"), [(1, 32), (5, 48), (37, 384), (130, 768), (16, 1000)])
# bfloat16 keeps eight bits; norms and sums over rows are in float32 either way.
PRECISIONS = pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float32, 1e-5), (torch.bfloat16, 2e-2)])


@SIZES
@PRECISIONS
@pytest.mark.parametrize("used", ["wide", "narrow", "both"])
def test_residual_norm_without_dropout(
    kernels: FusedOperations, n_rows: int, width: int, dtype: torch.dtype, tolerance: float, used: str
) -> None:
    given = _given(n_rows, width, dtype)
    exact = _widened(given)
    wide, narrow = kernels.residual_norm(given[0], given[1], given[2], (given[3], given[4]), 0.0, 1e-5)
    expected = functional.layer_norm(exact[0] + exact[1] + exact[2], (width,), exact[3], exact[4], 1e-5)
    assert (wide.dtype, narrow.dtype) == (torch.float32, dtype)
    _close(wide, expected, 1e-5)
    _close(narrow, expected, tolerance)
    target = torch.randn(2, n_rows, width, device=DEVICE)
    if used != "both":
        target[1 if used == "wide" else 0] = 0
    parts = [(wide, target[0]), (narrow.float(), target[1])]
    # An output that nobody uses has no gradient at all.
    chosen = {"wide": parts[:1], "narrow": parts[1:], "both": parts}[used]
    found = torch.autograd.grad(sum((value * part).sum() for value, part in chosen), given)
    wanted = torch.autograd.grad((expected * target.sum(0).double()).sum(), exact)
    for ours, theirs in zip(found, wanted, strict=True):
        _close(ours, theirs, 2 * tolerance)


@SIZES
@PRECISIONS
def test_bias_gelu(kernels: FusedOperations, n_rows: int, width: int, dtype: torch.dtype, tolerance: float) -> None:
    _, states, bias, *_ = _given(n_rows, width, dtype)
    exact = _widened([states, bias])
    found, expected = kernels.bias_gelu(states, bias), functional.gelu(exact[0] + exact[1])
    assert found.dtype == dtype
    _close(found, expected, tolerance)
    target = torch.randn(n_rows, width, device=DEVICE)
    ours = torch.autograd.grad((found.float() * target).sum(), [states, bias])
    theirs = torch.autograd.grad((expected * target.double()).sum(), exact)
    for mine, yours in zip(ours, theirs, strict=True):
        _close(mine, yours, 2 * tolerance)


def _dropped(kernels: FusedOperations, rate: float, n_rows: int = 512, width: int = 384) -> tuple[Tensor, Tensor]:
    """Which updates were left out, forwards and backwards.

    Every update is 1 or -1 in turn and the states are 0, so a row's mean hardly moves and only what is dropped comes
    near it.
    """
    signs = torch.ones(width, device=DEVICE)
    signs[1::2] = -1
    states = torch.zeros(n_rows, width, device=DEVICE)
    update = signs.repeat(n_rows, 1).bfloat16().requires_grad_()
    ones, zeros = torch.ones(width, device=DEVICE), torch.zeros(width, device=DEVICE)
    wide, _ = kernels.residual_norm(states, update, zeros, (ones, zeros), rate, 1e-5)
    target = torch.randn(n_rows, width, device=DEVICE)
    (gradient,) = torch.autograd.grad((wide * target).sum(), update)
    return wide.detach().abs() < 0.5, gradient == 0


@pytest.mark.parametrize("rate", [0.1, 0.5])
def test_dropout_drops_the_right_share_the_same_both_ways(kernels: FusedOperations, rate: float) -> None:
    forwards, backwards = _dropped(kernels, rate)
    share = float(forwards.float().mean())
    assert share == pytest.approx(rate, abs=5 * (rate * (1 - rate) / forwards.numel()) ** 0.5)
    assert torch.equal(forwards, backwards)
    # Neither along rows nor along columns is there a pattern.
    for dimension in (0, 1):
        shares = forwards.float().mean(dim=dimension)
        assert float((shares - rate).abs().max()) < 6 * (rate * (1 - rate) / forwards.shape[dimension]) ** 0.5
        assert not torch.equal(forwards, forwards.roll(1, dimension))


def test_dropout_keeps_the_mean(kernels: FusedOperations) -> None:
    """What is kept is scaled up: rows that stand out by one large number stand out by as much on average."""
    torch.manual_seed(0)
    states, bias = torch.zeros(4096, 64, device=DEVICE), torch.zeros(64, device=DEVICE)
    update = torch.full((4096, 64), 2.0, device=DEVICE)
    states[:, 0], update[:, 0] = 100.0, 0.0  # the norm is as good as fixed by this one
    wide, _ = kernels.residual_norm(states, update, bias, (torch.ones_like(bias), bias), 0.25, 1e-5)
    rows = wide.double()
    # Undo the norm: the first number is 100, those that were dropped are 0.
    lowest = rows.amin(dim=1, keepdim=True)
    values = (rows - lowest) / (rows[:, :1] - lowest) * 100
    assert float(values[:, 1:].mean()) == pytest.approx(2.0, rel=0.01)
    assert float(values[:, 1:].amax()) == pytest.approx(2.0 / 0.75, rel=0.01)


def test_dropout_differs_from_step_to_step_and_from_place_to_place(kernels: FusedOperations) -> None:
    drawn = []
    for _ in range(2):
        kernels.next_step()
        drawn += [_dropped(kernels, 0.3)[0] for _ in range(3)]
    for i, first in enumerate(drawn):
        for second in drawn[:i]:
            # Two independent draws agree on 0.3^2 + 0.7^2 of the numbers.
            assert float((first == second).float().mean()) == pytest.approx(0.58, abs=0.01)
    again = FusedOperations(torch.tensor(11, device=DEVICE))
    again.next_step()
    assert torch.equal(_dropped(again, 0.3)[0], drawn[0])


def test_the_kernels_pass_their_own_check(kernels: FusedOperations) -> None:
    assert can_fuse() is True


def test_the_users_generator_is_left_alone_by_the_check(kernels: FusedOperations) -> None:
    torch.manual_seed(5)
    host, device = torch.get_rng_state(), torch.cuda.get_rng_state()
    can_fuse()
    assert torch.equal(torch.get_rng_state(), host)
    assert torch.equal(torch.cuda.get_rng_state(), device)
