"""The whole job as a user runs it: a CSV of titles in, a run folder out, learned on a sample.

PYTHONPATH=src python benchmarks/speed/whole_job.py --rows 1000000 --sample 100000 --clusters 100 --method sccl
PYTHONPATH=src python benchmarks/speed/whole_job.py --file stackoverflow.csv --clusters 20 --method auto --keep RUN
"""

from __future__ import annotations

import argparse
import csv
import json
import tempfile
from pathlib import Path
from typing import Any

from child import numbered_titles, watched
from common import write


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--file", type=Path, help="a CSV with a column text, in place of generated titles")
    parser.add_argument("--keep", type=Path, help="where to leave the run folder")
    parser.add_argument("--sample", type=int, default=None)
    parser.add_argument("--clusters", type=int, default=100)
    parser.add_argument("--method", default="sccl")
    parser.add_argument("--device", default="auto")
    parser.add_argument("--set", action="append", default=[], help="a setting of the method: name=value (repeat)")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    settings = {name: value for name, value in vars(options).items() if name not in ("out", "file", "keep")}
    if options.file is not None:
        settings |= {"file": options.file.name, "rows": None}
    with tempfile.TemporaryDirectory(prefix="whole-job-") as folder:
        write(options.out, "whole_job", {"settings": settings, **measured(options, Path(folder))})


def measured(options: argparse.Namespace, folder: Path) -> dict[str, Any]:
    """Seconds, memory and rows of ``coterie fit`` on a file."""
    titles, run = options.file or folder / "titles.csv", options.keep or folder / "run"
    arguments = ["fit", str(titles), "--text-column", "text", "-o", str(run)]
    if options.file is None:
        with titles.open("w", encoding="utf-8", newline="") as stream:
            writer = csv.writer(stream)
            writer.writerow(["id", "text"])
            writer.writerows(enumerate(numbered_titles(options.rows)))
        arguments += ["--id-column", "id"]
    arguments += ["-k", str(options.clusters), "-m", options.method]
    arguments += [] if options.sample is None else ["--sample", str(options.sample)]
    arguments += ["--device", options.device, *(word for pair in options.set for word in ("--set", pair))]
    fit = watched(arguments)
    record = json.loads((run / "run.json").read_text(encoding="utf-8"))
    with (run / "assignments.csv").open("rb") as stream:
        rows = sum(block.count(b"\n") for block in iter(lambda: stream.read(2**20), b"")) - 1
    return {
        "wall_seconds": fit.seconds,
        "peak_resident_bytes": fit.peak,
        "rows_written": rows,
        "distinct_texts": record["distinct_texts"],
        "device": record["device"],
        "phases": record["seconds"],
        "estimate": record["estimate"],
        "notes": record["notes"],
    }


if __name__ == "__main__":
    main()
