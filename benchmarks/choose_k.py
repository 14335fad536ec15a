"""The number of clusters that ``-k auto`` selects, and its scores, on the tuning sets and the eight short-text sets.

Its rule was chosen on the tuning sets.

    PYTHONPATH=src python benchmarks/choose_k.py --sets tuning --out benchmarks/results/choose_k.json
    PYTHONPATH=src python benchmarks/choose_k.py --sets short --out benchmarks/results/choose_k.json

A tuning set is a sample of at most 4,000 distinct texts, or those of some of its classes. All texts of
the eight are clustered. Scores are of k-means (10 starts, seed 0) on the frozen encoder's embeddings, with the number
selected and with the number of classes. Results are added to the file set by set; embeddings are stored in ``--cache``.
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

from coterie import __version__
from coterie.benchmark.sets import EIGHT_SHORT, find_set, load_set
from coterie.clustering.kmeans import kmeans
from coterie.encoders.device import resolve_device
from coterie.encoders.transformer import TransformerEncoder
from coterie.encoders.weights import DEFAULT_MODEL
from coterie.metrics.external.scores import evaluate
from coterie.selection.k_choice import NEARLY_EQUAL, SAMPLE_SIZE, WEIGHTS, KCandidate, choose_k
from coterie.text.corpus import Corpus, as_corpus
from coterie.text.sampling import draw_sample

TUNING = ("support", "atis", "snips", "banking77", "twentynews_subject", "dblp")
# Parts of them: the set, the number of classes, and the seed that samples them.
PARTS = (
    ("support", 5, 1),
    ("support", 8, 18),
    ("snips", 4, 15),
    ("snips", 5, 16),
    ("banking77", 6, 21),
    ("banking77", 8, 1),
    ("banking77", 10, 11),
    ("banking77", 15, 2),
    ("banking77", 20, 12),
    ("banking77", 30, 3),
    ("banking77", 40, 13),
    ("banking77", 50, 4),
    ("banking77", 60, 14),
    ("twentynews_subject", 5, 1),
    ("twentynews_subject", 7, 19),
    ("twentynews_subject", 10, 2),
    ("twentynews_subject", 15, 17),
    ("dblp", 3, 20),
)
# The largest class is about nine times the smallest: sizes fall with the root of the rank.
UNEVEN = "banking77, uneven"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sets", default="tuning", help="tuning, short, or names of short-text sets: a,b")
    parser.add_argument("--cache", type=Path, default=Path("embeddings"))
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    options.cache.mkdir(parents=True, exist_ok=True)
    if options.sets == "tuning":
        key, sets = "tuning", tuning_sets(options.cache)
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
            for name in ("stability", "silhouette", "gap", "neighbours", "words")
        },
        "at_chosen": scores(found.k),
        "at_classes": scores(classes),
    }


def near(candidates: tuple[KCandidate, ...], k: int) -> list[int]:
    """Return the lowest and the highest number whose score is nearly that of the best."""
    best = next(each.score for each in candidates if each.k == k)
    close = [each.k for each in candidates if best - each.score < NEARLY_EQUAL]
    return [min(close), max(close)]


def tuning_sets(cache: Path) -> Iterator[tuple[str, Corpus, list[str], NDArray[np.float32]]]:
    whole = {}
    for name in TUNING:
        loaded = load_set(find_set(name))
        sample = draw_sample(as_corpus(loaded.texts), SAMPLE_SIZE, 0)
        label_of = dict(zip(loaded.texts, loaded.labels, strict=True))
        texts = list(sample.corpus.distinct)
        vectors = embedded(texts, cache / f"{name}.{SAMPLE_SIZE}.npy")
        whole[name] = (texts, np.array([label_of[text] for text in texts]), vectors)
        yield name, as_corpus(texts), whole[name][1].tolist(), vectors
    for name, n_classes, seed in PARTS:
        texts, labels, vectors = whole[name]
        sampled = np.random.default_rng(seed).choice(np.unique(labels), n_classes, replace=False)
        yield f"{name}, {n_classes} classes", *_part(texts, labels, vectors, np.flatnonzero(np.isin(labels, sampled)))
    texts, labels, vectors = whole["banking77"]
    uneven: list[int] = []
    for rank, label in enumerate(np.random.default_rng(0).permutation(np.unique(labels))):
        rows = np.flatnonzero(labels == label)
        uneven += rows[: max(3, round(len(rows) / (1 + rank) ** 0.5))].tolist()
    yield UNEVEN, *_part(texts, labels, vectors, np.sort(uneven))


def _part(
    texts: list[str], labels: NDArray[Any], vectors: NDArray[np.float32], rows: NDArray[np.int64]
) -> tuple[Corpus, list[str], NDArray[np.float32]]:
    return as_corpus([texts[row] for row in rows]), labels[rows].tolist(), vectors[rows]


def short_sets(
    names: tuple[str, ...] | list[str], cache: Path
) -> Iterator[tuple[str, Corpus, list[str], NDArray[np.float32]]]:
    for name in names:
        loaded = load_set(find_set(name))
        corpus = as_corpus(loaded.texts)
        yield name, corpus, list(loaded.labels), embedded(corpus.distinct, cache / f"{name}.npy")


def embedded(texts: list[str] | tuple[str, ...], file: Path) -> NDArray[np.float32]:
    if file.is_file():
        found: NDArray[np.float32] = np.load(file)
        if len(found) == len(texts):
            return found
    vectors = TransformerEncoder.load(DEFAULT_MODEL, max_length=64, device=resolve_device("auto")).encode(texts)
    np.save(file, vectors)
    return vectors


def add(path: Path, key: str, name: str, found: dict[str, Any]) -> None:
    content = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
    content |= {
        "what": "the number of clusters that -k auto chooses, and scores of k-means on the frozen embeddings with it",
        "date": datetime.now(UTC).date().isoformat(),
        "code_version": __version__,
        "encoder": DEFAULT_MODEL,
        "weights": dict(WEIGHTS),
    }
    content.setdefault(key, {})[name] = found
    path.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
