"""Candidates: every algorithm on clear bundles, runs of k-means, linkage of a sample, and balanced sizes."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.cluster.hierarchy import fcluster, linkage
from sklearn.metrics import adjusted_rand_score

from coterie.clustering.agglomerative import cut
from coterie.selection import candidates
from coterie.selection.candidates import (
    ALGORITHMS,
    AVERAGE_LINKAGE,
    AVERAGE_SMOOTHING,
    Clustering,
    balance_sizes,
    cluster_by_linkage,
    follow_nearest,
    make_clusterings,
    renumber,
)
from coterie.selection.neighbour_graphs import NeighbourGraphs, build_graphs

Labels = NDArray[np.int64]
K = 4


def _bundles(sizes: tuple[int, ...] = (40, 40, 40, 40), spread: float = 0.05) -> tuple[Labels, NDArray[np.float64]]:
    """Bundles in as many directions, and noise in all."""
    truth = np.repeat(np.arange(len(sizes)), sizes)
    noise = np.random.default_rng(0).normal(scale=spread, size=(len(truth), 12))
    return truth, np.eye(len(sizes), 12)[truth] + noise


def _once(n: int) -> Labels:
    return np.ones(n, dtype=np.int64)


@pytest.fixture(scope="module")
def blurred() -> NeighbourGraphs:
    """Bundles that overlap so much that algorithms and their seeds disagree."""
    return build_graphs(_bundles(spread=0.6)[1])


# --- The clusterings ---


def test_every_algorithm_finds_clear_bundles() -> None:
    truth, vectors = _bundles()
    clusterings = make_clusterings(build_graphs(vectors), K, _once(len(truth)), 0)
    assert tuple(dict.fromkeys(each.algorithm for each in clusterings)) == ALGORITHMS
    for each in clusterings:
        assert adjusted_rand_score(truth, each.labels) == 1, each.name
        assert sorted(set(each.labels.tolist())) == list(range(K)), each.name
        share = 1 / len(AVERAGE_SMOOTHING) if each.algorithm == AVERAGE_LINKAGE else 1
        assert (each.view, each.sizes, each.share) == ("semantic", "free", share)


def test_labels_run_from_0_without_gaps(blurred: NeighbourGraphs) -> None:
    n = len(blurred.units)
    for each in make_clusterings(blurred, 30, _once(n), 0):
        assert sorted(set(each.labels.tolist())) == list(range(30)), each.name


def test_runs_of_kmeans_share_one_weight(blurred: NeighbourGraphs) -> None:
    clusterings = make_clusterings(blurred, K, _once(len(blurred.units)), 0, view="joined", kmeans_runs=3)
    by_name: dict[str, list[float]] = {}
    for each in clusterings:
        by_name.setdefault(each.algorithm, []).append(each.share)
        assert each.view == "joined"
    assert set(by_name) == set(ALGORITHMS)
    for algorithm, shares in by_name.items():
        runs = {AVERAGE_LINKAGE: len(AVERAGE_SMOOTHING)}.get(algorithm, 3 if algorithm.endswith("k-means") else 1)
        assert len(shares) == runs, algorithm
        assert sum(shares) == pytest.approx(1)


def test_runs_of_kmeans_have_seeds_of_their_own(blurred: NeighbourGraphs) -> None:
    once = _once(len(blurred.units))

    def runs(seed: int, count: int) -> list[list[int]]:
        found = make_clusterings(blurred, 8, once, seed, ["k-means"], kmeans_runs=count)
        return [each.labels.tolist() for each in found]

    three, others = runs(0, 3), runs(1, 3)
    assert three == [runs(seed, 1)[0] for seed in range(3)]
    assert three == runs(0, 3)
    # No run is one of another seed of the fit, so that two fits are independent.
    assert len({tuple(each) for each in (*three, *others)}) == 6


def test_linkage_does_not_depend_on_the_seed(blurred: NeighbourGraphs, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither of all rows nor of a sample."""
    linked = [each for each in ALGORITHMS if not each.endswith("k-means")]
    once = _once(len(blurred.units))
    for largest in (5_000, 60):
        monkeypatch.setattr(candidates, "LINKAGE_ROWS", largest)
        one, other = (make_clusterings(blurred, 5, once, seed, linked) for seed in (0, 1))
        assert [each.labels.tolist() for each in one] == [each.labels.tolist() for each in other]


def test_only_free_average_linkage_counts_as_uneven() -> None:
    labels = np.array([0, 0, 1])
    for algorithm in ALGORITHMS:
        for sizes in ("free", "penalised", "equal"):
            found = Clustering(algorithm, labels, sizes=sizes).size_kind
            assert found == ("uneven" if (algorithm, sizes) == (AVERAGE_LINKAGE, "free") else sizes)
    assert Clustering("Ward", labels, "joined", "equal").name == "joined, Ward, equal sizes"


def test_clusters_are_renumbered() -> None:
    assert renumber(np.array([7, 2, 7, 9, 2])).tolist() == [1, 0, 1, 2, 0]
    assert renumber(np.array([0, 1])).dtype == np.int64


# --- Linkage ---


