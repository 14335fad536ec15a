"""UMAP with a seed, on few rows, on sparse ones; and what is asked of who has not got it."""

from __future__ import annotations

import sys
from types import ModuleType

import numpy as np
import pytest
from scipy import sparse

from coterie.clustering.umap_reduction import umap_reduced
from coterie.errors import MissingExtraError


def _blobs(n: int, dimension: int = 12) -> np.ndarray:
    """Three bundles of directions."""
    generator = np.random.default_rng(0)
    return np.abs(np.eye(3, dimension)[np.arange(n) % 3] + generator.normal(scale=0.1, size=(n, dimension)))


def test_without_the_package_the_command_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "umap", None)
    with pytest.raises(MissingExtraError, match=r"'umap'.*pip install 'coterie\[umap\]'"):
        umap_reduced(_blobs(9), 2, 0)


def test_bundles_stay_together_and_the_seed_decides() -> None:
    pytest.importorskip("umap")
    vectors = _blobs(90)
    kept = np.random.get_state()[1].copy()
    reduced = umap_reduced(vectors, 5, seed=3)
    np.testing.assert_array_equal(np.random.get_state()[1], kept)
    assert reduced.shape == (90, 5) and reduced.dtype == np.float32
    np.testing.assert_array_equal(reduced, umap_reduced(vectors, 5, seed=3))
    assert (reduced != umap_reduced(vectors, 5, seed=4)).any()
    assert _neighbours_are_alike(reduced)
    # Cosine: the lengths of the vectors do not matter.
    lengths = np.random.default_rng(1).uniform(0.01, 99, size=(90, 1))
    assert not _neighbours_are_alike(vectors * lengths)
    assert _neighbours_are_alike(umap_reduced(vectors * lengths, 5, seed=3))


def _neighbours_are_alike(vectors: np.ndarray) -> bool:
    """Whether the nearest vector is always one of the same bundle."""
    distances = np.linalg.norm(vectors[:, None] - vectors[None], axis=2)
    np.fill_diagonal(distances, np.inf)
    return bool((distances.argmin(axis=1) % 3 == np.arange(len(vectors)) % 3).all())


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("n", [2, 3, 4, 6, 7, 12])
def test_few_rows(n: int) -> None:
    pytest.importorskip("umap")
    reduced = umap_reduced(_blobs(n), 5, 0)
    assert len(reduced) == n and reduced.shape[1] == (12 if n == 2 else min(5, n - 2))
    assert np.isfinite(reduced).all()
    assert len(np.unique(reduced, axis=0)) == n


def test_sparse_rows() -> None:
    pytest.importorskip("umap")
    vectors = _blobs(30)
    vectors[vectors < 0.1] = 0
    vectors[4] = 0
    assert np.isfinite(umap_reduced(sparse.csr_matrix(vectors), 2, 0)).all()
    assert umap_reduced(sparse.csr_matrix(vectors[:2]), 2, 0).shape == (2, 12)


def test_two_rows_are_returned_unchanged(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "umap", ModuleType("umap"))  # not called
    rows = np.array([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    for features in (rows, sparse.csr_matrix(rows)):
        np.testing.assert_array_equal(umap_reduced(features, 5, 0), rows)
