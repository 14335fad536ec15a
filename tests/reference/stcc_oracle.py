"""STCC in float64, text by text and number by number: the network, its loss, the codes, the reductions behind them."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import eigh

Array = NDArray[np.float64]


def wide_convolution(row: Array, kernel: Array) -> Array:
    """Sum of ``kernel[j] * row[t + j]`` with zeros on both sides, so that each word meets all of the kernel."""
    n, m = len(row), len(kernel)
    padded = np.concatenate([np.zeros(m - 1), row, np.zeros(m - 1)])
    return np.array([sum(kernel[j] * padded[t + j] for j in range(m)) for t in range(n + m - 1)])


def folded(maps: list[list[Array]]) -> list[list[Array]]:
    """``maps[d][f]``: dimension d plus dimension d + D / 2, for each map."""
    half = len(maps) // 2
    return [[a + b for a, b in zip(maps[d], maps[d + half], strict=True)] for d in range(half)]


def k_max(row: Array, k: int) -> Array:
    """The k largest values in the order they stand, then zeros where there are fewer."""
    places = sorted(sorted(range(len(row)), key=lambda place: -row[place])[:k])
    return np.concatenate([row[places], np.zeros(k - len(places))])


def text_vector(words: Array, weights: dict[str, Array], kernel: int = 3, maps: tuple[int, int] = (12, 8)) -> Array:
    """The last hidden layer for one text: ``words`` is a vector a word, ``weights`` as the network names them."""
    n, dimension = words.shape
    one = weights["kernels_1"].reshape(dimension, maps[0], kernel)
    two = weights["kernels_2"].reshape(dimension // 2, maps[1], maps[0], kernel)
    first = folded([[wide_convolution(words[:, d], one[d, f]) for f in range(maps[0])] for d in range(dimension)])
    kept = max(5, math.ceil(n / 2))
    bias = weights["bias_1"].reshape(dimension // 2, maps[0])
    first = [[np.tanh(k_max(first[d][f], kept) + bias[d, f]) for f in range(maps[0])] for d in range(dimension // 2)]
    second = folded(
        [
            [sum(wide_convolution(first[d][f], two[d, g, f]) for f in range(maps[0])) for g in range(maps[1])]
            for d in range(dimension // 2)
        ]
    )
    bias = weights["bias_2"].reshape(dimension // 4, maps[1])
    top = [[np.tanh(k_max(second[d][g], 5) + bias[d, g]) for g in range(maps[1])] for d in range(dimension // 4)]
    return np.array(top).ravel()


def code_loss(logits: Array, codes: Array, weights: Array) -> float:
    """-sum_i w_i sum_j [b_ij log p_ij + (1 - b_ij) log(1 - p_ij)] / sum_i w_i, with p = 1 / (1 + exp(-logit))."""
    total = 0.0
    for i in range(len(logits)):
        for j in range(logits.shape[1]):
            p = 1 / (1 + math.exp(-logits[i, j]))
            total -= weights[i] * (codes[i, j] * math.log(p) + (1 - codes[i, j]) * math.log(1 - p))
    return total / weights.sum()


def codes(coordinates: Array, counts: NDArray[np.int64]) -> Array:
    """Above the median of each column, over rows written out as often as they occur."""
    return (coordinates > np.median(np.repeat(coordinates, counts, axis=0), axis=0)).astype(np.float64)


def tf_idf(texts: list[list[int]], n_words: int, counts: NDArray[np.int64]) -> Array:
    """Term frequency times ``log((1 + N) / (1 + df)) + 1``, rows of unit length."""
    table = np.array([[text.count(word) for word in range(n_words)] for text in texts], dtype=np.float64)
    documents = np.array([counts[table[:, word] > 0].sum() for word in range(n_words)])
    table = table * (np.log((1 + counts.sum()) / (1 + documents)) + 1)
    return table / np.maximum(np.linalg.norm(table, axis=1, keepdims=True), 1e-300)


def laplacian_eigenmaps(rows: Array, dimension: int, neighbours: int) -> Array:
    """L y = e D y by a dense solver, without the constant solution; W_ij = exp(-|x_i - x_j|^2 / 2) for neighbours."""
    n = len(rows)
    squared = ((rows[:, None] - rows[None]) ** 2).sum(axis=2)
    near = np.zeros((n, n))
    for i in range(n):
        others = [j for j in np.argsort(squared[i], kind="stable") if j != i][:neighbours]
        near[i, others] = np.exp(-squared[i, others] / 2)
    near = np.maximum(near, near.T)
    degrees = np.diag(near.sum(axis=1))
    return eigh(degrees - near, degrees)[1][:, 1 : dimension + 1]


def latent_semantics(rows: Array, dimension: int, counts: NDArray[np.int64]) -> Array:
    """Rows along the first right singular vectors of the table with every row written out as often as it occurs."""
    return rows @ np.linalg.svd(np.repeat(rows, counts, axis=0), full_matrices=False)[2][:dimension].T
