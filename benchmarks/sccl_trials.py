"""Runs of SCCL with given settings on given data sets, several at a time on one GPU, scored epoch by epoch.

    PYTHONPATH=src python benchmarks/sccl_trials.py trials.json --out benchmarks/results/sccl_trials.json --jobs 8

The input is a list of objects with ``dataset``, ``seed``, ``limit`` (sample so many texts), ``params`` and ``training``
(arguments of SCCL and TrainingConfig), as they stand in ``trials`` of the results. Scores are [ACC, NMI] in percent.
Labels are read after each fit.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path
from typing import Any

import numpy as np


def one_trial(job: dict[str, Any]) -> dict[str, Any]:
    from coterie import SCCL, TrainingConfig, evaluate, load_dataset
    from coterie.clustering.kmeans import kmeans
    from coterie.text.corpus import as_corpus

    data = load_dataset(job["dataset"])
    rows = np.random.default_rng(0).permutation(len(data.texts))[: job.get("limit")]
    rows = rows if job.get("limit") else np.arange(len(data.texts))
    corpus = as_corpus([data.texts[i] for i in rows])
    labels = [data.labels[i] for i in rows]
    n_clusters = len(set(labels) - {None})
    training = TrainingConfig(**{"snapshot_every": 1, **job.get("training", {})})
    model = SCCL(n_clusters, random_state=job["seed"], training=training, **job.get("params", {})).fit(corpus)
    fresh = kmeans(model.transform(list(corpus.distinct)), n_clusters, weights=corpus.counts, seed=job["seed"])

    def score(by_row: Any) -> list[float]:
        found = evaluate(labels, by_row)
        return [round(100 * found.accuracy, 2), round(100 * found.nmi, 2)]

    return {
        **job,
        "frozen": score(model.initial_labels_),
        "kmeans": score(model.labels_),
        "kmeans_fresh": score(corpus.expand(fresh.labels, -1)),
        "head": score(model.head_labels_),
        "steps": len(model.history_.steps),
        "by_epoch": [[s.step, *score(corpus.expand(s.labels, -1))] for s in model.snapshots_],
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("trials", type=Path)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--jobs", type=int, default=1)
    options = parser.parse_args()
    jobs = json.loads(options.trials.read_text(encoding="utf-8"))
    done: list[dict[str, Any]] = []
    with ProcessPoolExecutor(options.jobs, mp_context=multiprocessing.get_context("spawn")) as pool:
        for future in as_completed([pool.submit(one_trial, job) for job in jobs]):
            done.append(future.result())
            print(json.dumps(done[-1]), flush=True)
            options.out.write_text(json.dumps({"trials": done}, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
