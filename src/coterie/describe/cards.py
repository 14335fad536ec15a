"""Cluster cards: everything a reader needs to judge a cluster, in one object."""

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

# Borderline texts on a card; three show what the cluster borders on.
N_BORDERLINE = 3
Labels = NDArray[np.integer[Any]] | Sequence[int]


@dataclass(frozen=True)
class Borderline:
    """A text of low confidence, which may belong in another cluster.

    Attributes
    ----------
    text, confidence:
        The text, and the confidence of its assignment.
    runner_up:
        The id of its runner-up cluster, where known.
    """

    text: str
    confidence: float
    runner_up: int | None


@dataclass(frozen=True)
class ClusterCard:
    """A cluster with everything that describes it.

    Attributes
    ----------
    summary:
        Its id, size, share, confidence, keywords, representative texts and topics.
    name:
        Its name, unique in the run.
    borderline:
        Its texts of lowest confidence, the lowest first.
    cohesion:
        Mean cosine between its texts and their mean vector: 1 where all point the same way.
    separation:
        1 minus the cosine between its mean and the nearest other mean: near 0, the two clusters are almost the same.
    nearest:
        The ids of the nearest clusters by the cosine of their means, the nearest first.
    duplicates:
        Share of its rows that repeat the text of an earlier row of the cluster.
    stability:
        How much of it reappears when the clustering is repeated on samples of the texts, where that was measured.
    keyword_name:
        The name made of its keywords, where ``name`` is a different one.
    by:
        How its rows spread over other columns, by the column's name, ready for JSON
        (:func:`~coterie.describe.breakdown.with_breakdowns`).

    What cannot be computed (without vectors, for an empty cluster, for the only cluster) is ``None`` or empty.
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
        """Return a flat dictionary for JSON, with ``topics``, ``keyword_name`` and ``by`` only where there are some.

        ``with_texts=False`` leaves out all texts.
        """
        summary = self.summary.to_dict()
        content = {
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
        return content if with_texts else content | {"representatives": [], "borderline": []}

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> Self:
        """Return the card that :meth:`to_dict` wrote."""
        topics = tuple(
            Topic(tuple(each["words"]), tuple(each["probabilities"]), each["share"])
            for each in content.get("topics", ())
        )
        return cls(
            summary=ClusterSummary(
                id=content["id"],
                size=content["size"],
                share=content["share"],
                confidence=content["confidence"],
                keywords=tuple(content["keywords"]),
                representatives=tuple(content["representatives"]),
                topics=topics,
                language=content.get("language"),
            ),
            name=content["name"],
            borderline=tuple(Borderline(**each) for each in content["borderline"]),
            nearest=tuple(content["nearest"]),
            by=content.get("by", {}),
            **{name: content.get(name) for name in ("cohesion", "separation", "stability", "keyword_name")},
            duplicates=content["duplicates"],
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
    """Return a card per summary, in their order.

    Parameters
    ----------
    summaries:
        What ``describe_clusters`` returned for the same texts and labels.
    texts, labels:
        One entry per row; rows labelled -1 are in no cluster.
    vectors:
        One row per text, for cohesion, separation and the nearest clusters; ``None``: these stay unknown.
    confidence, runner_up:
        One entry per row: its confidence, and its runner-up cluster
        (:func:`~coterie.describe.geometry.find_runner_ups`; -1: unknown). Without confidence there are no borderline
        texts.
    stability:
        One value per summary.
    n_borderline:
        The largest number of borderline texts per card.
    """
    clusters = np.asarray(labels, dtype=np.int64)
    others = np.full(len(texts), -1) if runner_up is None else np.asarray(runner_up, dtype=np.int64)
    given = {"labels": clusters, "vectors": vectors, "confidence": confidence, "runner_up": others}
    for what, values in given.items():
        if values is not None and len(values) != len(texts):
            raise InputError(f"{len(texts)} texts but {len(values)} rows of {what}: give one per text")
    if stability is not None and len(stability) != len(summaries):
        raise InputError(f"{len(summaries)} clusters but {len(stability)} values of stability: give one per cluster")
    n_clusters = max(int(clusters.max(initial=-1)), max((summary.id for summary in summaries), default=-1)) + 1
    members = rows_by_cluster(clusters, n_clusters)
    geometry = Geometry.unknown(n_clusters) if vectors is None else measure_geometry(vectors, clusters, n_clusters)
    duplicates = _duplicate_shares(texts, clusters, n_clusters)
    names = name_clusters(summaries)
    cards = []
    for i, summary in enumerate(summaries):
        k = summary.id
        found = None if stability is None else stability[i]
        cards.append(
            ClusterCard(
                summary=summary,
                name=names[i],
                borderline=_borderline(texts, members[k], confidence, others, n_borderline),
                cohesion=_finite_or_none(geometry.cohesion[k]),
                separation=_finite_or_none(geometry.separation[k]),
                nearest=geometry.nearest[k],
                duplicates=float(duplicates[k]),
                stability=None if found is None else _finite_or_none(found),
            )
        )
    return cards


def weakest_rows(
    index: NDArray[np.int64], labels: NDArray[np.int64], confidence: NDArray[np.floating[Any]], n_rows: int
) -> NDArray[np.int64]:
    """Return the ``n_rows`` rows of lowest confidence of each cluster, with distinct texts (``index``)."""
    first = np.unique(index, return_index=True)[1]
    first = first[(index[first] >= 0) & (labels[first] >= 0) & np.isfinite(confidence[first])]
    order = first[np.lexsort((first, confidence[first], labels[first]))]
    begins = np.searchsorted(labels[order], labels[order], side="left")
    return order[np.arange(len(order)) - begins < n_rows]


def with_borderline(
    cards: Sequence[ClusterCard],
    texts: Sequence[str],
    labels: NDArray[np.int64],
    confidence: NDArray[np.floating[Any]],
    runner_up: NDArray[np.int64],
) -> list[ClusterCard]:
    """Return the cards with these texts as their borderline texts, in this order."""
    found: dict[int, list[Borderline]] = {}
    for text, label, value, other in zip(texts, labels.tolist(), confidence.tolist(), runner_up.tolist(), strict=True):
        found.setdefault(label, []).append(Borderline(text, value, other if other >= 0 else None))
    return [replace(card, borderline=tuple(found.get(card.summary.id, ()))) for card in cards]


def _finite_or_none(value: float | np.floating[Any]) -> float | None:
    return float(value) if np.isfinite(value) else None


def _borderline(
    texts: Sequence[str],
    members: NDArray[np.int64],
    confidence: NDArray[np.floating[Any]] | None,
    runner_up: NDArray[np.int64],
    n_texts: int,
) -> tuple[Borderline, ...]:
    """Return the distinct texts of lowest confidence among ``members``; of equal ones the first."""
    if confidence is None:
        return ()
    member_confidence = np.asarray(confidence[members], dtype=np.float64)
    chosen: dict[str, Borderline] = {}
    for member in np.argsort(member_confidence, kind="stable").tolist():
        if len(chosen) == n_texts or np.isnan(member_confidence[member]):
            break
        row = int(members[member])
        other = int(runner_up[row])
        chosen.setdefault(
            texts[row], Borderline(texts[row], float(member_confidence[member]), other if other >= 0 else None)
        )
    return tuple(chosen.values())


def _duplicate_shares(texts: Sequence[str], labels: NDArray[np.int64], n_clusters: int) -> NDArray[np.float64]:
    """Return the share of each cluster's rows that repeat the text of an earlier row of the cluster."""
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
