"""Binary codes of texts and the reductions behind them, against dense float64."""

from __future__ import annotations

import numpy as np
import pytest
from reference import stcc_oracle as oracle
from scipy import sparse

import coterie.methods.baselines.stcc.codes as codes_module
from coterie.encoders.tokenization import TokenArrays, contiguous_tokens
from coterie.methods.baselines.stcc.codes import (
    binary_codes,
    laplacian_eigenmaps,
    latent_semantics,
    mean_vectors,
    tf_idf,
)

N_TEXTS, N_WORDS = 40, 25
COUNTS = np.random.default_rng(5).integers(1, 5, N_TEXTS)
SEEDS = pytest.mark.parametrize("seed", [0, 1, 2])
SOLVERS = pytest.mark.parametrize("few", [0, 500], ids=["sparse", "dense"])


def _texts(seed: int) -> tuple[list[list[int]], TokenArrays]:
    generator = np.random.default_rng(seed)
    texts = [generator.integers(0, N_WORDS, generator.integers(3, 9)).tolist() for _ in range(N_TEXTS)]
    ids = np.array([word for text in texts for word in text], dtype=np.int32)
    return texts, contiguous_tokens(ids, np.array([len(text) for text in texts]), 0)


def _same_up_to_sign(found: np.ndarray, expected: np.ndarray) -> None:
    signs = np.sign((found * expected).sum(axis=0))
    np.testing.assert_allclose(found, expected * signs, atol=1e-8)


@SEEDS
def test_tf_idf(seed: int) -> None:
    texts, tokens = _texts(seed)
    before = tokens.ids.copy()
    np.testing.assert_allclose(tf_idf(tokens, N_WORDS, COUNTS).toarray(), oracle.tf_idf(texts, N_WORDS, COUNTS))
    np.testing.assert_array_equal(tokens.ids, before)  # the network still has to read the words in their order


@SEEDS
@SOLVERS
def test_laplacian_eigenmaps(seed: int, few: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(codes_module, "FEW_TEXTS", few)
    rows = np.random.default_rng(seed).normal(size=(N_TEXTS, 4))  # no two distances are equal
    found = laplacian_eigenmaps(sparse.csr_matrix(rows), 6, 7, seed=3)
    expected = oracle.laplacian_eigenmaps(rows, 6, 7)
    scale = np.linalg.norm(found, axis=0) / np.linalg.norm(expected, axis=0)
    _same_up_to_sign(found, expected * scale)


@SEEDS
@SOLVERS
def test_latent_semantics(seed: int, few: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(codes_module, "FEW_TEXTS", few)
    texts, _ = _texts(seed)
    rows = oracle.tf_idf(texts, N_WORDS, COUNTS)
    found = latent_semantics(sparse.csr_matrix(rows), 5, COUNTS, seed=3)
    _same_up_to_sign(found, oracle.latent_semantics(rows, 5, COUNTS))


def test_few_texts_have_few_dimensions() -> None:
    rows = sparse.csr_matrix(np.random.default_rng(0).normal(size=(3, 4)))
    assert laplacian_eigenmaps(rows, 20, 15, seed=0).shape == (3, 2)
    assert latent_semantics(rows, 20, np.ones(3, dtype=np.int64), seed=0).shape == (3, 3)


@SEEDS
@pytest.mark.parametrize("n", [40, 39])
def test_codes_split_at_the_median(seed: int, n: int) -> None:
    coordinates = np.random.default_rng(seed).normal(size=(n, 6))
    coordinates[:8, 0] = 0.1  # ties
    for counts in (np.ones(n, dtype=np.int64), COUNTS[:n]):
        found = binary_codes(coordinates, counts)
        assert found.dtype == np.float32
        np.testing.assert_array_equal(found, oracle.codes(coordinates, counts))
    assert (binary_codes(coordinates, np.ones(n, dtype=np.int64)).sum(axis=0)[1:] == n // 2).all()


def test_mean_vectors() -> None:
    table = np.random.default_rng(0).normal(size=(3, 5)).astype(np.float32)
    tokens = contiguous_tokens(np.array([0, 2, 2, 1], dtype=np.int32), np.array([3, 0, 1]), 0)
    found = mean_vectors(tokens, table)
    expected = (table[0] + 2 * table[2]) / np.linalg.norm(table[0] + 2 * table[2])
    np.testing.assert_allclose(found[0], expected, atol=1e-6)
    assert not found[1].any()
    np.testing.assert_allclose(found[2], table[1] / np.linalg.norm(table[1]), atol=1e-6)
