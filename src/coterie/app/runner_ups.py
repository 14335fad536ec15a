"""The runner-up cluster of each text among the current clusters, also where the text is not on the map."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from coterie.app.session import EMBEDDED_AT_A_TIME, ExplorerSession
from coterie.describe.geometry import as_dense, cluster_means, find_runner_ups
from coterie.runs.edits.replay import EditedClusters


def runner_ups_of_rows(session: ExplorerSession, state: EditedClusters, rows: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the runner-up of each row; -1 where there is none. Texts that are not on the map are embedded."""
    points = session.point_of[rows]
    found = np.where(points >= 0, session.runner_ups_of_points(state)[points], -1)
    unmapped = np.flatnonzero((points < 0) & (state.labels[rows] >= 0))
    for part, runner_ups in _embed_in_parts(session, state, rows, unmapped):
        found[part] = runner_ups
    return found


def _embed_in_parts(
    session: ExplorerSession, state: EditedClusters, rows: NDArray[np.int64], unmapped: NDArray[np.int64]
) -> Iterator[tuple[NDArray[np.int64], NDArray[np.int64]]]:
    if not len(unmapped):
        return
    centers = cluster_means(session.map_vectors, state.labels[session.map.rows], state.next_id)
    for begin in range(0, len(unmapped), EMBEDDED_AT_A_TIME):
        part = unmapped[begin : begin + EMBEDDED_AT_A_TIME]
        vectors = as_dense(session.embed([session.corpus.texts[row] for row in rows[part]]))
        yield part, find_runner_ups(vectors, centers, state.labels[rows[part]])


def embeds_quickly(session: ExplorerSession) -> bool:
    """Return whether all texts can be embedded within a request: by counting words, or on a GPU."""
    if not session.map.exact:
        return True
    if session.device == "cpu":
        return False
    from coterie.encoders.device import resolve_device

    return resolve_device(session.device).type == "cuda"
