"""A command watched from outside (seconds, resident memory of it and its helpers); titles for its input, in blocks."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from common import made_titles, resident

MADE = 200_000


def numbered_titles(rows: int) -> Iterator[str]:
    """So many distinct titles: the same ones again and again, each with a running number."""
    titles = made_titles(min(rows, MADE))
    for number in range(rows):
        yield f"{titles[number % len(titles)]} {number}"


@dataclass(frozen=True)
class Watched:
    """Wall seconds of a command, and what was seen every so often: seconds, resident bytes, and the look's answer."""

    seconds: float
    samples: list[tuple[float, int, float]]

    @property
    def peak(self) -> int:
        return max((memory for _, memory, _ in self.samples), default=0)


def family(process: int) -> list[int]:
    """The process and all it has started (pages they share are counted for each)."""
    found = [process]
    for each in found:
        with suppress(OSError):
            found += map(int, Path(f"/proc/{each}/task/{each}/children").read_text(encoding="ascii").split())
    return found


def watched(arguments: Sequence[str], look: Callable[[], float] = lambda: 0.0, every: float = 0.05) -> Watched:
    """Run ``python -m coterie`` with ``arguments``; ends this script where the command fails."""
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
