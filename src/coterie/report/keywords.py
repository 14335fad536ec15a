"""Keywords of clusters by class-based TF-IDF."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

# A word: letters, then letters, digits, apostrophes or hyphens; numbers alone say little about a cluster.
WORD = r"(?u)\b[^\W\d_][\w'’-]+\b"

# English contractions (it's, don't) are function words too, and in no list of them.
CONTRACTION = re.compile(r"(n['’]t|['’](s|re|ve|ll|d|m))$")


def cluster_keywords(
    texts: Sequence[str], labels: NDArray[np.int64], n_clusters: int, n_keywords: int = 10
) -> list[tuple[str, ...]]:
    """The words that tell each cluster from the others, best first.

    Class-based TF-IDF (Grootendorst, BERTopic, 2022): a cluster's texts are taken as one document; a word's share
    of it is weighted by ``log(1 + A / f)``, with ``f`` the word's count over all clusters and ``A`` the mean
    number of words in a cluster. English function words are left out unless nothing else is there.
    """
    rows = np.flatnonzero(labels >= 0)
    for stop_words in ("english", None):
        counted = _count([texts[int(i)] for i in rows], stop_words)
        if counted is not None:
            break
    else:
        return [()] * n_clusters
    table, words = counted
    membership = sparse.csr_matrix(
        (np.ones(len(rows)), (labels[rows], np.arange(len(rows)))), shape=(n_clusters, len(rows))
    )
    counts = (membership @ table).tocsr()
    sizes = np.asarray(counts.sum(axis=1)).ravel()
    weight = np.log1p(sizes.mean() / np.maximum(np.asarray(counts.sum(axis=0)).ravel(), 1))
    result = []
    for k in range(n_clusters):
        places = counts.indices[counts.indptr[k] : counts.indptr[k + 1]]
        found = counts.data[counts.indptr[k] : counts.indptr[k + 1]]
        # A word seen once may be chance: half a count of doubt is taken off each.
        scores = (found - 0.5) / max(sizes[k], 1) * weight[places]
        best = np.lexsort((places, -scores))[:n_keywords]
        result.append(tuple(str(words[places[i]]) for i in best))
    return result


def _count(texts: list[str], stop_words: str | None) -> tuple[sparse.csr_matrix, NDArray[np.str_]] | None:
    from sklearn.feature_extraction.text import CountVectorizer

    counter = CountVectorizer(stop_words=stop_words, token_pattern=WORD)
    try:
        table = counter.fit_transform(texts)
    except ValueError:  # nothing but stop words
        return None
    words = counter.get_feature_names_out()
    if stop_words is None:
        return table, words
    telling = np.array([CONTRACTION.search(word) is None for word in words])
    return (table[:, telling], words[telling]) if telling.any() else None
