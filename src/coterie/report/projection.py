"""Embeddings as places on a flat map."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from coterie.clustering.kmeans import unit_rows
from coterie.errors import InputError, SettingError, require_extra

ProjectionKind: TypeAlias = Literal["auto", "tsne", "umap", "pca"]
Places: TypeAlias = NDArray[np.float32]

# How many neighbours a row of a t-SNE map has in effect at most, and how many steps it is moved; scikit-learn's 1,000
# steps take twice the time for a map that looks the same.
PERPLEXITY = 30
STEPS = 600
UMAP_NEIGHBORS = 15
# The spread t-SNE wants its first places to have. A panel that is to follow another starts wider and is drawn together
# less at first: from 1e-4 its groups changed their places, and the map was no better for it.
FIRST_SPREAD, FOLLOWING_SPREAD = 1e-4, 1.0
EXAGGERATION, FOLLOWING_EXAGGERATION = 12.0, 4.0
# With fewer distinct rows there are no neighbours to keep near, and the main directions tell all.
FEWEST_FOR_NEIGHBORS = 5
# Landmarks that settle the place of another row; how far apart on the map they still count half, in usual gaps between
# neighbours; how much of their spread is given to a row; and rows placed at a time.
NEAREST_LANDMARKS = 10
FAR_IN_GAPS = 10
JITTER = 0.7
PLACED_AT_A_TIME = 4_096
MOST_ROWS_TOGETHER = 2_000


def project(
    vectors: NDArray[np.floating[Any]], *, kind: ProjectionKind = "auto", seed: int = 0, landmarks: int = 3_000
) -> Places:
    """A map of ``vectors``: one place a row, in a centred square of side 2; near rows lie near each other.

    t-SNE and UMAP map at most ``landmarks`` distinct rows, drawn by the seed. Every other row is put among its nearest
    landmarks by cosine: at the mean of their places, weighted by nearness, a little off so that points do not pile up.
    Equal vectors get the same place. The same seed gives the same map on the same machine.

    Distances between far groups, the sizes of groups and the axes mean nothing in a map by t-SNE or UMAP.

    Parameters
    ----------
    kind:
        ``"tsne"`` (also ``"auto"``), ``"umap"`` (needs the extra ``umap``) or ``"pca"`` (the two main directions of all
        rows: rough, but distances mean something).
    landmarks:
        Time grows with them rather than with the rows.
    """
    kind = _checked_kind(kind)
    if landmarks < FEWEST_FOR_NEIGHBORS:
        raise SettingError(f"landmarks={landmarks}: at least {FEWEST_FOR_NEIGHBORS} are needed")
    rows, place_of_row = _distinct(vectors)
    if kind == "pca" or len(rows) <= landmarks:
        return _in_square(_lying(_map(rows, kind, seed, None)))[place_of_row]
    generator = np.random.default_rng(seed)
    drawn = np.sort(generator.choice(len(rows), landmarks, replace=False))
    others = np.setdiff1d(np.arange(len(rows)), drawn, assume_unique=True)
    places = np.empty((len(rows), 2), dtype=np.float32)
    places[drawn] = _map(rows[drawn], kind, seed, None)
    places[others] = _among_landmarks(rows[others], rows[drawn], places[drawn], generator)
    return _in_square(_lying(places))[place_of_row]


def _lying(places: Places) -> Places:
    """Turned so that it spreads most from left to right, as the paper and the screen do; a map has no north."""
    if len(places) < 2:
        return places
    centred = places - places.mean(axis=0)
    across, up = np.linalg.eigh(np.cov(centred.T))[1][:, 1]
    # Turned by the smaller of the two angles that do.
    across, up = (across, up) if across >= 0 else (-across, -up)
    return (centred @ np.array([[across, -up], [up, across]])).astype(np.float32)


def project_together(
    panels: Sequence[NDArray[np.floating[Any]]], *, kind: ProjectionKind = "auto", seed: int = 0
) -> list[Places]:
    """Maps of the same texts at several moments, such as before and after training, that an eye can follow.

    Every panel is a map of its own, made as by :func:`project` of all its rows. It starts from the places of the panel
    before and is then turned or mirrored onto them as well as can be (Procrustes), so that a text stays where it
    was unless its neighbours changed. At most 2,000 rows, the same in every panel; the dimensions may differ.
    """
    kind = _checked_kind(kind)
    if len({len(panel) for panel in panels}) > 1:
        raise InputError(f"panels have {[len(panel) for panel in panels]} rows: give the same texts in every panel")
    if panels and len(panels[0]) > MOST_ROWS_TOGETHER:
        raise InputError(f"panels have {len(panels[0]):,} rows: give a sample of at most {MOST_ROWS_TOGETHER:,}")
    maps: list[Places] = []
    for panel in panels:
        rows, place_of_row = _distinct(panel)
        before = None
        if maps:
            before = np.empty((len(rows), 2), dtype=np.float32)
            # Rows that have become equal start where one of them was.
            before[place_of_row] = maps[-1]
        places = _map(rows, kind, seed, before)[place_of_row]
        maps.append(_in_square(_turned_onto(places, maps[-1]) if maps else _lying(places)))
    return maps


def _checked_kind(kind: ProjectionKind) -> ProjectionKind:
    if kind not in ("auto", "tsne", "umap", "pca"):
        raise SettingError(f"kind={kind!r} is unknown: use 'auto', 'tsne', 'umap' or 'pca'")
    return "tsne" if kind == "auto" else kind


def _distinct(vectors: NDArray[np.floating[Any]]) -> tuple[NDArray[np.float32], NDArray[np.intp]]:
    """The distinct rows in the order they first appear, of length one, and which of them each row is."""
    # Adding zero makes -0 and 0 the same bytes.
    given = np.ascontiguousarray(vectors, dtype=np.float32) + np.float32(0)
    if given.ndim != 2:
        raise InputError(f"vectors have shape {given.shape}: give one row a text")
    if not np.isfinite(given).all():
        raise InputError("vectors hold NaN or infinite values: there is no place for them on a map")
    if given.size == 0:
        return np.zeros((min(1, len(given)), 1), dtype=np.float32), np.zeros(len(given), dtype=np.intp)
    # Compared as bytes: much faster than column by column.
    as_bytes = given.view(np.dtype((np.void, given.itemsize * given.shape[1]))).ravel()
    _, first, sorted_place = np.unique(as_bytes, return_index=True, return_inverse=True)
    order = np.argsort(first)
    rank = np.empty(len(order), dtype=np.intp)
    rank[order] = np.arange(len(order))
    return unit_rows(given[first[order]]), rank[sorted_place]


def _map(rows: NDArray[np.float32], kind: ProjectionKind, seed: int, before: Places | None) -> Places:
    """Places of distinct unit rows, of any scale; they start from the places ``before`` where there are some."""
    from threadpoolctl import threadpool_limits

    if kind == "pca" or len(rows) < FEWEST_FOR_NEIGHBORS:
        return _main_directions(rows)
    start = _main_directions(rows) if before is None else before
    follows = before is not None
    spread = FOLLOWING_SPREAD if follows else FIRST_SPREAD
    start = start * np.float32(spread / max(float(start.std(axis=0).max()), 1e-12))
    # Neither can start from points on one line, as rows of one main direction, or of none, are.
    flat = start.std(axis=0) == 0
    start[:, flat] = np.random.default_rng(seed).normal(scale=spread, size=start.shape)[:, flat]
    # Sums over several threads differ in their last digits from run to run, and maps built on them visibly.
    with threadpool_limits(1, user_api="openmp"):
        made = (_umap if kind == "umap" else _tsne)(rows, seed, start, follows)
    return np.asarray(made, dtype=np.float32)


def _tsne(rows: NDArray[np.float32], seed: int, start: Places, follows: bool) -> Any:
    from sklearn.manifold import TSNE

    # As many neighbours as a group of few rows has would draw each group to a point.
    perplexity = min(PERPLEXITY, max(5, len(rows) / 25), (len(rows) - 1) / 3)
    model = TSNE(
        perplexity=perplexity,
        early_exaggeration=FOLLOWING_EXAGGERATION if follows else EXAGGERATION,
        init=start,
        max_iter=STEPS,
        random_state=seed,
    )
    return model.fit_transform(rows)


def _umap(rows: NDArray[np.float32], seed: int, start: Places, follows: bool) -> Any:
    umap = require_extra("umap", "umap")
    model = umap.UMAP(
        n_neighbors=min(UMAP_NEIGHBORS, len(rows) - 1),
        metric="cosine",
        init=start,
        random_state=seed,
        n_jobs=1,  # what a seed asks for; UMAP warns otherwise
        # Its usual steps are so large that groups change their places whatever it starts from.
        **({"learning_rate": 0.15, "n_epochs": 200} if follows else {}),
    )
    return model.fit_transform(rows)


def _main_directions(rows: NDArray[np.float32]) -> Places:
    """The two directions of most variance, each with its larger side to the right or up."""
    places = np.zeros((len(rows), 2), dtype=np.float32)
    if len(rows) < 2:
        return places
    mean = rows.mean(axis=0, dtype=np.float64).astype(np.float32)
    centred = rows - mean
    _, directions = np.linalg.eigh((centred.T @ centred).astype(np.float64))
    chosen = directions[:, ::-1][:, :2].astype(np.float32)
    found = centred @ chosen
    # A direction may as well point the other way: the sign is settled so that it does not depend on the library.
    found *= np.where(found[np.abs(found).argmax(axis=0), np.arange(found.shape[1])] < 0, -1, 1)
    # What rounding leaves of rows that do not differ is no direction.
    found[:, found.std(axis=0) < 1e-6] = 0
    places[:, : found.shape[1]] = found
    return places


def _among_landmarks(
    rows: NDArray[np.float32], landmarks: NDArray[np.float32], places: Places, generator: np.random.Generator
) -> Places:
    """Places of ``rows`` among the places of their nearest landmarks."""
    from scipy.spatial import KDTree

    usual_gap = max(float(np.median(KDTree(places).query(places, k=2)[0][:, 1])), 1e-12)
    kept = min(NEAREST_LANDMARKS, len(landmarks) - 1)
    found = np.empty((len(rows), 2), dtype=np.float32)
    for begin in range(0, len(rows), PLACED_AT_A_TIME):
        block = slice(begin, begin + PLACED_AT_A_TIME)
        similarity = rows[block] @ landmarks.T
        nearest = np.argpartition(similarity, -1 - kept, axis=1)[:, -1 - kept :]
        nearness = np.take_along_axis(similarity, nearest, axis=1)
        # Counted from the first landmark that is too far; even weights would draw all rows of a group to its middle.
        weights = (nearness - nearness.min(axis=1, keepdims=True) + 1e-4) ** 3
        around = places[nearest]
        # Landmarks of two groups would put a row into the void between them: those far on the map from the one that
        # lies most among the others count less.
        apart = np.linalg.norm(around[:, :, None] - around[:, None, :], axis=-1)
        middle = apart.sum(axis=2).argmin(axis=1)
        weights /= 1 + np.square(apart[np.arange(len(around)), middle] / (FAR_IN_GAPS * usual_gap))
        weights /= weights.sum(axis=1, keepdims=True)
        mean = np.einsum("ri,rij->rj", weights, around)
        # A mean lies nearer to the middle than what it is the mean of; the jitter gives some of the spread back.
        spread = np.sqrt(np.einsum("ri,rij->r", weights, np.square(around - mean[:, None])) / 2)
        jitter = generator.normal(size=mean.shape).astype(np.float32)
        found[block] = mean + jitter * np.maximum(JITTER * spread, usual_gap / 2)[:, None]
    return found


def _turned_onto(places: Places, before: Places) -> Places:
    """``places`` turned or mirrored so that they lie as near to ``before`` as can be."""
    if not len(places):
        return places
    centred = places - places.mean(axis=0)
    left, _, right = np.linalg.svd(centred.T.astype(np.float64) @ (before - before.mean(axis=0)))
    return np.asarray(centred @ (left @ right), dtype=np.float32)


def _in_square(places: Places) -> Places:
    """Moved and scaled, both axes alike, so that the longer side reaches from -1 to 1."""
    if not len(places):
        return places
    low, high = places.min(axis=0), places.max(axis=0)
    half = float((high - low).max()) / 2
    centred = places - (low + high) / 2
    return np.asarray(centred / half if half > 0 else centred, dtype=np.float32).clip(-1, 1)
