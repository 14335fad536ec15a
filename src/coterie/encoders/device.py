"""Choose the device to compute on, and the precision."""

from __future__ import annotations

import contextlib
import os
import sys
from contextlib import AbstractContextManager
from pathlib import Path

import torch

from coterie.checks import check_choice
from coterie.errors import SettingError

PRECISIONS = ("auto", "float32", "bfloat16")


def usable_cores() -> int:
    """Return how many cores this process may use: those of its CPU affinity, at most ``OMP_NUM_THREADS``."""
    cores = len(os.sched_getaffinity(0)) if sys.platform == "linux" else os.cpu_count() or 1
    threads = os.environ.get("OMP_NUM_THREADS", "")
    return max(1, min(cores, int(threads))) if threads.isdigit() else cores


def resolve_device(device: str) -> torch.device:
    """Return the device called ``device``; ``"auto"`` is the first of cuda, mps and cpu that is available."""
    if device == "auto":
        if torch.cuda.is_available():
            return torch.device("cuda")
        return torch.device("mps" if torch.backends.mps.is_available() else "cpu")
    try:
        resolved = torch.device(device)
    except (RuntimeError, TypeError) as error:
        raise SettingError(f"device={device!r} is not a device; use 'auto', 'cpu', 'cuda' or 'mps'") from error
    available = {
        "cpu": 1,
        "cuda": torch.cuda.device_count() if torch.cuda.is_available() else 0,
        "mps": int(torch.backends.mps.is_available()),
    }
    if (resolved.index or 0) >= available.get(resolved.type, 0):
        raise SettingError(f"device={device!r} is not available here; use 'auto' or 'cpu'")
    return resolved


def resolve_precision(precision: str, device: torch.device) -> torch.dtype:
    """Return the dtype; ``"auto"`` is bfloat16 where the hardware computes in it natively, float32 elsewhere."""
    check_choice("precision", precision, PRECISIONS)
    if precision == "float32":
        return torch.float32
    if precision == "bfloat16":
        return torch.bfloat16
    if device.type == "cuda":
        native = torch.cuda.is_bf16_supported(including_emulation=False)
        return torch.bfloat16 if native else torch.float32
    if device.type == "cpu" and _cpu_has_bfloat16():
        return torch.bfloat16
    return torch.float32


def _cpu_has_bfloat16() -> bool:
    try:
        capabilities = torch.cpu.get_capabilities()
    except AttributeError:  # torch before 2.13
        try:
            flags = Path("/proc/cpuinfo").read_text(encoding="utf-8").split()
        except OSError:  # no Linux
            return False
        return "avx512_bf16" in flags or "amx_bf16" in flags
    return bool(capabilities.get("avx512_bf16") or capabilities.get("amx_bf16"))


def current_device(device: torch.device) -> AbstractContextManager[object]:
    """Make ``device`` the current one, which streams, graphs and kernels use if none is given."""
    return torch.cuda.device(device) if device.type == "cuda" else contextlib.nullcontext()


def autocast(device: torch.device, dtype: torch.dtype) -> AbstractContextManager[object]:
    """Return a context of mixed precision on ``device``; it does nothing for float32."""
    if dtype == torch.float32:
        return contextlib.nullcontext()
    return torch.autocast(device.type, dtype=dtype)
