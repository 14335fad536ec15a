"""Which of several clusterings of the frozen embeddings is selected without labels, and which would have been best.

    PYTHONPATH=src python benchmarks/starts.py --sets tuning --out benchmarks/results/starts.json
    PYTHONPATH=src python benchmarks/starts.py --sets short --out benchmarks/results/starts.json

Tuning sets are those of tuning_sets.py; ``--only NAME`` selects one, and can be repeated. Of the eight short-text sets
all texts are clustered. The number of classes is given. Results are added to the file set by set; embeddings are stored
in ``--cache``.
"""

from __future__ import annotations

import argparse
import json
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
from choose_k import short_sets
from numpy.typing import NDArray
from tuning_sets import tuning_sets

from coterie import __version__
from coterie.benchmark.sets import EIGHT_SHORT
from coterie.encoders.device import resolve_device
from coterie.encoders.weights import DEFAULT_MODEL
from coterie.metrics.external.scores import evaluate
from coterie.selection import choose_start
from coterie.selection.start_choice import CRITERIA, ScoredClustering
from coterie.text.corpus import Corpus

# Names of the criteria in the file of results.
RECORD_NAMES = {
    "lexical_modularity": "words",
    "normalised_semantic_modularity": "neighbours",
    "silhouette": "silhouette",
    "gaussian_likelihood": "likelihood",
    "stability": "stability",
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sets", default="tuning", help="tuning, short, or names of short-text sets: a,b")
    parser.add_argument("--only", action="append", default=[], metavar="NAME", help="a tuning set")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--cache", type=Path, default=Path("embeddings"))
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    options.cache.mkdir(parents=True, exist_ok=True)
    tuning = options.sets == "tuning"
    names = EIGHT_SHORT if options.sets == "short" else tuple(options.sets.split(","))
    sets = tuning_sets(options.cache, options.only) if tuning else short_sets(names, options.cache)
    for name, corpus, labels, vectors in sets:
        found = measured(corpus, labels, vectors, options.seed)
        print(name, found["chosen"], found["even"], found["returned"], "best", found["best"], flush=True)
        content = json.loads(options.out.read_text(encoding="utf-8")) if options.out.is_file() else {}
        content |= {
            "what": "clusterings of the frozen embeddings, which one is chosen without labels, and their scores",
            "date": datetime.now(UTC).date().isoformat(),
            "code_version": __version__,
            "encoder": DEFAULT_MODEL,
        }
        content.setdefault("tuning" if tuning else "short", {})[name] = found
        options.out.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")


def rounded(value: float) -> float | None:
    return None if np.isnan(value) else round(value, 4)


def measured(corpus: Corpus, labels: list[str], vectors: NDArray[np.float32], seed: int) -> dict[str, Any]:
    """Score every clustering. ``vectors``: one row per distinct text; ``labels``: one per row."""
    began = time.perf_counter()
    classes = len(set(labels))
    device = resolve_device("auto")
    found = choose_start(corpus.distinct, classes, vectors=vectors, weights=corpus.counts, seed=seed, device=device)
    seconds = time.perf_counter() - began

    def scored(each: ScoredClustering) -> dict[str, float]:
        found = evaluate(labels, corpus.expand(each.labels, -1).tolist())
        return {"accuracy": round(100 * found.accuracy, 2), "nmi": round(100 * found.nmi, 2)}

    scores = {each.name: scored(each) for each in found.ranking}
    criteria = {
        each.name: {RECORD_NAMES[name]: rounded(each.criteria[name]) for name in (*CRITERIA, "stability")}
        | {"score": rounded(each.score)}
        for each in found.ranking
    }
    return {
        "texts": len(corpus),
        "classes": classes,
        "seed": seed,
        "seconds": round(seconds, 1),
        "device": str(device),
        "chosen": found.best.name,
        "even": found.equal_sizes,
        "returned": scored(found.best),
        "best": max(scores, key=lambda name: scores[name]["accuracy"]),
        "scores": scores,
        "signs": criteria,
    }


if __name__ == "__main__":
    main()
