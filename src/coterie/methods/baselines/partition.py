"""The clustering step of baselines on fixed vectors: k-means, spherical k-means, a linkage, or UMAP and k-means."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from coterie.checks import check_choice
from coterie.clustering.agglomerative import LARGEST, LINKAGES, linkage_labels
from coterie.clustering.kmeans import centroids, kmeans, spherical_kmeans, unit_rows
from coterie.clustering.umap_reduction import umap_reduced
from coterie.errors import require_extra
from coterie.methods.base import ClusteringMethod
from coterie.methods.results import Learned

CLUSTERERS = ("kmeans", "spherical", *LINKAGES, "umap")
# Dimensions of UMAP: the default of BERTopic, common for texts.
UMAP_DIMENSIONS = 5


@dataclass(kw_only=True, eq=False, repr=False)
class PartitionMixin(ClusteringMethod):
    """Add the clustering step to a method.

    Parameters
    ----------
    clusterer:
        One of ``CLUSTERERS``.
    """

    clusterer: str = "kmeans"
    _clusterers: ClassVar[tuple[str, ...]] = CLUSTERERS

    def _check_settings(self) -> None:
        super()._check_settings()
        check_choice("clusterer", self.clusterer, self._clusterers)
        if self.clusterer == "umap":
            require_extra("umap", "umap")

    def max_rows(self) -> int | None:
        return LARGEST if self.clusterer in LINKAGES else None

    def _prepare(self, features: Any) -> Any:
        """Return the vectors that are clustered: of unit length for spherical k-means."""
        return unit_rows(features) if self.clusterer == "spherical" else features

    def _partition(self, features: Any, counts: NDArray[np.int64]) -> Learned:
        k = self.n_clusters
        features = self._prepare(features)
        if self.clusterer in LINKAGES:
            return self._with_centroids(features, linkage_labels(features, k, self.clusterer, counts), counts)
        if self.clusterer == "umap":
            # Each text is one point, since copies would fill its neighbourhood; k-means then weights it by its count.
            reduced = umap_reduced(features, UMAP_DIMENSIONS, self.seed_)
            labels = kmeans(reduced, k, weights=counts, seed=self.seed_).labels
            return self._with_centroids(features, labels, counts)
        if self.clusterer == "spherical":
            return Learned(features, spherical_kmeans(features, k, weights=counts, seed=self.seed_).centers)
        return Learned(features, kmeans(self._on_device(features), k, weights=counts, seed=self.seed_).centers)

    def _on_device(self, features: Any) -> Any:
        """Return the vectors on the device where k-means runs; on the CPU unless the method has a device."""
        return features

    def _with_centroids(self, features: Any, labels: NDArray[np.int64], counts: NDArray[np.int64]) -> Learned:
        """Return a partition that is not "nearest centre", with the cluster means that ``predict`` uses."""
        return Learned(features, centroids(features, labels, self.n_clusters, counts).astype(np.float32), labels)
