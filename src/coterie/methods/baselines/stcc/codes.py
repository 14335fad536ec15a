"""Binary codes of texts from reduced word counts: targets for a network without labels."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from coterie.encoders.tokenization import TokenArrays

# Number of texts below which a dense eigendecomposition is used, since it is fast for few texts.
FEW_TEXTS = 500


def word_counts(tokens: TokenArrays, n_words: int) -> Any:
    """Return the number of occurrences of each word in each text, one sparse row per text."""
    from scipy import sparse

    borders = np.concatenate([tokens.starts, [len(tokens.ids)]])
    # A copy, since sum_duplicates sorts the words of a text in place.
    table = sparse.csr_matrix((np.ones(len(tokens.ids)), tokens.ids.copy(), borders), (len(tokens), n_words))
    table.sum_duplicates()
    return table


def tf_idf(tokens: TokenArrays, n_words: int, counts: NDArray[np.int64]) -> Any:
    """Return TF-IDF rows of unit length, one sparse row per text; ``counts``: how often each text occurs."""
    from scipy import sparse
    from sklearn.preprocessing import normalize

    table = word_counts(tokens, n_words)
    document_frequency = (table > 0).astype(np.float64).T @ counts
    return normalize(table @ sparse.diags(np.log((1 + counts.sum()) / (1 + document_frequency)) + 1))


def laplacian_eigenmaps(rows: Any, dimension: int, neighbours: int, seed: int) -> NDArray[np.float64]:
    """Return coordinates that preserve neighbourhoods (Belkin and Niyogi, 2001): the smallest solutions of L y = e D y.

    Each row is connected to its nearest rows, weighted by a heat kernel ``exp(-d^2 / 2)``. The first solution is
    constant and omitted.
    """
    from scipy import sparse
    from sklearn.neighbors import kneighbors_graph

    n = rows.shape[0]
    distances = kneighbors_graph(rows, min(neighbours, n - 1), mode="distance")
    near = distances.copy()
    near.data = np.exp(-(distances.data**2) / 2)
    near = near.maximum(near.T)
    scale = np.asarray(near.sum(axis=1)).ravel() ** -0.5
    # The largest of D^-1/2 W D^-1/2 are the smallest of L y = e D y, with y = D^-1/2 u.
    similarity = sparse.diags(scale) @ near @ sparse.diags(scale)
    solutions = _largest(similarity, min(dimension + 1, n), seed)[:, 1:]
    return scale[:, None] * solutions


def latent_semantics(rows: Any, dimension: int, counts: NDArray[np.int64], seed: int) -> NDArray[np.float64]:
    """Return coordinates along the first right singular vectors of the rows, weighted by ``counts``."""
    from scipy import sparse

    weighted = sparse.diags(np.sqrt(counts)) @ rows
    left = _largest(weighted @ weighted.T, min(dimension, min(rows.shape)), seed)
    directions = np.asarray(weighted.T @ left)
    lengths = np.linalg.norm(directions, axis=0)
    return np.asarray(rows @ directions) / np.where(lengths > 0, lengths, 1)


def mean_vectors(tokens: TokenArrays, table: NDArray[np.float32]) -> NDArray[np.float64]:
    """Return the mean word vector of each text, of unit length; zeros for a text without words."""
    from sklearn.preprocessing import normalize

    return np.asarray(normalize(word_counts(tokens, len(table)) @ table.astype(np.float64)))


def binary_codes(coordinates: NDArray[np.floating[Any]], counts: NDArray[np.int64]) -> NDArray[np.float32]:
    """Return 1 where a coordinate is above its median over the texts, weighted by ``counts``, else 0."""
    codes = np.zeros(coordinates.shape, dtype=np.float32)
    for j, column in enumerate(coordinates.T):
        order = np.argsort(column, kind="stable")
        below = np.cumsum(counts[order])
        median = column[order[np.searchsorted(2 * below, below[-1])]]
        codes[:, j] = column > median
    return codes


def _largest(matrix: Any, how_many: int, seed: int) -> NDArray[np.float64]:
    """Return the eigenvectors of the largest eigenvalues of a symmetric matrix, in descending order."""
    from scipy.sparse.linalg import eigsh

    n = matrix.shape[0]
    if n < FEW_TEXTS or how_many >= n:
        vectors = np.linalg.eigh(matrix.toarray())[1][:, ::-1][:, :how_many]
    else:
        start = np.random.default_rng(seed).normal(size=n)
        values, vectors = eigsh(matrix, how_many, which="LA", v0=start)
        vectors = vectors[:, np.argsort(-values)]
    # The sign is arbitrary: the largest entry is made positive, so that machines agree.
    largest = np.abs(vectors).argmax(axis=0)
    return np.asarray(vectors * np.sign(vectors[largest, np.arange(vectors.shape[1])]))
