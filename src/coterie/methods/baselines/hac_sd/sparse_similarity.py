"""Cluster by linkage on sparsified cosine similarities: only those that are high for their rows count (HAC-SD)."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse

from coterie.clustering.agglomerative import LINKAGES, check_size, cut
from coterie.clustering.kmeans import unit_rows
from coterie.errors import SettingError

# Rows per block of similarities: a block with 25,000 columns of float32 takes 50 MB.
BLOCK = 512
# Variances of float32 similarities below this are rounding errors.
TINY = 1e-10


def sparse_similarity_labels(
    features: Any, n_clusters: int, counts: NDArray[np.int64], linkage: str = "average"
) -> NDArray[np.int64]:
    """Cut the tree of ``linkage`` on :func:`sparse_distances` at ``n_clusters``.

    ``counts`` has the occurrences of each row; as in :func:`~coterie.clustering.agglomerative.linkage_labels`, rows are
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
    """Return ``1 - similarity`` of all pairs of rows, as scipy's condensed vector; dropped similarities are 0.

    Similarities are compared in standard deviations above the mean of their row, since a high value means less for a
    text that is similar to many others; a pair has the higher of its two rows' scores. N^2 / K of the N x N entries are
    kept. The diagonal is among them, which leaves N (N / K - 1) / 2 pairs: as many as there are inside K clusters of
    equal size. Pairs that tie with the last one are kept too, so that the result does not depend on the order of the
    rows. Similarities below 0 count as 0: they would be farther than dropped pairs.
    """
    dense = np.asarray(features.todense()) if issparse(features) else np.asarray(features)
    rows = unit_rows(dense.astype(np.float32))
    similarities = _pair_similarities(rows, counts)
    scores = _significance(similarities, *_row_moments(rows, counts), counts)
    similarities[scores < _threshold(scores, int(counts.sum()), n_clusters)] = 0
    del scores
    # scipy works in float64; it would make this copy itself and hold both arrays.
    distances = similarities.astype(np.float64)
    del similarities
    np.maximum(distances, 0, out=distances)
    return np.subtract(1, distances, out=distances)


def _row_moments(
    rows: NDArray[np.float32], counts: NDArray[np.int64]
) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Return mean and standard deviation of each row's similarities to the other rows, copies included."""
    others = int(counts.sum()) - 1
    means, deviations = np.zeros(len(rows)), np.ones(len(rows))
    for begin in range(0, len(rows), BLOCK):
        block = np.clip(rows[begin : begin + BLOCK] @ rows.T, -1, 1).astype(np.float64)
        own = np.arange(len(block))
        block[own, begin + own] = 1
        weights = np.broadcast_to(counts, block.shape).copy()
        weights[own, begin + own] -= 1
        mean = (block * weights).sum(axis=1) / others
        variance = (np.square(block - mean[:, None]) * weights).sum(axis=1) / others
        means[begin : begin + len(block)] = mean
        # A row with the same similarity to all others has no high ones.
        deviations[begin : begin + len(block)] = np.sqrt(np.where(variance > TINY, variance, 1))
    return means.astype(np.float32), deviations.astype(np.float32)


def _significance(
    similarities: NDArray[np.float32],
    means: NDArray[np.float32],
    deviations: NDArray[np.float32],
    counts: NDArray[np.int64],
) -> NDArray[np.float32]:
    """Return the score of all pairs: deviations above the row's mean, the higher of both rows."""
    means, deviations = np.repeat(means, counts), np.repeat(deviations, counts)
    result = np.empty_like(similarities)
    end = 0
    for i in range(len(means) - 1):
        begin, end = end, end + len(means) - 1 - i
        pairs = similarities[begin:end]
        by_first, by_second = (pairs - means[i]) / deviations[i], (pairs - means[i + 1 :]) / deviations[i + 1 :]
        np.maximum(by_first, by_second, out=result[begin:end])
    return result


def _pair_similarities(rows: NDArray[np.float32], counts: NDArray[np.int64]) -> NDArray[np.float32]:
    """Return cosine similarities of all pairs of repeated unit rows, condensed; copies have exactly 1."""
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


def _threshold(scores: NDArray[np.float32], n_rows: int, n_clusters: int) -> float:
    """Return the score of the last pair that is kept.

    At least as many pairs are kept as the tree merges; otherwise the choice among pairs at distance 1 would be random.
    """
    n_pairs = max(int((n_rows**2 / n_clusters - n_rows) / 2), n_rows - n_clusters)
    if n_pairs == 0:
        return np.inf
    place = len(scores) - n_pairs
    return float(np.partition(scores, place)[place])
