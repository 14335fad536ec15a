"""Spread and separation of clusters around their centroids (Zhang et al., 2021, SCCL, section 4.2.1)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from coterie.metrics.internal.inputs import (
    clustered_points,
    distances_between,
    row_blocks,
    squared_distances,
    squared_norms,
)


@dataclass(frozen=True, eq=False)
class ClusterDistances:
    """Euclidean distances of each cluster; the arrays run over the non-empty clusters, in ascending order."""

    cluster_ids: NDArray[Any]
    intra: NDArray[np.float64]
    """Average distance between the cluster's centroid and its texts."""
    inter: NDArray[np.float64]
    """Distance from the cluster's centroid to the closest other centroid; NaN where there is no other."""

    @property
    def mean_intra(self) -> float:
        """Mean of ``intra`` over clusters, unweighted: a small cluster counts as much as a large one."""
        return float(self.intra.mean())

    @property
    def mean_inter(self) -> float:
        """Mean of ``inter`` over clusters, unweighted: a small cluster counts as much as a large one."""
        return float(self.inter.mean())


def cluster_distances(embeddings: ArrayLike, labels: ArrayLike) -> ClusterDistances:
    """Return the mean distance inside each cluster and the distance to the closest other centroid.

    A centroid is the mean of its cluster's embeddings. Rows labelled -1 are left out. With a single cluster ``inter``
    is NaN rather than an error, so that a run that tracks these distances continues after a collapse.
    """
    data = clustered_points(embeddings, labels)
    sizes = data.sizes.astype(np.float64)
    centroids = np.add.reduceat(data.points, data.starts, axis=0) / sizes[:, None]
    spread = distances_between(data.points, centroids[data.codes])
    return ClusterDistances(
        cluster_ids=data.cluster_ids,
        intra=np.add.reduceat(spread, data.starts) / sizes,
        inter=_to_closest_other(centroids),
    )


def _to_closest_other(centroids: NDArray[np.float64]) -> NDArray[np.float64]:
    n_clusters = len(centroids)
    closest = np.full(n_clusters, np.nan)
    if n_clusters == 1:
        return closest
    centred = centroids - centroids.mean(axis=0)
    norms = squared_norms(centred)
    for block in row_blocks(0, n_clusters, n_clusters):
        distances = squared_distances(centred[block], norms[block], centred, norms)
        members = np.arange(block.start, block.stop)
        distances[members - block.start, members] = np.inf
        # The matrix product selects the neighbour; the difference gives the distance without rounding errors.
        closest[block] = distances_between(centroids[block], centroids[distances.argmin(axis=1)])
    return closest
