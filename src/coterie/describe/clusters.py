"""The clusters of a run, described."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from coterie.describe.keywords import cluster_keywords, rows_by_cluster
from coterie.errors import InputError
from coterie.text.language_identification import cluster_languages
from coterie.types import ClusterSummary, Topic

# Two texts that share more than this of their words would tell a reader the same thing twice.
TOO_ALIKE = 0.6


def describe_clusters(
    texts: Sequence[str],
    labels: NDArray[np.integer[Any]] | Sequence[int],
    *,
    confidence: NDArray[np.floating[Any]] | None = None,
    center_distance: NDArray[np.floating[Any]] | None = None,
    topics: Sequence[Sequence[Topic]] | None = None,
    n_keywords: int = 10,
    n_representatives: int = 3,
) -> list[ClusterSummary]:
    """Size, keywords and representative texts of every cluster, in the order of their ids.

    Parameters
    ----------
    texts, labels:
        One entry a row; rows labelled -1 are in no cluster.
    confidence:
        Each row's confidence (``model.confidence_``), for the mean of every cluster.
    center_distance:
        Each row's distance to its centre (``model.center_distance_``): representative texts are the nearest
        ones that differ from each other. Without it they are taken in the order of the rows.

    topics:
        The topics of each cluster (``model.cluster_topics()``), where the method learns some.

    Examples
    --------
    >>> from coterie import describe_clusters
    >>> describe_clusters(["late parcel", "parcel late", "lost password"], [0, 0, 1])[1].keywords
    ('lost', 'password')
    """
    clusters = np.asarray(labels, dtype=np.int64)
    if len(clusters) != len(texts):
        raise InputError(f"{len(texts)} texts but {len(clusters)} labels: one label a text is needed")
    n_clusters = int(clusters.max(initial=-1)) + 1
    distance = np.zeros(len(texts)) if center_distance is None else np.asarray(center_distance, dtype=np.float64)
    sizes = np.bincount(clusters[clusters >= 0], minlength=n_clusters)
    keywords = cluster_keywords(texts, clusters, n_clusters, n_keywords)
    by_cluster = rows_by_cluster(clusters, n_clusters)
    languages = cluster_languages(texts, by_cluster)
    summaries = []
    for k, members in enumerate(by_cluster):
        nearest = members[np.argsort(distance[members], kind="stable")]
        summaries.append(
            ClusterSummary(
                id=k,
                size=int(sizes[k]),
                share=float(sizes[k] / max(1, sizes.sum())),
                confidence=None if confidence is None or not len(members) else float(np.mean(confidence[members])),
                keywords=keywords[k],
                representatives=_different((texts[i] for i in nearest), n_representatives),
                topics=tuple(topics[k]) if topics is not None else (),
                language=languages[k],
            )
        )
    return summaries


def _different(texts: Iterable[str], wanted: int) -> tuple[str, ...]:
    """The first texts that are not too alike; the alike ones fill up where there are no others."""
    chosen: list[tuple[str, set[str]]] = []
    spare: dict[str, None] = {}
    for text in texts:
        words = set(re.findall(r"\w+", text.lower()))
        if all(text != other and _overlap(words, known) <= TOO_ALIKE for other, known in chosen):
            chosen.append((text, words))
            if len(chosen) == wanted:
                break
        elif len(spare) < wanted and all(text != other for other, _ in chosen):
            spare[text] = None
    return tuple([text for text, _ in chosen] + list(spare))[:wanted]


def _overlap(first: set[str], second: set[str]) -> float:
    return len(first & second) / max(1, len(first | second))
