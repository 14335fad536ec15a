"""Fixed vectors, then one of four clusterings: what the first baselines share."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from coterie.checks import check_choice
from coterie.clustering.agglomerative import LARGEST, LINKAGES, linkage_labels
from coterie.clustering.kmeans import centroids, kmeans, spherical_kmeans, unit_rows
from coterie.methods.base import ClusteringMethod
from coterie.methods.results import Learned

CLUSTERERS = ("kmeans", "spherical", *LINKAGES)


class PartitionMixin(ClusteringMethod):
    """Adds the parameter ``clusterer`` and the clustering step."""

    clusterer: str

    def _check_settings(self) -> None:
        super()._check_settings()
        check_choice("clusterer", self.clusterer, CLUSTERERS)

    def _most_rows(self) -> int | None:
        return LARGEST if self.clusterer in LINKAGES else None

    def _prepare(self, features: Any) -> Any:
        """Vectors as the clustering sees them: of unit length for spherical k-means."""
        return unit_rows(features) if self.clusterer == "spherical" else features

    def _partition(self, features: Any, counts: NDArray[np.int64]) -> Learned:
        k = self.n_clusters
        features = self._prepare(features)
        if self.clusterer in LINKAGES:
            labels = linkage_labels(features, k, self.clusterer, counts)
            centers = centroids(features, labels, k, counts).astype(np.float32)
            return Learned(features, centers, labels)
        run = kmeans if self.clusterer == "kmeans" else spherical_kmeans
        return Learned(features, run(features, k, weights=counts, seed=self.seed_).centers)
