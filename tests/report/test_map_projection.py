"""Maps of embeddings: near stays near, equal stays equal, and a second panel can be followed."""

from __future__ import annotations

import sys
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from coterie.errors import InputError, MissingExtraError, SettingError
from coterie.report.projection import ProjectionKind, project, project_together

pytestmark = pytest.mark.usefixtures("full_maps")


def _blobs(n: int, n_clusters: int, dimensions: int = 16, seed: int = 0) -> tuple[NDArray[Any], NDArray[Any]]:
    generator = np.random.default_rng(seed)
    clusters = np.arange(n) % n_clusters
    centers = 4 * generator.normal(size=(n_clusters, dimensions))
    return centers[clusters] + 0.5 * generator.normal(size=(n, dimensions)), clusters


def _kept_neighbors(coordinates: NDArray[Any], clusters: NDArray[Any], k: int = 5) -> float:
    """Share of the ``k`` nearest on the map that are of the same cluster."""
    distances = np.linalg.norm(coordinates[:, None] - coordinates[None], axis=-1)
    np.fill_diagonal(distances, np.inf)
    nearest = np.argsort(distances, axis=1)[:, :k]
    return float((clusters[nearest] == clusters[:, None]).mean())


def _fills_square(coordinates: NDArray[Any]) -> bool:
    low, high = coordinates.min(axis=0), coordinates.max(axis=0)
    return bool(np.isclose((high - low).max(), 2) and np.allclose(low + high, 0, atol=1e-5) and coordinates.max() <= 1)


@pytest.mark.parametrize("kind", ["auto", "tsne", "umap"])
def test_clusters_stay_together(kind: ProjectionKind) -> None:
    if kind == "umap":
        pytest.importorskip("umap")
    vectors, clusters = _blobs(300, 6)
    coordinates = project(vectors, kind=kind)
    assert coordinates.shape == (300, 2)
    assert coordinates.dtype == np.float32
    assert _kept_neighbors(coordinates, clusters) > 0.97
    assert _fills_square(coordinates)
    # A map that tells nothing would not pass.
    assert _kept_neighbors(np.random.default_rng(0).normal(size=(300, 2)), clusters) < 0.3


def test_pca_keeps_distances_in_a_plane() -> None:
    generator = np.random.default_rng(0)
    angles = generator.uniform(0, 2 * np.pi, 50)
    circle = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    inside_more = circle @ np.linalg.qr(generator.normal(size=(8, 2)))[0].T
    coordinates = project(inside_more, kind="pca")
    apart, on_map = (np.linalg.norm(each[:, None] - each[None], axis=-1) for each in (circle, coordinates))
    assert np.allclose(on_map / on_map.max(), apart / apart.max(), atol=0.01)


def test_rows_beyond_the_landmarks_join_their_cluster() -> None:
    vectors, clusters = _blobs(1_200, 6)
    coordinates = project(vectors, landmarks=300)
    assert _kept_neighbors(coordinates, clusters) > 0.97
    assert _fills_square(coordinates)
    assert len(np.unique(coordinates, axis=0)) == 1_200
    # They fill their cluster rather than pile up in its middle.
    own = project(vectors[:300])
    for cluster in range(6):
        members = coordinates[clusters == cluster], own[clusters[:300] == cluster]
        spread, alone = (np.linalg.norm(each.std(axis=0)) for each in members)
        assert 0.4 < spread / alone < 2


@pytest.mark.parametrize("landmarks", [40, 3_000])
def test_equal_vectors_share_a_place(landmarks: int) -> None:
    vectors, _ = _blobs(120, 4)
    twice = np.concatenate([vectors, vectors[::-1]])
    twice[0, 0] = twice[-1, 0] = 0.0
    twice[-1, 0] = -0.0
    coordinates = project(twice, landmarks=landmarks)
    assert np.array_equal(coordinates[:120], coordinates[120:][::-1])
    assert len(np.unique(coordinates, axis=0)) == 120


def test_the_same_seed_gives_the_same_map() -> None:
    vectors, _ = _blobs(400, 5)
    first = project(vectors, landmarks=120, seed=3)
    assert np.array_equal(first, project(vectors.astype(np.float32), landmarks=120, seed=3))
    assert not np.allclose(first, project(vectors, landmarks=120, seed=4))


@pytest.mark.parametrize("kind", ["tsne", "pca", "umap"])
@pytest.mark.parametrize("n", [0, 1, 2, 3, 5, 10])
def test_few_rows(kind: ProjectionKind, n: int) -> None:
    if kind == "umap":
        pytest.importorskip("umap")
    generator = np.random.default_rng(n)
    for vectors in (generator.normal(size=(n, 8)), generator.normal(size=(n, 1))):
        coordinates = project(vectors, kind=kind)
        assert coordinates.shape == (n, 2)
        assert np.isfinite(coordinates).all()
        assert np.abs(coordinates).max(initial=0) <= 1
    if n > 1:
        assert _fills_square(project(generator.normal(size=(n, 8)), kind=kind))


