"""Compute the likelihood of points, or of the words of texts, given their clusters."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

# Weight of the cluster in a word's predicted probability. The rest comes from all texts, so that a word that is new to
# the cluster has a probability above 0.
CLUSTER_SHARE = 0.5
# Fewest texts of a word that counts: a word of one text predicts nothing about other texts.
LEAST_TEXTS = 2


def gaussian_likelihood(points: NDArray[np.float64], labels: NDArray[np.int64]) -> float:
    """Return the mean log-likelihood of points and their clusters, up to a constant; larger is better.

    Each cluster is a spherical Gaussian with its own weight and variance:
    ``sum_k n_k [log(n_k / n) - d/2 log v_k - s_k / (2 v_k)] / n`` in ``d`` dimensions, with ``s_k`` the mean squared
    distance from the mean of cluster k and ``v_k`` its variance per dimension. To keep small clusters from variance
    zero, ``v_k`` counts one more point at the average distance of all points from their mean. Unlike inertia, this
    allows clusters of different sizes and widths.
    """
    n_points, dimension = points.shape
    n_clusters = int(labels.max()) + 1
    sizes = np.bincount(labels, minlength=n_clusters).astype(np.float64)
    sums = np.stack([np.bincount(labels, column, minlength=n_clusters) for column in points.T], axis=1)
    means = sums / np.maximum(sizes, 1)[:, None]
    spread = np.bincount(labels, ((points - means[labels]) ** 2).sum(axis=1), minlength=n_clusters)
    overall = float(((points - points.mean(axis=0)) ** 2).sum()) / n_points
    variance = np.maximum((spread + overall) / ((sizes + 1) * dimension), 1e-12)
    occupied = sizes > 0
    terms = np.log(np.where(occupied, sizes, 1) / n_points) * sizes
    terms -= sizes * dimension / 2 * np.log(variance) + spread / (2 * variance)
    return float(terms[occupied].sum()) / n_points


def word_presence(texts: Sequence[str]) -> Any | None:
    """Return a sparse matrix of the words of each text, or ``None`` if no word occurs in two texts.

    One row of zeros and ones per text, one column per word that occurs in at least two texts.
    """
    from sklearn.feature_extraction.text import CountVectorizer

    try:
        return CountVectorizer(binary=True, min_df=LEAST_TEXTS, dtype=np.float64).fit_transform(texts).tocsr()
    except ValueError:
        return None


def word_likelihood_gain(words: Any, labels: NDArray[np.int64], seed: int = 0) -> float:
    """Return the gain, in nats per word, of predicting words from a text's cluster instead of from all texts.

    Larger is better. The texts are split at random into two halves. The words of each half are predicted from the other
    half: half of the probability is the share of the word among the words of the same cluster, half its share among the
    words of all texts. Random clusters gain nothing (and lose up to ``log 2``). Splitting one topic into two clusters
    gains nothing over leaving it as one.

    Parameters
    ----------
    words:
        The result of :func:`word_presence`.
    labels:
        Cluster of each text.
    seed:
        Seed of the split into halves.
    """
    n_texts, n_clusters = len(labels), int(labels.max()) + 1
    half = np.random.default_rng(seed).permutation(n_texts) % 2
    row_of_entry = np.repeat(np.arange(n_texts), np.diff(words.indptr))
    counts = [_word_counts(words, labels, half == each, n_clusters) for each in (0, 1)]
    total = 0.0
    for each, other_half in enumerate(counts[::-1]):
        all_texts = other_half.sum(axis=0) + 0.5
        all_texts /= all_texts.sum()
        own = other_half / np.maximum(other_half.sum(axis=1, keepdims=True), 1)
        gains = np.log(CLUSTER_SHARE * own / all_texts + 1 - CLUSTER_SHARE)
        entries = half[row_of_entry] == each
        total += float(gains[labels[row_of_entry[entries]], words.indices[entries]].sum())
    return total / max(words.nnz, 1)


def _word_counts(
    words: Any, labels: NDArray[np.int64], mask: NDArray[np.bool_], n_clusters: int
) -> NDArray[np.float64]:
    """Count the texts of each cluster, among the rows of ``mask``, that have each word."""
    from scipy.sparse import csr_matrix

    rows = np.flatnonzero(mask)
    members = csr_matrix((np.ones(len(rows)), (labels[rows], rows)), shape=(n_clusters, len(labels)))
    return np.asarray((members @ words).todense())
