"""Settings of the lexical clusters on the tuning sets, beside TF-IDF.

    PYTHONPATH=src python benchmarks/lexical_trials.py --out benchmarks/results/lexical_trials.json
    PYTHONPATH=src python benchmarks/lexical_trials.py --seeds 0,1,2 --settings '[{"epochs": 40}]' --out FILE

``--texts`` rows of each set are sampled, the same for every seed. The number of classes is given; labels are read after
the fit. Every trial is added to the file; ``--show`` prints the means of a file over the sets. The setting ``null`` is
TF-IDF with the same words, ``{}`` the method's own.
"""

from __future__ import annotations

import argparse
import json
import time
from collections import defaultdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from coterie import __version__
from coterie.benchmark.sets import find_set, load_set
from coterie.encoders.device import usable_cores
from coterie.methods.build_method import build_method
from coterie.metrics.external.scores import evaluate

# Intents with many classes, subject lines, titles of papers, and titles of a field with its own words.
SETS = ("snips", "banking77", "twentynews_subject", "dblp", "ohsumed_title")
TFIDF = {"max_features": 2048, "stop_words": "english"}
# TF-IDF, the sketch that the method began with, and one change of it at a time; last, the two best changes together,
# which are the method's settings since.
SKETCH = {"neighbours": 10, "contrast_weight": 10.0}
GRID: tuple[dict[str, Any] | None, ...] = (
    None,
    SKETCH,
    {**SKETCH, "epochs": 10, "min_steps": 300},
    {**SKETCH, "epochs": 40, "min_steps": 1200},
    {**SKETCH, "learning_rate": 3e-4},
    {**SKETCH, "hidden": 1024},
    {**SKETCH, "dropout": 0.5},
    {**SKETCH, "kl_weight": 0.01},
    {**SKETCH, "kl_weight": 1.0},
    {**SKETCH, "contrast_weight": 3.0},
    {**SKETCH, "contrast_weight": 30.0},
    {**SKETCH, "temperature": 0.2},
    {**SKETCH, "neighbours": 20},
    {"neighbours": 20, "contrast_weight": 3.0},
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sets", default=",".join(SETS))
    parser.add_argument("--texts", type=int, default=3_000)
    parser.add_argument("--seeds", default="0")
    parser.add_argument("--settings", type=json.loads, default=GRID, metavar="JSON")
    parser.add_argument("--show", action="store_true", help="print the means of --out and run nothing")
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    trials = json.loads(options.out.read_text(encoding="utf-8")) if options.out.is_file() else []
    if options.show:
        print_means(trials)
        return
    for name in options.sets.split(","):
        data = load_set(find_set(name))
        rows = np.sort(np.random.default_rng(1).permutation(len(data.texts))[: options.texts])
        texts, labels = [data.texts[row] for row in rows], [data.labels[row] for row in rows]
        for settings in options.settings:
            for seed in map(int, options.seeds.split(",")):
                trials.append({"set": name, **run_trial(texts, labels, seed, settings)})
                print(json.dumps(trials[-1]), flush=True)
                options.out.write_text(json.dumps(trials, indent=1) + "\n", encoding="utf-8")


def run_trial(texts: list[str], labels: list[str], seed: int, settings: dict[str, Any] | None) -> dict[str, Any]:
    """Fit one setting and return its scores as plain data."""
    name, chosen = ("tfidf", TFIDF) if settings is None else ("lexical", settings)
    model = build_method(name, len(set(labels)), seed, chosen, {"device": "cpu"})
    began = time.perf_counter()
    model.fit(texts)
    seconds = time.perf_counter() - began
    scores = evaluate(labels, model.labels_.tolist())
    return {
        "texts": len(texts),
        "classes": len(set(labels)),
        "method": name,
        "settings": chosen,
        "seed": seed,
        "accuracy": round(100 * scores.accuracy, 2),
        "nmi": round(100 * scores.nmi, 2),
        "seconds": round(seconds, 1),
        "cores": usable_cores(),
        "date": datetime.now(UTC).date().isoformat(),
        "code_version": __version__,
    }


def print_means(trials: list[dict[str, Any]]) -> None:
    """Print accuracy and NMI of each setting: mean over seeds per set, then over the sets."""
    groups: dict[str, dict[str, list[tuple[float, float]]]] = defaultdict(lambda: defaultdict(list))
    for trial in trials:
        key = "tfidf" if trial["method"] == "tfidf" else json.dumps(trial["settings"])
        groups[key][trial["set"]].append((trial["accuracy"], trial["nmi"]))
    for key, sets in groups.items():
        means = {name: np.mean(scores, axis=0) for name, scores in sets.items()}
        per_set = "  ".join(f"{name} {acc:.1f}/{nmi:.1f}" for name, (acc, nmi) in means.items())
        accuracy, nmi = np.mean(list(means.values()), axis=0)
        seeds = min(len(scores) for scores in sets.values())
        print(f"{accuracy:.1f}/{nmi:.1f}  {key}  ({len(sets)} sets, {seeds} seeds)  {per_set}")


if __name__ == "__main__":
    main()
