"""Keywords of clusters by class-based TF-IDF."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

# A word: letters, then letters, digits, apostrophes or hyphens; numbers alone say little about a cluster.
WORD = re.compile(r"\b[^\W\d_][\w'’-]+\b")

# English contractions (it's, don't) are function words too, and in no list of them.
CONTRACTION = re.compile(r"(n['’]t|['’](s|re|ve|ll|d|m))$")

# Texts whose words are counted at a time.
COUNTED_AT_A_TIME = 10_000


def cluster_keywords(
    texts: Sequence[str], labels: NDArray[np.int64], n_clusters: int, n_keywords: int = 10
) -> list[tuple[str, ...]]:
    """The words that tell each cluster from the others, best first.

    Class-based TF-IDF (Grootendorst, BERTopic, 2022): a cluster's texts are taken as one document; a word's share
    of it is weighted by ``log(1 + A / f)``, with ``f`` the word's count over all clusters and ``A`` the mean
    number of words in a cluster. English function words are left out unless nothing else is there.
    """
    counts = _count(texts, labels, n_clusters)
    overall: Counter[str] = Counter()
    for counted in counts:
        overall.update(counted)
    told = _telling(overall)
    if not told:
        return [()] * n_clusters
    telling = frozenset(told)
    sizes = [sum(count for word, count in counted.items() if word in telling) for counted in counts]
    frequencies = np.fromiter((overall[word] for word in told), np.float64, len(told))
    weights = dict(zip(told, np.log1p(np.mean(sizes) / frequencies).tolist(), strict=True))
    return [_best(counted, weights, max(size, 1), n_keywords) for counted, size in zip(counts, sizes, strict=True)]


def rows_by_cluster(labels: NDArray[np.int64], n_clusters: int) -> list[NDArray[np.int64]]:
    """The rows of each cluster, rising; all found in one go, not in one a cluster."""
    rows = np.flatnonzero(labels >= 0)
    rows = rows[np.argsort(labels[rows], kind="stable")]
    begins = np.searchsorted(labels[rows], np.arange(n_clusters + 1))
    return [rows[begin:end] for begin, end in pairwise(begins)]


def _count(texts: Sequence[str], labels: NDArray[np.int64], n_clusters: int) -> list[Counter[str]]:
    """How often each word occurs in each cluster."""
    counts: list[Counter[str]] = [Counter() for _ in range(n_clusters)]
    for counted, members in zip(counts, rows_by_cluster(labels, n_clusters), strict=True):
        for begin in range(0, len(members), COUNTED_AT_A_TIME):
            some = [texts[row] for row in members[begin : begin + COUNTED_AT_A_TIME].tolist()]
            # No word reaches over a line feed.
            counted.update(WORD.findall("\n".join(some).lower()))
    return counts


def _telling(words: Collection[str]) -> list[str]:
    """The words that are no function words, or all where there are no others; in the order of the alphabet."""
    from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS

    telling = [word for word in words if word not in ENGLISH_STOP_WORDS and CONTRACTION.search(word) is None]
    return sorted(telling or words)


def _best(counted: Counter[str], weights: dict[str, float], size: int, n_keywords: int) -> tuple[str, ...]:
    known = [(word, count) for word, count in counted.items() if word in weights]
    found = np.fromiter((count for _, count in known), np.float64, len(known))
    weight = np.fromiter((weights[word] for word, _ in known), np.float64, len(known))
    # A word seen once may be chance: half a count of doubt is taken off each.
    scores = (found - 0.5) / size * weight
    least = np.partition(scores, -n_keywords)[-n_keywords] if len(scores) > n_keywords else -np.inf
    best = sorted((-scores[i], known[i][0]) for i in np.flatnonzero(scores >= least).tolist())
    return tuple(word for _, word in best[:n_keywords])
