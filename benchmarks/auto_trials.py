"""The default method on the tuning sets: k-means, its start, its rounds, what it returned, and the seconds.

    PYTHONPATH=src python benchmarks/auto_trials.py --jobs 2 --out benchmarks/results/auto_trials.json
    PYTHONPATH=src python benchmarks/auto_trials.py --set words=false --out benchmarks/results/auto_trials.json

``--only NAME`` selects a tuning set of tuning_sets.py, and can be repeated. The number of classes is given; labels are
read after the fit. ``--set name=value`` changes settings. Trials are added to the file; one of the same set, seed and
settings is replaced.
"""

from __future__ import annotations

import argparse
import json
import time
from concurrent.futures import ProcessPoolExecutor, as_completed
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
from tuning_sets import MAX_LENGTH, TUNING_SETS, vectors_of

from coterie import __version__
from coterie.benchmark.job_selection import parse_seeds
from coterie.clustering.kmeans import kmeans
from coterie.encoders.device import usable_cores
from coterie.methods.auto.method import Coterie
from coterie.methods.build_method import build_method
from coterie.metrics.external.scores import evaluate


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", action="append", default=[], metavar="NAME", help="a tuning set")
    parser.add_argument("--seeds", default="0")
    parser.add_argument("--jobs", type=int, default=1, help="how many fits run at the same time")
    parser.add_argument("--set", action="append", default=[], metavar="NAME=VALUE")
    parser.add_argument("--cache", type=Path, default=Path("embeddings"))
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    options.cache.mkdir(parents=True, exist_ok=True)
    settings = {name: json.loads(value) for name, value in (each.split("=", 1) for each in options.set)}
    with ProcessPoolExecutor(options.jobs) as pool:
        waiting = [
            pool.submit(run_trial, name, seed, settings, options.jobs, options.cache)
            for seed in parse_seeds(options.seeds)
            for name in options.only or TUNING_SETS
        ]
        for done in as_completed(waiting):
            trial = done.result()
            print({each: trial[each] for each in ("set", "seed", "kmeans", "start", "accuracy", "seconds")}, flush=True)
            add(options.out, trial)


def add(file: Path, trial: dict[str, Any]) -> None:
    """Add a trial to the file, in place of an earlier one of the same set, seed and settings."""

    def key(each: dict[str, Any]) -> tuple[int, int, str]:
        return list(TUNING_SETS).index(each["set"]), each["seed"], json.dumps(each["settings"], sort_keys=True)

    trials = json.loads(file.read_text(encoding="utf-8")) if file.is_file() else []
    kept = [each for each in trials if key(each) != key(trial)]
    file.write_text(json.dumps(sorted([*kept, trial], key=key), indent=1) + "\n", encoding="utf-8")


def run_trial(name: str, seed: int, settings: dict[str, Any], jobs: int, cache: Path) -> dict[str, Any]:
    """Fit, score every partition afterwards, and return the outcome as plain data."""
    import torch

    torch.set_num_threads(max(1, usable_cores() // jobs))
    texts, labels = TUNING_SETS[name]()
    k = len(set(labels.tolist()))
    model = build_method("auto", k, seed, {"max_length": MAX_LENGTH, **settings}, {})
    assert isinstance(model, Coterie)
    began = time.perf_counter()
    model.fit(texts)
    seconds = time.perf_counter() - began
    plain = kmeans(vectors_of(name, texts, cache), k, seed=seed).labels

    def accuracy(found: Any) -> float:
        return round(100 * evaluate(labels.tolist(), [int(each) for each in found]).accuracy, 2)

    predicted = model.predict(texts)
    return {
        "set": name,
        "seed": seed,
        "settings": settings,
        "date": datetime.now(UTC).date().isoformat(),
        "code_version": __version__,
        "texts": len(texts),
        "classes": k,
        "kmeans": accuracy(plain),
        "start": accuracy(model.initial_labels_),
        "candidates": {each.name: accuracy(each.labels) for each in model.candidates_},
        "criteria": {
            each.name: {name: round(float(value), 4) for name, value in each.criteria.items()}
            for each in model.candidates_
        },
        "view_agreement": None if model.start_ is None else model.start_.view_agreement,
        "accuracy": accuracy(model.labels_),
        "predict_agrees": round(float(np.mean(predicted == model.labels_)), 4),
        "seconds": round(seconds, 1),
        "phases": {part: round(value, 1) for part, value in model.timings_.items()},
        "device": model.provenance()["device"],
        "cores": usable_cores(),
        "at_once": jobs,
        "notes": list(model.notes_),
    }


if __name__ == "__main__":
    main()
