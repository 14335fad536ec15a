"""SCCL on StackOverflow: frozen start against trained end, from the same centres, with the seconds per epoch.

    PYTHONPATH=src python benchmarks/sccl_stackoverflow.py --out benchmarks/results/sccl_stackoverflow.json

Fitting reads the texts alone; the labels are read afterwards, to score the saved assignments.
"""

from __future__ import annotations

import argparse
import json
import platform
import statistics
import time
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import torch

from coterie import SCCL, TrainingConfig, __version__, load_dataset
from coterie.metrics.external.scores import evaluate

DATASET = "stackoverflow"
PAPER_TRAINING = TrainingConfig(
    batch_size=400, learning_rate=5e-6, head_learning_rate=5e-4, max_steps=1000, max_epochs=None, check_every=1
)
SETTINGS: dict[str, dict[str, Any]] = {
    # What `coterie fit --method sccl` does.
    "default": {},
    # Neighbours of the default.
    "slower": {"training": TrainingConfig(learning_rate=1e-5)},
    "alpha-3": {"alpha": 3.0},
    # The paper's learning rates, batch, un-normalised embeddings and fresh final k-means, up to 1000 steps.
    "paper": {
        "normalize": False,
        "alpha": 1.0,
        "final_kmeans": "fresh",
        "training": PAPER_TRAINING,
    },
    # The same on the encoder's own, normalised embeddings.
    "paper-normalized": {
        "alpha": 1.0,
        "radius": 1.0,
        "final_kmeans": "fresh",
        "training": PAPER_TRAINING,
    },
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--settings", nargs="+", default=list(SETTINGS), choices=list(SETTINGS))
    parser.add_argument("--seeds", nargs="+", type=int, default=[0, 1, 2])
    parser.add_argument("--limit", type=int, help="the first so many texts only, to try the script out")
    options = parser.parse_args()

    data = load_dataset(DATASET)
    texts, labels = data.texts[: options.limit], data.labels[: options.limit]
    runs = []
    for name in options.settings:
        for seed in options.seeds:
            runs.append(one_run(name, seed, texts, labels, data.card.sha256))
            print(json.dumps({k: runs[-1][k] for k in ("setting", "seed", "scores", "seconds", "stop")}), flush=True)
            options.out.write_text(json.dumps(report(runs), indent=2) + "\n", encoding="utf-8")


def one_run(name: str, seed: int, texts: Any, labels: Any, sha256: str) -> dict[str, Any]:
    began = time.perf_counter()
    model = SCCL(n_clusters=20, random_state=seed, **SETTINGS[name]).fit(texts)
    seconds = time.perf_counter() - began
    answers = {"frozen": model.initial_labels_, "kmeans": model.labels_, "head": model.head_labels_}
    params = model.get_params(deep=False)
    return {
        "method": "sccl",
        "dataset": DATASET,
        "setting": name,
        "seed": seed,
        "settings": {k: asdict(v) if isinstance(v, TrainingConfig) else v for k, v in params.items()},
        "data_sha256": sha256,
        "steps": len(model.history_.steps),
        "stop": model.history_.stop_reasons["sccl"],
        "label_change": [round(check["label_change"], 4) for check in model.history_.checks],
        "padded_over_real_tokens": round(model.history_.padding, 3),
        "seconds": {
            # The first epoch warms up the device.
            "epoch_median": round(statistics.median(model.history_.epoch_seconds[1:]), 3),
            "total": round(seconds, 1),
            **{stage: round(value, 2) for stage, value in model.timings_.items()},
        },
        "scores": {
            answer: {measure: round(100 * getattr(scores, measure), 2) for measure in ("accuracy", "nmi", "ari")}
            for answer, scores in ((answer, evaluate(labels, found)) for answer, found in answers.items())
        },
    }


def report(runs: list[dict[str, Any]]) -> dict[str, Any]:
    summary = {}
    for name in dict.fromkeys(run["setting"] for run in runs):
        mine = [run for run in runs if run["setting"] == name]
        accuracy = {
            answer: [run["scores"][answer]["accuracy"] for run in mine] for answer in ("frozen", "kmeans", "head")
        }
        summary[name] = {
            "seeds": [run["seed"] for run in mine],
            **{f"accuracy_{answer}": round(statistics.mean(values), 2) for answer, values in accuracy.items()},
            "gain": round(statistics.mean(accuracy["kmeans"]) - statistics.mean(accuracy["frozen"]), 2),
            "accuracy_kmeans_deviation": round(statistics.pstdev(accuracy["kmeans"]), 2),
            "seconds_an_epoch": round(statistics.median(run["seconds"]["epoch_median"] for run in mine), 3),
        }
    device = torch.cuda.get_device_name() if torch.cuda.is_available() else platform.processor() or platform.machine()
    return {
        "date": datetime.now(UTC).date().isoformat(),
        "code_version": __version__,
        "machine": {"device": device, "torch": torch.__version__, "python": platform.python_version()},
        "note": "all-MiniLM-L6-v2 was trained on stackoverflow.com titles, among others",
        "summary": summary,
        "runs": runs,
    }


if __name__ == "__main__":
    main()
