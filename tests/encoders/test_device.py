"""Which device, which precision."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from conftest import topic_texts

from coterie.encoders.device import autocast, resolve_device, resolve_precision
from coterie.encoders.transformer import TransformerEncoder
from coterie.errors import SettingError

CPU = torch.device("cpu")


def test_precision_is_taken_by_its_word() -> None:
    assert resolve_precision("float32", CPU) == torch.float32
    assert resolve_precision("bfloat16", CPU) == torch.bfloat16


@pytest.mark.parametrize("wrong", ["float16", "", "half"])
def test_an_unknown_precision_is_named(wrong: str) -> None:
    with pytest.raises(SettingError, match=f"precision={wrong!r}.*float32"):
        resolve_precision(wrong, CPU)


@pytest.mark.parametrize("native", [False, True])
def test_auto_precision_follows_the_hardware(monkeypatch: pytest.MonkeyPatch, native: bool) -> None:
    expected = torch.bfloat16 if native else torch.float32
    monkeypatch.setattr("coterie.encoders.device._cpu_has_bfloat16", lambda: native)
    monkeypatch.setattr(torch.cuda, "is_bf16_supported", lambda including_emulation: native and not including_emulation)
    assert resolve_precision("auto", CPU) == expected
    assert resolve_precision("auto", torch.device("cuda")) == expected
    assert resolve_precision("auto", torch.device("mps")) == torch.float32


@pytest.mark.parametrize(
    ("flags", "dtype"), [("fpu avx512_bf16 sse", torch.bfloat16), ("amx_bf16", torch.bfloat16), ("avx2", torch.float32)]
)
def test_an_older_torch_cannot_be_asked_and_the_system_is(
    monkeypatch: pytest.MonkeyPatch, flags: str, dtype: torch.dtype
) -> None:
    monkeypatch.delattr(torch.cpu, "get_capabilities", raising=False)
    monkeypatch.setattr(Path, "read_text", lambda *_, **__: f"flags : {flags}\n")
    assert resolve_precision("auto", CPU) == dtype


def test_a_system_that_does_not_say_gets_float32(monkeypatch: pytest.MonkeyPatch) -> None:
    def nowhere(*_: object, **__: object) -> str:
        raise FileNotFoundError

    monkeypatch.delattr(torch.cpu, "get_capabilities", raising=False)
    monkeypatch.setattr(Path, "read_text", nowhere)
    assert resolve_precision("auto", CPU) == torch.float32


def test_bfloat16_is_near_float32_and_comes_back_as_float32(tiny_encoder: Path) -> None:
    encoder = TransformerEncoder.load(tiny_encoder)
    tokens = encoder.tokenize(topic_texts(9)[0])
    exact, rough = encoder.encode_tokens(tokens), encoder.encode_tokens(tokens, torch.bfloat16)
    assert rough.dtype == torch.float32
    assert not torch.equal(exact, rough)
    torch.testing.assert_close(rough, exact, atol=0.1, rtol=0)


def test_autocast_does_nothing_for_float32() -> None:
    with autocast(CPU, torch.float32):
        assert not torch.is_autocast_enabled("cpu")
    with autocast(CPU, torch.bfloat16):
        assert torch.is_autocast_enabled("cpu")


def test_auto_is_the_first_device_that_is_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: False)
    assert resolve_device("auto") == resolve_device("cpu") == CPU
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: True)
    assert resolve_device("auto").type == "mps"
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    assert resolve_device("auto").type == "cuda"


@pytest.mark.parametrize("missing", ["cuda", "cuda:1", "mps", "gpu", ""])
def test_a_device_that_is_not_here_is_named(monkeypatch: pytest.MonkeyPatch, missing: str) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: False)
    with pytest.raises(SettingError, match=f"device={missing!r}"):
        resolve_device(missing)
