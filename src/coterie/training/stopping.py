"""Stop training without labels: it ends when the clusters no longer change."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from coterie.clustering.kmeans import kmeans
from coterie.clustering.partition import Partition


class LabelWatch:
    """Compare the k-means partitions of the embeddings at successive checks.

    k-means starts from the centres of the last check. Cluster numbers therefore keep their meaning, and a change of
    labels is a change of the partition, not another local optimum.

    Parameters
    ----------
    labels, centers:
        The partition before training.
    weights:
        Occurrences of each text.
    patience:
        Checks in a row with little change after which training has converged.
    """

    def __init__(
        self, labels: NDArray[np.int64], centers: NDArray[np.float32], weights: NDArray[np.int64], patience: int
    ) -> None:
        self.labels = labels
        self.centers = centers
        self._weights = weights
        self._patience = patience
        self._stable_checks = 0
        self._head_labels: NDArray[np.int64] | None = None

    def partition(self, embeddings: NDArray[np.float32] | Tensor) -> Partition:
        """Return k-means of ``embeddings``, continued from the last check; nothing is stored."""
        return kmeans(embeddings, len(self.centers), weights=self._weights, init=self.centers, max_iter=100)

    def measure_change(self, embeddings: NDArray[np.float32] | Tensor, tolerance: float) -> float:
        """Return the share of the corpus that changed cluster since the last check, and store the new partition."""
        partition = self.partition(embeddings)
        change = self._change(partition.labels, self.labels, tolerance)
        self.labels, self.centers = partition.labels, partition.centers
        return change

    def measure_head_change(self, labels: NDArray[np.int64], tolerance: float) -> float:
        """Return the share of the corpus whose label by a head changed; 1 for the first check."""
        change = 1.0 if self._head_labels is None else self._change(labels, self._head_labels, tolerance)
        self._head_labels = labels
        return change

    def _change(self, labels: NDArray[np.int64], before: NDArray[np.int64], tolerance: float) -> float:
        change = float(self._weights[labels != before].sum() / self._weights.sum())
        self._stable_checks = self._stable_checks + 1 if change < tolerance else 0
        return change

    @property
    def converged(self) -> bool:
        """Whether the labels changed little at ``patience`` checks in a row."""
        return self._stable_checks >= self._patience

    def can_converge(self, checks: int) -> bool:
        """Return whether this many further checks could make it converged."""
        return self._stable_checks + checks >= self._patience

    def start_over(self) -> None:
        """Reset the count of checks with little change, for a new stage."""
        self._stable_checks = 0
        self._head_labels = None
