"""The five papers' methods on the eight short-text sets: frozen start against trained end, one setting a method.

    PYTHONPATH=src python benchmarks/papers.py --out benchmarks/results/papers.json --workers 10

Fitting sees the texts alone; the labels are read afterwards, to score what was fitted. Several runs share one GPU, so
seconds are those of a shared machine. ``--set name=value`` tries another setting, ``--datasets`` other sets.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import platform
import time
import traceback
import warnings
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

METHODS = ("sccl", "aecl", "deccrl", "clusterbert", "uftc")
DATASETS = (
    "agnews",
    "searchsnippets",
    "stackoverflow",
    "biomedical",
    "googlenews_ts",
    "googlenews_t",
    "googlenews_s",
    "tweet",
)
# How long a run takes, roughly, against the others: the longest start first.
WEIGHT = {"clusterbert": 2.0, "aecl": 2.0, "uftc": 1.2, "deccrl": 0.5, "sccl": 0.5}
SIZE = {"stackoverflow": 20, "biomedical": 20, "tweet": 2.5, "agnews": 8}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--methods", nargs="+", default=list(METHODS), choices=METHODS)
    parser.add_argument("--datasets", nargs="+", default=list(DATASETS))
    parser.add_argument("--seeds", nargs="+", type=int, default=[0])
    parser.add_argument("--set", dest="settings", nargs="*", default=[])
    parser.add_argument("--limit", type=int, help="so many texts of a set, drawn at random, to try the script out")
    parser.add_argument("--keep", type=Path, help="an earlier file: its runs of other methods are kept")
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--start-within", type=float, default=1e9, help="begin no run after so many seconds")
    parser.add_argument("--end-within", type=float, default=1e9, help="give up on runs still going after so many")
    options = parser.parse_args()

    began = time.monotonic()
    jobs = [
        {"method": method, "dataset": dataset, "seed": seed}
        for seed in options.seeds
        for method in options.methods
        for dataset in options.datasets
    ]
    jobs.sort(key=lambda job: -WEIGHT[str(job["method"])] * SIZE.get(str(job["dataset"]), 11))
    context = multiprocessing.get_context("spawn")
    tasks: Any = context.Queue()
    done: Any = context.Queue()
    for job in jobs:
        tasks.put(job)
    stop_at = time.time() + options.start_within
    workers = [
        context.Process(target=work, args=(tasks, done, stop_at, options.settings, options.limit), daemon=True)
        for _ in range(options.workers)
    ]
    for worker in workers:
        worker.start()
    kept = []
    if options.keep:
        earlier = json.loads(options.keep.read_text(encoding="utf-8"))
        kept = [run for run in earlier["runs"] if run["method"] not in options.methods]
        options.workers = max(options.workers, earlier["machine"]["runs_at_once"])
    runs: list[dict[str, Any]] = []
    while any(worker.is_alive() for worker in workers) or not done.empty():
        if time.monotonic() - began > options.end_within:
            break
        try:
            runs.append(done.get(timeout=1))
        except Exception:  # nothing yet
            continue
        print(line(runs[-1]), flush=True)
        options.out.write_text(json.dumps(report(kept + runs, options), indent=1) + "\n", encoding="utf-8")
    missing = len(jobs) - len(runs)
    print(f"{len(runs)} runs, {missing} missing, {time.monotonic() - began:.0f} s")


def work(tasks: Any, done: Any, stop_at: float, settings: list[str], limit: int | None) -> None:
    warnings.filterwarnings("ignore")
    while time.time() < stop_at:
        try:
            job = tasks.get(timeout=0.5)
        except Exception:  # none left
            return
        try:
            done.put({**job, **one_run(**job, settings=settings, limit=limit)})
        except Exception:
            done.put({**job, "error": traceback.format_exc()[-2000:]})


def one_run(method: str, dataset: str, seed: int, settings: list[str], limit: int | None) -> dict[str, Any]:
    import numpy as np

    from coterie import load_dataset
    from coterie.cli.settings import parse_settings
    from coterie.methods.building import build_method

    data = load_dataset(dataset)
    rows = np.arange(len(data.texts))
    if limit is not None and limit < len(rows):
        rows = np.sort(np.random.default_rng(0).permutation(len(rows))[:limit])
    texts = [data.texts[row] for row in rows]
    n_clusters = len({label for label in data.labels if label is not None})
    model: Any = build_method(method, n_clusters, seed, parse_settings(settings), {})
    began = time.perf_counter()
    model.fit(texts)
    seconds = time.perf_counter() - began
    labels = [data.labels[row] for row in rows]
    answers = {
        "frozen": model.initial_labels_,
        "head": model.head_labels_,
        "kmeans": model.kmeans_labels_,
        "final": model.labels_,
    }
    history = model.history_
    last = {record["stage"]: record for record in history.steps}
    return {
        "texts": len(texts),
        "n_clusters": n_clusters,
        "settings": model.settings(),
        "data_sha256": data.card.sha256,
        "scores": {name: scored(labels, answer) for name, answer in answers.items()},
        "seconds": {"total": seconds, "an_epoch": float(np.median(history.epoch_seconds)), **model.timings_},
        "epochs": len(history.epoch_seconds),
        "steps": len(history.steps),
        "stop": history.stop_reasons,
        "encoder_change": history.encoder_change,
        "predict_agreement": vars(model).get("predict_agreement_"),
        "last_terms": {
            stage: {name: value for name, value in record.items() if name not in {"stage", "epoch", "step"}}
            for stage, record in last.items()
        },
        "notes": list(model.notes_),
        "topics": example_topics(model),
    }


def scored(labels: Any, answer: Any) -> dict[str, Any]:
    from coterie.evaluation.external import evaluate

    found = evaluate(labels, answer)
    return {
        "accuracy": 100 * found.accuracy,
        "nmi": 100 * found.nmi,
        "ari": 100 * found.ari,
        "n_clusters": found.n_clusters,
    }


def example_topics(model: Any) -> list[list[list[str]]] | None:
    """The topics of the first three clusters, as words."""
    topics = model.cluster_topics()
    return None if topics is None else [[list(topic.words) for topic in cluster] for cluster in topics[:3]]


def report(runs: list[dict[str, Any]], options: argparse.Namespace) -> dict[str, Any]:
    import torch

    from coterie import __version__

    cuda = torch.cuda.is_available()
    return {
        "date": datetime.now(UTC).date().isoformat(),
        "code_version": __version__,
        "changed_settings": options.settings,
        "texts_at_most": options.limit,
        "machine": {
            "device": torch.cuda.get_device_name() if cuda else "cpu",
            "runs_at_once": options.workers,
            "python": platform.python_version(),
            "torch": torch.__version__,
        },
        "summary": summaries(runs),
        "remark": remark(options.workers),
        "runs": sorted(runs, key=lambda run: (METHODS.index(run["method"]), run["dataset"], run["seed"])),
    }


def summaries(runs: list[dict[str, Any]]) -> dict[str, Any]:
    by_method = {method: [run for run in runs if run["method"] == method and "scores" in run] for method in METHODS}
    return {method: summary(mine) for method, mine in by_method.items() if mine}


def remark(workers: int) -> str:
    return (
        "One setting a method for all sets, length 64, all-MiniLM-L6-v2. Every method starts from the k-means in the "
        "first row; its `labels_` are scored, in brackets against that start. One seed: differences of a point or two "
        "are within what another seed does. SCCL was measured again, with new learning rates and with k-means on the "
        "GPU: its start differs a little from the first row, and its brackets are against that start of its own.\n\n"
        "Three cautions. ClusterBERT's setting was changed after a first run on these same sets had lost on four of "
        "them, so its row is not held out; radius and alpha of SCCL, UFTC and DECCRL were found with StackOverflow in "
        "view (all of it in benchmarks/results/papers_trials.json and sccl_trials.json). The encoder was trained on "
        "stackoverflow.com and scientific titles, among others, and SearchSnippets, AgNews, GoogleNews and Tweet texts "
        f"come with stop words removed. Up to {workers} runs shared one GPU, so the seconds in papers.json are those "
        "of a shared machine. Frozen Ward and TF-IDF are not in this table yet."
    )


def summary(runs: list[dict[str, Any]]) -> dict[str, Any]:
    """How many runs ended no worse than the frozen k-means they began from, and how many at least 2 ACC better."""
    gains = {
        answer: {
            run["dataset"]: run["scores"][answer]["accuracy"] - run["scores"]["frozen"]["accuracy"] for run in runs
        }
        for answer in ("final", "head", "kmeans")
    }
    return {
        "runs": len(runs),
        "no_worse": sum(gain >= 0 for gain in gains["final"].values()),
        "two_better": sum(gain >= 2 for gain in gains["final"].values()),
        "gain": gains,
    }


def line(run: dict[str, Any]) -> str:
    if "error" in run:
        return f"{run['method']} {run['dataset']} FAILED: {run['error'][-300:]}"
    shown = " ".join(f"{name} {s['accuracy']:.1f}/{s['nmi']:.1f}" for name, s in run["scores"].items())
    seconds = run["seconds"]
    return (
        f"{run['method']:12s} {run['dataset']:15s} {shown} ({run['scores']['final']['n_clusters']} clusters) "
        f"{seconds['total']:.0f} s, {run['epochs']} x {seconds['an_epoch']:.1f} s, change {run['encoder_change']:.1e} "
        f"agreement {run['predict_agreement']}"
    )


if __name__ == "__main__":
    main()
