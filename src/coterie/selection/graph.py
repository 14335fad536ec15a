"""Graphs of nearest neighbours: their weights, vectors smoothed over them, and their spectral embedding.

Clusters of sentence vectors overlap more than the texts do: noise in hundreds of dimensions blurs them. Averaging a
vector with its neighbours removes much of that noise, and the eigenvectors of the graph ignore the vectors altogether.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from coterie.clustering.kmeans import unit_rows
from coterie.clustering.sparse import on_device

if TYPE_CHECKING:
    import torch

# Steps of the bisection that finds the width of a neighbourhood: enough for about 12 digits.
BISECTION_STEPS = 40
# Smallest width of a neighbourhood, as a share of the mean distance: without it, duplicates would have width 0.
SMALLEST_WIDTH = 1e-3
# Steps of the subspace iteration that finds eigenvectors; a fixed number, so that the time is known in advance.
SUBSPACE_STEPS = 40
# Vectors iterated in addition to the requested ones, so that the requested ones converge.
EXTRA_VECTORS = 10


def neighbour_graph(rows: NDArray[np.int64], cosines: NDArray[np.float64]) -> Any:
    """Return a symmetric sparse matrix of weights from 0 to 1 between neighbours, those of UMAP (McInnes et al., 2018).

    The nearest neighbour of a row has weight 1; the weights of the others fall with the distance, at the rate that
    makes their sum log2 of their number, so that rows in sparse regions reach as far as those in dense ones. Two rows
    are joined if either is a neighbour of the other. A cosine of zero or less makes no neighbour: such texts have
    nothing in common.

    Parameters
    ----------
    rows, cosines:
        The nearest rows of each row, the nearest first, and their cosines: one row per text, one column per neighbour.
    """
    from scipy.sparse import csr_matrix

    n_rows, count = rows.shape
    distance = np.maximum(1 - cosines, 0)
    distance = distance - distance[:, :1]
    target_sum = np.log2(max(count, 2))
    low, high, width = np.zeros(n_rows), np.full(n_rows, np.inf), np.ones(n_rows)
    for _ in range(BISECTION_STEPS):
        wide = np.exp(-distance / width[:, None]).sum(axis=1) > target_sum
        high, low = np.where(wide, width, high), np.where(wide, low, width)
        width = np.where(np.isinf(high), 2 * width, (low + high) / 2)
    width = np.maximum(width, SMALLEST_WIDTH * max(float(distance.mean()), 1e-9))
    weights = np.where(cosines > 0, np.exp(-distance / width[:, None]), 0)
    directed = csr_matrix(
        (weights.ravel(), (np.repeat(np.arange(n_rows), count), rows.ravel())), shape=(n_rows, n_rows)
    )
    directed.eliminate_zeros()
    return (directed + directed.T - directed.multiply(directed.T)).tocsr()


def with_self_loops(graph: Any) -> Any:
    """Return the graph with weight 1 from each row to itself, each row divided by its sum."""
    from scipy.sparse import identity

    return normalise_rows(graph + identity(graph.shape[0], format="csr"))


def normalise_rows(graph: Any) -> Any:
    """Return the graph with each row divided by its sum; empty rows stay empty."""
    from scipy.sparse import diags

    sums = np.asarray(graph.sum(axis=1)).ravel()
    return (diags(1 / np.maximum(sums, 1e-12)) @ graph).tocsr()


def smooth_vectors(
    units: NDArray[Any], graph: Any, steps: int, device: torch.device | str = "cpu"
) -> NDArray[np.float64]:
    """Average each vector with its neighbours, by their weights, ``steps`` times; rows keep length one.

    This is a low-pass filter on the graph: parts that neighbours share remain, parts that only one vector has vanish.
    """
    from scipy.sparse import identity

    operator = _normalise_symmetrically(graph + identity(graph.shape[0], format="csr"))
    found = np.asarray(units, dtype=np.float64)
    if str(device).startswith("cuda"):
        import torch

        matrix, moved = on_device(operator, device), torch.from_numpy(found).to(device)
        for _ in range(steps):
            moved = torch.nn.functional.normalize(matrix @ moved, dim=1)
        return moved.cpu().numpy()
    for _ in range(steps):
        found = unit_rows(operator @ found)
    return np.asarray(found)


def spectral_embedding(
    graph: Any, dimensions: int, seed: int, device: torch.device | str = "cpu"
) -> NDArray[np.float64]:
    """Return the leading eigenvectors of the graph as coordinates, each weighted by its eigenvalue cubed.

    Rows have length one. Subspace iteration finds the eigenvectors. Lanczos' method, one vector at a time, may miss
    some of them in a graph of several components, which has equal eigenvalues.
    """
    import torch
    from scipy.sparse import identity

    operator = _normalise_symmetrically(graph)
    n_rows = operator.shape[0]
    block = np.random.default_rng(seed).standard_normal((n_rows, min(dimensions + EXTRA_VECTORS, n_rows)))
    # The mean with the identity moves eigenvalues from [-1, 1] to [0, 1], so that those near -1 vanish as well.
    shifted = (operator + identity(n_rows, format="csr")) / 2
    if str(device).startswith("cuda"):
        matrix, moved = on_device(shifted, device), torch.from_numpy(block).to(device)
        for _ in range(SUBSPACE_STEPS):
            moved, _ = torch.linalg.qr(matrix @ moved)
        block = moved.cpu().numpy()
    else:
        for _ in range(SUBSPACE_STEPS):
            block, _ = np.linalg.qr(shifted @ block)
    values, rotation = np.linalg.eigh(block.T @ (operator @ block))
    leading = np.argsort(-values)[: min(dimensions, n_rows)]
    return np.asarray(unit_rows(block @ rotation[:, leading] * np.maximum(values[leading], 0) ** 3))


def _normalise_symmetrically(graph: Any) -> Any:
    """Divide each weight by the square roots of the degrees of both ends."""
    from scipy.sparse import diags

    degrees = np.asarray(graph.sum(axis=1)).ravel()
    scale = diags(1 / np.sqrt(np.maximum(degrees, 1e-12)))
    return (scale @ graph @ scale).tocsr()
