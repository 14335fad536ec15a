"""Sparsified similarities and their linkage against the oracle; counts, ties, negative similarities, the size limit."""

from __future__ import annotations

import numpy as np
import pytest
from reference import hac_sd_oracle as oracle
from scipy import sparse
from scipy.spatial.distance import squareform

from coterie.clustering import agglomerative
from coterie.errors import InputError, SettingError
from coterie.methods.baselines.hac_sd import sparse_similarity
from coterie.methods.baselines.hac_sd.sparse_similarity import sparse_distances, sparse_similarity_labels


def _ones(n: int) -> np.ndarray:
    return np.ones(n, dtype=np.int64)


def _positive(n: int, seed: int, dimension: int = 4) -> np.ndarray:
    """Vectors in one corner of the space: no similarity is below 0."""
    return np.abs(np.random.default_rng(seed).normal(size=(n, dimension)))


def _sets(labels: np.ndarray) -> set[frozenset[int]]:
    return {frozenset(np.flatnonzero(labels == k).tolist()) for k in np.unique(labels)}


@pytest.mark.parametrize("block", [3, 512])
@pytest.mark.parametrize("k", [2, 3, 7])
def test_the_similarities_of_the_oracle(k: int, block: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sparse_similarity, "BLOCK", block)
    vectors = _positive(23, seed=k)
    expected = 1 - oracle.sparse_similarities(vectors, k)
    np.testing.assert_allclose(squareform(sparse_distances(vectors, k, _ones(23))), expected, atol=1e-6)


@pytest.mark.parametrize("k", [2, 4, 6])
def test_the_clusters_of_the_oracle(k: int) -> None:
    vectors = _positive(20, seed=10 + k)
    expected = oracle.average_linkage(1 - oracle.sparse_similarities(vectors, k), k)
    assert _sets(sparse_similarity_labels(vectors, k, _ones(20))) == {frozenset(each) for each in expected}


def test_ward_is_another_tree_on_the_same_distances() -> None:
    from scipy.cluster.hierarchy import fcluster, ward

    vectors = _positive(40, seed=1)
    labels = sparse_similarity_labels(vectors, 4, _ones(40), "ward")
    tree = ward(sparse_distances(vectors, 4, _ones(40)))
    assert _sets(labels) == _sets(fcluster(tree, 4, criterion="maxclust"))
    assert _sets(labels) != _sets(sparse_similarity_labels(vectors, 4, _ones(40)))
    with pytest.raises(SettingError, match="linkage='single'.*ward, average"):
        sparse_similarity_labels(vectors, 4, _ones(40), "single")


def test_counts_are_repetitions() -> None:
    generator = np.random.default_rng(4)
    differs = False
    for seed in range(5):
        vectors, counts = _positive(15, seed), generator.integers(1, 6, size=15)
        total = int(counts.sum())
        repeated = sparse_distances(np.repeat(vectors, counts, axis=0), 3, _ones(total))
        np.testing.assert_allclose(sparse_distances(vectors, 3, counts), repeated, atol=1e-6)
        labels = sparse_similarity_labels(vectors, 3, counts)
        alone = sparse_similarity_labels(vectors, 3, _ones(15))
        differs |= _sets(labels) != _sets(alone)
    assert differs, "counts made no difference in any of the draws"


def test_copies_are_at_distance_zero_exactly() -> None:
    distances = squareform(sparse_distances(_positive(4, 0, 7) / 3, 2, np.array([1, 3, 1, 2])))
    rows = np.repeat(np.arange(4), [1, 3, 1, 2])
    assert (distances[rows[:, None] == rows[None]] == 0).all()


def test_ties_with_the_last_pair_stay() -> None:
    # A ring of four: four pairs of neighbours are equally alike, and 16 / 2 - 4 = 4 entries are two pairs.
    ring = np.array([[1, 1, 0, 0], [0, 1, 1, 0], [0, 0, 1, 1], [1, 0, 0, 1]])
    distances = squareform(sparse_distances(ring, 2, _ones(4)))
    np.testing.assert_allclose(distances, [[0, 0.5, 1, 0.5], [0.5, 0, 0.5, 1], [1, 0.5, 0, 0.5], [0.5, 1, 0.5, 0]])


def test_no_similarity_below_zero_stays() -> None:
    # Two opposite bundles: more than a third of the pairs are alike, but 1 / 2 of all entries would be kept.
    vectors = np.array([[1.0, 0.01 * i] for i in range(3)] + [[-1.0, 0.3 + 0.01 * i] for i in range(3)])
    distances = squareform(sparse_distances(vectors, 2, _ones(6)))
    assert distances.max() == 1
    # A zero row is like nothing and still gets a cluster.
    labels = sparse_similarity_labels(np.vstack([vectors, np.zeros(2)]), 3, _ones(7))
    assert _sets(labels) == {frozenset({0, 1, 2}), frozenset({3, 4, 5}), frozenset({6})}


@pytest.mark.parametrize("k", [2, 5, 10, 11, 12])
def test_exactly_k_clusters_and_the_pair_that_stands_out_first(k: int) -> None:
    vectors = _positive(12, seed=3)
    labels = sparse_similarity_labels(vectors, k, _ones(12))
    assert sorted(set(labels.tolist())) == list(range(k))
    if k == 11:
        # With K = 10 the oracle has room for one pair.
        similarities = np.triu(oracle.sparse_similarities(vectors, 10), 1)
        nearest = np.unravel_index(similarities.argmax(), similarities.shape)
        assert labels[nearest[0]] == labels[nearest[1]]


def test_sparse_rows_cluster_like_dense_ones() -> None:
    vectors = _positive(20, 0, 8)
    vectors[vectors < 0.5] = 0
    dense = sparse_similarity_labels(vectors, 4, _ones(20))
    assert np.array_equal(dense, sparse_similarity_labels(sparse.csr_matrix(vectors), 4, _ones(20)))


def test_too_many_rows_are_refused_before_similarities_are_made(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(agglomerative, "LARGEST", 10)
    sparse_similarity_labels(_positive(6, 0), 2, np.array([1, 1, 1, 1, 1, 5]))
    with pytest.raises(InputError, match=r"hac_sd holds all.*limited to 10 texts; received 11.*sample=20000"):
        sparse_similarity_labels(_positive(6, 0), 2, np.array([1, 1, 1, 1, 1, 6]))


def test_a_row_like_everything_does_not_take_all_the_room() -> None:
    # Three pairs of twins, loosely alike, and a tight bundle: by similarity alone only the bundle would stay.
    generator = np.random.default_rng(0)
    bundle = np.array([1.0, 0, 0, 0]) + 0.05 * generator.normal(size=(10, 4))
    twins = np.repeat(np.eye(4)[1:], 2, axis=0) + 0.25 * np.eye(6, 4, 1) + 0.1
    vectors = np.vstack([bundle, twins])
    kept = squareform(sparse_distances(vectors, 5, _ones(16))) < 1
    assert all(kept[10 + 2 * i, 11 + 2 * i] for i in range(3))
