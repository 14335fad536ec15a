"""Sparse matrices as torch tensors."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    import torch


def on_device(graph: Any, device: torch.device | str, dtype: torch.dtype | None = None) -> torch.Tensor:
    """Return a sparse matrix as a torch tensor on a device, in float64 by default."""
    import torch

    rows = graph.tocsr()
    begins, columns = (torch.from_numpy(each.astype(np.int64)) for each in (rows.indptr, rows.indices))
    values = torch.from_numpy(rows.data.astype(np.float64))
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Sparse")  # compressed rows are "in beta"; invariants hold
        table = torch.sparse_csr_tensor(begins, columns, values, size=rows.shape)
    return table.to(device=device, dtype=dtype or torch.float64)
