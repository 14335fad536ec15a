"""Small frozen dataclasses that several rooms share."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True)
class Topic:
    """What one topic of a cluster is about.

    Attributes
    ----------
    words:
        Its most probable words, in falling order.
    probabilities:
        The probability of each word.
    share:
        Its share of the cluster's texts; the shares of a cluster's topics add up to one.
    """

    words: tuple[str, ...]
    probabilities: tuple[float, ...]
    share: float


@dataclass(frozen=True)
class ClusterSummary:
    """Describe one cluster.

    Attributes
    ----------
    id, size, share:
        Its id, its number of rows, and its share of all rows in clusters.
    confidence:
        Mean confidence of its rows, where computed: a low one means that it overlaps with another cluster.
    keywords:
        Words that distinguish it from the other clusters, best first.
    representatives:
        Texts near its centre that differ from one another.
    topics:
        Its topics, largest share first, from a method that learns topics.
    language:
        The language of its texts, where it is not the language of most texts of the run.
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
        """Return it ready for JSON; without ``topics`` and ``language`` where it has none."""
        return {name: value for name, value in asdict(self).items() if value or name not in ("topics", "language")}