@pytest.mark.parametrize("method", ["ward", "average"])
@pytest.mark.parametrize("n_clusters", [3, 10])
def test_linkage_is_that_of_scipy(method: str, n_clusters: int) -> None:
    """scipy computes the distances itself, from rows of length one."""
    rows = np.random.default_rng(0).normal(size=(80, 6)) * np.random.default_rng(1).uniform(0.1, 9, size=(80, 1))
    units = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    expected = fcluster(linkage(units, method), n_clusters, criterion="maxclust")
    found = cluster_by_linkage(rows, n_clusters, method)
    assert adjusted_rand_score(expected, found) == 1
    assert sorted(set(found.tolist())) == list(range(n_clusters))


@pytest.mark.parametrize("method", ["ward", "average"])
def test_of_many_texts_a_sample_is_linked(method: str, monkeypatch: pytest.MonkeyPatch) -> None:
    truth, vectors = _bundles()
    monkeypatch.setattr(candidates, "LINKAGE_ROWS", 50)
    monkeypatch.setattr(candidates, "BLOCK_ROWS", 30)
    linked = []

    def record(tree: NDArray[np.float64], n_rows: int, n_clusters: int) -> Labels:
        linked.append(n_rows)
        return cut(tree, n_rows, n_clusters)

    monkeypatch.setattr(candidates, "cut", record)
    assert adjusted_rand_score(truth, cluster_by_linkage(vectors, K, method)) == 1
    assert linked == [50]


def test_a_sample_has_at_least_as_many_rows_as_clusters(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(candidates, "LINKAGE_ROWS", 10)
    found = cluster_by_linkage(np.random.default_rng(0).normal(size=(40, 8)), 25, "ward")
    assert len(found) == 40 and len(set(found.tolist())) == 25


def test_rows_of_zeros_are_linked_too() -> None:
    """A row of zeros is at right angles to every other row, so it is alone in a cluster."""
    truth, vectors = _bundles()
    vectors[[0, 50]] = 0
    truth[[0, 50]] = K, K + 1
    assert adjusted_rand_score(truth, cluster_by_linkage(vectors, K + 2, "average")) == 1


# --- Rows outside a sample ---


def test_each_row_follows_the_nearest_of_the_sample(monkeypatch: pytest.MonkeyPatch) -> None:
    random = np.random.default_rng(0)
    vectors = random.normal(size=(70, 5)) * random.uniform(0.1, 9, size=(70, 1))
    sampled = np.sort(random.permutation(70)[:20])
    labels = random.integers(6, size=20)
    units = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    cosines = [[float(units[i] @ units[j]) for j in sampled.tolist()] for i in range(70)]
    expected = [int(labels[row.index(max(row))]) for row in cosines]
    for rows in (2_048, 16):
        monkeypatch.setattr(candidates, "BLOCK_ROWS", rows)
        assert follow_nearest(vectors, sampled, labels).tolist() == expected
    assert [expected[row] for row in sampled.tolist()] == labels.tolist()


def test_sampled_rows_keep_their_cluster_even_if_another_has_the_same_vector() -> None:
    vectors = np.ones((5, 3))
    found = follow_nearest(vectors, np.array([1, 3, 4]), np.array([2, 0, 1]))
    assert found[[1, 3, 4]].tolist() == [2, 0, 1]


# --- Sizes ---


@pytest.fixture(scope="module")
def uneven() -> tuple[NeighbourGraphs, Clustering]:
    truth, vectors = _bundles((120, 50, 20, 10), spread=0.45)
    return build_graphs(vectors), Clustering("smoothed Ward", truth, "joined", share=0.5)


def test_sizes_are_balanced_more_by_a_larger_penalty(uneven: tuple[NeighbourGraphs, Clustering]) -> None:
    graphs, clustering = uneven
    before = clustering.labels.copy()
    spreads = {"free": np.ptp(np.bincount(before))}
    for kind in ("penalised", "equal"):
        found = balance_sizes(graphs, clustering, _once(200), kind)
        assert (found.algorithm, found.view, found.sizes, found.share) == ("smoothed Ward", "joined", kind, 0.5)
        assert len(np.bincount(found.labels)) == K and np.bincount(found.labels).min() > 0
        spreads[kind] = np.ptp(np.bincount(found.labels))
    assert spreads["equal"] < 15 < 30 < spreads["penalised"] < 60 < spreads["free"]
    assert clustering.sizes == "free" and np.array_equal(clustering.labels, before)


def test_balanced_sizes_count_repeated_texts(uneven: tuple[NeighbourGraphs, Clustering]) -> None:
    """Texts of the largest class occur once, all others twice."""
    graphs, clustering = uneven
    counts = np.where(clustering.labels == 0, 1, 2)
    found = balance_sizes(graphs, clustering, counts).labels
    assert np.ptp(np.bincount(found, weights=counts)) < 20 < 30 < np.ptp(np.bincount(found))


def test_balancing_moves_few_texts_of_even_classes() -> None:
    truth, vectors = _bundles(spread=0.2)
    found = balance_sizes(build_graphs(vectors), Clustering("k-means", truth), _once(len(truth)))
    assert (found.labels == truth).mean() > 0.97
