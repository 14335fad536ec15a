"""`coterie fit` as a user runs it, on two CPU cores: 5,000 StackOverflow titles, default settings, time and scores.

    PYTHONPATH=src python benchmarks/speed/sccl_cpu.py --at-once 3

The command sees a file of texts alone; labels are read afterwards. Runs at once have two cores each.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
from common import write

import coterie
from coterie import evaluate, load_dataset

CORES = 2


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--texts", type=int, default=5000)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--at-once", type=int, default=1)
    parser.add_argument("--set", dest="settings", nargs="*", default=[])
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()

    data = load_dataset("stackoverflow")
    rows = np.random.default_rng(0).permutation(len(data.texts))[: options.texts]
    labels = [data.labels[i] for i in rows]
    with tempfile.TemporaryDirectory() as name:
        titles = Path(name) / "titles.csv"
        with titles.open("w", encoding="utf-8", newline="") as stream:
            csv.writer(stream).writerows([["text"], *([data.texts[i]] for i in rows)])

        def one(place: int) -> dict[str, Any]:
            return fitted(titles, options.seeds[place], labels, place % options.at_once, options.settings)

        with ThreadPoolExecutor(options.at_once) as pool:
            runs = list(pool.map(one, range(len(options.seeds))))
    gains = [run["scores"]["kmeans"]["accuracy"] - run["scores"]["frozen"]["accuracy"] for run in runs]
    write(
        options.out,
        "sccl_cpu",
        {
            "command": "coterie fit titles.csv -k 20 --device cpu",
            "texts": options.texts,
            "cores_a_run": CORES,
            "runs_at_once": options.at_once,
            "median_seconds": statistics.median(run["seconds"]["command"] for run in runs),
            "slowest_seconds": max(run["seconds"]["command"] for run in runs),
            "mean_gain": statistics.mean(gains),
            "runs": runs,
        },
    )


def fitted(titles: Path, seed: int, labels: list[Any], place: int, settings: list[str]) -> dict[str, Any]:
    output = titles.parent / f"run-{seed}"
    command = ["fit", str(titles), "-k", "20", "--device", "cpu", "--seed", str(seed), "-o", str(output)]
    for setting in settings:
        command += ["--set", setting]
    cores = sorted(os.sched_getaffinity(0))
    mine = cores[CORES * place : CORES * place + CORES] or cores[:CORES]
    environment = {**os.environ, "OMP_NUM_THREADS": str(CORES), "MKL_NUM_THREADS": str(CORES)}
    began = time.perf_counter()
    subprocess.run(
        [sys.executable, "-m", "coterie", *command],
        check=True,
        env=environment,
        preexec_fn=lambda: os.sched_setaffinity(0, mine),
    )
    seconds = time.perf_counter() - began
    run = json.loads((output / "run.json").read_text(encoding="utf-8"))
    model = coterie.load(output / "model", device="cpu")
    answers = {"frozen": model.initial_labels_, "kmeans": model.labels_, "head": model.head_labels_}
    scores = {answer: evaluate(labels, found) for answer, found in answers.items()}
    return {
        "seed": seed,
        "settings": run["settings"],
        "steps": len(run["history"]["steps"]),
        "stop": run["history"]["stop_reasons"],
        "padding": run["history"]["padding"],
        "estimate": run["estimate"],
        "seconds": {"command": seconds, **run["seconds"]},
        "scores": {name: {"accuracy": 100 * score.accuracy, "nmi": 100 * score.nmi} for name, score in scores.items()},
    }


if __name__ == "__main__":
    main()
