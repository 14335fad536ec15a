"""Run a command and measure its seconds and resident memory, child processes included; generate titles as input."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from common import generate_titles, resident

MADE = 200_000


def numbered_titles(rows: int) -> Iterator[str]:
    """Yield distinct titles in blocks: the same ones repeatedly, each with a number."""
    titles = generate_titles(min(rows, MADE))
    for number in range(rows):
        yield f"{titles[number % len(titles)]} {number}"


@dataclass(frozen=True)
class Watched:
    """Wall seconds of a command, and measurements at intervals: seconds, resident bytes, and the result of a probe."""

    seconds: float
    samples: list[tuple[float, int, float]]

    @property
    def peak(self) -> int:
        return max((memory for _, memory, _ in self.samples), default=0)


def family(process: int) -> list[int]:
    """Return the resident bytes of a process and its children; shared pages are counted for each."""
    found = [process]
    for each in found:
        with suppress(OSError):
            found += map(int, Path(f"/proc/{each}/task/{each}/children").read_text(encoding="ascii").split())
    return found


def watched(arguments: Sequence[str], look: Callable[[], float] = lambda: 0.0, every: float = 0.05) -> Watched:
    """Run ``python -m coterie`` with ``arguments``; end this script if the command fails."""
    samples: list[tuple[float, int, float]] = []
    began = time.perf_counter()
    child = subprocess.Popen([sys.executable, "-m", "coterie", *arguments])
    while child.poll() is None:
        with suppress(OSError, IndexError):  # it has just ended
            memory = sum(resident(process) for process in family(child.pid))
            if memory:
                samples.append((time.perf_counter() - began, memory, look()))
        time.sleep(every)
    seconds = time.perf_counter() - began
    if child.returncode:
        raise SystemExit(f"coterie {' '.join(arguments)} ended with {child.returncode}")
    return Watched(seconds, samples)
