"""Iterative classification: what does not fit its cluster is given to a classifier trained on what does."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

# A cluster's training part is at most so many percent of the average cluster; drawn anew each round.
LEAST_PERCENT, MOST_PERCENT = 50, 95
# Share of a cluster that the isolation forest takes out, and its trees.
OUTLIERS, TREES = 0.1, 100
MAX_ROUNDS = 50
# Sizes have settled when all their changes in a round add up to no more than this share of the rows. Drawing the
# training part anew went on moving 3 to 5 % of them where clusters overlap (twentynews_subject).
SETTLED = 0.05


@dataclass(frozen=True)
class Reclassified:
    """A partition after some rounds, and whether its cluster sizes had settled by then."""

    labels: NDArray[np.int64]
    rounds: int
    converged: bool


def iterative_classification(
    features: NDArray[Any],
    labels: NDArray[np.int64],
    n_clusters: int,
    counts: NDArray[np.int64],
    *,
    seed: int,
    max_rounds: int = MAX_ROUNDS,
) -> Reclassified:
    """Improve the partition ``labels`` of ``features`` (Rakib et al., 2020).

    A round removes the outliers of each cluster, thins large clusters out to a common size, trains a multinomial
    logistic classifier on what is left, and gives what was removed the cluster the classifier says. The training part
    keeps its labels, so no cluster ever becomes empty. ``counts`` are weights: in sizes, forest and classifier.
    """
    from sklearn.linear_model import LogisticRegression

    generator = np.random.default_rng(seed)
    sizes = np.bincount(labels, counts, minlength=n_clusters)
    for done in range(1, max_rounds + 1):
        percent = int(generator.integers(LEAST_PERCENT, MOST_PERCENT + 1))
        most = percent / 100 * counts.sum() / n_clusters
        kept = training_part(features, labels, counts, most, generator)
        if kept.all() or len(np.unique(labels[kept])) < 2:
            return Reclassified(labels, done, converged=True)
        classifier = LogisticRegression(max_iter=300)
        classifier.fit(features[kept], labels[kept], sample_weight=counts[kept])
        labels = labels.copy()
        labels[~kept] = classifier.predict(features[~kept])
        before, sizes = sizes, np.bincount(labels, counts, minlength=n_clusters)
        if np.abs(sizes - before).sum() <= SETTLED * counts.sum():
            return Reclassified(labels, done, converged=True)
    return Reclassified(labels, max_rounds, converged=False)


def training_part(
    features: NDArray[Any],
    labels: NDArray[np.int64],
    counts: NDArray[np.int64],
    most: float,
    generator: np.random.Generator,
) -> NDArray[np.bool_]:
    """Which rows the classifier learns from: of each cluster the inliers, up to a weight of ``most`` drawn at random.

    Of every cluster at least one row stays.
    """
    kept = np.zeros(len(labels), dtype=bool)
    for cluster in np.unique(labels):
        members = np.flatnonzero(labels == cluster)
        inliers = members[_fits(features[members], counts[members], int(generator.integers(2**31)))]
        drawn = generator.permutation(inliers)
        fits = np.cumsum(counts[drawn]) <= most
        fits[0] = True
        kept[drawn if counts[inliers].sum() <= most else drawn[fits]] = True
    return kept


def _fits(rows: NDArray[Any], counts: NDArray[np.int64], seed: int) -> NDArray[np.bool_]:
    """The rows of a cluster that an isolation forest does not call outliers; never none."""
    from sklearn.ensemble import IsolationForest

    forest = IsolationForest(n_estimators=TREES, contamination=OUTLIERS, bootstrap=True, random_state=seed)
    inlier = forest.fit(np.repeat(rows, counts, axis=0)).predict(rows) > 0
    return inlier if inlier.any() else np.ones(len(rows), dtype=bool)
