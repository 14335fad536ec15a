"""Linkage against scikit-learn, and what scikit-learn does not do: ties, counts, a size limit."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse
from sklearn.cluster import AgglomerativeClustering

from coterie.clustering import agglomerative
from coterie.clustering.agglomerative import linkage_labels
from coterie.errors import InputError, SettingError

KINDS = pytest.mark.parametrize(("linkage", "metric"), [("ward", "euclidean"), ("average", "cosine")])


def _same_partition(first: np.ndarray, second: np.ndarray) -> bool:
    pairs = set(zip(first.tolist(), second.tolist(), strict=True))
    return len(pairs) == len({a for a, _ in pairs}) == len({b for _, b in pairs})


def _ones(n: int) -> np.ndarray:
    return np.ones(n, dtype=np.int64)


@KINDS
@pytest.mark.parametrize("k", [2, 5, 40])
def test_the_same_partition_as_scikit_learn(linkage: str, metric: str, k: int) -> None:
    features = np.random.default_rng(k).normal(size=(60, 4))
    expected = AgglomerativeClustering(k, linkage=linkage, metric=metric).fit_predict(features)
    labels = linkage_labels(features, k, linkage, _ones(60))
    assert labels.dtype == np.int64
    assert sorted(set(labels.tolist())) == list(range(k))
    assert _same_partition(labels, expected)


@KINDS
def test_as_many_clusters_as_rows(linkage: str, metric: str) -> None:
    features = np.random.default_rng(0).normal(size=(6, 3))
    assert len(set(linkage_labels(features, 6, linkage, _ones(6)).tolist())) == 6


@KINDS
@pytest.mark.parametrize("k", [2, 3, 4, 7, 11])
def test_exactly_k_clusters_where_heights_tie(linkage: str, metric: str, k: int) -> None:
    # The corners of a square, three times over, and one row apart: nearly all merges happen at equal heights.
    corners = np.array([[1.0, 1.0], [1.0, -1.0], [-1.0, 1.0], [-1.0, -1.0]])
    features = np.vstack([np.repeat(corners, 3, axis=0), [[1.0, 0.0]]])
    labels = linkage_labels(features, k, linkage, _ones(13))
    assert sorted(set(labels.tolist())) == list(range(k))


@KINDS
def test_counts_are_repetitions(linkage: str, metric: str) -> None:
    generator = np.random.default_rng(4)
    differs = False
    for seed in range(6):
        features = np.random.default_rng(seed).normal(size=(25, 3))
        counts = generator.integers(1, 9, size=25)
        labels = linkage_labels(features, 4, linkage, counts)
        repeated = linkage_labels(np.repeat(features, counts, axis=0), 4, linkage, _ones(int(counts.sum())))
        firsts = np.concatenate([[0], np.cumsum(counts)[:-1]])
        assert _same_partition(labels, repeated[firsts])
        assert np.array_equal(repeated, np.repeat(repeated[firsts], counts))
        differs |= not _same_partition(labels, linkage_labels(features, 4, linkage, _ones(25)))
    assert differs, "counts made no difference in any of the draws"


@KINDS
def test_sparse_rows_cluster_like_dense_ones(linkage: str, metric: str) -> None:
    features = np.random.default_rng(0).normal(size=(30, 8))
    features[np.abs(features) < 0.5] = 0
    dense = linkage_labels(features, 4, linkage, _ones(30))
    assert np.array_equal(dense, linkage_labels(sparse.csr_matrix(features), 4, linkage, _ones(30)))


def test_rows_of_zeros_have_a_cosine_cluster_too() -> None:
    features = np.vstack([np.zeros((2, 3)), np.random.default_rng(0).normal(size=(8, 3))])
    labels = linkage_labels(features, 3, "average", _ones(10))
    assert sorted(set(labels.tolist())) == [0, 1, 2]


def test_an_unknown_linkage_is_named() -> None:
    with pytest.raises(SettingError, match="linkage='single'.*ward, average"):
        linkage_labels(np.eye(3), 2, "single", _ones(3))


def test_too_many_rows_are_refused_before_distances_are_made(monkeypatch: pytest.MonkeyPatch) -> None:
    too_many = agglomerative.LARGEST + 1
    with pytest.raises(InputError, match=f"limited to {too_many - 1:,} texts; received {too_many:,}.*k-means"):
        linkage_labels(np.zeros((too_many, 1)), 2, "ward", _ones(too_many))
    monkeypatch.setattr(agglomerative, "LARGEST", 10)
    features = np.random.default_rng(0).normal(size=(6, 2))
    linkage_labels(features, 2, "ward", np.array([1, 1, 1, 1, 1, 5]))
    # Repeated rows count: they are what fills the memory.
    with pytest.raises(InputError, match="received 11"):
        linkage_labels(features, 2, "ward", np.array([1, 1, 1, 1, 1, 6]))
