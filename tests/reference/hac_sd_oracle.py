"""HAC-SD in float64 and plain loops: which similarities stay, and average linkage on what they leave."""

from __future__ import annotations

import math
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

FloatArray: TypeAlias = NDArray[np.float64]


def cosine(first: FloatArray, second: FloatArray) -> float:
    """Cosine similarity; 0 where a vector has no direction."""
    lengths = math.sqrt(float(first @ first)) * math.sqrt(float(second @ second))
    return float(first @ second) / lengths if lengths else 0.0


def sparse_similarities(vectors: FloatArray, n_clusters: int) -> FloatArray:
    """The N x N similarities of which N^2 / K stay: the diagonal first, then both entries of each pair.

    The pairs that stand out most in one of their two rows come first: s_ij > mean_i + alpha * deviation_i, over the
    similarities of row i to the other rows, holds for them up to the largest alpha.
    """
    n = len(vectors)
    rows = [[cosine(vectors[i], vectors[j]) for j in range(n)] for i in range(n)]

    def alpha(i: int, j: int) -> float:
        others = [rows[i][m] for m in range(n) if m != i]
        mean = sum(others) / len(others)
        deviation = math.sqrt(sum((value - mean) ** 2 for value in others) / len(others))
        return (rows[i][j] - mean) / deviation

    result = np.eye(n)
    pairs = [(max(alpha(i, j), alpha(j, i)), i, j) for i in range(n) for j in range(i + 1, n)]
    room = n * n / n_clusters - n
    for _, i, j in sorted(pairs, reverse=True):
        room -= 2
        if room < 0:
            break
        result[i, j] = result[j, i] = rows[i][j]
    return result


def average_linkage(distances: FloatArray, n_clusters: int) -> list[set[int]]:
    """Merge the two clusters with the smallest mean distance until ``n_clusters`` are left."""
    clusters = [{i} for i in range(len(distances))]
    while len(clusters) > n_clusters:
        best, where = math.inf, (0, 0)
        for a in range(len(clusters)):
            for b in range(a + 1, len(clusters)):
                between = [distances[i, j] for i in clusters[a] for j in clusters[b]]
                mean = sum(between) / len(between)
                if mean < best:
                    best, where = mean, (a, b)
        a, b = where
        clusters[a] |= clusters.pop(b)
    return clusters
