"""The contingency table of classes and clusters, from which every external measure is computed.

Accuracy, NMI, ARI and purity are all computed from it, so that the score of all rows and the score of a bootstrap
sample (:mod:`coterie.metrics.external.significance`) have the same definition. Only non-empty cells are stored: with
152 classes and 152 clusters, these are a few percent.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

NmiAverage: TypeAlias = Literal["arithmetic", "geometric"]
Counts: TypeAlias = NDArray[np.float64]

UNASSIGNED = -1
"""Predicted label of a text that is in no cluster."""


@dataclass(frozen=True)
class Contingency:
    """A table of classes and clusters. The measures take the counts of its cells (:meth:`counts`).

    Clusters are numbered from 0. If there are rows in no cluster, they have the last number: they count as one cluster
    in NMI and ARI, and as wrong in accuracy and purity.
    """

    cell_of_row: NDArray[np.intp]
    class_of_cell: NDArray[np.intp]
    cluster_of_cell: NDArray[np.intp]
    n_classes: int
    n_clusters: int
    """Number of clusters, not counting the rows in no cluster as one."""

    @classmethod
    def of(cls, true: NDArray[np.int64], pred: NDArray[np.int64]) -> Contingency:
        """Build the table from integer codes; the code ``-1`` in ``pred`` means no cluster."""
        classes, rows = np.unique(true, return_inverse=True)
        clusters, columns = np.unique(pred, return_inverse=True)
        n_clusters = len(clusters)
        if n_clusters and clusters[0] == UNASSIGNED:
            # np.unique sorts it first; as the last one it does not change the numbers of the others.
            n_clusters -= 1
            columns = np.where(columns == 0, n_clusters, columns - 1)
        cells, cell_of_row = np.unique(rows * (n_clusters + 1) + columns, return_inverse=True)
        return cls(cell_of_row, cells // (n_clusters + 1), cells % (n_clusters + 1), len(classes), n_clusters)

    def counts(self, weights: NDArray[np.float64] | None = None) -> Counts:
        """Count the rows of each cell, weighted by ``weights``."""
        return _bincount(self.cell_of_row, weights, len(self.class_of_cell))

    def matching(self, counts: Counts) -> NDArray[np.intp]:
        """Return the class of each cluster in the best one-to-one matching (Hungarian), or ``-1``."""
        assigned = self.cluster_of_cell < self.n_clusters
        table = np.zeros((self.n_classes, self.n_clusters))
        table[self.class_of_cell[assigned], self.cluster_of_cell[assigned]] = counts[assigned]
        from scipy.optimize import linear_sum_assignment

        classes, clusters = linear_sum_assignment(table, maximize=True)
        class_of_cluster = np.full(self.n_clusters + 1, -1, dtype=np.intp)
        class_of_cluster[clusters] = classes
        return class_of_cluster

    def accuracy(self, counts: Counts, matching: NDArray[np.intp] | None = None) -> float:
        """Return the share of rows whose class is that of their cluster, by ``matching`` or by the best one."""
        class_of_cluster = self.matching(counts) if matching is None else matching
        right = class_of_cluster[self.cluster_of_cell] == self.class_of_cell
        return float(counts[right].sum() / counts.sum())

    def purity(self, counts: Counts) -> float:
        """Return the share of rows that belong to the most frequent class of their cluster."""
        largest = np.zeros(self.n_clusters + 1)
        np.maximum.at(largest, self.cluster_of_cell, counts)
        return float(largest[: self.n_clusters].sum() / counts.sum())

    def nmi(self, counts: Counts, average: NmiAverage = "arithmetic") -> float:
        """Return mutual information over the mean of the two entropies."""
        total = counts.sum()
        by_class, by_cluster = self._margins(counts)
        joint, of_classes, of_clusters = (_entropy(each / total) for each in (counts, by_class, by_cluster))
        information = of_classes + of_clusters - joint
        if of_classes == of_clusters == 0.0:
            return 1.0  # one class, one cluster
        mean = (of_classes + of_clusters) / 2 if average == "arithmetic" else np.sqrt(of_classes * of_clusters)
        # Without mutual information NMI is 0 for either mean. Rounding can make the result slightly larger than 1.
        return 0.0 if information <= 1e-12 else float(min(1.0, information / mean))

    def ari(self, counts: Counts) -> float:
        """Return the adjusted Rand index."""
        total = _pairs(counts.sum())
        if total == 0.0:
            return 1.0  # one row
        together, by_class, by_cluster = (_pairs(each).sum() for each in (counts, *self._margins(counts)))
        expected, most = by_class * by_cluster / total, (by_class + by_cluster) / 2
        return 1.0 if most == expected else float((together - expected) / (most - expected))

    def _margins(self, counts: Counts) -> tuple[Counts, Counts]:
        by_class = _bincount(self.class_of_cell, counts, self.n_classes)
        return by_class, _bincount(self.cluster_of_cell, counts, self.n_clusters + 1)


def _bincount(places: NDArray[np.intp], weights: NDArray[np.float64] | None, size: int) -> Counts:
    return np.bincount(places, weights, minlength=size).astype(np.float64, copy=False)


def _entropy(shares: NDArray[np.float64]) -> float:
    positive = shares[shares > 0]
    return max(0.0, -float(positive @ np.log(positive)))


def _pairs(counts: Counts) -> Counts:
    return counts * (counts - 1) / 2
