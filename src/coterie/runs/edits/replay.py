"""Edits applied in their order: to the rows of the run, and to new texts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from coterie.errors import InputError
from coterie.runs.edits.kinds import NOISE, Edit

# Squared distance. Where a text's two nearest centres differ by less, it is embedded again alone, as the last digits of
# an embedding depend on its batch; embeddings differ by about 1e-6 between batches, so this is ample.
BATCH_NOISE = 1e-3
# Keywords of a merged cluster.
KEYWORDS = 10


@dataclass
class EditedClusters:
    """The clusters of a run with its edits applied.

    Attributes
    ----------
    labels:
        The cluster of every row; -1 for none.
    names, keywords:
        Of the existing clusters, by id.
    next_id:
        The id of the next new cluster; ids are never used twice.
    moved:
        Whether a person moved the row to its cluster.
    gone:
        For clusters that no longer exist, by id, what became of them.
    applied, notes:
        Edits that could be applied, and for the others the reason, in sentences.
    """

    labels: NDArray[np.int64]
    names: dict[int, str]
    keywords: dict[int, list[str]]
    next_id: int
    moved: NDArray[np.bool_]
    gone: dict[int, str] = field(default_factory=dict)
    applied: list[Edit] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def check(self, edit: Edit) -> None:
        """Raise an error that gives the reason where ``edit`` cannot be applied."""
        for cluster in edit.clusters:
            self._check_cluster(cluster)
        if edit.kind == "rename":
            self._check_name(edit)
        if edit.kind == "merge":
            if edit.to != NOISE:
                self._check_cluster(edit.to)
            if not [cluster for cluster in edit.clusters if cluster != edit.to]:
                raise InputError("a merge needs at least two clusters")
        if edit.kind == "split" and (len(edit.clusters) != 1 or len(edit.parts) < 2):
            raise InputError("a split needs one cluster and at least two parts")
        if edit.kind == "move":
            if not edit.rows:
                raise InputError("there are no texts to move")
            if edit.to != NOISE:
                self._check_cluster(edit.to)
        wrong = [row for row in (*edit.rows, *(row for part in edit.parts for row in part.rows)) if not self._has(row)]
        if wrong:
            raise InputError(f"there is no row {wrong[0] + 1} in this run")

    def apply(self, edit: Edit) -> None:
        """Apply an edit."""
        self.check(edit)
        if edit.kind == "rename":
            self.names[edit.clusters[0]] = str(edit.name)
        elif edit.kind == "merge":
            self._merge(edit)
        elif edit.kind == "split":
            source = edit.clusters[0]
            for part in edit.parts:
                self.labels[part.rows] = part.cluster
                self.names[part.cluster], self.keywords[part.cluster] = part.name, part.keywords
                self.next_id = max(self.next_id, part.cluster + 1)
            if source not in {part.cluster for part in edit.parts}:
                self._remove(source, "it was split")
        else:
            self.labels[edit.rows] = edit.to
            self.moved[edit.rows] = True
        self.applied.append(edit)

    def _merge(self, edit: Edit) -> None:
        others = [cluster for cluster in edit.clusters if cluster != edit.to]
        self.labels[np.isin(self.labels, others)] = edit.to
        if edit.to != NOISE:
            lists = [self.keywords.get(cluster, []) for cluster in (edit.to, *others)]
            # In turn, so that all merged clusters are represented.
            in_turn = [words[i] for i in range(max(map(len, lists))) for words in lists if i < len(words)]
            self.keywords[edit.to] = list(dict.fromkeys(in_turn))[:KEYWORDS]
        became = "it was marked as noise" if edit.to == NOISE else f"it was merged into {self.names[edit.to]!r}"
        for cluster in others:
            self._remove(cluster, became)

    def _remove(self, cluster: int, became: str) -> None:
        self.gone[cluster] = became
        self.names.pop(cluster, None)
        self.keywords.pop(cluster, None)

    def _check_cluster(self, cluster: int) -> None:
        if cluster in self.gone:
            raise InputError(f"cluster {cluster} is gone: {self.gone[cluster]}")
        if cluster not in self.names:
            raise InputError(f"there is no cluster {cluster} in this run")

    def _check_name(self, edit: Edit) -> None:
        name = (edit.name or "").strip()
        if not name:
            raise InputError("a name must hold at least one letter")
        if len(edit.clusters) != 1:
            raise InputError("one cluster is renamed at a time")
        if name in (other for cluster, other in self.names.items() if cluster != edit.clusters[0]):
            raise InputError(f"another cluster is called {name!r} already")

    def _has(self, row: int) -> bool:
        return 0 <= row < len(self.labels)


def replay(
    edits: Sequence[Edit],
    labels: NDArray[np.int64],
    names: Sequence[str],
    keywords: Sequence[Sequence[str]],
) -> EditedClusters:
    """Return the clusters of a fit with every edit that can still be applied.

    Parameters
    ----------
    edits:
        The edits, in their order.
    labels:
        The cluster of every row as it was fitted.
    names, keywords:
        Of the fitted clusters, by id.
    """
    state = EditedClusters(
        labels=labels.copy(),
        names=dict(enumerate(names)),
        keywords={cluster: list(words) for cluster, words in enumerate(keywords)},
        next_id=len(names),
        moved=np.zeros(len(labels), dtype=bool),
    )
    for edit in edits:
        try:
            state.apply(edit)
        except InputError as error:
            state.notes.append(f"an edit ({edit.kind}) could not be applied: {error}")
    return state


def apply_to_new(
    edits: Sequence[Edit],
    texts: Sequence[str],
    labels: NDArray[np.int64],
    transform: Callable[[list[str]], Any],
) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Apply edits to new texts that were assigned to the fitted clusters.

    Texts of a merged cluster follow it; texts of a split one go to the part with the nearest centre; a text that a
    person moved goes where that person put it.

    Parameters
    ----------
    edits:
        Those that could be applied to the run (``replay(...).applied``): others name clusters that no longer exist.
    texts, labels:
        The new texts, and the fitted cluster of each.
    transform:
        Embeds texts as the run's model does.

    Returns
    -------
    The cluster of each text, and whether a person moved that very text.
    """
    found = labels.copy()
    placed = np.zeros(len(found), dtype=bool)
    # Two texts that differ in spaces around them are one.
    stripped = [text.strip() for text in texts] if any(edit.kind == "move" for edit in edits) else []
    for edit in edits:
        if edit.kind == "merge":
            found[np.isin(found, edit.clusters)] = edit.to
        elif edit.kind == "split":
            rows = np.flatnonzero(found == edit.clusters[0])
            if len(rows):
                ids = np.array([part.cluster for part in edit.parts])
                centers = np.array([part.center for part in edit.parts])
                found[rows] = ids[nearest_part([texts[row] for row in rows.tolist()], centers, transform)]
        elif edit.kind == "move":
            known = {text.strip() for text in edit.texts}
            rows = np.array([row for row, text in enumerate(stripped) if text in known], dtype=np.int64)
            # An empty text stays in no cluster.
            rows = rows[labels[rows] >= 0]
            found[rows] = edit.to
            placed[rows] = True
    return found, placed


def nearest_part(
    texts: Sequence[str], centers: NDArray[np.float64], transform: Callable[[list[str]], Any]
) -> NDArray[np.int64]:
    """Return which of the centres is nearest to each text, whatever texts it is embedded with."""
    distinct, index = np.unique(np.array(texts, dtype=object), return_inverse=True)
    distances = _distances(transform(distinct.tolist()), centers)
    if centers.shape[0] > 1:
        two = np.sort(distances, axis=1)[:, :2]
        for place in np.flatnonzero(two[:, 1] - two[:, 0] < BATCH_NOISE):
            distances[place] = _distances(transform([distinct[place]]), centers)[0]
    return distances.argmin(axis=1)[index]


def _distances(vectors: Any, centers: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return squared distances; sparse word counts stay sparse, as a dense table would not fit into memory."""
    from scipy.sparse import issparse

    if issparse(vectors):
        squares = np.asarray(vectors.multiply(vectors).sum(axis=1)).reshape(-1, 1)
        return np.asarray(squares - 2 * (vectors @ centers.T) + (centers**2).sum(axis=1))
    rows = np.asarray(vectors, dtype=np.float64)
    return np.stack([((rows - center) ** 2).sum(axis=1) for center in centers], axis=1)
