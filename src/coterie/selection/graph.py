"""The graph of nearest neighbours, and what it makes of vectors.

Clusters of sentence vectors overlap more than the texts do: noise in hundreds of directions blurs them. Neighbours know
better, and two things are made of them here: vectors that are moved towards those of their neighbours, and coordinates
that follow the graph alone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from coterie.clustering.kmeans import unit_rows
from coterie.clustering.sparse import on_device

if TYPE_CHECKING:
    import torch

# Halvings after which the width of a neighbourhood is known to the last digit that matters.
HALVINGS = 40
# Rounds of the iteration that finds waves, and how many more are carried along than are wanted.
ROUNDS, MORE_WAVES = 40, 10


def neighbour_graph(rows: NDArray[np.int64], cosines: NDArray[np.float64]) -> Any:
    """Weights between neighbours, symmetric, from 0 to 1: those of UMAP (McInnes, Healy and Melville, 2018).

    The nearest neighbour of a row has weight 1; the others fall off as fast as makes their sum log2 of their number,
    so that rows in thin places reach as far as those in dense ones. Two rows are joined if either names the other.
    A cosine of zero or less is no neighbour: such texts have nothing in common.
    """
    from scipy.sparse import csr_matrix

    n_rows, count = rows.shape
    beyond = np.maximum(1 - cosines, 0)
    beyond = beyond - beyond[:, :1]
    wanted = np.log2(max(count, 2))
    low, high, width = np.zeros(n_rows), np.full(n_rows, np.inf), np.ones(n_rows)
    for _ in range(HALVINGS):
        wide = np.exp(-beyond / width[:, None]).sum(axis=1) > wanted
        high, low = np.where(wide, width, high), np.where(wide, low, width)
        width = np.where(np.isinf(high), 2 * width, (low + high) / 2)
    width = np.maximum(width, 1e-3 * max(float(beyond.mean()), 1e-9))
    weights = np.where(cosines > 0, np.exp(-beyond / width[:, None]), 0)
    named = csr_matrix((weights.ravel(), (np.repeat(np.arange(n_rows), count), rows.ravel())), shape=(n_rows, n_rows))
    named.eliminate_zeros()
    return (named + named.T - named.multiply(named.T)).tocsr()


def with_oneself(graph: Any) -> Any:
    """A graph of weights from 0 to 1 in which each row is its own neighbour, of weight 1, divided by the rows' sums."""
    from scipy.sparse import identity

    return by_rows(graph + identity(graph.shape[0], format="csr"))


def by_rows(graph: Any) -> Any:
    """The weights of each row divided by their sum."""
    from scipy.sparse import diags

    sums = np.asarray(graph.sum(axis=1)).ravel()
    return (diags(1 / np.maximum(sums, 1e-12)) @ graph).tocsr()


def smoothed(units: NDArray[Any], graph: Any, steps: int, device: torch.device | str = "cpu") -> NDArray[np.float64]:
    """Each vector as the mean of itself and its neighbours, by their weights, ``steps`` times; of length one again.

    What a few neighbours share stays, what only one of them has goes: a low-pass filter on the graph.
    """
    from scipy.sparse import identity

    spread = _normalized(graph + identity(graph.shape[0], format="csr"))
    found = np.asarray(units, dtype=np.float64)
    if str(device).startswith("cuda"):
        import torch

        there, moved = on_device(spread, device), torch.from_numpy(found).to(device)
        for _ in range(steps):
            moved = torch.nn.functional.normalize(there @ moved, dim=1)
        return moved.cpu().numpy()
    for _ in range(steps):
        found = unit_rows(spread @ found)
    return np.asarray(found)


def spectral(graph: Any, dimensions: int, seed: int, device: torch.device | str = "cpu") -> NDArray[np.float64]:
    """Coordinates on the graph's slowest waves, each weighed by how slow it is, as directions.

    By iterating a block of vectors: a graph that falls into parts has as many waves of one speed, of which Lanczos'
    method, one vector at a time, may miss some.
    """
    import torch
    from scipy.sparse import identity

    spread = _normalized(graph)
    n_rows = spread.shape[0]
    block = np.random.default_rng(seed).standard_normal((n_rows, min(dimensions + MORE_WAVES, n_rows)))
    # Halfway to standing still, so that waves which turn over in a step die out as well.
    slow = (spread + identity(n_rows, format="csr")) / 2
    if str(device).startswith("cuda"):
        there, moved = on_device(slow, device), torch.from_numpy(block).to(device)
        for _ in range(ROUNDS):
            moved, _ = torch.linalg.qr(there @ moved)
        block = moved.cpu().numpy()
    else:
        for _ in range(ROUNDS):
            block, _ = np.linalg.qr(slow @ block)
    values, turns = np.linalg.eigh(block.T @ (spread @ block))
    slowest = np.argsort(-values)[: min(dimensions, n_rows)]
    return np.asarray(unit_rows(block @ turns[:, slowest] * np.maximum(values[slowest], 0) ** 3))


def _normalized(graph: Any) -> Any:
    """Divided by the roots of both ends' degrees."""
    from scipy.sparse import diags

    degrees = np.asarray(graph.sum(axis=1)).ravel()
    scale = diags(1 / np.sqrt(np.maximum(degrees, 1e-12)))
    return (scale @ graph @ scale).tocsr()
