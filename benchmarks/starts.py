"""The start of the default method on the tuning sets: its accuracy, frozen k-means, and the best candidate by labels.

    PYTHONPATH=src python benchmarks/starts.py --seeds 0-2 --jobs 2 --out benchmarks/results/starts.json

``--only NAME`` selects a tuning set of tuning_sets.py, and can be repeated. The number of classes is given; labels are
read after clustering. Results are added to the file set by set and seed by seed; embeddings are stored in ``--cache``.
``--keep FOLDER`` stores the partitions of all candidates, to try other weights on them.
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
from numpy.typing import NDArray
from scipy.stats import spearmanr
from tuning_sets import TUNING_SETS, tuning_sets

from coterie import __version__
from coterie.benchmark.job_selection import parse_seeds
from coterie.clustering.kmeans import kmeans
from coterie.encoders.device import resolve_device
from coterie.encoders.weights import DEFAULT_MODEL
from coterie.methods.lexical.ensemble import LexicalEnsemble
from coterie.metrics.external.scores import evaluate
from coterie.selection.neighbour_graphs import LexicalGraph, build_graphs
from coterie.selection.start_choice import ChosenStart, choose_among
from coterie.text.corpus import Corpus


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", action="append", default=[], metavar="NAME", help="a tuning set")
    parser.add_argument("--seeds", default="0-2")
    parser.add_argument("--jobs", type=int, default=1, help="how many sets are clustered at the same time")
    parser.add_argument("--cache", type=Path, default=Path("embeddings"))
    parser.add_argument("--keep", type=Path)
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    for folder in (options.cache, options.keep):
        if folder is not None:
            folder.mkdir(parents=True, exist_ok=True)
    sets = {name: rest for name, *rest in tuning_sets(options.cache, options.only)}
    with ProcessPoolExecutor(options.jobs) as pool:
        waiting = [
            pool.submit(measure, name, *rest, seed, options.keep)
            for seed in parse_seeds(options.seeds)
            for name, rest in sets.items()
        ]
        for done in as_completed(waiting):
            name, seed, found = done.result()
            print(name, seed, {key: found[key]["accuracy"] for key in ("kmeans", "start", "best")}, flush=True)
            add(options.out, name, seed, found)


def add(file: Path, name: str, seed: int, found: dict[str, Any]) -> None:
    """Add the result of one set and seed to the file; sets and seeds are sorted."""
    content = json.loads(file.read_text(encoding="utf-8")) if file.is_file() else {}
    tuning = content.get("tuning", {})
    tuning.setdefault(name, {})[str(seed)] = found
    content = {
        "what": "the consensus of candidates before training, frozen k-means, and the best candidate by labels",
        "date": datetime.now(UTC).date().isoformat(),
        "code_version": __version__,
        "encoder": DEFAULT_MODEL,
        "tuning": {each: dict(sorted(tuning[each].items())) for each in TUNING_SETS if each in tuning},
    }
    file.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")


def measure(
    name: str, corpus: Corpus, labels: list[str], vectors: NDArray[np.float32], seed: int, keep: Path | None
) -> tuple[str, int, dict[str, Any]]:
    """Cluster as the default method does before training. ``vectors`` has one row per distinct text."""
    import torch

    torch.set_num_threads(1)
    began = time.perf_counter()
    k, device = len(set(labels)), resolve_device("auto")
    lexical = LexicalGraph.build(corpus.distinct, device)
    graphs = build_graphs(vectors, lexical, k, device=device, seed=seed)
    words = LexicalEnsemble.fit(corpus.distinct, corpus.counts, graphs.nearest_rows, seed=seed, device=device)
    start = choose_among(graphs, k, corpus.counts, seed, words.encode(corpus.distinct))
    seconds = time.perf_counter() - began
    plain = kmeans(vectors, k, weights=corpus.counts, seed=seed).labels
    if keep is not None:
        store(keep / f"{name.replace(', ', '-')}.{seed}.npz", labels, corpus, plain, start)

    def score(partition: NDArray[np.int64]) -> dict[str, float]:
        found = evaluate(labels, corpus.expand(partition, -1).tolist())
        return {"accuracy": round(100 * found.accuracy, 2), "nmi": round(100 * found.nmi, 2)}

    candidates = [
        {
            "name": each.name,
            "weight": round(each.weight, 4),
            "agreement": round(each.agreement, 4),
            "accuracy": score(each.labels)["accuracy"],
        }
        for each in start.candidates
    ]
    best = max(start.candidates, key=lambda each: score(each.labels)["accuracy"])
    return (
        name,
        seed,
        {
            "texts": len(corpus),
            "classes": k,
            "seconds": round(seconds, 1),
            "device": str(device),
            "kmeans": score(plain),
            "start": score(start.labels),
            "best": {"name": best.name, **score(best.labels)},
            "rank_correlation": correlation(candidates, "agreement"),
            "rank_correlation_of_weights": correlation(candidates, "weight"),
            "cost_of_equal_sizes": round(start.sizes.cost, 4),
            "evidence_of_uneven_sizes": round(start.sizes.evidence, 4),
            "view_agreement": round(start.view_agreement or 0.0, 4),
            "lexical_share": round(start.lexical_share, 4),
            # Runs of one algorithm have one name: their mean.
            "candidates": {
                each: round(float(np.mean([one["accuracy"] for one in candidates if one["name"] == each])), 2)
                for each in dict.fromkeys(one["name"] for one in candidates)
            },
        },
    )


def correlation(candidates: list[dict[str, Any]], name: str) -> float | None:
    """Return the rank correlation with the accuracy; ``None`` where all values are equal."""
    columns = [[each[key] for each in candidates] for key in (name, "accuracy")]
    if any(len(set(column)) == 1 for column in columns):
        return None
    return round(float(spearmanr(*columns).statistic), 4)


def store(file: Path, labels: list[str], corpus: Corpus, plain: NDArray[np.int64], start: ChosenStart) -> None:
    """Store the partitions of all texts, and what their weights follow from."""
    codes = np.unique(labels, return_inverse=True)[1]
    partitions = np.stack([corpus.expand(each.labels, -1) for each in start.candidates])
    np.savez_compressed(
        file,
        labels=codes,
        plain=corpus.expand(plain, -1),
        partitions=partitions.astype(np.int16),
        names=np.array([each.name for each in start.candidates]),
        shares=np.array([each.clustering.share for each in start.candidates]),
        start=corpus.expand(start.labels, -1),
        cost=start.sizes.cost,
        evidence=start.sizes.evidence,
        agreement=np.nan if start.view_agreement is None else start.view_agreement,
    )


if __name__ == "__main__":
    main()
