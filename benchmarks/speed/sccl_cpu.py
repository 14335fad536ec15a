"""`coterie fit` as a user runs it, on a CPU: 5,000 StackOverflow titles, default settings, time and scores.

    PYTHONPATH=src python benchmarks/sccl_cpu.py --out benchmarks/results/sccl_cpu_5000.json

The command sees a file of texts alone; labels are read afterwards.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from datetime import UTC, datetime
from pathlib import Path

import numpy as np

import coterie
from coterie import __version__, evaluate, load_dataset


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--texts", type=int, default=5000)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()

    data = load_dataset("stackoverflow")
    rows = np.random.default_rng(0).permutation(len(data.texts))[: options.texts]
    labels = [data.labels[i] for i in rows]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with (folder / "titles.csv").open("w", encoding="utf-8", newline="") as stream:
            csv.writer(stream).writerows([["text"], *([data.texts[i]] for i in rows)])
        command = ["fit", str(folder / "titles.csv"), "-k", "20", "--device", "cpu", "--seed", str(options.seed)]
        began = time.perf_counter()
        subprocess.run([sys.executable, "-m", "coterie", *command, "-o", str(folder / "run")], check=True)
        seconds = time.perf_counter() - began
        run = json.loads((folder / "run" / "run.json").read_text(encoding="utf-8"))
        model = coterie.load(folder / "run")
        answers = {"frozen": model.initial_labels_, "kmeans": model.labels_, "head": model.head_labels_}
    scores = {answer: evaluate(labels, found) for answer, found in answers.items()}
    content = {
        "date": datetime.now(UTC).date().isoformat(),
        "code_version": __version__,
        "command": "coterie fit titles.csv -k 20 --device cpu",
        "texts": options.texts,
        "seed": options.seed,
        "machine": {"cores": os.cpu_count(), "processor": platform.machine(), "python": platform.python_version()},
        "settings": run["settings"],
        "steps": len(run["history"]["steps"]),
        "padded_over_real_tokens": round(run["history"]["padding"], 3),
        "seconds": {name: round(value, 1) for name, value in run["seconds"].items()}
        | {"total": round(seconds, 1), "epochs": [round(value, 1) for value in run["history"]["epoch_seconds"]]},
        "scores": {
            answer: {name: round(100 * getattr(found, name), 2) for name in ("accuracy", "nmi", "ari")}
            for answer, found in scores.items()
        },
    }
    options.out.write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")
    print(json.dumps({key: content[key] for key in ("seconds", "scores")}))


if __name__ == "__main__":
    main()
