"""What speaks for a number of clusters, told without labels.

Clusters are cuts of Ward's tree: one tree answers for every number of clusters, so that a draw of the texts costs one
tree however many numbers are tried.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from coterie.clustering.agglomerative import cut
from coterie.clustering.kmeans import unit_rows
from coterie.metrics.internal.cloud import cloud_like, principal
from coterie.metrics.internal.neighbourhoods import (
    cosine_silhouette,
    kept_together,
    nearest_by_vector,
    nearest_by_words,
)

# Trees are grown in so many of the vectors' principal directions: the others are mostly noise, and cost time.
DIRECTIONS = 50
# Pairs of draws that are compared, and the share of the texts in each: half of the texts are then in both.
PAIRS, SHARE = 5, 0.7
# Draws of the reference without clusters.
REFERENCES = 2


class Evidence:
    """The signs of every number of clusters of some texts.

    Parameters
    ----------
    vectors:
        One row a text.
    texts:
        The texts themselves, for the sign of their words; without them it is NaN.
    """

    def __init__(self, vectors: NDArray[Any], texts: Sequence[str] | None, seed: int) -> None:
        generator = np.random.default_rng(seed)
        self._units = np.asarray(unit_rows(vectors), dtype=np.float32)
        points = principal(self._units, DIRECTIONS)
        n_texts = len(points)
        self._tree = ward_tree(points)
        self._within = _log_within(self._tree)
        self._references = [_log_within(ward_tree(cloud_like(points, generator))) for _ in range(REFERENCES)]
        self._pairs = []
        for _ in range(PAIRS):
            size = int(SHARE * n_texts)
            one, other = (np.sort(generator.choice(n_texts, size, replace=False)) for _ in range(2))
            _, in_one, in_other = np.intersect1d(one, other, assume_unique=True, return_indices=True)
            self._pairs.append((ward_tree(points[one]), in_one, ward_tree(points[other]), in_other))
        self._near = nearest_by_vector(self._units)
        self._akin = None if texts is None else nearest_by_words(texts)

    def labels(self, k: int) -> NDArray[np.int64]:
        """The clusters that are judged: the tree of all texts, cut."""
        return cut(self._tree, len(self._units), k)

    def of(self, k: int) -> dict[str, float]:
        """Every sign of ``k`` clusters; more is better, though gap rises with k nearly always."""
        labels = self.labels(k)
        return {
            "stability": float(np.mean([_agreement(pair, k) for pair in self._pairs])),
            "silhouette": cosine_silhouette(self._units, labels),
            "gap": self._gap(k),
            "neighbours": kept_together(labels, *self._near),
            "words": float("nan") if self._akin is None else kept_together(labels, *self._akin),
        }

    def _gap(self, k: int) -> float:
        """Gap statistic (Tibshirani, Walther and Hastie, 2001): how much tighter clusters are than parts of a cloud."""
        place = len(self._units) - k - 1
        return float(np.mean([each[place] for each in self._references]) - self._within[place])


def ward_tree(points: NDArray[np.float64]) -> NDArray[np.float64]:
    from scipy.cluster.hierarchy import linkage

    return np.asarray(linkage(points, "ward"))


def adjusted_rand(first: NDArray[np.int64], second: NDArray[np.int64]) -> float:
    """How far two clusterings of the same texts agree beyond chance (Hubert and Arabie, 1985); 1 is fully."""
    from sklearn.metrics import adjusted_rand_score

    return float(adjusted_rand_score(first, second))


def _agreement(
    pair: tuple[NDArray[np.float64], NDArray[np.int64], NDArray[np.float64], NDArray[np.int64]], k: int
) -> float:
    """Of the clusters of two draws, on the texts that are in both."""
    tree, rows, other_tree, other_rows = pair
    return adjusted_rand(cut(tree, len(tree) + 1, k)[rows], cut(other_tree, len(other_tree) + 1, k)[other_rows])


def _log_within(tree: NDArray[np.float64]) -> NDArray[np.float64]:
    """The logarithm of the squared distances to the clusters' means after each merge, of which each adds its part."""
    return np.log(np.maximum(np.cumsum(tree[:, 2] ** 2 / 2), 1e-12))
