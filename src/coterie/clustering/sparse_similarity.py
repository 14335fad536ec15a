"""Linkage on sparsified cosine similarities, of which only the largest count (HAC-SD)."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from coterie.clustering.agglomerative import LINKAGES, check_size, cut
from coterie.clustering.kmeans import unit_rows
from coterie.errors import SettingError

# Rows whose similarities are computed at a time: 25,000 columns of float32 are then 50 MB.
BLOCK = 512


def sparse_similarity_labels(
    features: Any, n_clusters: int, counts: NDArray[np.int64], linkage: str = "average"
) -> NDArray[np.int64]:
    """Cut the tree of ``linkage`` on :func:`sparse_distances` at ``n_clusters``.

    ``counts`` says how often each row occurs; as in :func:`~coterie.clustering.agglomerative.linkage_labels`, rows are
    repeated and limited to ``LARGEST``. 20,000 rows took 3.2 GB, most of it scipy's.
    """
    from scipy.cluster.hierarchy import linkage as build_tree

    if linkage not in LINKAGES:
        raise SettingError(f"linkage={linkage!r} is unknown; use one of {', '.join(LINKAGES)}")
    total = int(counts.sum())
    check_size("hac_sd", total)
    tree = build_tree(sparse_distances(features, n_clusters, counts), method=linkage)
    firsts = np.concatenate([[0], np.cumsum(counts)[:-1]])
    return cut(tree, total, n_clusters)[firsts]


def sparse_distances(features: Any, n_clusters: int, counts: NDArray[np.int64]) -> NDArray[np.float64]:
    """``1 - similarity`` of all pairs of rows, as scipy's condensed vector; dropped similarities are 0.

    Of the N x N cosine similarities the largest N^2 / K stay. The diagonal is among them, which leaves
    N (N / K - 1) / 2 pairs: as many as there are inside K clusters of equal size. Pairs that tie with the last one
    stay too, so the order of the rows decides nothing.
    """
    similarities = _pair_similarities(features, counts)
    threshold = _threshold(similarities, int(counts.sum()), n_clusters)
    similarities[similarities < threshold] = 0
    # float64 is what scipy works in; it would make the copy itself and keep both.
    distances = similarities.astype(np.float64)
    del similarities
    return np.subtract(1, distances, out=distances)


def _pair_similarities(features: Any, counts: NDArray[np.int64]) -> NDArray[np.float32]:
    """Cosine similarities of all pairs of repeated rows, condensed; copies have similarity 1 exactly."""
    from scipy.sparse import issparse

    dense = np.asarray(features.todense()) if issparse(features) else np.asarray(features)
    rows = unit_rows(dense.astype(np.float32))
    total = int(counts.sum())
    result = np.empty(total * (total - 1) // 2, dtype=np.float32)
    end = 0
    for begin in range(0, len(rows), BLOCK):
        block = np.clip(rows[begin : begin + BLOCK] @ rows[begin:].T, -1, 1)
        for i, similarities in enumerate(block):
            own = counts[begin + i]
            # From this row's first copy on: its copies, then those of all later rows.
            repeated = np.repeat(similarities[i:], counts[begin + i :])
            repeated[:own] = 1
            for copy in range(own):
                later = repeated[copy + 1 :]
                result[end : end + len(later)] = later
                end += len(later)
    return result


def _threshold(similarities: NDArray[np.float32], n_rows: int, n_clusters: int) -> float:
    """The smallest similarity that stays.

    At least as many pairs stay as the tree will merge, else chance would choose them. None below 0 does: beside pairs
    set to 0 it would count as farther than those that are less alike.
    """
    n_pairs = max(int((n_rows**2 / n_clusters - n_rows) / 2), n_rows - n_clusters)
    if n_pairs == 0:
        return np.inf
    place = len(similarities) - n_pairs
    return max(float(np.partition(similarities, place)[place]), 0.0)
