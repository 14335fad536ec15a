"""Project embeddings to two dimensions for maps."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from coterie.clustering.kmeans import unit_rows
from coterie.errors import InputError, SettingError, require_extra

ProjectionKind: TypeAlias = Literal["auto", "tsne", "umap", "pca"]
Coordinates: TypeAlias = NDArray[np.float32]

# Perplexity of t-SNE: about the number of neighbours of a row, scikit-learn's default.
PERPLEXITY = 30
# Steps of t-SNE; scikit-learn's 1,000 take twice the time for a map that looks the same.
TSNE_STEPS = 600
# Neighbours of a row in UMAP, its default.
UMAP_NEIGHBORS = 15
# Standard deviation of the first coordinates of t-SNE, as its authors recommend.
FIRST_SPREAD = 1e-4
# The same for a panel that starts from the one before: with 1e-4 its clusters changed their positions, and the map was
# no better.
FOLLOWING_SPREAD = 1.0
# Early exaggeration of t-SNE, scikit-learn's default, and that of a panel that starts from the one before.
EXAGGERATION = 12.0
FOLLOWING_EXAGGERATION = 4.0
# Distinct rows below which there are no neighbours to preserve, and the principal components show everything.
MIN_ROWS_FOR_NEIGHBORS = 5
# Landmarks that determine the coordinates of another row.
NEAREST_LANDMARKS = 10
# Distance on the map at which a landmark counts half, in typical distances between neighbours.
HALF_WEIGHT_DISTANCE = 10
# Share of the spread of its landmarks that a row is moved by at random, so that points do not pile up.
JITTER = 0.7
# Distance of rows of zeros from the others, as a share of the extent of the map.
ZERO_ROW_MARGIN = 0.05
# Rows that are interpolated at a time, which bounds the memory.
INTERPOLATED_AT_A_TIME = 4_096
# Rows of maps side by side, each of which is computed without landmarks.
MAX_ROWS_TOGETHER = 2_000


def project(
    vectors: NDArray[np.floating[Any]], *, kind: ProjectionKind = "auto", seed: int = 0, landmarks: int = 3_000
) -> Coordinates:
    """Return coordinates of ``vectors``, shape (n_rows, 2), in a centred square of side 2; similar rows are close.

    t-SNE and UMAP project at most ``landmarks`` distinct rows, sampled with the seed. Every other row is interpolated
    between its nearest landmarks by cosine: at the mean of their coordinates, weighted by similarity, with some jitter.
    Equal vectors get equal coordinates. The same seed gives the same map on the same machine.

    Distances between far clusters, the area of a cluster and the axes mean nothing in a map by t-SNE or UMAP.

    Parameters
    ----------
    vectors:
        Shape (n_rows, n_dimensions).
    kind:
        ``"tsne"`` (also ``"auto"``), ``"umap"`` (needs the extra ``umap``) or ``"pca"`` (the two principal components
        of all rows: coarse, but distances mean something).
    seed:
        Seed of the sample, the projection and the jitter.
    landmarks:
        The number of sampled rows, which determines the running time.
    """
    kind = _check_kind(kind)
    if landmarks < MIN_ROWS_FOR_NEIGHBORS:
        raise SettingError(f"landmarks={landmarks}: at least {MIN_ROWS_FOR_NEIGHBORS} are needed")
    rows, index_of_row = _distinct_rows(vectors)
    if kind == "pca" or len(rows) <= landmarks:
        return _scale_to_square(_spread_horizontally(_project_rows(rows, kind, seed, None)))[index_of_row]
    generator = np.random.default_rng(seed)
    sampled = np.sort(generator.choice(len(rows), landmarks, replace=False))
    others = np.setdiff1d(np.arange(len(rows)), sampled, assume_unique=True)
    coordinates = np.empty((len(rows), 2), dtype=np.float32)
    coordinates[sampled] = _project_rows(rows[sampled], kind, seed, None)
    coordinates[others] = _interpolate(rows[others], rows[sampled], coordinates[sampled], generator)
    return _scale_to_square(_spread_horizontally(coordinates))[index_of_row]


def _spread_horizontally(coordinates: Coordinates) -> Coordinates:
    """Rotate the map so that its largest extent is horizontal, as that of a screen."""
    if len(coordinates) < 2:
        return coordinates
    centred = coordinates - coordinates.mean(axis=0)
    across, up = np.linalg.eigh(np.cov(centred.T))[1][:, 1]
    # Of the two rotations that do, the smaller one.
    across, up = (across, up) if across >= 0 else (-across, -up)
    return (centred @ np.array([[across, -up], [up, across]])).astype(np.float32)


def project_together(
    panels: Sequence[NDArray[np.floating[Any]]], *, kind: ProjectionKind = "auto", seed: int = 0
) -> list[Coordinates]:
    """Return comparable maps of the same texts at several moments, such as before and after training.

    Every panel is projected on its own, like :func:`project` does with all rows as landmarks. It starts from the
    coordinates of the panel before and is then rotated or mirrored onto them (Procrustes), so that a text stays where
    it was unless its neighbours changed. At most 2,000 rows, the same in every panel; the dimensions may differ.
    """
    kind = _check_kind(kind)
    if len({len(panel) for panel in panels}) > 1:
        raise InputError(f"panels have {[len(panel) for panel in panels]} rows: give the same texts in every panel")
    if panels and len(panels[0]) > MAX_ROWS_TOGETHER:
        raise InputError(f"panels have {len(panels[0]):,} rows: give a sample of at most {MAX_ROWS_TOGETHER:,}")
    maps: list[Coordinates] = []
    for panel in panels:
        rows, index_of_row = _distinct_rows(panel)
        before = None
        if maps:
            before = np.empty((len(rows), 2), dtype=np.float32)
            # Rows that have become equal start at the coordinates of one of them.
            before[index_of_row] = maps[-1]
        coordinates = _project_rows(rows, kind, seed, before)[index_of_row]
        maps.append(_scale_to_square(_align(coordinates, maps[-1]) if maps else _spread_horizontally(coordinates)))
    return maps


def _check_kind(kind: ProjectionKind) -> ProjectionKind:
    if kind not in ("auto", "tsne", "umap", "pca"):
        raise SettingError(f"kind={kind!r} is unknown: use 'auto', 'tsne', 'umap' or 'pca'")
    return "tsne" if kind == "auto" else kind


def _distinct_rows(vectors: NDArray[np.floating[Any]]) -> tuple[NDArray[np.float32], NDArray[np.intp]]:
    """Return the distinct rows in the order of appearance, scaled to length 1, and the index of each row among them."""
    # Adding 0 turns -0 into 0, which has other bytes.
    as_floats = np.ascontiguousarray(vectors, dtype=np.float32) + np.float32(0)
    if as_floats.ndim != 2:
        raise InputError(f"vectors have shape {as_floats.shape}: give one row per text")
    if not np.isfinite(as_floats).all():
        raise InputError("vectors contain NaN or infinite values, which have no position on a map")
    if as_floats.size == 0:
        return np.zeros((min(1, len(as_floats)), 1), dtype=np.float32), np.zeros(len(as_floats), dtype=np.intp)
    # Compared as bytes: much faster than column by column.
    as_bytes = as_floats.view(np.dtype((np.void, as_floats.itemsize * as_floats.shape[1]))).ravel()
    _, first, sorted_index = np.unique(as_bytes, return_index=True, return_inverse=True)
    order = np.argsort(first)
    rank = np.empty(len(order), dtype=np.intp)
    rank[order] = np.arange(len(order))
    return unit_rows(as_floats[first[order]]), rank[sorted_index]


def _project_rows(
    rows: NDArray[np.float32], kind: ProjectionKind, seed: int, before: Coordinates | None
) -> Coordinates:
    """Return coordinates of distinct unit rows, of any scale; the projection starts from ``before`` where given."""
    from threadpoolctl import threadpool_limits

    if kind == "pca" or len(rows) < MIN_ROWS_FOR_NEIGHBORS:
        return _principal_components(rows)
    is_zero = ~rows.any(axis=1)
    if is_zero.any():
        # A text without any known word is similar to none: t-SNE would move it so far away that all others shrink to
        # a spot, so it is placed beside them.
        coordinates = np.empty((len(rows), 2), dtype=np.float32)
        others = _project_rows(rows[~is_zero], kind, seed, None if before is None else before[~is_zero])
        coordinates[~is_zero] = others
        coordinates[is_zero] = others.min(axis=0) - ZERO_ROW_MARGIN * np.ptp(others, axis=0)
        return coordinates
    start = _principal_components(rows) if before is None else before
    follows = before is not None
    spread = FOLLOWING_SPREAD if follows else FIRST_SPREAD
    start = start * np.float32(spread / max(float(start.std(axis=0).max()), 1e-12))
    # Neither method can start from points on a line, which rows of rank 1 are.
    flat = start.std(axis=0) == 0
    start[:, flat] = np.random.default_rng(seed).normal(scale=spread, size=start.shape)[:, flat]
    # Sums over several threads differ in their last digits from run to run, and the maps differ visibly.
    with threadpool_limits(1, user_api="openmp"):
        projected = (_umap if kind == "umap" else _tsne)(rows, seed, start, follows)
    return np.asarray(projected, dtype=np.float32)


def _tsne(rows: NDArray[np.float32], seed: int, start: Coordinates, follows: bool) -> Any:
    from sklearn.manifold import TSNE

    # A perplexity near the size of a cluster would contract each cluster to a point.
    perplexity = min(PERPLEXITY, max(5, len(rows) / 25), (len(rows) - 1) / 3)
    model = TSNE(
        perplexity=perplexity,
        early_exaggeration=FOLLOWING_EXAGGERATION if follows else EXAGGERATION,
        init=start,
        max_iter=TSNE_STEPS,
        random_state=seed,
    )
    return model.fit_transform(rows)


def _umap(rows: NDArray[np.float32], seed: int, start: Coordinates, follows: bool) -> Any:
    umap = require_extra("umap", "umap")
    model = umap.UMAP(
        n_neighbors=min(UMAP_NEIGHBORS, len(rows) - 1),
        metric="cosine",
        init=start,
        random_state=seed,
        n_jobs=1,  # required by a seed; UMAP warns otherwise
        # With UMAP's default learning rate, clusters change their positions whatever it starts from.
        **({"learning_rate": 0.15, "n_epochs": 200} if follows else {}),
    )
    return model.fit_transform(rows)


def _principal_components(rows: NDArray[np.float32]) -> Coordinates:
    """Return the first two principal components, each with its largest absolute value positive."""
    coordinates = np.zeros((len(rows), 2), dtype=np.float32)
    if len(rows) < 2:
        return coordinates
    mean = rows.mean(axis=0, dtype=np.float64).astype(np.float32)
    centred = rows - mean
    _, directions = np.linalg.eigh((centred.T @ centred).astype(np.float64))
    chosen = directions[:, ::-1][:, :2].astype(np.float32)
    found = centred @ chosen
    # The sign of a component is arbitrary: fixed here so that it does not depend on the library.
    found *= np.where(found[np.abs(found).argmax(axis=0), np.arange(found.shape[1])] < 0, -1, 1)
    # Components of pure rounding error.
    found[:, found.std(axis=0) < 1e-6] = 0
    coordinates[:, : found.shape[1]] = found
    return coordinates


def _interpolate(
    rows: NDArray[np.float32], landmarks: NDArray[np.float32], coordinates: Coordinates, generator: np.random.Generator
) -> Coordinates:
    """Return coordinates of ``rows`` between those of their nearest landmarks."""
    from scipy.spatial import KDTree

    typical_gap = max(float(np.median(KDTree(coordinates).query(coordinates, k=2)[0][:, 1])), 1e-12)
    kept = min(NEAREST_LANDMARKS, len(landmarks) - 1)
    found = np.empty((len(rows), 2), dtype=np.float32)
    for begin in range(0, len(rows), INTERPOLATED_AT_A_TIME):
        block = slice(begin, begin + INTERPOLATED_AT_A_TIME)
        similarity = rows[block] @ landmarks.T
        nearest = np.argpartition(similarity, -1 - kept, axis=1)[:, -1 - kept :]
        nearness = np.take_along_axis(similarity, nearest, axis=1)
        # Relative to the farthest of them: equal weights would pull all rows of a cluster to its middle.
        weights = (nearness - nearness.min(axis=1, keepdims=True) + 1e-4) ** 3
        around = coordinates[nearest]
        # Landmarks of two clusters would put a row into the empty space between them: landmarks far on the map from
        # the most central one count less.
        apart = np.linalg.norm(around[:, :, None] - around[:, None, :], axis=-1)
        middle = apart.sum(axis=2).argmin(axis=1)
        weights /= 1 + np.square(apart[np.arange(len(around)), middle] / (HALF_WEIGHT_DISTANCE * typical_gap))
        weights /= weights.sum(axis=1, keepdims=True)
        mean = np.einsum("ri,rij->rj", weights, around)
        # A mean is closer to the middle than the points it averages; the jitter restores some of the spread.
        spread = np.sqrt(np.einsum("ri,rij->r", weights, np.square(around - mean[:, None])) / 2)
        jitter = generator.normal(size=mean.shape).astype(np.float32)
        found[block] = mean + jitter * np.maximum(JITTER * spread, typical_gap / 2)[:, None]
    return found


def _align(coordinates: Coordinates, before: Coordinates) -> Coordinates:
    """Rotate or mirror the coordinates so that they are as close to ``before`` as possible (Procrustes)."""
    if not len(coordinates):
        return coordinates
    centred = coordinates - coordinates.mean(axis=0)
    left, _, right = np.linalg.svd(centred.T.astype(np.float64) @ (before - before.mean(axis=0)))
    return np.asarray(centred @ (left @ right), dtype=np.float32)


def _scale_to_square(coordinates: Coordinates) -> Coordinates:
    """Shift and scale both axes alike, so that the longer one reaches from -1 to 1."""
    if not len(coordinates):
        return coordinates
    low, high = coordinates.min(axis=0), coordinates.max(axis=0)
    half = float((high - low).max()) / 2
    centred = coordinates - (low + high) / 2
    return np.asarray(centred / half if half > 0 else centred, dtype=np.float32).clip(-1, 1)
