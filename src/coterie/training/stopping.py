"""The label-free stop: training ends when the clusters no longer change."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from coterie.clustering.kmeans import Partition, kmeans


class LabelWatch:
    """Follows the k-means partition of the embeddings from look to look.

    k-means is warm-started from the last look's centres, so cluster ids keep their meaning and a change of
    labels is a change of the partition, not another local optimum.
    """

    def __init__(
        self, labels: NDArray[np.int64], centers: NDArray[np.float32], weights: NDArray[np.int64], patience: int
    ) -> None:
        self.labels = labels
        self.centers = centers
        self._weights = weights
        self._patience = patience
        self._calm = 0
        self._head_labels: NDArray[np.int64] | None = None

    def partition(self, embeddings: NDArray[np.float32] | Tensor) -> Partition:
        """k-means of ``embeddings`` continued from the last look; changes nothing here."""
        return kmeans(embeddings, len(self.centers), weights=self._weights, init=self.centers, max_iter=100)

    def look(self, embeddings: NDArray[np.float32] | Tensor, tolerance: float) -> float:
        """Share of the corpus that changed cluster since the last look."""
        partition = self.partition(embeddings)
        change = self._change(partition.labels, self.labels, tolerance)
        self.labels, self.centers = partition.labels, partition.centers
        return change

    def look_at_head(self, labels: NDArray[np.int64], tolerance: float) -> float:
        """The same for labels that a head gave; the first look has nothing to compare with and counts as all."""
        change = 1.0 if self._head_labels is None else self._change(labels, self._head_labels, tolerance)
        self._head_labels = labels
        return change

    def _change(self, labels: NDArray[np.int64], before: NDArray[np.int64], tolerance: float) -> float:
        change = float(self._weights[labels != before].sum() / self._weights.sum())
        self._calm = self._calm + 1 if change < tolerance else 0
        return change

    @property
    def settled(self) -> bool:
        """Whether the labels stayed calm for as many looks in a row as asked."""
        return self._calm >= self._patience

    def may_settle(self, looks: int) -> bool:
        """Whether so many more looks could make it settled."""
        return self._calm + looks >= self._patience

    def start_over(self) -> None:
        """Forget calm looks (a new stage begins)."""
        self._calm = 0
        self._head_labels = None
