"""How long a computation is, in calls: a measure that no other work on the machine changes."""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType


def calls_of(work: Callable[[], object]) -> int:
    """Return how many functions ``work`` calls in this thread, those of Python and those in C alike.

    It is called twice, and the second time counts: the first may import modules.
    """
    work()
    calls = 0

    def count(frame: FrameType, event: str, argument: object) -> None:
        nonlocal calls
        calls += event in ("call", "c_call")

    sys.setprofile(count)
    try:
        work()
    finally:
        sys.setprofile(None)
    return calls


@contextmanager
def stopped_when_endless(cpu_seconds: float = 60.0) -> Iterator[None]:
    """End what takes minutes of this process's own computing; what others compute meanwhile does not count."""

    def stop(*_: object) -> None:
        raise AssertionError(f"no end after {cpu_seconds:.0f} s of computing")

    before = signal.signal(signal.SIGVTALRM, stop)
    signal.setitimer(signal.ITIMER_VIRTUAL, cpu_seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)
