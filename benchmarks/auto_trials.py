"""The default method on the tuning sets: its start, its rounds, what the guard selected, and the seconds.

    PYTHONPATH=src python benchmarks/auto_trials.py --texts 1500 --out benchmarks/results/auto_trials.json
    PYTHONPATH=src python benchmarks/auto_trials.py --sets snips --texts 5000 --out benchmarks/results/auto_trials.json

``--texts`` rows of each set are sampled. The number of classes is given; labels are read after the fit. ``--set
name=value`` changes settings; every trial is added to the file with its date.
"""

from __future__ import annotations

import argparse
import json
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
from tuning_sets import DATASETS

from coterie import __version__
from coterie.benchmark.sets import find_set, load_set
from coterie.encoders.device import usable_cores
from coterie.methods.auto.method import Coterie
from coterie.methods.build_method import build_method
from coterie.metrics.external.scores import evaluate
from coterie.text.corpus import as_corpus


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sets", default=",".join(DATASETS))
    parser.add_argument("--texts", type=int, default=1_500)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--set", action="append", default=[], metavar="NAME=VALUE")
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    settings = {name: json.loads(value) for name, value in (each.split("=", 1) for each in options.set)}
    for name in options.sets.split(","):
        data = load_set(find_set(name))
        rows = np.sort(np.random.default_rng(1).permutation(len(data.texts))[: options.texts])
        outcome = run_trial(
            [data.texts[row] for row in rows], [data.labels[row] for row in rows], options.seed, settings
        )
        trial = {"set": name, "date": datetime.now(UTC).date().isoformat(), "code_version": __version__, **outcome}
        print(json.dumps(trial), flush=True)
        trials = json.loads(options.out.read_text(encoding="utf-8")) if options.out.is_file() else []
        options.out.write_text(json.dumps([*trials, trial], indent=1) + "\n", encoding="utf-8")


def run_trial(texts: list[str], labels: list[str], seed: int, settings: dict[str, Any]) -> dict[str, Any]:
    """Fit, score every candidate afterwards, and return the outcome as plain data."""
    model = build_method("auto", len(set(labels)), seed, settings, {})
    assert isinstance(model, Coterie)
    began = time.perf_counter()
    model.fit(texts)
    seconds = time.perf_counter() - began
    corpus = as_corpus(texts)

    def accuracy(found: Any) -> float:
        return round(100 * evaluate(labels, [int(each) for each in found]).accuracy, 2)

    return {
        "texts": len(texts),
        "classes": len(set(labels)),
        "seed": seed,
        "settings": settings,
        "start": model.start_,
        "candidates": [
            {
                "name": each.name,
                "accuracy": accuracy(corpus.expand(each.labels, -1)),
                "neighbours": round(each.criteria["semantic_modularity"], 4),
                "words": round(each.criteria["lexical_modularity"], 4),
            }
            for each in model.candidates_
        ],
        "accuracy": accuracy(model.labels_),
        "accuracy_by_predict": accuracy(model.predict(texts)),
        "seconds": round(seconds, 1),
        "phases": {name: round(value, 1) for name, value in model.timings_.items()},
        "device": model.provenance()["device"],
        "cores": usable_cores(),
        "notes": list(model.notes_),
    }


if __name__ == "__main__":
    main()
