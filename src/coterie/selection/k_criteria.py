"""The label-free criteria of a number of clusters.

Clusters are cuts of a Ward tree. One tree gives the clusters for every number, so each subsample needs only one tree.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from coterie.clustering.agglomerative import cut
from coterie.clustering.kmeans import unit_rows
from coterie.metrics.internal.modularity import NeighbourPairs, lexical_pairs, semantic_pairs
from coterie.metrics.internal.reference_cloud import principal_coordinates, reference_points
from coterie.selection.criteria import CRITERIA

# Principal dimensions in which trees are built: the other dimensions are mostly noise, and cost time.
DIMENSIONS = 50
# Pairs of subsamples to measure stability on: each pair costs two trees.
SUBSAMPLE_PAIRS = 5
# Share of the texts in a subsample: half of the texts are then in both.
SUBSAMPLE_SHARE = 0.7
# Reference clouds without clusters that the gap is measured against: each costs one tree.
REFERENCE_CLOUDS = 2
# Names in run.json of the criteria that :mod:`coterie.selection.criteria` computes.
NAMES = {"silhouette": "silhouette", "neighbours": "semantic_modularity", "words": "lexical_modularity"}


class _SubsamplePair(NamedTuple):
    """Ward trees of two subsamples, and the rows of each that are also in the other."""

    tree: NDArray[np.float64]
    rows: NDArray[np.int64]
    other_tree: NDArray[np.float64]
    other_rows: NDArray[np.int64]


class TreeCriteria:
    """The criteria of every number of clusters of the same texts.

    The instance is at the same time the :class:`~coterie.selection.criteria.Evidence` of its criteria.

    Parameters
    ----------
    vectors:
        One row per text.
    texts:
        The texts, for the lexical criterion; without them it is NaN.
    seed:
        Seed of subsamples and reference clouds.
    """

    # No criterion of :data:`NAMES` needs these.
    points: NDArray[np.float64] | None = None
    word_presence: Any | None = None

    def __init__(self, vectors: NDArray[Any], texts: Sequence[str] | None, seed: int) -> None:
        generator = np.random.default_rng(seed)
        self.units: NDArray[np.float32] = np.asarray(unit_rows(vectors), dtype=np.float32)
        points = principal_coordinates(self.units, DIMENSIONS)
        n_texts = len(points)
        self._tree = ward_tree(points)
        self._log_within = _log_within(self._tree)
        self._references = [
            _log_within(ward_tree(reference_points(points, generator))) for _ in range(REFERENCE_CLOUDS)
        ]
        self._subsample_pairs = []
        for _ in range(SUBSAMPLE_PAIRS):
            size = int(SUBSAMPLE_SHARE * n_texts)
            one, other = (np.sort(generator.choice(n_texts, size, replace=False)) for _ in range(2))
            _, in_one, in_other = np.intersect1d(one, other, assume_unique=True, return_indices=True)
            pair = _SubsamplePair(ward_tree(points[one]), in_one, ward_tree(points[other]), in_other)
            self._subsample_pairs.append(pair)
        self.semantic_pairs: NeighbourPairs = semantic_pairs(self.units)
        self.lexical_pairs: NeighbourPairs | None = None if texts is None else lexical_pairs(texts)

    def labels(self, k: int) -> NDArray[np.int64]:
        """Return the cluster of each text, from 0 to ``k - 1``: a cut of the tree of all texts."""
        return cut(self._tree, len(self.units), k)

    def compute(self, k: int) -> dict[str, float]:
        """Return every criterion of ``k`` clusters; larger is better, but the gap rises with k nearly always."""
        labels = self.labels(k)
        found = {name: CRITERIA[criterion].compute(labels, self) for name, criterion in NAMES.items()}
        stability = float(np.mean([_agreement(pair, k) for pair in self._subsample_pairs]))
        return {**found, "stability": stability, "gap": self._gap(k)}

    def _gap(self, k: int) -> float:
        """Return the gap statistic (Tibshirani et al., 2001): how much tighter clusters are than parts of a cloud."""
        row = len(self.units) - k - 1
        return float(np.mean([each[row] for each in self._references]) - self._log_within[row])


def ward_tree(points: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the Ward tree of the points, in scipy's format."""
    from scipy.cluster.hierarchy import linkage

    return np.asarray(linkage(points, "ward"))


def _agreement(pair: _SubsamplePair, k: int) -> float:
    """Return the adjusted Rand index of the clusters of two subsamples, on the texts in both."""
    from sklearn.metrics import adjusted_rand_score

    first = cut(pair.tree, len(pair.tree) + 1, k)[pair.rows]
    second = cut(pair.other_tree, len(pair.other_tree) + 1, k)[pair.other_rows]
    return float(adjusted_rand_score(first, second))


def _log_within(tree: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the logarithm of the squared distances to the cluster means after each merge; each merge adds its part."""
    return np.log(np.maximum(np.cumsum(tree[:, 2] ** 2 / 2), 1e-12))
