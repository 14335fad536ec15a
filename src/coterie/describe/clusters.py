"""Summaries of clusters: size, keywords, representative texts, language."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from coterie.describe.keywords import cluster_keywords, rows_by_cluster
from coterie.errors import InputError
from coterie.text.language_identification import identify_cluster_languages
from coterie.types import ClusterSummary, Topic

# Jaccard similarity of the words of two texts above which one of them adds nothing for a reader.
MAX_OVERLAP = 0.6


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
    """Return size, keywords and representative texts of every cluster, in the order of their ids.

    Parameters
    ----------
    texts, labels:
        One entry per row; rows labelled -1 are in no cluster.
    confidence:
        Each row's confidence (``model.confidence_``), of which each cluster gets the mean.
    center_distance:
        Each row's distance to its centre (``model.center_distance_``): representative texts are the nearest
        ones that differ from each other. Without it, they are the first ones in the order of the rows.
    topics:
        The topics of each cluster (``model.cluster_topics()``), where the method learns some.
    n_keywords, n_representatives:
        The largest number of keywords and of representative texts per cluster.

    Examples
    --------
    >>> from coterie import describe_clusters
    >>> describe_clusters(["late parcel", "parcel late", "lost password"], [0, 0, 1])[1].keywords
    ('lost', 'password')
    """
    clusters = np.asarray(labels, dtype=np.int64)
    if len(clusters) != len(texts):
        raise InputError(f"{len(texts)} texts but {len(clusters)} labels: give one label per text")
    n_clusters = int(clusters.max(initial=-1)) + 1
    distance = np.zeros(len(texts)) if center_distance is None else np.asarray(center_distance, dtype=np.float64)
    sizes = np.bincount(clusters[clusters >= 0], minlength=n_clusters)
    keywords = cluster_keywords(texts, clusters, n_clusters, n_keywords)
    by_cluster = rows_by_cluster(clusters, n_clusters)
    languages = identify_cluster_languages(texts, by_cluster)
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
                representatives=_distinct_texts((texts[i] for i in nearest), n_representatives),
                topics=tuple(topics[k]) if topics is not None else (),
                language=languages[k],
            )
        )
    return summaries


def _distinct_texts(texts: Iterable[str], n_texts: int) -> tuple[str, ...]:
    """Return the first texts that are not too similar to each other, filled up with similar ones if there are few."""
    chosen: list[tuple[str, set[str]]] = []
    similar: dict[str, None] = {}
    for text in texts:
        words = set(re.findall(r"\w+", text.lower()))
        if all(text != other and _overlap(words, known) <= MAX_OVERLAP for other, known in chosen):
            chosen.append((text, words))
            if len(chosen) == n_texts:
                break
        elif len(similar) < n_texts and all(text != other for other, _ in chosen):
            similar[text] = None
    return tuple([text for text, _ in chosen] + list(similar))[:n_texts]


def _overlap(first: set[str], second: set[str]) -> float:
    """Return the Jaccard similarity of two sets of words."""
    return len(first & second) / max(1, len(first | second))
