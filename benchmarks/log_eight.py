"""Add the runs of a setting of the default method on the eight short-text sets to the log of such settings.

    PYTHONPATH=src python benchmarks/log_eight.py --store FOLDER --what "…" --out benchmarks/results/auto_eight.json

``--store`` is a folder that ``coterie benchmark run -m auto -d short -s 0-4 --out FOLDER`` filled.
The result is logged with its date, whatever it is.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from coterie.benchmark.sets import EIGHT_SHORT
from coterie.benchmark.store import Store


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--store", type=Path, required=True)
    parser.add_argument("--what", required=True, help="the setting in a sentence")
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    runs = list(Store(options.store).records().values())
    auto = [run for run in runs if run["row"] == "auto" and run["dataset"] in EIGHT_SHORT]
    logged = {
        "what": options.what,
        "dates": sorted({run["date"] for run in auto}),
        "source_digests": sorted({run["source_digest"] for run in auto}),
        "auto": of_sets(auto, "final"),
        "start": of_sets(auto, "frozen"),
    }
    trials = json.loads(options.out.read_text(encoding="utf-8")) if options.out.is_file() else []
    options.out.write_text(json.dumps([*trials, logged], indent=1) + "\n", encoding="utf-8")


def of_sets(runs: list[dict[str, Any]], which: str) -> dict[str, Any]:
    """Return accuracy and NMI by data set and seed."""
    found: dict[str, Any] = {}
    for run in sorted(runs, key=lambda each: (EIGHT_SHORT.index(each["dataset"]), each["seed"])):
        scores = run["scores"][which]
        rounded = {name: round(scores[name], 2) for name in ("accuracy", "nmi")}
        found.setdefault(run["dataset"], {})[str(run["seed"])] = rounded
    return found


if __name__ == "__main__":
    main()
