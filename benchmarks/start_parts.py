"""What each part of the start of the default method is worth on the tuning sets: the consensus without it.

    PYTHONPATH=src python benchmarks/starts.py --seeds 0-1 --keep partitions --out benchmarks/results/starts.json
    PYTHONPATH=src python benchmarks/start_parts.py --partitions partitions --out benchmarks/results/start_parts.json

``starts.py --keep`` stores the partitions of all candidates; here they are combined in other ways. Nothing is clustered
again, so a part that also shapes the candidates (lexical neighbours in the graphs) stays in them.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tuning_sets import TUNING_SETS

from coterie import __version__
from coterie.metrics.external.scores import evaluate
from coterie.selection.candidates import AVERAGE_LINKAGE, Clustering
from coterie.selection.cluster_sizes import SizeEstimate
from coterie.selection.consensus import find_consensus
from coterie.selection.start_choice import vote_weights


@dataclass(frozen=True)
class Stored:
    """The candidates of a tuning set and seed, all rows."""

    labels: NDArray[np.int64]
    plain: NDArray[np.int64]
    clusterings: list[Clustering]
    sizes: SizeEstimate

    @property
    def n_clusters(self) -> int:
        return len(np.unique(self.labels))


Combine = Callable[[Stored], NDArray[np.int64]]


def read(file: Path) -> Stored:
    """Return what ``starts.py`` stored; rows that are in no cluster are left out."""
    with np.load(file) as arrays:
        partitions = arrays["partitions"].astype(np.int64)
        rows = (partitions >= 0).all(axis=0)
        clusterings = []
        for name, share, labels in zip(arrays["names"], arrays["shares"], partitions, strict=True):
            view, algorithm, kind = str(name).split(", ")
            clusterings.append(Clustering(algorithm, labels[rows], view, kind.removesuffix(" sizes"), float(share)))
        sizes = SizeEstimate(float(arrays["cost"]), float(arrays["evidence"]))
        return Stored(arrays["labels"][rows], arrays["plain"][rows], clusterings, sizes)


def vote(stored: Stored, clusterings: list[Clustering], sizes: SizeEstimate) -> NDArray[np.int64]:
    """Return the consensus of some candidates; of all, where none of them has a weight."""
    weights = vote_weights(clusterings, sizes)
    if not any(weights):
        return vote(stored, stored.clusterings, stored.sizes)
    return find_consensus([each.labels for each in clusterings], weights, stored.n_clusters).labels


def only(keep: Callable[[Clustering], bool]) -> Combine:
    """Return the consensus of those candidates that ``keep`` selects."""
    return lambda stored: vote(stored, [each for each in stored.clusterings if keep(each)], stored.sizes)


def only_sizes(kind: str) -> Combine:
    """Return the consensus of the candidates of one kind of sizes."""
    return lambda stored: vote(stored, stored.clusterings, replace(stored.sizes, only=kind))


def without_size_weights(stored: Stored) -> NDArray[np.int64]:
    """Return the consensus in which all kinds of sizes count alike."""
    weights = [each.share for each in stored.clusterings]
    return find_consensus([each.labels for each in stored.clusterings], weights, stored.n_clusters).labels


def one_run(stored: Stored) -> NDArray[np.int64]:
    """Return the consensus with one run of every k-means, a random one: they are sorted by their agreement."""
    one: dict[str, Clustering] = {}
    for i in np.random.default_rng(0).permutation(len(stored.clusterings)).tolist():
        each = stored.clusterings[i]
        one.setdefault(each.name, replace(each, share=1.0))
    return vote(stored, list(one.values()), stored.sizes)


def one_start(stored: Stored) -> NDArray[np.int64]:
    """Return the consensus of a vote from the most central candidate alone."""
    weights = vote_weights(stored.clusterings, stored.sizes)
    partitions = [each.labels for each in stored.clusterings]
    return find_consensus(partitions, weights, stored.n_clusters, vote_starts=1).labels


def most_typical(stored: Stored) -> NDArray[np.int64]:
    """Return the candidate that agrees most with the consensus, among those with a weight."""
    weights = vote_weights(stored.clusterings, stored.sizes)
    found = find_consensus([each.labels for each in stored.clusterings], weights, stored.n_clusters)
    agreement = np.where(np.array(weights) > 0, found.agreement, -np.inf)
    return stored.clusterings[int(agreement.argmax())].labels


PARTS: dict[str, Combine] = {
    "the start": lambda stored: vote(stored, stored.clusterings, stored.sizes),
    "frozen k-means": lambda stored: stored.plain,
    "without joined vectors": only(lambda each: "semantic" in each.view),
    "joined vectors alone": only(lambda each: "joined" in each.view),
    "without centred vectors": only(lambda each: "centred" not in each.view),
    "centred vectors alone": only(lambda each: "centred" in each.view),
    "free sizes alone": only_sizes("free"),
    "equal sizes alone": only_sizes("equal"),
    "all kinds of sizes count alike": without_size_weights,
    "without average linkage": only(lambda each: each.algorithm != AVERAGE_LINKAGE),
    "k-means alone, of all vectors": only(lambda each: each.algorithm.endswith("k-means")),
    "one run of each k-means": one_run,
    "a vote from one candidate": one_start,
    "the most typical candidate, no vote": most_typical,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--partitions", type=Path, required=True, help="what starts.py --keep wrote")
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    found: dict[str, dict[str, dict[str, float]]] = {}
    for name in TUNING_SETS:
        files = sorted(options.partitions.glob(f"{name.replace(', ', '-')}.[0-9].npz"))
        for file in files:
            stored, seed = read(file), file.suffixes[-2].removeprefix(".")
            scores = {part: accuracy(stored, combine) for part, combine in PARTS.items()}
            found.setdefault(name, {})[seed] = scores
            print(name, seed, scores, flush=True)
    content: dict[str, Any] = {
        "what": "ACC of consensuses of the stored candidates, by tuning set and seed",
        "date": datetime.now(UTC).date().isoformat(),
        "code_version": __version__,
        "parts": list(PARTS),
        "tuning": found,
    }
    options.out.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")


def accuracy(stored: Stored, combine: Combine) -> float:
    return round(100 * evaluate(stored.labels.tolist(), combine(stored).tolist()).accuracy, 2)


if __name__ == "__main__":
    main()
