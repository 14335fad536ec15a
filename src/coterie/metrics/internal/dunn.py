"""Dunn index: the smallest gap between clusters over the largest diameter of a cluster (Dunn, 1974)."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from coterie.metrics.internal.inputs import (
    ClusteredPoints,
    clustered_points,
    distances_between,
    row_blocks,
    squared_distances,
    squared_norms,
)


def dunn(embeddings: ArrayLike, labels: ArrayLike) -> float:
    """Return the smallest distance between texts of different clusters over the largest between two of one cluster.

    Distances are Euclidean; larger is better. Rows labelled -1 are left out, and at least two clusters are
    needed. Where every cluster has diameter 0 (single texts or duplicates) the index is infinite, unless two
    clusters also share a point: a gap of 0 always gives 0.
    """
    data = clustered_points(embeddings, labels, min_clusters=2)
    gap = _smallest_gap(data)
    if gap == 0.0:
        return 0.0
    diameter = _largest_diameter(data)
    return gap / diameter if diameter > 0.0 else math.inf


# In both searches the matrix product only selects the partner of each row. The distance to it is then computed from the
# difference, so that duplicates have distance 0.


def _smallest_gap(data: ClusteredPoints) -> float:
    points = data.points - data.points.mean(axis=0)
    norms = squared_norms(points)
    smallest = math.inf
    # Rows of the last cluster have only earlier partners, and these pairs have been compared already.
    for block in row_blocks(0, int(data.starts[-1]), len(points)):
        later = slice(block.start, None)
        distances = squared_distances(points[block], norms[block], points[later], norms[later])
        distances[data.codes[block][:, None] == data.codes[None, later]] = np.inf
        partners = block.start + distances.argmin(axis=1)
        # Every row here has a partner in another cluster, because the last cluster comes later.
        smallest = min(smallest, float(distances_between(data.points[block], data.points[partners]).min()))
    return smallest


def _largest_diameter(data: ClusteredPoints) -> float:
    largest = 0.0
    for start, size in zip(data.starts, data.sizes, strict=True):
        members = data.points[start : start + size]
        centred = members - members.mean(axis=0)
        norms = squared_norms(centred)
        # No two points lie further apart than twice the largest distance from the centre.
        if 2.0 * math.sqrt(norms.max()) < largest:
            continue
        for block in row_blocks(0, int(size), int(size)):
            later = slice(block.start, None)
            distances = squared_distances(centred[block], norms[block], centred[later], norms[later])
            partners = block.start + distances.argmax(axis=1)
            largest = max(largest, float(distances_between(members[block], members[partners]).max()))
    return largest
