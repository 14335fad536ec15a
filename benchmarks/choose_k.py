"""The number of clusters that ``-k auto`` selects, and its scores, on the tuning sets and the eight short-text sets.

Its rule was chosen on the tuning sets.

    PYTHONPATH=src python benchmarks/choose_k.py --sets tuning --out benchmarks/results/choose_k.json
    PYTHONPATH=src python benchmarks/choose_k.py --sets short --out benchmarks/results/choose_k.json

Tuning sets are those of tuning_sets.py; ``--only NAME`` selects one, and can be repeated. All texts of the eight are
clustered. Scores are of k-means (10 starts, seed 0) on the frozen encoder's embeddings, with the number selected and
with the number of classes. Results are added to the file set by set; embeddings are stored in ``--cache``.
"""

from __future__ import annotations

import argparse
import json
import time
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tuning_sets import embedded, tuning_sets

from coterie import __version__
from coterie.benchmark.sets import EIGHT_SHORT, find_set, load_set
from coterie.clustering.kmeans import kmeans
from coterie.encoders.weights import DEFAULT_MODEL
from coterie.metrics.external.scores import evaluate
from coterie.selection.k_choice import NEARLY_EQUAL, PENALTY, WEIGHTS, KCandidate, choose_k
from coterie.text.corpus import Corpus, as_corpus


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sets", default="tuning", help="tuning, short, or names of short-text sets: a,b")
    parser.add_argument("--only", action="append", default=[], metavar="NAME", help="a tuning set")
    parser.add_argument("--cache", type=Path, default=Path("embeddings"))
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    options.cache.mkdir(parents=True, exist_ok=True)
    if options.sets == "tuning":
        key, sets = "tuning", tuning_sets(options.cache, options.only)
    else:
        names = EIGHT_SHORT if options.sets == "short" else options.sets.split(",")
        key, sets = "short", short_sets(names, options.cache)
    for name, corpus, labels, vectors in sets:
        found = measured(corpus, labels, vectors)
        print(name, {each: found[each] for each in ("classes", "chosen", "seconds")}, flush=True)
        add(options.out, key, name, found)


def measured(corpus: Corpus, labels: list[str], vectors: NDArray[np.float32]) -> dict[str, Any]:
    """Select k and score it. ``vectors``: one row per distinct text; ``labels``: one per row."""
    began = time.perf_counter()
    found = choose_k(corpus, vectors=corpus.expand(vectors, 0.0))
    seconds = time.perf_counter() - began
    classes = len(set(labels))

    def scores(k: int) -> dict[str, float]:
        assigned = corpus.expand(kmeans(vectors, k, weights=corpus.counts, seed=0).labels, -1)
        result = evaluate(labels, assigned.tolist())
        return {"accuracy": result.accuracy, "nmi": result.nmi, "ari": result.ari}

    return {
        "texts": len(corpus),
        "distinct_texts": len(corpus.distinct),
        "classes": classes,
        "largest_to_smallest": max(Counter(labels).values()) / min(Counter(labels).values()),
        "chosen": found.k,
        "nearly_as_good": near(found.candidates, found.k),
        "range": [found.lowest, found.highest],
        "seconds": round(seconds, 1),
        "why": list(found.why),
        "each_sign_alone": {
            name: max(found.candidates, key=lambda each: getattr(each, name)).k
            for name in ("information", "neighbours", "words", "silhouette", "stability", "gap")
        },
        "at_chosen": scores(found.k),
        "at_classes": scores(classes),
    }


def near(candidates: tuple[KCandidate, ...], k: int) -> list[int]:
    """Return the lowest and the highest number whose score is nearly that of the best."""
    best = next(each.score for each in candidates if each.k == k)
    close = [each.k for each in candidates if best - each.score < NEARLY_EQUAL]
    return [min(close), max(close)]


def short_sets(
    names: tuple[str, ...] | list[str], cache: Path
) -> Iterator[tuple[str, Corpus, list[str], NDArray[np.float32]]]:
    for name in names:
        loaded = load_set(find_set(name))
        corpus = as_corpus(loaded.texts)
        yield name, corpus, list(loaded.labels), embedded(corpus.distinct, cache / f"{name}.npy")


def add(path: Path, key: str, name: str, found: dict[str, Any]) -> None:
    content = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
    content |= {
        "what": "the number of clusters that -k auto chooses, and scores of k-means on the frozen embeddings with it",
        "date": datetime.now(UTC).date().isoformat(),
        "code_version": __version__,
        "encoder": DEFAULT_MODEL,
        "weights": dict(WEIGHTS),
        "penalty": PENALTY,
    }
    content.setdefault(key, {})[name] = found
    path.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
