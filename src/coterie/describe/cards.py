"""Cluster cards: all that a reader needs to judge a cluster, in one object."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from coterie.describe.geometry import Geometry, measure_geometry
from coterie.describe.keywords import rows_by_cluster
from coterie.describe.names import name_clusters
from coterie.errors import InputError
from coterie.types import ClusterSummary, Topic

# Texts that a card tells of as borderline.
N_BORDERLINE = 3
Labels = NDArray[np.integer[Any]] | Sequence[int]


@dataclass(frozen=True)
class Borderline:
    """A text that could as well be in another cluster.

    Attributes
    ----------
    text, confidence:
        The text, and the confidence with which it is in its cluster.
    runner_up:
        The id of the cluster it would be in otherwise, where known.
    """

    text: str
    confidence: float
    runner_up: int | None


@dataclass(frozen=True)
class ClusterCard:
    """A cluster with all that is told about it.

    Attributes
    ----------
    summary:
        Its id, size, share, confidence, keywords, representative texts and topics.
    name:
        A readable name; no two clusters of a run have the same.
    borderline:
        Its texts of lowest confidence, the lowest first.
    cohesion:
        Mean cosine between its texts and their mean vector: 1 where all point the same way.
    separation:
        1 minus the cosine between its centre and the nearest other centre: near 0, the two are hardly two.
    nearest:
        The ids of the nearest clusters by the cosine of their centres, the nearest first.
    duplicates:
        Share of its rows whose text an earlier row of the cluster has.
    stability:
        How well it is found again when the clustering is repeated, where that was measured.
    keyword_name:
        The name made of its keywords, where ``name`` is another.
    by:
        How its rows spread over other columns, by the column's name, ready for JSON
        (:func:`~coterie.describe.breakdown.with_breakdowns`).

    What cannot be told (without vectors, of an empty cluster, of the only one) is ``None`` or empty.
    """

    summary: ClusterSummary
    name: str
    borderline: tuple[Borderline, ...] = ()
    cohesion: float | None = None
    separation: float | None = None
    nearest: tuple[int, ...] = ()
    duplicates: float = 0.0
    stability: float | None = None
    keyword_name: str | None = None
    by: Mapping[str, Any] = field(default_factory=dict)

    def to_dict(self, *, with_texts: bool = True) -> dict[str, Any]:
        """Flat and ready for JSON; without ``topics``, ``keyword_name`` and ``by`` where there are none, without texts
        where none may be told.
        """
        summary = self.summary.to_dict()
        told = {
            "id": summary.pop("id"),
            "name": self.name,
            **({} if self.keyword_name is None else {"keyword_name": self.keyword_name}),
            **summary,
            "borderline": [asdict(text) for text in self.borderline],
            "cohesion": self.cohesion,
            "separation": self.separation,
            "nearest": list(self.nearest),
            "duplicates": self.duplicates,
            "stability": self.stability,
            **({"by": dict(self.by)} if self.by else {}),
        }
        return told if with_texts else told | {"representatives": [], "borderline": []}

    @classmethod
    def from_dict(cls, told: Mapping[str, Any]) -> Self:
        """What :meth:`to_dict` told, as a card again."""
        topics = tuple(
            Topic(tuple(each["words"]), tuple(each["probabilities"]), each["share"]) for each in told.get("topics", ())
        )
        return cls(
            summary=ClusterSummary(
                id=told["id"],
                size=told["size"],
                share=told["share"],
                confidence=told["confidence"],
                keywords=tuple(told["keywords"]),
                representatives=tuple(told["representatives"]),
                topics=topics,
                language=told.get("language"),
            ),
            name=told["name"],
            borderline=tuple(Borderline(**each) for each in told["borderline"]),
            nearest=tuple(told["nearest"]),
            by=told.get("by", {}),
            **{name: told.get(name) for name in ("cohesion", "separation", "stability", "keyword_name")},
            duplicates=told["duplicates"],
        )


def build_cards(
    summaries: Sequence[ClusterSummary],
    texts: Sequence[str],
    labels: Labels,
    *,
    vectors: NDArray[np.floating[Any]] | None,
    confidence: NDArray[np.floating[Any]] | None = None,
    runner_up: Labels | None = None,
    stability: Sequence[float | None] | NDArray[np.floating[Any]] | None = None,
    n_borderline: int = N_BORDERLINE,
) -> list[ClusterCard]:
    """A card for each summary, in their order.

    Parameters
    ----------
    summaries:
        What ``describe_clusters`` told about the same texts and labels.
    texts, labels:
        One entry a row; rows labelled -1 are in no cluster.
    vectors:
        One row a text, for cohesion, separation and the nearest clusters; ``None``: those stay unknown.
    confidence, runner_up:
        One entry a row: its confidence, and the second best cluster (``runner_ups``; -1: unknown). Without
        confidence no text is borderline.
    stability:
        One value a summary.
    """
    clusters = np.asarray(labels, dtype=np.int64)
    others = np.full(len(texts), -1) if runner_up is None else np.asarray(runner_up, dtype=np.int64)
    given = {"labels": clusters, "vectors": vectors, "confidence": confidence, "runner_up": others}
    for what, values in given.items():
        if values is not None and len(values) != len(texts):
            raise InputError(f"{len(texts)} texts but {len(values)} rows of {what}: one a text is needed")
    if stability is not None and len(stability) != len(summaries):
        raise InputError(f"{len(summaries)} clusters but {len(stability)} values of stability: one a cluster is needed")
    n_clusters = max(int(clusters.max(initial=-1)), max((summary.id for summary in summaries), default=-1)) + 1
    members = rows_by_cluster(clusters, n_clusters)
    geometry = Geometry.unknown(n_clusters) if vectors is None else measure_geometry(vectors, clusters, n_clusters)
    duplicates = _duplicates(texts, clusters, n_clusters)
    names = name_clusters(summaries)
    cards = []
    for place, summary in enumerate(summaries):
        k = summary.id
        found = None if stability is None else stability[place]
        cards.append(
            ClusterCard(
                summary=summary,
                name=names[place],
                borderline=_borderline(texts, members[k], confidence, others, n_borderline),
                cohesion=_known(geometry.cohesion[k]),
                separation=_known(geometry.separation[k]),
                nearest=geometry.nearest[k],
                duplicates=float(duplicates[k]),
                stability=None if found is None else _known(found),
            )
        )
    return cards


def weakest_rows(
    index: NDArray[np.int64], labels: NDArray[np.int64], confidence: NDArray[np.floating[Any]], wanted: int
) -> NDArray[np.int64]:
    """Of every cluster so many rows of lowest confidence whose texts (``index``) differ; of equal rows the first."""
    first = np.unique(index, return_index=True)[1]
    first = first[(index[first] >= 0) & (labels[first] >= 0) & np.isfinite(confidence[first])]
    order = first[np.lexsort((first, confidence[first], labels[first]))]
    begins = np.searchsorted(labels[order], labels[order], side="left")
    return order[np.arange(len(order)) - begins < wanted]


def with_borderline(
    cards: Sequence[ClusterCard],
    texts: Sequence[str],
    labels: NDArray[np.int64],
    confidence: NDArray[np.floating[Any]],
    runner_up: NDArray[np.int64],
) -> list[ClusterCard]:
    """The same cards with these texts as their borderline ones, in this order."""
    found: dict[int, list[Borderline]] = {}
    for text, label, sure, other in zip(texts, labels.tolist(), confidence.tolist(), runner_up.tolist(), strict=True):
        found.setdefault(label, []).append(Borderline(text, sure, other if other >= 0 else None))
    return [replace(card, borderline=tuple(found.get(card.summary.id, ()))) for card in cards]


def _known(value: float | np.floating[Any]) -> float | None:
    return float(value) if np.isfinite(value) else None


def _borderline(
    texts: Sequence[str],
    members: NDArray[np.int64],
    confidence: NDArray[np.floating[Any]] | None,
    runner_up: NDArray[np.int64],
    wanted: int,
) -> tuple[Borderline, ...]:
    """The rows of lowest confidence whose texts differ; of equal rows the first."""
    if confidence is None:
        return ()
    sure = np.asarray(confidence[members], dtype=np.float64)
    chosen: dict[str, Borderline] = {}
    for place in np.argsort(sure, kind="stable").tolist():
        if len(chosen) == wanted or np.isnan(sure[place]):
            break
        row = int(members[place])
        other = int(runner_up[row])
        chosen.setdefault(texts[row], Borderline(texts[row], float(sure[place]), other if other >= 0 else None))
    return tuple(chosen.values())


def _duplicates(texts: Sequence[str], labels: NDArray[np.int64], n_clusters: int) -> NDArray[np.float64]:
    """Share of each cluster's rows whose text an earlier row of the cluster has."""
    codes: dict[str, int] = {}
    text_of = np.fromiter((codes.setdefault(text, len(codes)) for text in texts), np.int64, len(texts))
    inside = labels >= 0
    pairs = np.unique(labels[inside] * max(1, len(codes)) + text_of[inside])
    distinct = np.bincount(pairs // max(1, len(codes)), minlength=n_clusters)
    sizes = np.bincount(labels[inside], minlength=n_clusters)
    return np.asarray((sizes - distinct) / np.maximum(sizes, 1))


def update_card(stored: Mapping[str, Any], card: ClusterCard) -> dict[str, Any]:
    """Return a cluster's entry of ``clusters.json`` with the name of ``card`` and, where it has some, its counts."""
    rest = {key: value for key, value in stored.items() if key not in {"id", "name", "keyword_name"}}
    names = {"name": card.name} if card.keyword_name is None else {"name": card.name, "keyword_name": card.keyword_name}
    return {"id": stored["id"], **names, **rest, **({"by": dict(card.by)} if card.by else {})}
