"""Resident memory of ``coterie predict`` on a long file, against the lines written so far.

PYTHONPATH=src python benchmarks/speed/predict_memory.py --rows 5000000 --run RUNFOLDER
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from child import Watched, numbered_titles, watched
from common import write

# Lines after which memory is reported: by then everything is loaded and the first blocks are done.
WARM_LINES = 100_000
POINTS = 50
ENDING = float("inf")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=5_000_000)
    parser.add_argument("--run", type=Path, help="a run folder; without one a small run is fitted first")
    parser.add_argument("--method", default="frozen", help="of the run that is fitted first")
    parser.add_argument("--clusters", type=int, default=20, help="of the run that is fitted first")
    parser.add_argument("--device", default="auto")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    settings = {name: str(value) if isinstance(value, Path) else value for name, value in vars(options).items()}
    del settings["out"]
    with tempfile.TemporaryDirectory(prefix="predict-memory-") as folder:
        write(options.out, "predict_memory", {"settings": settings, **measured(options, Path(folder))})


def measured(options: argparse.Namespace, folder: Path) -> dict[str, Any]:
    run = options.run or fitted(options, folder)
    titles, output = folder / "titles.txt", folder / "out" / "answers.csv"
    output.parent.mkdir()
    written(titles, options.rows)

    def bytes_so_far() -> float:
        # The file has another name until it is whole; after that the process only comes to its end.
        if output.exists():
            return ENDING
        return float(sum(path.stat().st_size for path in output.parent.iterdir()))

    arguments = ["predict", str(run), str(titles), "-o", str(output), "-q", "--device", options.device]
    predict = watched(arguments, bytes_so_far)
    with output.open("rb") as stream:
        rows = sum(block.count(b"\n") for block in iter(lambda: stream.read(2**20), b"")) - 1
    return {"rows_written": rows, **memory_curve(predict, rows, output.stat().st_size)}


def memory_curve(predict: Watched, rows: int, size: int) -> dict[str, Any]:
    """Return the memory by lines; lines are estimated from bytes, which are nearly the same per line."""
    ending = [memory for _, memory, so_far in predict.samples if so_far == ENDING]
    going_on = [sample for sample in predict.samples if sample[2] != ENDING]
    seconds, memory, so_far = (np.array(column) for column in zip(*going_on, strict=True))
    lines = so_far / size * rows
    warm = np.flatnonzero(lines >= min(WARM_LINES, rows / 2))
    if not len(warm):  # a file of one piece
        warm = np.arange(len(lines))
    going = np.flatnonzero(lines > 0)
    rate = (lines[going[-1]] - lines[going[0]]) / (seconds[going[-1]] - seconds[going[0]]) if len(going) > 1 else None
    points = warm[np.linspace(0, len(warm) - 1, min(POINTS, len(warm))).round().astype(int)]
    return {
        "wall_seconds": predict.seconds,
        "lines_per_second": rate,
        "lines_per_second_with_start": rows / predict.seconds,
        "resident_bytes_when_warm": int(memory[warm[0]]),
        "resident_bytes_at_the_end": int(memory[warm[-1]]),
        "peak_bytes_from_warm_on": int(memory[warm].max()),
        "peak_bytes_while_ending": max(ending, default=None),
        "peak_bytes": predict.peak,
        "growth_bytes": int(memory[warm].max() - memory[warm[0]]),
        "curve": [{"lines": int(lines[i]), "resident_bytes": int(memory[i])} for i in points],
    }


def fitted(options: argparse.Namespace, folder: Path) -> Path:
    """Fit a small run of the method and return its folder."""
    written(folder / "few.txt", 5_000)
    run = folder / "run"
    arguments = ["fit", str(folder / "few.txt"), "-k", str(options.clusters), "-m", options.method, "-q"]
    watched([*arguments, "-o", str(run), "--device", options.device])
    return run


def written(path: Path, rows: int) -> None:
    with path.open("w", encoding="utf-8") as stream:
        stream.writelines(f"{title}\n" for title in numbered_titles(rows))


if __name__ == "__main__":
    main()
