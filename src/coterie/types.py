"""Small frozen dataclasses that cross the borders of rooms."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True)
class ClusterSummary:
    """A cluster as people see it.

    Attributes
    ----------
    id, size, share:
        Its id, how many rows it holds, and which part of all rows in clusters that is.
    confidence:
        Mean confidence of its rows, where known: low means that it blends into another cluster.
    keywords:
        Words that tell it from the other clusters, best first.
    representatives:
        Texts near its centre that differ from one another.
    """

    id: int
    size: int
    share: float
    confidence: float | None
    keywords: tuple[str, ...]
    representatives: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)
