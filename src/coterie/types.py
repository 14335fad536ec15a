"""Small frozen dataclasses that cross the borders of rooms."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True)
class Topic:
    """What one topic of a cluster is about.

    Attributes
    ----------
    words:
        Its likeliest words, the first the likeliest.
    probabilities:
        Theirs.
    share:
        How much of the cluster's texts it makes up; the shares of a cluster's topics add up to one.
    """

    words: tuple[str, ...]
    probabilities: tuple[float, ...]
    share: float


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
    topics:
        What a method that learns topics found in it, the most common first.
    language:
        The language of its texts, where it is not the one that most texts of the run are in.
    """

    id: int
    size: int
    share: float
    confidence: float | None
    keywords: tuple[str, ...]
    representatives: tuple[str, ...]
    topics: tuple[Topic, ...] = ()
    language: str | None = None

    def to_dict(self) -> dict[str, Any]:
        """Ready for JSON; without ``topics`` and ``language`` where there are none."""
        return {name: value for name, value in asdict(self).items() if value or name not in ("topics", "language")}
