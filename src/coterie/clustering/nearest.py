"""The nearest rows of each row, by cosine."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

ROWS_AT_A_TIME = 512


def nearest_rows(units: Any, count: int) -> Iterator[tuple[NDArray[np.int64], NDArray[np.int64], NDArray[Any]]]:
    """Block by block: rows of ``units`` (of length one, dense or sparse), the ``count`` nearest others, their cosines.

    In no order; a row is none of its own.
    """
    from scipy.sparse import issparse

    for begin in range(0, units.shape[0], ROWS_AT_A_TIME):
        product = units[begin : begin + ROWS_AT_A_TIME] @ units.T
        cosines = product.toarray() if issparse(product) else np.asarray(product)
        rows = np.arange(begin, begin + len(cosines))
        cosines[np.arange(len(rows)), rows] = -np.inf
        near = np.argpartition(-cosines, count - 1, axis=1)[:, :count]
        yield rows, near, np.take_along_axis(cosines, near, axis=1)


def nearest(units: Any, count: int) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """The ``count`` nearest other rows of each row, the nearest first, and their cosines."""
    n_rows = units.shape[0]
    rows = np.empty((n_rows, count), dtype=np.int64)
    cosines = np.empty((n_rows, count))
    for own, near, alike in nearest_rows(units, count):
        order = np.argsort(-alike, axis=1, kind="stable")
        rows[own] = np.take_along_axis(near, order, axis=1)
        cosines[own] = np.take_along_axis(alike, order, axis=1)
    return rows, cosines
