"""Search the nearest rows of each row by cosine."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    import torch

    Block = tuple[NDArray[np.int64], NDArray[np.int64], NDArray[Any]]

# Rows compared with all others at a time, which bounds the memory.
BLOCK_ROWS = 512


def nearest_rows(units: Any, count: int, device: torch.device | str = "cpu") -> Iterator[Block]:
    """Yield blocks: some rows, the ``count`` nearest other rows of each in any order, and their cosines.

    ``units`` are rows of length one, dense or sparse. With a CUDA device the search runs there.
    """
    from scipy.sparse import issparse

    if str(device).startswith("cuda"):
        yield from _on_device(units, count, device)
        return
    for begin in range(0, units.shape[0], BLOCK_ROWS):
        product = units[begin : begin + BLOCK_ROWS] @ units.T
        cosines = product.toarray() if issparse(product) else np.asarray(product)
        rows = np.arange(begin, begin + len(cosines))
        cosines[np.arange(len(rows)), rows] = -np.inf
        near = np.argpartition(-cosines, count - 1, axis=1)[:, :count]
        yield rows, near, np.take_along_axis(cosines, near, axis=1)


def _on_device(units: Any, count: int, device: torch.device | str) -> Iterator[Block]:
    import torch
    from scipy.sparse import issparse

    from coterie.clustering.sparse import on_device

    sparse = issparse(units)
    if sparse:
        compressed = units.tocsr().astype(np.float32)
        table = on_device(compressed, device, torch.float32)
    else:
        table = torch.as_tensor(np.asarray(units, dtype=np.float32)).to(device)
    for begin in range(0, units.shape[0], BLOCK_ROWS):
        if sparse:
            block = torch.from_numpy(compressed[begin : begin + BLOCK_ROWS].toarray()).to(device)
            cosines = (table @ block.T).T
        else:
            cosines = table[begin : begin + BLOCK_ROWS] @ table.T
        own = torch.arange(len(cosines), device=device)
        cosines[own, own + begin] = -torch.inf
        found = cosines.topk(count, dim=1)
        rows = np.arange(begin, begin + len(cosines))
        yield rows, found.indices.cpu().numpy(), found.values.cpu().numpy()


def nearest(
    units: Any, count: int, device: torch.device | str = "cpu"
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Return the ``count`` nearest other rows of each row, the nearest first, and their cosines."""
    n_rows = units.shape[0]
    rows = np.empty((n_rows, count), dtype=np.int64)
    cosines = np.empty((n_rows, count))
    for own, near, block_cosines in nearest_rows(units, count, device):
        order = np.argsort(-block_cosines, axis=1, kind="stable")
        rows[own] = np.take_along_axis(near, order, axis=1)
        cosines[own] = np.take_along_axis(block_cosines, order, axis=1)
    return rows, cosines
