"""How much structure vectors have: next to none in one cloud of any shape, plenty in bundles."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from coterie.selection.structure import mean_similarity, structure_beyond_chance

Array = NDArray[np.float64]


def _on_the_sphere(vectors: Array) -> Array:
    return np.asarray(vectors / np.linalg.norm(vectors, axis=1, keepdims=True))


def _cloud(n: int, dimension: int, *, offset: float, decay: float, seed: int, turned: bool = False) -> Array:
    """One Gaussian whose center is so far from zero and whose widths fall as a power of their rank."""
    random = np.random.default_rng(seed)
    vectors = random.normal(size=(n, dimension)) * np.arange(1, dimension + 1) ** -decay
    vectors[:, -1] += offset
    if turned:
        vectors = vectors @ np.linalg.qr(random.normal(size=(dimension, dimension)))[0]
    return _on_the_sphere(vectors)


def _bundles(n: int, k: int, dimension: int, spread: float, seed: int) -> Array:
    random = np.random.default_rng(seed)
    centers = np.linalg.qr(random.normal(size=(dimension, dimension)))[0][:k]
    return _on_the_sphere(centers[np.arange(n) % k] + spread * random.normal(size=(n, dimension)))


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize(
    ("n", "dimension", "k", "offset", "decay", "turned"),
    [
        (400, 16, 4, 0.0, 0.0, False),
        (800, 64, 8, 0.0, 0.0, False),
        (500, 32, 5, 6.0, 0.0, False),
        (600, 32, 8, 2.0, 0.0, True),
        (600, 64, 10, 0.0, 0.5, False),
        (600, 32, 6, 0.0, 0.5, True),
        (800, 32, 4, 3.0, 0.5, True),
        (500, 16, 20, 1.0, 0.3, False),
    ],
)
def test_one_cloud_has_no_structure(
    n: int, dimension: int, k: int, offset: float, decay: float, turned: bool, seed: int
) -> None:
    vectors = _cloud(n, dimension, offset=offset, decay=decay, turned=turned, seed=100 + seed)
    assert abs(structure_beyond_chance(vectors, k, seed=seed)) < 0.12


@pytest.mark.parametrize(
    ("n", "k", "dimension", "spread"), [(400, 4, 16, 0.05), (600, 8, 32, 0.08), (500, 5, 64, 0.08)]
)
def test_bundles_have_structure(n: int, k: int, dimension: int, spread: float) -> None:
    assert structure_beyond_chance(_bundles(n, k, dimension, spread, seed=n), k) > 0.3


def test_one_seed_one_value() -> None:
    vectors = _cloud(400, 16, offset=1.0, decay=0.3, seed=1)
    assert structure_beyond_chance(vectors, 4, seed=3) == structure_beyond_chance(vectors, 4, seed=3)
    assert structure_beyond_chance(vectors, 4) == structure_beyond_chance(vectors, 4, seed=0)
    assert isinstance(structure_beyond_chance(vectors, 4), float)


def test_vectors_in_float32_and_their_order_hardly_matter() -> None:
    vectors = _bundles(400, 4, 16, 0.1, seed=2)
    shuffled = np.random.default_rng(0).permutation(vectors)
    value = structure_beyond_chance(vectors, 4)
    assert structure_beyond_chance(vectors.astype(np.float32), 4) == pytest.approx(value, abs=0.05)
    assert structure_beyond_chance(shuffled, 4) == pytest.approx(value, abs=0.1)


def test_vectors_are_left_as_they_are() -> None:
    vectors = _cloud(400, 16, offset=1.0, decay=0.3, seed=4)
    before = vectors.copy()
    structure_beyond_chance(vectors, 4)
    assert np.array_equal(vectors, before)


def test_similarity_is_of_different_texts_alone() -> None:
    """A text's cosine with itself does not count: three texts at right angles are not similar at all."""
    unrelated = np.eye(3)
    assert mean_similarity(np.eye(3) * 7, unrelated) == pytest.approx(0)
    assert mean_similarity(np.ones((3, 3)), unrelated) == pytest.approx(1)
    half = np.array([[1.0, 0.0], [0.5, np.sqrt(0.75)]])
    assert mean_similarity(half, unrelated) == pytest.approx(0.5)
    assert mean_similarity(half, half) == pytest.approx(0)
