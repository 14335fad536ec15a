"""Learn the parameters of confidence on the tuning sets, and measure its calibration there and on the eight sets.

    PYTHONPATH=src python benchmarks/calibrate.py --sets tuning --out benchmarks/results/calibration.json
    PYTHONPATH=src python benchmarks/calibrate.py --sets short --out benchmarks/results/calibration.json

The frozen encoder is clustered by k-means and by Ward's linkage, with the number of classes given. A text is right
where its class is the most frequent one of its cluster. The first command learns the parameters on the tuning sets and
parts of them, with equal weight of the sets, prints them for ``coterie/runs/calibration/calibration.py``, and measures
the calibration error with each set left out in turn. The second uses the parameters of the package. Embeddings are
stored in ``--cache``; ``--method`` fits a method that trains, on all texts of the named sets.
"""

from __future__ import annotations

import argparse
import json
from collections import defaultdict
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
from choose_k import short_sets
from numpy.typing import NDArray
from tuning_sets import TUNING_SETS, tuning_sets

from coterie import __version__
from coterie.benchmark.sets import EIGHT_SHORT, find_set, load_set
from coterie.encoders.weights import DEFAULT_MODEL
from coterie.methods.baselines.frozen import FrozenEncoder
from coterie.methods.registry import find_method
from coterie.runs.calibration import Calibration, calibrate, calibrate_model
from coterie.runs.calibration.calibration import INTERCEPT, SAMPLE, WEIGHTS
from coterie.text.corpus import Corpus, as_corpus

BINS = 10
CLUSTERERS = ("kmeans", "ward")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sets", default="tuning", help="tuning, short, or names of short-text sets: a,b")
    parser.add_argument("--method", default="frozen", help="frozen, or a method that trains")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--cache", type=Path, default=Path("embeddings"))
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    options.cache.mkdir(parents=True, exist_ok=True)
    content = json.loads(options.out.read_text(encoding="utf-8")) if options.out.is_file() else {}
    if options.sets == "tuning":
        content |= learn(list(tuning_problems(options.cache)))
    else:
        names = EIGHT_SHORT if options.sets == "short" else tuple(options.sets.split(","))
        for row, name, problem in measured_problems(names, options):
            measured = measure(problem)
            content.setdefault("short", {}).setdefault(row, {})[name] = measured
            print(row, name, measured["ece"], measured["mean_confidence"], measured["right"], flush=True)
    content |= {
        "what": "expected calibration error of confidence: right is a text of its cluster's most frequent class",
        "date": datetime.now(UTC).date().isoformat(),
        "code_version": __version__,
        "encoder": DEFAULT_MODEL,
    }
    options.out.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")


class Problem:
    """A clustering, the criteria of each of its texts, and which of them are right."""

    def __init__(self, found: Calibration, labels: NDArray[np.int64], margins: NDArray[Any], truth: list[str]) -> None:
        inside = labels >= 0
        names, classes = np.unique(np.asarray(truth), return_inverse=True)
        table = np.zeros((labels.max() + 1, len(names)))
        np.add.at(table, (labels[inside], classes[inside]), 1)
        self.right = (table.argmax(axis=1)[labels] == classes)[inside]
        criteria = found.criteria(labels[inside], margins[inside])
        self.criteria = np.stack([criteria[name] for name in WEIGHTS], axis=1)
        self.confidence = found.confidence(labels[inside], margins[inside])


def frozen_problem(
    corpus: Corpus, truth: list[str], vectors: NDArray[np.float32], clusterer: str, seed: int
) -> Problem:
    """Cluster frozen vectors, one row per distinct text, and calibrate the clustering on a sample."""
    model = FrozenEncoder(len(set(truth)), clusterer=clusterer, random_state=seed)
    model.fit(corpus, embeddings=corpus.expand(vectors, 0.0))
    first = np.unique(corpus.distinct_index, return_index=True)[1]
    sample = np.sort(np.random.default_rng(seed).permutation(len(first))[:SAMPLE])
    rows = first[sample]
    found = calibrate(model.labels_[rows], model.confidence_[rows], vectors[sample], model.n_clusters)
    return Problem(found, model.labels_, model.confidence_, truth)


