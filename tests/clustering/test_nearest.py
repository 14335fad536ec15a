"""Nearest rows by cosine: dense and sparse rows against loops, ties, few rows, and the same on a GPU."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import sparse

from coterie.clustering.nearest import nearest

Units = NDArray[np.float32]

on_gpu = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")


def _nearest(units: Units, count: int) -> tuple[list[list[int]], list[list[float]]]:
    """Every other row, sorted by its cosine."""
    wide = units.astype(np.float64)
    rows, cosines = [], []
    for i in range(len(wide)):
        alike = {
            j: float(sum(a * b for a, b in zip(wide[i], wide[j], strict=True))) for j in range(len(wide)) if j != i
        }
        order = sorted(alike, key=lambda j: -alike[j])[:count]
        rows.append(order)
        cosines.append([alike[j] for j in order])
    return rows, cosines


def _dense(n: int, seed: int, d: int = 7) -> Units:
    vectors = np.random.default_rng(seed).normal(size=(n, d))
    return (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32)


def _sparse(n: int, seed: int, d: int = 12, share: float = 0.3) -> Units:
    """Rows of few words, some without any."""
    random = np.random.default_rng(seed)
    vectors = random.random((n, d)) * (random.random((n, d)) < share)
    return (vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12)).astype(np.float32)


def _agree_with_the_loop(units: Units, count: int, found: tuple[NDArray[np.int64], NDArray[np.float64]]) -> None:
    """The cosines are the largest, in their order, and are those of the rows; ties may stand in any order."""
    rows, cosines = found
    _, expected = _nearest(units, count)
    assert rows.shape == cosines.shape == (len(units), count)
    np.testing.assert_allclose(cosines, expected, atol=1e-5)
    alike = units.astype(np.float64) @ units.T.astype(np.float64)
    for i, row in enumerate(rows.tolist()):
        assert i not in row and len(set(row)) == count
        np.testing.assert_allclose(cosines[i], alike[i, row], atol=1e-5)


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 10**6), st.integers(2, 20), st.data())
def test_dense_rows_are_those_of_the_loop(seed: int, n: int, data: Any) -> None:
    count = data.draw(st.integers(1, n - 1))
    units = _dense(n, seed)
    _agree_with_the_loop(units, count, nearest(units, count))


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 10**6), st.integers(2, 20), st.data())
def test_sparse_rows_are_those_of_the_loop(seed: int, n: int, data: Any) -> None:
    count = data.draw(st.integers(1, n - 1))
    units = _sparse(n, seed)
    _agree_with_the_loop(units, count, nearest(sparse.csr_matrix(units), count))


def test_rows_without_ties_come_in_the_order_of_the_loop() -> None:
    units = _dense(40, seed=1)
    rows, cosines = nearest(units, 12)
    assert np.issubdtype(rows.dtype, np.integer)
    assert rows.tolist() == _nearest(units, 12)[0]
    assert (np.diff(cosines, axis=1) <= 0).all()


def test_dense_and_sparse_are_the_same() -> None:
    units = _dense(40, seed=2)
    units[np.abs(units) < 0.2] = 0
    units /= np.linalg.norm(units, axis=1, keepdims=True)
    (rows, cosines), (others, other_cosines) = nearest(units, 9), nearest(sparse.csr_matrix(units), 9)
    assert rows.tolist() == others.tolist() == _nearest(units, 9)[0]
    np.testing.assert_allclose(cosines, other_cosines, atol=1e-5)


def test_rows_that_share_nothing_are_the_last() -> None:
    units = np.eye(4, dtype=np.float32)[[0, 0, 1, 1, 2]]
    for given_rows in (units, sparse.csr_matrix(units)):
        rows, cosines = nearest(given_rows, 2)
        assert rows[:4, 0].tolist() == [1, 0, 3, 2]
        np.testing.assert_allclose(cosines, [[1, 0]] * 4 + [[0, 0]], atol=1e-6)


def test_negative_cosines_are_kept_in_their_order() -> None:
    units = np.array([[1, 0], [-1, 0], [0, 1], [-0.6, -0.8]], dtype=np.float32)
    for given_rows in (units, sparse.csr_matrix(units)):
        rows, cosines = nearest(given_rows, 3)
        assert rows[0].tolist() == [2, 3, 1]
        np.testing.assert_allclose(cosines[0], [0, -0.6, -1], atol=1e-6)


def test_equal_rows_are_neighbours_of_one_another_and_not_of_themselves() -> None:
    units = np.tile(_dense(1, seed=3), (8, 1))
    for given_rows in (units, sparse.csr_matrix(units)):
        _agree_with_the_loop(units, 5, nearest(given_rows, 5))


def test_many_rows_are_those_of_a_table_of_all_cosines() -> None:
    units = _dense(3000, seed=4, d=16)
    rows, cosines = nearest(units, 5)
    alike = units.astype(np.float64) @ units.T.astype(np.float64)
    np.fill_diagonal(alike, -np.inf)
    expected = np.sort(alike, axis=1)[:, ::-1][:, :5]
    np.testing.assert_allclose(cosines, expected, atol=1e-5)
    np.testing.assert_allclose(np.take_along_axis(alike, rows, axis=1), expected, atol=1e-5)


def test_the_rows_are_left_as_they_are() -> None:
    units = _sparse(20, seed=5)
    table, before = sparse.csr_matrix(units), units.copy()
    nearest(units, 3)
    nearest(table, 3)
    assert np.array_equal(units, before) and np.array_equal(table.toarray(), before)


@on_gpu
@pytest.mark.parametrize("n", [30, 3000])
def test_dense_rows_on_a_gpu(n: int) -> None:
    units = _dense(n, seed=6, d=32)
    (rows, cosines), (_, expected) = nearest(units, 10, device="cuda"), nearest(units, 10)
    np.testing.assert_allclose(cosines, expected, atol=1e-4)
    alike = units.astype(np.float64) @ units.T.astype(np.float64)
    np.fill_diagonal(alike, -np.inf)
    np.testing.assert_allclose(np.take_along_axis(alike, rows, axis=1), expected, atol=1e-4)


@on_gpu
@pytest.mark.parametrize("n", [30, 3000])
def test_sparse_rows_on_a_gpu(n: int) -> None:
    units = _sparse(n, seed=7, d=60, share=0.1)
    table = sparse.csr_matrix(units)
    (rows, cosines), (_, expected) = nearest(table, 10, device="cuda"), nearest(table, 10)
    np.testing.assert_allclose(cosines, expected, atol=1e-4)
    alike = units.astype(np.float64) @ units.T.astype(np.float64)
    np.fill_diagonal(alike, -np.inf)
    np.testing.assert_allclose(np.take_along_axis(alike, rows, axis=1), expected, atol=1e-4)
