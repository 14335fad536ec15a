"""Turn a request of the explorer's page into an edit of the clusters."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from coterie.app.session import ExplorerSession
from coterie.clustering.kmeans import centroids, kmeans
from coterie.clustering.partition import Partition
from coterie.errors import InputError
from coterie.runs.edits.kinds import NOISE, Edit, Part
from coterie.runs.edits.replay import EditedClusters

# Parts that a cluster can be split into at once.
MAX_PARTS = 20
# Decimal places of a stored centre: enough to assign texts by, and the log of edits stays small.
CENTER_DECIMALS = 6
# Texts of a cluster that its parts are found on; the centres hardly move with more.
MAX_FITTED_TEXTS = 4_000
# Texts of a cluster that the keywords of its parts come from.
MAX_DESCRIBED_TEXTS = 6_000
# Random starts of k-means, of which the best is used.
N_STARTS = 5
# Steps of k-means over all texts of the cluster, from the centres found on the sample.
FINAL_STEPS = 10


def build_edit(session: ExplorerSession, request: Mapping[str, Any]) -> Edit:
    """Return the edit that is requested, or raise an error that says what is wrong with the request.

    A split may take seconds, so no lock is held meanwhile: the state is read once, and
    :meth:`~coterie.app.session.ExplorerSession.edit` refuses the edit if the clusters have changed since.
    """
    state = session.state
    kind = request.get("kind")
    clusters = [_integer(each) for each in request.get("clusters", [])]
    if kind == "rename":
        return Edit("rename", clusters, name=" ".join(str(request.get("name", "")).split()))
    if kind == "merge":
        to = _integer(request.get("to"))
        return Edit("merge", [cluster for cluster in clusters if cluster != to], to)
    if kind == "noise":
        return Edit("merge", clusters, NOISE)
    if kind == "split":
        return _split(session, state, clusters, _integer(request.get("into", 2)))
    if kind == "move":
        rows = session.rows_with_texts_of([_integer(each) for each in request.get("rows", [])])
        texts = list(dict.fromkeys(session.corpus.texts[row] for row in rows))
        return Edit("move", to=_integer(request.get("to")), rows=rows.tolist(), texts=texts)
    if kind == "separate":
        selected = [_integer(each) for each in request.get("rows", [])]
        return _separate(session, state, selected, str(request.get("name", "")))
    raise InputError(f"{kind!r} is not a kind of edit; use rename, merge, noise, split, move or separate")


def split_vectors(vectors: Any, n_parts: int, weights: NDArray[np.int64], *, seed: int = 0) -> Partition:
    """Cluster the rows of ``vectors``, dense or sparse, by k-means; every row is in the part of its nearest centre.

    With many rows the centres are found on a sample and then moved a few steps over all rows, so that it takes seconds.
    """
    from sklearn.exceptions import ConvergenceWarning

    n_rows = vectors.shape[0]
    sample = np.sort(np.random.default_rng(seed).permutation(n_rows)[:MAX_FITTED_TEXTS])
    with warnings.catch_warnings():
        # With fewer distinct vectors than parts, some parts are empty; the caller handles that.
        warnings.simplefilter("ignore", ConvergenceWarning)
        found = kmeans(vectors[sample], n_parts, weights=weights[sample], n_init=N_STARTS, seed=seed)
        if len(sample) == n_rows:
            return found
        return kmeans(vectors, n_parts, weights=weights, init=found.centers, max_iter=FINAL_STEPS)


def part_keywords(texts: list[str], parts: NDArray[np.int64], n_parts: int, *, seed: int = 0) -> list[list[str]]:
    """Return the keywords of each part against the other parts, not against other clusters."""
    from coterie.describe.keywords import cluster_keywords

    sample = np.sort(np.random.default_rng(seed).permutation(len(texts))[:MAX_DESCRIBED_TEXTS])
    return [list(words) for words in cluster_keywords([texts[row] for row in sample], parts[sample], n_parts)]


def _integer(value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise InputError(f"{value!r} is not the number of a cluster or row")
    return value


def _split(session: ExplorerSession, state: EditedClusters, clusters: Sequence[int], n_parts: int) -> Edit:
    """Split by k-means over the cluster's own texts; the largest part keeps the id and the name."""
    if len(clusters) != 1:
        raise InputError(f"{len(clusters)} clusters were given: only one can be split at a time")
    if not 2 <= n_parts <= MAX_PARTS:
        raise InputError(f"a cluster can be split into 2 to {MAX_PARTS} parts, not {n_parts}")
    rows = _rows_in(session, state, clusters[0])
    if len(rows) < n_parts:
        raise InputError(f"this cluster has {len(rows)} distinct texts, too few for {n_parts} parts")
    found = split_vectors(session.vectors_of(rows), n_parts, _counts(session, rows))
    # Texts with equal vectors leave parts empty.
    filled, labels = np.unique(found.labels, return_inverse=True)
    if len(filled) < 2:
        raise InputError(
            "the texts of this cluster have the same embedding, so they cannot be split: select some and move them "
            "instead"
        )
    return _split_edit(session, state, clusters[0], rows, labels, found.centers[filled])


