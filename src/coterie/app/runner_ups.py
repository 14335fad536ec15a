"""Which other cluster is next to a text, of the clusters as they are now, also where the text is not on the map."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from coterie.app.session import EMBEDDED_AT_A_TIME, Explored
from coterie.describe.geometry import as_dense, cluster_means, runner_ups
from coterie.runs.edits.replay import Edited


def next_of_rows(explored: Explored, state: Edited, rows: NDArray[np.int64]) -> NDArray[np.int64]:
    """The runner-up of each row; -1 where there is none. Texts that are not on the map are embedded."""
    points = explored.point_of[rows]
    found = np.where(points >= 0, explored.next_of_points(state)[points], -1)
    missing = np.flatnonzero((points < 0) & (state.labels[rows] >= 0))
    for places, nearest in _embedded(explored, state, rows, missing):
        found[places] = nearest
    return found


def _embedded(
    explored: Explored, state: Edited, rows: NDArray[np.int64], places: NDArray[np.int64]
) -> Iterator[tuple[NDArray[np.int64], NDArray[np.int64]]]:
    if not len(places):
        return
    centers = cluster_means(explored.map_vectors, state.labels[explored.map.rows], state.next_id)
    for begin in range(0, len(places), EMBEDDED_AT_A_TIME):
        some = places[begin : begin + EMBEDDED_AT_A_TIME]
        vectors = as_dense(explored.embed([explored.corpus.texts[row] for row in rows[some]]))
        yield some, runner_ups(vectors, centers, state.labels[rows[some]])


def is_cheap(explored: Explored) -> bool:
    """Whether all texts can be embedded while somebody waits: by counting words, or on a GPU."""
    if not explored.map.exact:
        return True
    if explored.device == "cpu":
        return False
    from coterie.encoders.device import resolve_device

    return resolve_device(explored.device).type == "cuda"
