"""Shared by the speed scripts: generated titles, medians of repeats, the machine, the JSON file."""

from __future__ import annotations

import json
import os
import platform
import statistics
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

RESULTS = Path(__file__).parent.parent / "results" / "speed"


def generate_titles(count: int, seed: int = 0) -> list[str]:
    """Return ``count`` distinct English titles of 4 to 12 words (about 8, like StackOverflow's)."""
    from coterie import load_dataset
    from coterie.text.augmentation.wordnet import _table

    common = {word for text in load_dataset("support").texts for word in text.lower().split() if word.isalpha()}
    rare = [word for word in sorted(_table()) if word.isalpha() and len(word) > 2 and word not in common]
    generator = np.random.default_rng(seed)
    # A few words are in most titles and most words in few, as in natural language.
    words = np.array([*generator.permutation(sorted(common)), *generator.permutation(rare)[:50_000]])
    shares = 1 / np.arange(2, len(words) + 2)
    shares /= shares.sum()
    titles: dict[str, None] = {}
    while len(titles) < count:
        lengths = np.clip(generator.poisson(8, size=100_000), 4, 12)
        sampled = words[generator.choice(len(words), size=int(lengths.sum()), p=shares)]
        for title in np.split(sampled, np.cumsum(lengths)[:-1]):
            titles.setdefault(" ".join(title))
    return list(titles)[:count]


def repeated(action: Callable[[], object], repeats: int = 5, warm_up: int = 1) -> dict[str, Any]:
    """Seconds of ``repeats`` runs of ``action`` after ``warm_up`` that do not count, and their median.

    ``action`` must wait for the device itself.
    """
    for _ in range(warm_up):
        action()
    seconds = []
    for _ in range(repeats):
        began = time.perf_counter()
        action()
        seconds.append(time.perf_counter() - began)
    return {"warm_up": warm_up, "repeats": repeats, "seconds": seconds, "median": statistics.median(seconds)}


@contextmanager
def peak_memory(every: float = 0.05) -> Iterator[dict[str, float]]:
    """Highest resident memory of this process inside the block, in bytes, as ``["peak"]``; and what it began with."""
    found = {"before": float(resident()), "peak": float(resident())}
    stop = threading.Event()

    def watch() -> None:
        while not stop.wait(every):
            found["peak"] = max(found["peak"], resident())

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    try:
        yield found
    finally:
        stop.set()
        watcher.join()
        found["peak"] = max(found["peak"], resident())


def resident(process: int | None = None) -> int:
    """Return the resident memory of a process in bytes (Linux)."""
    pages = Path(f"/proc/{process or 'self'}/statm").read_text(encoding="ascii").split()[1]
    return int(pages) * os.sysconf("SC_PAGE_SIZE")


def machine() -> dict[str, Any]:
    import torch

    cuda = torch.cuda.is_available()
    model = [line for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines() if "model name" in line]
    return {
        "gpu": torch.cuda.get_device_name() if cuda else None,
        "cpu": model[0].partition(":")[2].strip() if model else platform.processor(),
        "cores": len(os.sched_getaffinity(0)),
        "threads": torch.get_num_threads(),
        "python": platform.python_version(),
        "torch": torch.__version__,
    }


def write(out: Path | None, name: str, result: dict[str, Any]) -> None:
    """Store ``result`` with the machine and the date, by default as ``benchmarks/results/speed/<name>.json``."""
    from coterie import __version__

    path = out or RESULTS / f"{name}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    whole = {
        "what": name,
        "date": datetime.now(UTC).date().isoformat(),
        "code_version": __version__,
        "machine": machine(),
        **result,
    }
    path.write_text(json.dumps(whole, indent=1) + "\n", encoding="utf-8")
    print(json.dumps({key: value for key, value in whole.items() if not isinstance(value, list)}, indent=1))
