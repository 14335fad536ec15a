"""Graphs of nearest neighbours: weights by hand, smoothed vectors, and the spectral embedding."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import sparse

from coterie.clustering.nearest import nearest
from coterie.selection.graph import neighbour_graph, smooth_vectors, spectral_embedding

K = 4


def _bundles(n: int = 40, spread: float = 0.05, dimensions: int = 12) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
    """Bundles in as many directions, and noise in all others."""
    truth = np.repeat(np.arange(K), n)
    noise = np.random.default_rng(0).normal(scale=spread, size=(K * n, dimensions))
    vectors = np.eye(K, dimensions)[truth] + noise
    return truth, np.asarray(vectors / np.linalg.norm(vectors, axis=1, keepdims=True), dtype=np.float32)


def test_nearest_rows_come_in_their_order() -> None:
    _, units = _bundles(5)
    rows, cosines = nearest(units, 6)
    similarity = units.astype(np.float64) @ units.T.astype(np.float64)
    np.fill_diagonal(similarity, -np.inf)
    assert rows.tolist() == np.argsort(-similarity, axis=1)[:, :6].tolist()
    assert cosines == pytest.approx(np.sort(similarity, axis=1)[:, ::-1][:, :6], abs=1e-5)


def test_the_graph_by_hand() -> None:
    _, units = _bundles(10, spread=0.3)
    rows, cosines = nearest(units, 8)
    graph = neighbour_graph(rows, cosines)
    assert sparse.issparse(graph) and abs(graph - graph.T).max() < 1e-12
    dense = graph.toarray()
    assert dense.min() >= 0 and dense.max() <= 1 + 1e-12 and not dense.diagonal().any()

    def named(i: int) -> dict[int, float]:
        """What a row alone gives its neighbours: the width by bisection, as in the paper."""
        distances = 1 - cosines[i]
        low, high = 1e-6, 10.0
        for _ in range(200):
            width = (low + high) / 2
            total = sum(np.exp(-max(0.0, each - distances[0]) / width) for each in distances)
            low, high = (low, width) if total > np.log2(8) else (width, high)
        return {int(j): float(np.exp(-(d - distances[0]) / width)) for j, d in zip(rows[i], distances, strict=True)}

    for i, j in ((0, int(rows[0, 0])), (7, int(rows[7, 5])), (13, int(rows[13, 7]))):
        one, other = named(i).get(j, 0.0), named(j).get(i, 0.0)
        assert dense[i, j] == pytest.approx(one + other - one * other, abs=1e-4)


def test_equal_texts_have_a_graph_too() -> None:
    rows, cosines = nearest(np.ones((6, 3), dtype=np.float32) / 3**0.5, 4)
    assert np.isfinite(neighbour_graph(rows, cosines).toarray()).all()


def test_smoothing_moves_bundles_together_and_not_towards_each_other() -> None:
    truth, units = _bundles(spread=0.35)
    rows, cosines = nearest(units, 10)
    smooth = smooth_vectors(units, neighbour_graph(rows, cosines), 3)
    assert np.linalg.norm(smooth, axis=1) == pytest.approx(np.ones(len(smooth)))

    def inside_less_between(vectors: NDArray[np.float64]) -> float:
        similarity, same = vectors @ vectors.T, truth[:, None] == truth
        return float(similarity[same].mean() - similarity[~same].mean())

    assert inside_less_between(smooth) > inside_less_between(units.astype(np.float64)) + 0.2
    assert smooth_vectors(units, neighbour_graph(rows, cosines), 0) == pytest.approx(units)


def test_the_spectral_embedding_separates_parts_of_a_graph_and_is_reproducible() -> None:
    truth, units = _bundles(spread=0.02)
    graph = neighbour_graph(*nearest(units, 5))
    coordinates = spectral_embedding(graph, K, seed=1)
    similarity = coordinates @ coordinates.T
    assert similarity[truth[:, None] == truth].min() > 0.99 and similarity[truth[:, None] != truth].max() < 0.5
    assert np.array_equal(coordinates, spectral_embedding(graph, K, seed=1))
