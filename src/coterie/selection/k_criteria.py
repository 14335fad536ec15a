"""The label-free criteria of a number of clusters.

Clusters are cuts of the Ward tree of the vectors, averaged with those of their semantic and lexical neighbours. One
tree gives the clusters for every number, so each subsample needs only one tree.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from coterie.clustering.agglomerative import cut
from coterie.clustering.kmeans import unit_rows
from coterie.clustering.nearest import nearest
from coterie.metrics.internal.modularity import NeighbourPairs, neighbour_information, neighbour_pairs
from coterie.metrics.internal.reference_cloud import principal_coordinates, reference_points
from coterie.selection.criteria import CRITERIA
from coterie.selection.neighbour_graphs import GRAPH_NEIGHBOURS, LexicalGraph, NeighbourGraphs, build_graphs

# Principal dimensions in which trees are built: the other dimensions are mostly noise, and cost time.
DIMENSIONS = 50
# Clusters by which the lexical graph is weighted, as a share of the root of the number of texts: 21 for 4,000 texts.
CLUSTERS_PER_ROOT = 1 / 3
# Seed of the clusters by which the lexical graph is weighted. It is fixed, so that up to 4,000 texts give the same
# number whatever the seed of the fit is.
WEIGHT_SEED = 0
# Subsamples to measure stability on, in pairs, so an even number: each costs a neighbour graph and a tree.
SUBSAMPLES = 6
# Share of the texts in a subsample: two thirds of the texts are then in both of a pair.
SUBSAMPLE_SHARE = 0.8
# Reference clouds without clusters that the gap is measured against: each costs one tree.
REFERENCE_CLOUDS = 2
# Names in run.json of the criteria that :mod:`coterie.selection.criteria` computes.
NAMES = {"silhouette": "silhouette", "neighbours": "semantic_modularity", "words": "lexical_modularity"}


class _Subsample(NamedTuple):
    """The rows of some of the texts, and the Ward tree of them."""

    rows: NDArray[np.int64]
    tree: NDArray[np.float64]


class TreeCriteria:
    """The criteria of every number of clusters of the same texts.

    The instance is at the same time the :class:`~coterie.selection.criteria.Evidence` of its criteria.

    Parameters
    ----------
    vectors:
        One row per text.
    texts:
        The texts, for lexical neighbours; without them the lexical criterion is NaN.
    seed:
        Seed of subsamples and reference clouds.
    """

    # No criterion of :data:`NAMES` needs these.
    points: NDArray[np.float64] | None = None
    word_presence: Any | None = None

    def __init__(self, vectors: NDArray[Any], texts: Sequence[str] | None, seed: int) -> None:
        generator = np.random.default_rng(seed)
        self.units: NDArray[np.float32] = np.asarray(unit_rows(vectors), dtype=np.float32)
        n_texts = len(self.units)
        lexical = None if texts is None else LexicalGraph.build(texts)
        graphs = build_graphs(self.units, lexical, max(2, int(CLUSTERS_PER_ROOT * n_texts**0.5)), seed=WEIGHT_SEED)
        self._tree = _tree_of_graphs(graphs)
        self._near = nearest(self.units, min(GRAPH_NEIGHBOURS, n_texts - 1))[0]
        size = int(SUBSAMPLE_SHARE * n_texts)
        subsamples = (np.sort(generator.choice(n_texts, size, replace=False)) for _ in range(SUBSAMPLES))
        self._subsamples = [_Subsample(rows, _tree_of_graphs(graphs.subset(rows))) for rows in subsamples]
        points = principal_coordinates(self.units, DIMENSIONS)
        self._log_within = _log_within(ward_tree(points))
        self._references = [
            _log_within(ward_tree(reference_points(points, generator))) for _ in range(REFERENCE_CLOUDS)
        ]
        self.semantic_pairs: NeighbourPairs = neighbour_pairs(self._near)
        self.lexical_pairs: NeighbourPairs | None = None if lexical is None else lexical.pairs

    def labels(self, k: int) -> NDArray[np.int64]:
        """Return the cluster of each text, from 0 to ``k - 1``: a cut of the tree of all texts."""
        return cut(self._tree, len(self.units), k)

    def compute(self, k: int) -> dict[str, float]:
        """Return every criterion of ``k`` clusters; larger is better, but the gap rises with k nearly always."""
        labels = self.labels(k)
        pairs = zip(self._subsamples[::2], self._subsamples[1::2], strict=True)
        return {
            "information": neighbour_information(labels, self._near),
            **{name: CRITERIA[criterion].compute(labels, self) for name, criterion in NAMES.items()},
            "stability": float(np.mean([_agreement(one, other, k) for one, other in pairs])),
            "gap": self._gap(k),
        }

    def _gap(self, k: int) -> float:
        """Return the gap statistic (Tibshirani et al., 2001): how much tighter clusters are than parts of a cloud."""
        row = len(self.units) - k - 1
        return float(np.mean([each[row] for each in self._references]) - self._log_within[row])


def _tree_of_graphs(graphs: NeighbourGraphs) -> NDArray[np.float64]:
    """Return the Ward tree of vectors averaged with those of their neighbours."""
    return ward_tree(principal_coordinates(np.asarray(graphs.smoothed, dtype=np.float32), DIMENSIONS))


def ward_tree(points: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the Ward tree of the points, in scipy's format."""
    from scipy.cluster.hierarchy import linkage

    return np.asarray(linkage(points, "ward"))


def _agreement(one: _Subsample, other: _Subsample, k: int) -> float:
    """Return the adjusted Rand index of the clusters of two subsamples, on the texts in both."""
    from sklearn.metrics import adjusted_rand_score

    _, rows, other_rows = np.intersect1d(one.rows, other.rows, assume_unique=True, return_indices=True)
    first, second = (cut(each.tree, len(each.rows), k) for each in (one, other))
    return float(adjusted_rand_score(first[rows], second[other_rows]))


def _log_within(tree: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the logarithm of the squared distances to the cluster means after each merge; each merge adds its part."""
    return np.log(np.maximum(np.cumsum(tree[:, 2] ** 2 / 2), 1e-12))
