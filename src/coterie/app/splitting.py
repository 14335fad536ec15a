"""Parts of one cluster: found on some of its texts, for all of them."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray

from coterie.clustering.kmeans import Partition, kmeans

# Texts that the parts are found on, and that their keywords are taken from: so many tell as much as all.
LEARNED_ON, DESCRIBED_BY = 4_000, 6_000
STARTS = 5
# Steps over all texts afterwards: centres from thousands of texts hardly move.
STEPS = 10


def find_parts(vectors: Any, into: int, weights: NDArray[np.int64], *, seed: int = 0) -> Partition:
    """k-means over the rows of ``vectors``, dense or sparse; every row is with the nearest of the centres.

    Of many rows some are drawn to find the centres from several starts, and all are gone through from the best, so
    that whoever asked need not wait.
    """
    from sklearn.exceptions import ConvergenceWarning

    drawn = np.sort(np.random.default_rng(seed).permutation(vectors.shape[0])[:LEARNED_ON])
    with warnings.catch_warnings():
        # Fewer distinct vectors than parts leave some empty, which the caller looks at.
        warnings.simplefilter("ignore", ConvergenceWarning)
        found = kmeans(vectors[drawn], into, weights=weights[drawn], n_init=STARTS, seed=seed)
        if len(drawn) == vectors.shape[0]:
            return found
        return kmeans(vectors, into, weights=weights, init=found.centers, max_iter=STEPS)


def keywords_of_parts(texts: list[str], found: NDArray[np.int64], n_parts: int, *, seed: int = 0) -> list[list[str]]:
    """Words that tell the parts from each other, not from other clusters: that is what is new about them."""
    from coterie.describe.keywords import cluster_keywords

    drawn = np.sort(np.random.default_rng(seed).permutation(len(texts))[:DESCRIBED_BY])
    return [list(words) for words in cluster_keywords([texts[row] for row in drawn], found[drawn], n_parts)]
