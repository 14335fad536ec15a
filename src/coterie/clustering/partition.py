"""The result of a clustering by centres."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class Partition:
    """A hard clustering of rows.

    Attributes
    ----------
    labels:
        Cluster of each row.
    centers:
        One centre per cluster: its weighted mean, unless the method defines another one.
    inertia:
        Weighted sum of the squared distances of the rows to their centres.
    """

    labels: NDArray[np.int64]
    centers: NDArray[np.float32]
    inertia: float