def _separate(session: ExplorerSession, state: EditedClusters, rows: Sequence[int], name: str) -> Edit:
    """Make some texts of one cluster a cluster of their own, to which similar new texts are assigned too."""
    if not rows:
        raise InputError("no texts are selected: select at least one")
    sources = np.unique(state.labels[session.rows_with_texts_of(list(rows))])
    if len(sources) != 1 or sources[0] == NOISE:
        raise InputError("a new cluster is made of texts of one cluster: move texts of others there afterwards")
    inside = _rows_in(session, state, int(sources[0]))
    chosen = np.isin(session.corpus.distinct_index[inside], session.corpus.distinct_index[list(rows)])
    if chosen.all():
        raise InputError("all texts of the cluster are selected: rename the cluster instead")
    parts = chosen.astype(np.int64)
    centers = centroids(session.vectors_of(inside), parts, 2, _counts(session, inside))
    return _split_edit(session, state, int(sources[0]), inside, parts, centers, name)


def _split_edit(
    session: ExplorerSession,
    state: EditedClusters,
    source: int,
    rows: NDArray[np.int64],
    parts: NDArray[np.int64],
    centers: NDArray[np.floating[Any]],
    name: str = "",
) -> Edit:
    """Return the edit that splits ``source``; ``parts`` are the part of each of its ``rows``."""
    from coterie.describe.names import names_from_keywords

    largest = int(np.argmax(np.bincount(parts, weights=_counts(session, rows))))
    keywords = part_keywords([session.corpus.texts[row] for row in rows], parts, len(centers))
    taken = {other for cluster, other in state.names.items() if cluster != source}
    names = names_from_keywords(keywords)
    found, next_id = [], state.next_id
    for part in sorted(range(len(keywords)), key=lambda each: each != largest):
        cluster = source if part == largest else next_id
        next_id += part != largest
        part_name = _unused_name(state.names[source] if part == largest else name.strip() or names[part], taken)
        taken.add(part_name)
        all_rows = session.rows_with_texts_of(rows[parts == part].tolist())
        center = np.round(centers[part].astype(np.float64), CENTER_DECIMALS)
        found.append(Part(cluster, part_name, keywords[part], all_rows.tolist(), center.tolist()))
    return Edit("split", [source], parts=found)


def _unused_name(name: str, taken: set[str]) -> str:
    number, unused = 2, name
    while unused in taken:
        unused, number = f"{name} ({number})", number + 1
    return unused


def _counts(session: ExplorerSession, rows: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return how many rows have the text of each of ``rows``."""
    return session.corpus.counts[session.corpus.distinct_index[rows]]


def _rows_in(session: ExplorerSession, state: EditedClusters, cluster: int) -> NDArray[np.int64]:
    """Return the first row of every distinct text of a cluster; raise where there is no such cluster."""
    state.check(Edit("rename", [cluster], name="\0"))
    return session.first_rows[state.labels[session.first_rows] == cluster]
