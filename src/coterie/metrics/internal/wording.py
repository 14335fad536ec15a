"""Whether clusters know the words of texts that they have not seen."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

# How far a cluster's words are believed; the rest is left to the words of all texts.
BELIEVED = 0.5
# Words that stand in fewer texts say nothing of texts that were not seen.
LEAST_TEXTS = 2


def words_of(texts: Sequence[str]) -> Any:
    """Which words each text has, a sparse row of ones a text; ``None`` where no word stands in two texts."""
    from sklearn.feature_extraction.text import CountVectorizer

    try:
        return CountVectorizer(binary=True, min_df=LEAST_TEXTS, dtype=np.float64).fit_transform(texts).tocsr()
    except ValueError:
        return None


def words_told(words: Any, labels: NDArray[np.int64], seed: int = 0) -> float:
    """How much better a text's words are told by its cluster than by all texts: nats a word; more is better.

    The texts are dealt into two halves. The words of each half are told by the other: by how often they stand in that
    half's texts of the same cluster, mixed half and half with how often they stand in all of its texts. A cluster that
    goes by chance tells nothing (up to ``log 2`` less), and one that splits a subject tells no more than both parts
    together do.
    """
    n_texts, n_clusters = len(labels), int(labels.max()) + 1
    half = np.random.default_rng(seed).permutation(n_texts) % 2
    of_entry = np.repeat(np.arange(n_texts), np.diff(words.indptr))
    counted = [_counted(words, labels, half == each, n_clusters) for each in (0, 1)]
    total = 0.0
    for each, seen in enumerate(counted[::-1]):
        all_texts = seen.sum(axis=0) + 0.5
        all_texts /= all_texts.sum()
        own = seen / np.maximum(seen.sum(axis=1, keepdims=True), 1)
        gains = np.log(BELIEVED * own / all_texts + 1 - BELIEVED)
        entries = half[of_entry] == each
        total += float(gains[labels[of_entry[entries]], words.indices[entries]].sum())
    return total / max(words.nnz, 1)


def _counted(words: Any, labels: NDArray[np.int64], rows: NDArray[np.bool_], n_clusters: int) -> NDArray[np.float64]:
    """How many texts of each cluster, among ``rows``, have each word."""
    from scipy.sparse import csr_matrix

    places = np.flatnonzero(rows)
    members = csr_matrix((np.ones(len(places)), (labels[places], places)), shape=(n_clusters, len(labels)))
    return np.asarray((members @ words).todense())
