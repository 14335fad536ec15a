"""Several clusterings and the choice among them: the graph by hand, smoothing, linkage of a sample, the criteria."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import sparse

from coterie.clustering.nearest import nearest
from coterie.errors import InputError, SettingError
from coterie.selection import candidates, choose_start, start_choice
from coterie.selection.candidates import ALGORITHMS, Clustering, cluster_by_linkage, make_clusterings
from coterie.selection.criteria import relative_change
from coterie.selection.graph import neighbour_graph, smooth_vectors, spectral_embedding
from coterie.selection.neighbour_graphs import LexicalGraph, build_graphs
from coterie.selection.start_choice import (
    CRITERIA,
    SIZE_TEST_CLUSTERING,
    balance_sizes,
    choose_among,
    score_clusterings,
    sizes_look_equal,
    stability_of,
)

K = 4


def _bundles(n: int = 40, spread: float = 0.05, dimensions: int = 12) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
    """Bundles in as many directions, and noise in all others."""
    truth = np.repeat(np.arange(K), n)
    noise = np.random.default_rng(0).normal(scale=spread, size=(K * n, dimensions))
    vectors = np.eye(K, dimensions)[truth] + noise
    return truth, np.asarray(vectors / np.linalg.norm(vectors, axis=1, keepdims=True), dtype=np.float32)


def _right(truth: NDArray[np.int64], labels: NDArray[np.int64]) -> float:
    """The share of texts in a cluster most of which is of their bundle."""
    return sum(np.bincount(truth[labels == each]).max() for each in np.unique(labels)) / len(truth)


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


def test_every_algorithm_finds_clear_bundles() -> None:
    truth, units = _bundles()
    clusterings = make_clusterings(build_graphs(units), K, np.ones(len(units), dtype=np.int64), 0)
    assert tuple(each.name for each in clusterings) == ALGORITHMS
    for each in clusterings:
        assert sorted(set(each.labels.tolist())) == list(range(K)), each.name
        assert _right(truth, each.labels) == 1, each.name


@pytest.mark.parametrize("method", ["ward", "average"])
def test_of_many_texts_a_sample_is_linked(method: str, monkeypatch: pytest.MonkeyPatch) -> None:
    truth, units = _bundles()
    whole = cluster_by_linkage(units.astype(np.float64), K, method, 0)
    monkeypatch.setattr(candidates, "LINKAGE_ROWS", 50)
    monkeypatch.setattr(candidates, "BLOCK_ROWS", 30)
    sample = cluster_by_linkage(units.astype(np.float64), K, method, 0)
    assert _right(truth, whole) == _right(truth, sample) == 1
    assert len(np.unique(sample)) == K


def test_the_better_clustering_is_chosen_by_every_criterion() -> None:
    truth, units = _bundles(spread=0.2)
    words = ["parcel late delivery", "refund money card", "password login account", "coupon price offer"]
    texts = [f"{words[label]} {i}" for i, label in enumerate(truth)]
    generator = np.random.default_rng(0)
    clusterings = [
        Clustering("one cluster, nearly", np.where(np.arange(len(truth)) < K - 1, np.arange(len(truth)) + 1, 0)),
        Clustering(
            "half dealt out",
            np.where(generator.random(len(truth)) < 0.5, generator.integers(K, size=len(truth)), truth),
        ),
        Clustering("right", truth),
    ]
    scored = score_clusterings(
        clusterings, build_graphs(units, LexicalGraph.build(texts), K), stability=[0.1, 0.2, 0.9]
    )
    assert scored[0].name == "right"
    for name in (*CRITERIA, "stability"):
        assert scored[0].criteria[name] == max(each.criteria[name] for each in scored)
    assert scored[0].score > 0 > scored[-1].score


def test_scores_by_hand() -> None:
    truth, units = _bundles()
    clusterings = [Clustering("a", truth), Clustering("b", truth.copy()), Clustering("c", np.arange(len(truth)) % K)]
    scored = score_clusterings(clusterings, build_graphs(units))
    by_name = {each.name: each for each in scored}
    # Two of three are equal: the third is twice as far from the mean, in silhouette and likelihood; no other is known.
    assert by_name["a"].score == by_name["b"].score == pytest.approx(0.5**0.5)
    assert by_name["c"].score == pytest.approx(-(2**0.5))
    assert np.isnan(by_name["c"].criteria["lexical_modularity"]) and np.isnan(by_name["c"].criteria["stability"])
    assert scored[0].name == "a"


def test_stability_is_the_agreement_of_subsamples_with_the_whole() -> None:
    truth, units = _bundles()
    graphs, once = build_graphs(units), np.ones(len(truth), dtype=np.int64)
    clusterings = make_clusterings(graphs, K, once, 0)
    assert stability_of(clusterings, graphs, K, once, 0) == pytest.approx([1] * len(clusterings))
    shuffled = [Clustering(each.name, np.random.default_rng(0).permutation(each.labels)) for each in clusterings]
    stability = stability_of(shuffled, graphs, K, once, 0)
    assert stability is not None and max(stability) < 0.2
    few = build_graphs(units[:7])
    assert stability_of(make_clusterings(few, K, once[:7], 0), few, K, once[:7], 0) is None


def _one_line(sizes: list[int]) -> tuple[NDArray[np.int64], NDArray[np.float64], list[str]]:
    """Classes of these sizes that touch each other, each with a word of its own."""
    truth = np.repeat(np.arange(len(sizes)), sizes)
    generator = np.random.default_rng(1)
    vectors = np.eye(len(sizes), 16)[truth] + generator.normal(scale=0.25, size=(len(truth), 16))
    return truth, vectors, [f"about{label} thing{generator.integers(20)}" for label in truth]


def test_sizes_are_balanced_if_that_costs_little_modularity() -> None:
    truth, vectors, texts = _one_line([60, 60, 60, 60])
    graphs, once = build_graphs(vectors, LexicalGraph.build(texts), K), np.ones(len(truth), dtype=np.int64)
    found = choose_among(graphs, K, once, 0)
    assert found.equal_sizes and np.bincount(found.best.labels).min() >= 55
    assert found.best.name in {each.name for each in found.ranking}
    lopsided = np.where(np.arange(len(truth)) % 4 == 0, 0, truth)
    balanced = np.bincount(balance_sizes(graphs, lopsided, once))
    assert balanced.max() - balanced.min() < np.ptp(np.bincount(lopsided))
    truth, vectors, texts = _one_line([190, 30, 14, 6])
    graphs, once = build_graphs(vectors, LexicalGraph.build(texts), K), np.ones(len(truth), dtype=np.int64)
    unbalanced = [Clustering(SIZE_TEST_CLUSTERING, truth)]
    assert not sizes_look_equal(unbalanced, graphs, K, once)
    assert not choose_among(graphs, K, once, 0).equal_sizes
    truth, vectors, texts = _one_line([60, 60, 60, 60])
    assert not sizes_look_equal(
        [Clustering(SIZE_TEST_CLUSTERING, truth)], build_graphs(vectors), K, np.ones(len(truth), dtype=np.int64)
    )


def test_relative_changes_are_shares_of_the_value_before() -> None:
    assert relative_change(0.8, 0.84) == pytest.approx(0.05)
    assert relative_change(0.1, 0.15) == pytest.approx(0.1)
    assert relative_change(-0.8, -0.4) == pytest.approx(0.5)


def test_the_same_seed_gives_the_same_start() -> None:
    _, units = _bundles(spread=0.4)
    one, other = (choose_start(None, K, vectors=units, seed=3) for _ in range(2))
    assert one.best.name == other.best.name and np.array_equal(one.best.labels, other.best.labels)


def test_very_many_texts_are_sampled(monkeypatch: pytest.MonkeyPatch) -> None:
    truth, units = _bundles()
    monkeypatch.setattr(start_choice, "MOST_TEXTS", 60)
    found = choose_start([f"word{label}" for label in truth], K, vectors=units)
    assert all(len(each.labels) == len(truth) for each in found.ranking)
    assert _right(truth, found.best.labels) == 1


def test_texts_without_words_and_odd_numbers() -> None:
    _, units = _bundles(10)
    found = choose_start(["?"] * len(units), K, vectors=units)
    assert np.isnan(found.best.criteria["lexical_modularity"]) and np.isfinite(found.best.score)
    with pytest.raises(SettingError, match="n_clusters"):
        choose_start(None, 1, vectors=units)
    with pytest.raises(InputError, match="nothing to choose"):
        choose_start(None, K, vectors=units[:5])


def test_word_salad_gets_an_answer() -> None:
    noise = np.random.default_rng(0).normal(size=(60, 20))
    found = choose_start(None, 5, vectors=noise)
    assert len(np.unique(found.best.labels)) == 5
