"""How new texts are assigned on the tuning sets: by cluster means, by means and parts, by neighbours.

    PYTHONPATH=src python benchmarks/starts.py --seeds 0 --keep partitions --out benchmarks/results/starts.json
    PYTHONPATH=src python benchmarks/new_texts.py --partitions partitions --out benchmarks/results/new_texts.json

A fifth of the texts is held out; each rule sees the clusters of the others in the start of the default method. The
result is the share of held-out texts that get the cluster they have in that start. Labels are not read.
"""

from __future__ import annotations

import argparse
import json
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from tuning_sets import tuning_sets

from coterie import __version__
from coterie.clustering.kmeans import unit_rows
from coterie.methods.auto.cluster_parts import ClusterParts
from coterie.methods.lexical.ensemble import LexicalEnsemble
from coterie.selection.joined_vectors import join_vectors, lexical_share
from coterie.selection.neighbour_graphs import build_graphs
from coterie.text.corpus import Corpus

# Tuning sets of all sizes and kinds; every set would take an hour.
SETS = (
    "support",
    "snips",
    "twentynews_subject",
    "dblp",
    "pascal_flickr",
    "ohsumed_title",
    "r8_short",
    "atis",
    "banking77, 30 classes",
    "mixed, very uneven",
)
FOLDS = 5
NEIGHBOURS = 15
# Power of a neighbour's cosine in its vote.
POWER = 3


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--partitions", type=Path, required=True, help="what starts.py --keep wrote")
    parser.add_argument("--cache", type=Path, default=Path("embeddings"))
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    found = {}
    for name, corpus, _, vectors in tuning_sets(options.cache, SETS):
        with np.load(options.partitions / f"{name.replace(', ', '-')}.0.npz") as arrays:
            start, agreement = arrays["start"], float(arrays["agreement"])
        labels = np.unique(start[first_rows(corpus)], return_inverse=True)[1]
        features = joined(corpus, vectors, lexical_share(agreement))
        found[name] = measure(features, labels, np.asarray(corpus.counts))
        print(name, found[name], flush=True)
    content = {
        "what": "percent of held-out texts that get the cluster they have in the start, by rule and tuning set",
        "date": datetime.now(UTC).date().isoformat(),
        "code_version": __version__,
        "mean": {rule: round(float(np.mean([each[rule] for each in found.values()])), 2) for rule in found[SETS[0]]},
        "tuning": found,
    }
    options.out.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
    print(content["mean"])


def first_rows(corpus: Corpus) -> NDArray[np.int64]:
    """Return the first row of each distinct text."""
    return np.unique(corpus.distinct_index, return_index=True)[1]


def joined(corpus: Corpus, vectors: NDArray[np.float32], share: float) -> NDArray[np.float32]:
    """Return the vectors that the default method compares."""
    if not share:
        return vectors
    near = build_graphs(vectors).nearest_rows
    lexical = LexicalEnsemble.fit(corpus.distinct, corpus.counts, near)
    return join_vectors(vectors, lexical.encode(corpus.distinct), share)


def measure(features: NDArray[np.float32], labels: NDArray[np.int64], counts: NDArray[np.int64]) -> dict[str, float]:
    """Return the percentage of held-out texts in their cluster, by rule."""
    held_out = np.random.default_rng(0).integers(FOLDS, size=len(labels)) == 0
    known, k = ~held_out, int(labels.max()) + 1
    parts = ClusterParts.fit(features[known], labels[known], k, counts[known])
    new = features[held_out]
    by_mean = np.asarray(unit_rows(new)) @ parts.means.T
    cosines = np.asarray(unit_rows(new)) @ np.asarray(unit_rows(features[known])).T
    near = np.argsort(-cosines, axis=1)[:, :NEIGHBOURS]
    votes = np.zeros((len(new), k))
    for place in range(NEIGHBOURS):
        rows = np.arange(len(new))
        votes[rows, labels[known][near[:, place]]] += np.maximum(cosines[rows, near[:, place]], 0) ** POWER
    rules = {"mean": by_mean, "mean and parts": parts.scores(new), "neighbours": votes}
    return {
        rule: round(100 * float(np.mean(scores.argmax(axis=1) == labels[held_out])), 2)
        for rule, scores in rules.items()
    }


if __name__ == "__main__":
    main()