@pytest.mark.parametrize("kind", ["tsne", "pca"])
@pytest.mark.parametrize("value", [0.0, 1.5])
def test_constant_vectors_lie_in_the_middle(kind: ProjectionKind, value: float) -> None:
    assert np.array_equal(project(np.full((30, 8), value), kind=kind), np.zeros((30, 2)))


def test_vectors_that_differ_in_length_alone_have_a_map() -> None:
    lengths = np.linspace(1, 2, 40)[:, None]
    assert np.isfinite(project(lengths * np.ones((40, 8)))).all()
    assert np.isfinite(project(lengths * np.ones((40, 8)), landmarks=10)).all()


def test_what_cannot_be_mapped_is_refused() -> None:
    with pytest.raises(InputError, match="NaN or infinite"):
        project(np.array([[1.0, np.nan], [0.0, 1.0]]))
    with pytest.raises(InputError, match=r"shape \(4,\)"):
        project(np.ones(4))
    with pytest.raises(SettingError, match="kind='mds'"):
        project(np.ones((3, 2)), kind="mds")  # type: ignore[arg-type]
    with pytest.raises(SettingError, match="landmarks=1"):
        project(np.ones((3, 2)), landmarks=1)


def test_without_umap_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "umap", None)
    with pytest.raises(MissingExtraError, match=r"coterie\[umap\]"):
        project(_blobs(20, 2)[0], kind="umap")


# --- several panels ---


def _distance(first: NDArray[Any], second: NDArray[Any]) -> float:
    return float(np.linalg.norm(first - second, axis=1).mean())


@pytest.mark.parametrize("kind", ["tsne", "pca", "umap"])
def test_panels_can_be_followed(kind: ProjectionKind) -> None:
    if kind == "umap":
        pytest.importorskip("umap")
    vectors, clusters = _blobs(200, 5)
    # The same vectors turned: alone, each gets a map of its own; together they lie alike.
    turned = vectors @ np.linalg.qr(np.random.default_rng(1).normal(size=(16, 16)))[0]
    shuffled_noise = vectors + 0.1 * np.random.default_rng(2).normal(size=vectors.shape)
    panels = project_together([vectors, turned, shuffled_noise], kind=kind)
    assert len(panels) == 3
    for before, after in pairwise(panels):
        assert _fills_square(after)
        assert _distance(before, after) < (0.05 if kind == "pca" else 0.3)
        assert _distance(before, after) < _distance(before, after * np.array([-1, 1])) / 2
    assert np.array_equal(panels[0], project(vectors, kind=kind))
    if kind != "pca":
        assert all(_kept_neighbors(panel, clusters) > 0.97 for panel in panels)


def test_a_text_that_changed_its_cluster_moves() -> None:
    vectors, clusters = _blobs(200, 5)
    moved = vectors.copy()
    moved[0] = vectors[1] + 0.1 * np.random.default_rng(0).normal(size=16)
    before, after = project_together([vectors, moved])
    steps = np.linalg.norm(before - after, axis=1)
    assert steps[0] > 3 * np.median(steps)
    assert np.linalg.norm(after[0] - after[clusters == 1].mean(axis=0)) < 0.3


def test_panels_of_other_widths_and_of_rows_that_became_equal() -> None:
    wide, _ = _blobs(60, 3, dimensions=16)
    narrow = wide[:, :4].copy()
    narrow[:30] = narrow[0]
    first, second, third = project_together([wide, narrow, np.ones((60, 2))])
    assert len(np.unique(first, axis=0)) == 60
    assert len(np.unique(second[:30], axis=0)) == 1
    assert np.array_equal(third, np.zeros((60, 2)))
    assert project_together([]) == []
    assert [len(each) for each in project_together([np.ones((1, 3)), np.ones((1, 5))])] == [1, 1]
    assert [len(each) for each in project_together([np.ones((0, 3)), np.ones((0, 5))])] == [0, 0]


def test_panels_must_show_the_same_few_texts() -> None:
    with pytest.raises(InputError, match=r"\[3, 4\] rows"):
        project_together([np.ones((3, 2)), np.ones((4, 2))])
    with pytest.raises(InputError, match="at most 2,000"):
        project_together([np.ones((2_001, 2))])


def test_a_map_lies_on_its_longer_side() -> None:
    """It spreads most from left to right, and the axes are those of its spread."""
    vectors, _ = _blobs(300, 5)
    coordinates = project(vectors)
    spread = np.cov(coordinates.T)
    assert spread[0, 0] >= spread[1, 1] and abs(spread[0, 1]) < 1e-3


def test_a_row_of_zeros_is_beside_the_others_and_shrinks_nothing() -> None:
    vectors = np.random.default_rng(0).normal(size=(60, 8)).astype(np.float32)
    vectors[7] = vectors[31] = 0
    found = project(vectors, kind="tsne")
    others = np.delete(found, [7, 31], axis=0)
    np.testing.assert_array_equal(found[7], found[31])
    assert np.ptp(others, axis=0).max() > 1.6
    assert (np.linalg.norm(others - found[7], axis=1) > 0).all()
