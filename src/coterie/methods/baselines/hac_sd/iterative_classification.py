"""Iterative classification: a classifier trained on the inliers of all clusters reassigns the outliers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

# Lower limit of the size of a cluster's training part, as a percentage of the average cluster size. The percentage is
# resampled every round, as in the authors' scripts.
LEAST_PERCENT = 50
# Upper limit of this percentage, as in the authors' scripts.
MOST_PERCENT = 95
# Share of a cluster that the isolation forest removes, as in the authors' scripts.
OUTLIERS = 0.1
# Trees of the isolation forest, as in the authors' scripts.
TREES = 100
# Most rounds, as in the authors' scripts.
MAX_ROUNDS = 50
# Sizes have converged when their changes in a round add up to at most this share of the rows. Where clusters overlap
# (twentynews_subject), resampling the training part keeps moving 3 to 5 % of the rows.
CONVERGENCE_TOLERANCE = 0.05


@dataclass(frozen=True)
class Reclassified:
    """A partition after some rounds, and whether its cluster sizes converged."""

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

    A round removes the outliers of each cluster, reduces large clusters to a common size, trains a multinomial logistic
    classifier on the remaining rows, and assigns the removed rows by it. The training part keeps its labels, so no
    cluster becomes empty. ``counts`` are weights: in sizes, forest and classifier.
    """
    from sklearn.linear_model import LogisticRegression

    generator = np.random.default_rng(seed)
    sizes = np.bincount(labels, counts, minlength=n_clusters)
    for done in range(1, max_rounds + 1):
        percent = int(generator.integers(LEAST_PERCENT, MOST_PERCENT + 1))
        most = percent / 100 * counts.sum() / n_clusters
        is_training = training_part(features, labels, counts, most, generator)
        if is_training.all() or len(np.unique(labels[is_training])) < 2:
            return Reclassified(labels, done, converged=True)
        classifier = LogisticRegression(max_iter=300)
        classifier.fit(features[is_training], labels[is_training], sample_weight=counts[is_training])
        labels = labels.copy()
        labels[~is_training] = classifier.predict(features[~is_training])
        before, sizes = sizes, np.bincount(labels, counts, minlength=n_clusters)
        if np.abs(sizes - before).sum() <= CONVERGENCE_TOLERANCE * counts.sum():
            return Reclassified(labels, done, converged=True)
    return Reclassified(labels, max_rounds, converged=False)


def training_part(
    features: NDArray[Any],
    labels: NDArray[np.int64],
    counts: NDArray[np.int64],
    most: float,
    generator: np.random.Generator,
) -> NDArray[np.bool_]:
    """Return the rows that the classifier learns: the inliers of each cluster, sampled down to a weight of ``most``.

    At least one row of every cluster is among them.
    """
    is_training = np.zeros(len(labels), dtype=bool)
    for cluster in np.unique(labels):
        members = np.flatnonzero(labels == cluster)
        inliers = members[_fits(features[members], counts[members], int(generator.integers(2**31)))]
        shuffled = generator.permutation(inliers)
        fits = np.cumsum(counts[shuffled]) <= most
        fits[0] = True
        is_training[shuffled if counts[inliers].sum() <= most else shuffled[fits]] = True
    return is_training


def _fits(rows: NDArray[Any], counts: NDArray[np.int64], seed: int) -> NDArray[np.bool_]:
    """Return which rows of a cluster an isolation forest does not remove as outliers; at least one."""
    from sklearn.ensemble import IsolationForest

    forest = IsolationForest(n_estimators=TREES, contamination=OUTLIERS, bootstrap=True, random_state=seed)
    inlier = forest.fit(np.repeat(rows, counts, axis=0)).predict(rows) > 0
    return inlier if inlier.any() else np.ones(len(rows), dtype=bool)
