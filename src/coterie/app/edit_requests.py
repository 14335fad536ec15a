"""What a person asks for, as an edit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from coterie.app.session import Explored
from coterie.app.splitting import find_parts, keywords_of_parts
from coterie.clustering.kmeans import centroids
from coterie.errors import InputError
from coterie.runs.edits.kinds import NOISE, Edit, Part
from coterie.runs.edits.replay import Edited

MOST_PARTS = 20
# Digits of a centre that are kept.
DIGITS = 6


def edit_of(explored: Explored, asked: Mapping[str, Any]) -> Edit:
    """The edit that is asked for; an error that says what is wrong with it.

    It may take seconds, so nobody else waits for it: the state is looked at once, and whoever keeps the edit is told
    when there is a newer one (:meth:`~coterie.app.session.Explored.edit`).
    """
    state = explored.state
    kind = asked.get("kind")
    clusters = [_whole(each) for each in asked.get("clusters", [])]
    if kind == "rename":
        return Edit("rename", clusters, name=" ".join(str(asked.get("name", "")).split()))
    if kind == "merge":
        to = _whole(asked.get("to"))
        return Edit("merge", [cluster for cluster in clusters if cluster != to], to)
    if kind == "noise":
        return Edit("merge", clusters, NOISE)
    if kind == "split":
        return _split(explored, state, clusters, _whole(asked.get("into", 2)))
    if kind == "move":
        rows = explored.rows_with_texts_of([_whole(each) for each in asked.get("rows", [])])
        return Edit("move", to=_whole(asked.get("to")), rows=rows.tolist(), texts=_distinct(explored, rows))
    if kind == "separate":
        return _separate(explored, state, [_whole(each) for each in asked.get("rows", [])], str(asked.get("name", "")))
    raise InputError(f"{kind!r} is nothing that can be done to clusters")


def _whole(value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise InputError(f"{value!r} is not the number of a cluster or row")
    return value


def _split(explored: Explored, state: Edited, clusters: Sequence[int], into: int) -> Edit:
    """By k-means over the cluster's own texts; the largest part keeps its id and name."""
    if len(clusters) != 1:
        raise InputError("one cluster is split at a time")
    if not 2 <= into <= MOST_PARTS:
        raise InputError(f"a cluster is split into 2 to {MOST_PARTS} parts, not {into}")
    rows = _texts_in(explored, state, clusters[0])
    if len(rows) < into:
        raise InputError(f"this cluster has {len(rows)} different texts, too few for {into} parts")
    found = find_parts(explored.vectors_of(rows), into, _counts(explored, rows))
    # Texts that the method cannot tell apart leave parts empty.
    held, labels = np.unique(found.labels, return_inverse=True)
    if len(held) < 2:
        raise InputError("to the method the texts of this cluster are all alike: choose some and move them instead")
    return _parts(explored, state, clusters[0], rows, labels, found.centers[held])


def _separate(explored: Explored, state: Edited, rows: Sequence[int], name: str) -> Edit:
    """Some texts of one cluster as a cluster of their own: new texts like them follow."""
    if not rows:
        raise InputError("there are no texts to move")
    sources = np.unique(state.labels[explored.rows_with_texts_of(list(rows))])
    if len(sources) != 1 or sources[0] == NOISE:
        raise InputError("a new cluster is made of texts of one cluster; move others there afterwards")
    inside = _texts_in(explored, state, int(sources[0]))
    chosen = np.isin(explored.corpus.distinct_index[inside], explored.corpus.distinct_index[list(rows)])
    if chosen.all():
        raise InputError("these are all texts of the cluster: rename it instead")
    found = chosen.astype(np.int64)
    centers = centroids(explored.vectors_of(inside), found, 2, _counts(explored, inside))
    return _parts(explored, state, int(sources[0]), inside, found, centers, name)


def _parts(
    explored: Explored,
    state: Edited,
    source: int,
    rows: NDArray[np.int64],
    found: NDArray[np.int64],
    centers: NDArray[np.floating[Any]],
    name: str = "",
) -> Edit:
    from coterie.describe.names import cluster_names

    largest = int(np.argmax(np.bincount(found, weights=_counts(explored, rows))))
    keywords = keywords_of_parts([explored.corpus.texts[row] for row in rows], found, len(centers))
    taken = {other for cluster, other in state.names.items() if cluster != source}
    names = cluster_names(keywords)
    parts, next_id = [], state.next_id
    for place in sorted(range(len(keywords)), key=lambda each: each != largest):
        cluster = source if place == largest else next_id
        next_id += place != largest
        called = state.names[source] if place == largest else (name.strip() if name.strip() else names[place])
        called = _free(called, taken)
        taken.add(called)
        all_rows = explored.rows_with_texts_of(rows[found == place].tolist())
        center = np.round(centers[place].astype(np.float64), DIGITS)
        parts.append(Part(cluster, called, keywords[place], all_rows.tolist(), center.tolist()))
    return Edit("split", [source], parts=parts)


def _free(name: str, taken: set[str]) -> str:
    number, free = 2, name
    while free in taken:
        free, number = f"{name} ({number})", number + 1
    return free


def _counts(explored: Explored, rows: NDArray[np.int64]) -> NDArray[np.int64]:
    return explored.corpus.counts[explored.corpus.distinct_index[rows]]


def _texts_in(explored: Explored, state: Edited, cluster: int) -> NDArray[np.int64]:
    state.check(Edit("rename", [cluster], name="\0"))  # that it is there
    return explored.first_rows[state.labels[explored.first_rows] == cluster]


def _distinct(explored: Explored, rows: NDArray[np.int64]) -> list[str]:
    return list(dict.fromkeys(explored.corpus.texts[row] for row in rows))