def tuning_problems(cache: Path) -> Iterator[tuple[str, str, Problem]]:
    """Yield the data set, the name and the problem of every tuning set made of one data set.

    Mixed sets are left out: they contain texts of the set that is left out in turn.
    """
    unmixed = [name for name in TUNING_SETS if not name.startswith("mixed")]
    for name, corpus, truth, vectors in tuning_sets(cache, unmixed):
        for clusterer in CLUSTERERS:
            yield name.split(",")[0], f"{name}, {clusterer}", frozen_problem(corpus, truth, vectors, clusterer, 0)


def measured_problems(names: tuple[str, ...], options: argparse.Namespace) -> Iterator[tuple[str, str, Problem]]:
    if options.method == "frozen":
        for name, corpus, truth, vectors in short_sets(names, options.cache):
            for clusterer in CLUSTERERS:
                yield f"frozen-{clusterer}", name, frozen_problem(corpus, truth, vectors, clusterer, options.seed)
        return
    for name in names:
        loaded = load_set(find_set(name))
        corpus = as_corpus(loaded.texts)
        model = find_method(options.method).load()(loaded.n_clusters, random_state=options.seed).fit(corpus)
        found = calibrate_model(model, corpus)
        assert found is not None
        yield options.method, name, Problem(found, model.labels_, model.confidence_, list(loaded.labels))


def learn(problems: list[tuple[str, str, Problem]]) -> dict[str, Any]:
    """Return the parameters from all problems, and the error on each when its set is left out."""
    intercept, weights = fit(problems)
    print(f"INTERCEPT = {intercept:.2f}\nWEIGHTS = { {k: round(w, 2) for k, w in zip(WEIGHTS, weights, strict=True)} }")
    left_out: dict[str, Any] = {}
    for source in dict.fromkeys(source for source, _, _ in problems):
        parameters = fit([each for each in problems if each[0] != source])
        for _, name, problem in (each for each in problems if each[0] == source):
            left_out[name] = round(expected_error(probabilities(problem, *parameters), problem.right), 4)
    by_set = defaultdict(list)
    for source, name, _ in problems:
        by_set[source].append(left_out[name])
    means = {source: round(float(np.mean(errors)), 4) for source, errors in by_set.items()}
    print("left out:", means, "mean", round(float(np.mean(list(means.values()))), 4))
    return {
        "parameters": {
            "intercept": round(intercept, 2),
            "weights": dict(zip(WEIGHTS, np.round(weights, 2).tolist(), strict=True)),
        },
        "tuning": {"left_out": left_out, "mean_of_sets": means},
    }


def fit(problems: list[tuple[str, str, Problem]]) -> tuple[float, NDArray[np.float64]]:
    from sklearn.linear_model import LogisticRegression

    parts = defaultdict(int)
    for source, _, _ in problems:
        parts[source] += 1
    # Every set has the same weight, however many texts and parts it has.
    weights = [np.full(len(p.right), 1000 / len(p.right) / parts[source]) for source, _, p in problems]
    model = LogisticRegression().fit(
        np.concatenate([p.criteria for *_, p in problems]),
        np.concatenate([p.right for *_, p in problems]),
        sample_weight=np.concatenate(weights),
    )
    return float(model.intercept_[0]), model.coef_[0]


def probabilities(problem: Problem, intercept: float, weights: NDArray[np.float64]) -> NDArray[np.float64]:
    return 1 / (1 + np.exp(-(intercept + problem.criteria @ weights)))


def measure(problem: Problem) -> dict[str, Any]:
    """Return the calibration of a problem with the parameters of the package."""
    confidence, right = problem.confidence, problem.right
    position = np.minimum((confidence * BINS).astype(int), BINS - 1)
    bins = [
        {
            "texts": int(inside.sum()),
            "confidence": round(float(confidence[inside].mean()), 4),
            "right": round(float(right[inside].mean()), 4),
        }
        for inside in (position == each for each in range(BINS))
        if inside.any()
    ]
    return {
        "parameters": {"intercept": INTERCEPT, "weights": dict(WEIGHTS)},
        "texts": len(right),
        "right": round(float(right.mean()), 4),
        "mean_confidence": round(float(confidence.mean()), 4),
        "ece": round(expected_error(confidence, right), 4),
        "bins": bins,
    }


def expected_error(confidence: NDArray[np.float64], right: NDArray[np.bool_]) -> float:
    """Return the expected calibration error, with ten bins of equal width."""
    position = np.minimum((confidence * BINS).astype(int), BINS - 1)
    gaps = [abs(float((confidence - right)[position == each].sum())) for each in range(BINS)]
    return sum(gaps) / len(right)


if __name__ == "__main__":
    main()
