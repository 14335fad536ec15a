"""Soft and hard assignment of vectors to centres."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from torch import Tensor

# Rows converted to float64 at a time, which bounds the memory of the copy.
DISTANCE_BLOCK = 2_048
# Most rows compared with the centres at a time, if there are few centres.
TABLE_ROWS = 8_192
# Most cells of a table of rows and centres at a time: 128 MiB in float64.
TABLE_CELLS = 2**24


def student_t_from_distances(squared_distances: NDArray[np.float64], alpha: float) -> NDArray[np.float64]:
    """Return assignment probabilities from squared distances to the K centres (SCCL Eq. 3, DEC Eq. 1).

    ``q_k`` is proportional to ``(1 + d_k^2 / alpha) ** (-(alpha + 1) / 2)``.
    """
    # A softmax of logarithms, in one array: the power itself overflows for distant texts.
    table = np.asarray(squared_distances / alpha)
    np.log1p(table, out=table)
    table *= -(alpha + 1) / 2
    table -= table.max(axis=-1, keepdims=True)
    np.exp(table, out=table)
    table /= table.sum(axis=-1, keepdims=True)
    return table


def student_t(embeddings: Tensor, centers: Tensor, alpha: float = 1.0) -> Tensor:
    """Return assignment probabilities of ``embeddings`` to ``centers`` (SCCL Eq. 3), at least in float32."""
    import torch

    if embeddings.dtype != torch.float64:
        embeddings, centers = embeddings.float(), centers.float()
    # Not cdist: its square root has no gradient where a text lies on a centre.
    squared = (
        embeddings.square().sum(-1, keepdim=True) - 2 * embeddings @ centers.T + centers.square().sum(-1)
    ).clamp_min(0)
    # As a softmax of logarithms: the power itself overflows for distant texts.
    return torch.softmax(-(alpha + 1) / 2 * torch.log1p(squared / alpha), dim=-1)


def target_distribution(q: Tensor, weights: Tensor | None = None) -> Tensor:
    """Return the sharpened, frequency-corrected target of ``q`` (SCCL Eq. 4): q^2 / f, each row with sum one.

    ``f_k`` is the soft frequency of cluster k; ``weights`` has the number of occurrences of each text in the corpus.
    """
    frequency = q.sum(0) if weights is None else (q * weights.to(q.dtype).unsqueeze(1)).sum(0)
    # A cluster without any mass has a zero column, which stays zero.
    sharpened = q.square() / frequency.where(frequency > 0, 1)
    return sharpened / sharpened.sum(-1, keepdim=True)


def rows_at_a_time(n_centers: int) -> int:
    """Return how many rows to compare with ``n_centers`` centres at a time."""
    return max(1, min(TABLE_ROWS, TABLE_CELLS // n_centers))


def squared_distances(features: Any, centers: NDArray[np.floating[Any]]) -> NDArray[np.float64]:
    """Return squared Euclidean distances, in float64, of dense or sparse rows to ``centers``."""
    from scipy import sparse

    wide = centers.astype(np.float64)
    center_norms = np.square(wide).sum(axis=1)
    if sparse.issparse(features):
        features = features.tocsr()
    result = np.empty((features.shape[0], wide.shape[0]))
    for begin in range(0, features.shape[0], DISTANCE_BLOCK):
        rows = features[begin : begin + DISTANCE_BLOCK].astype(np.float64)
        norms = rows.multiply(rows).sum(axis=1) if sparse.issparse(rows) else np.einsum("ij,ij->i", rows, rows)
        part = result[begin : begin + DISTANCE_BLOCK]
        part[:] = rows @ wide.T
        part *= -2
        part += np.asarray(norms).reshape(-1, 1)
        part += center_norms
    return np.maximum(result, 0, out=result)


def exact_squared_distances(features: Any, centers: NDArray[np.floating[Any]]) -> NDArray[np.float64]:
    """Return squared distances, each row computed on its own: no bit of a row depends on the other rows."""
    from scipy import sparse

    dense = np.asarray(features.todense()) if sparse.issparse(features) else features
    wide = centers.astype(np.float64)
    return np.stack([np.square(row.astype(np.float64) - wide).sum(axis=1) for row in dense])


def near_ties(distances: NDArray[np.float64], tolerance: float = 1e-4) -> NDArray[np.int64]:
    """Return the rows whose nearest two centres are so close that rounding errors could decide between them."""
    if distances.shape[1] < 2:
        return np.zeros(0, dtype=np.int64)
    rows = np.arange(len(distances))
    nearest = distances.argmin(axis=1)
    first = distances[rows, nearest]
    # The minimum without the nearest one is the second; sorting or copying the array would be several times slower.
    distances[rows, nearest] = np.inf
    second = distances.min(axis=1)
    distances[rows, nearest] = first
    return np.flatnonzero(second - first < tolerance * (1 + second))


def within_noise(
    distances: NDArray[np.float64], features: NDArray[Any], gaps: NDArray[np.float64], noise: float
) -> NDArray[np.int64]:
    """Return the rows whose nearest centre may change if every vector is off by ``noise`` of its length.

    ``gaps`` are the distances between the centres. Moving a vector by e changes how much nearer one centre is than
    another, in squared distances, by at most ``2 |e|`` times the gap between the two.
    """
    nearest = distances.argmin(axis=1)
    margin = distances - distances[np.arange(len(distances)), nearest, None]
    reach = 2 * noise * np.linalg.norm(features, axis=1, keepdims=True) * gaps[nearest]
    margin[np.arange(len(distances)), nearest] = np.inf
    return np.flatnonzero((margin <= reach).any(axis=1))


def order_by_size(labels: NDArray[np.int64], n_clusters: int, weights: NDArray[Any]) -> NDArray[np.int64]:
    """Return cluster ids from the largest to the smallest; clusters of equal size stay in order."""
    sizes = np.bincount(labels, weights=weights, minlength=n_clusters)
    return np.argsort(-sizes, kind="stable")


def relabel(labels: NDArray[np.int64], order: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return ``labels`` with the old id ``order[i]`` renamed to ``i``."""
    new_id = np.empty_like(order)
    new_id[order] = np.arange(len(order))
    return new_id[labels]


def align_labels(
    labels: NDArray[np.int64], reference: NDArray[np.int64], n_clusters: int, weights: NDArray[Any]
) -> NDArray[np.int64]:
    """Rename ``labels`` one to one so that they agree with ``reference`` on as many texts as possible."""
    return alignment(labels, reference, n_clusters, weights)[labels]


def alignment(
    labels: NDArray[np.int64], reference: NDArray[np.int64], n_clusters: int, weights: NDArray[Any]
) -> NDArray[np.int64]:
    """Return the new name of each cluster of ``labels`` (see :func:`align_labels`)."""
    from scipy.optimize import linear_sum_assignment

    overlap = np.zeros((n_clusters, n_clusters))
    np.add.at(overlap, (labels, reference), weights)
    old, new = linear_sum_assignment(-overlap)
    names = np.empty(n_clusters, dtype=np.int64)
    names[old] = new
    return names
