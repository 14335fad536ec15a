"""One run as the explorer holds it: its texts, its map, and what people have made of its clusters."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from threading import RLock
from typing import Any

import numpy as np
from numpy.typing import NDArray

from coterie.clustering.kmeans import unit_rows
from coterie.describe.geometry import cluster_means, runner_ups
from coterie.errors import InputError
from coterie.report.html.content import packed, packed_places
from coterie.runs.calibration import Calibration
from coterie.runs.edited_clusters import read_edited
from coterie.runs.edits.kinds import NOISE, Edit
from coterie.runs.edits.log import EditLog, Edits
from coterie.runs.edits.replay import Edited
from coterie.runs.map_file import StoredMap, read_map, write_map
from coterie.runs.saved_run import ASSIGNMENTS_FILE, fitted_column, read_about, read_told_clusters, whole_numbers
from coterie.text.corpus import Corpus, as_corpus
from coterie.text.reading import column_names, read_columns

# Texts that a list shows at a time, and texts embedded at a time.
PAGE, EMBEDDED_AT_A_TIME = 50, 512


@dataclass(frozen=True)
class Wanted:
    """Which texts a list should hold.

    Attributes
    ----------
    cluster:
        Of this cluster alone; ``None`` for all, -1 for those in none.
    query:
        That hold these letters, in whatever case.
    weak_first:
        The least certain first; otherwise the most certain.
    """

    cluster: int | None = None
    query: str = ""
    weak_first: bool = False


class Explored:
    """A run folder, opened. Nothing heavy is loaded until a text has to be embedded."""

    def __init__(self, folder: Path, *, device: str = "auto") -> None:
        self.about = read_about(folder)
        assignments = folder / ASSIGNMENTS_FILE
        columns = column_names(assignments)
        if "text" not in columns:
            raise InputError(f"{assignments} holds no texts (--no-text): there is nothing to explore")
        self.folder = folder
        self.device = device
        self.columns = read_columns(assignments, columns)
        self.corpus: Corpus = as_corpus([str(text or "") for text in self.columns["text"]], allow_empty=True)
        self.fitted = whole_numbers(self.columns[fitted_column(columns)], folder)
        self.confidence = np.array([float(str(cell)) for cell in self.columns["confidence"]])
        self._cards = read_told_clusters(folder)
        self._log = EditLog(folder)
        # Of the state, held for moments; and of the model, which takes longer and serves one at a time.
        self.lock, self.model_lock = RLock(), RLock()
        self._next: tuple[Edited, NDArray[np.int64]] | None = None
        self._reload()
        # The first row of every distinct text that was ever in a cluster: what lists and the map show.
        index = self.corpus.distinct_index
        first = np.unique(index[index >= 0], return_index=True)[1]
        self.first_rows = np.sort(np.flatnonzero(index >= 0)[first])

    def _reload(self) -> None:
        self.edits: Edits = self._log.read()
        self.state: Edited = read_edited(self.folder, self.fitted, edits=self.edits, told=self._cards)

    @cached_property
    def model(self) -> Any:
        """The run's model, loaded when a text has to be embedded."""
        from coterie.methods.persistence import load

        return load(self.folder, device=self.device)

    @property
    def has_map(self) -> bool:
        """Whether a map was made before."""
        return "map" in vars(self) or self._left_map is not None

    @cached_property
    def _left_map(self) -> StoredMap | None:
        return read_map(self.folder, len(self.corpus))

    @cached_property
    def map(self) -> StoredMap:
        """Its map: as the report left it, or made now, which takes as long as embedding the texts."""
        found = self._left_map
        if found is None:
            from coterie.report.report_model import Shown
            from coterie.runs.saved_run import read_run

            run = read_run(self.folder, device=self.device)
            self.__dict__["model"] = run.model
            found = write_map(self.folder, Shown(run).stored_map)
        return found

    @cached_property
    def calibration(self) -> Calibration | None:
        """How the margin of a new text becomes confidence."""
        return Calibration.read(self.folder)

    @cached_property
    def map_vectors(self) -> Any:
        """The vectors of the map's texts as the method has them: a sparse table where it counts words."""
        return self.map.vectors if self.map.exact else self.embed([self.corpus.texts[row] for row in self.map.rows])

    @cached_property
    def map_directions(self) -> Any:
        """The same, each of length 1."""
        return unit_rows(self.map_vectors)

    def next_of_points(self, state: Edited) -> NDArray[np.int64]:
        """The runner-up of every point of the map; remembered until the clusters change."""
        known = self._next
        if known is None or known[0] is not state:
            vectors, clusters = self.map.vectors, state.labels[self.map.rows]
            known = state, runner_ups(vectors, cluster_means(vectors, clusters, state.next_id), clusters)
            self._next = known
        return known[1]

    @cached_property
    def _lowered(self) -> list[str]:
        return [text.lower() for text in self.corpus.texts]

    @cached_property
    def point_of(self) -> NDArray[np.int64]:
        """Where each row's text is on the map; -1 for those that are not on it."""
        of_text = np.full(len(self.corpus.distinct) + 1, -1, dtype=np.int64)
        of_text[self.corpus.distinct_index[self.map.rows]] = np.arange(len(self.map.rows))
        return of_text[self.corpus.distinct_index]

    def overview(self) -> dict[str, Any]:
        """What does not change while one looks at it."""
        return {
            "title": Path(self.about["input"]["source"]).name,
            "calibrated": self.calibration is not None,
            "method": self.about["method"],
            "rows": len(self.corpus),
            "distinct": len(self.corpus.distinct),
            "points": {
                "count": len(self.map.rows),
                **packed_places(self.map.places),
                "confidence": packed(np.round(255 * np.clip(self.confidence[self.map.rows], 0, 1)), np.uint8),
                "row": packed(self.map.rows, np.int32),
            },
            **self.clusters(),
        }

    def clusters(self) -> dict[str, Any]:
        """The clusters as they are now, and the cluster of every point."""
        state = self.state
        sizes = np.bincount(state.labels[state.labels >= 0], minlength=state.next_id)
        sums = np.bincount(
            state.labels[state.labels >= 0], weights=self.confidence[state.labels >= 0], minlength=state.next_id
        )
        return {
            "seen": self.edits.lines,
            "can_undo": bool(self.edits.active),
            "can_redo": bool(self.edits.undone),
            "last": _told(self.edits.active[-1], state) if self.edits.active else "",
            "notes": state.notes,
            "next_id": state.next_id,
            "noise": int(((state.labels == NOISE) & ~self.corpus.empty).sum()),
            "clusters": [
                {
                    "id": cluster,
                    "name": name,
                    "size": int(sizes[cluster]),
                    "keywords": state.keywords.get(cluster, []),
                    "confidence": round(float(sums[cluster] / max(1, sizes[cluster])), 3),
                }
                for cluster, name in sorted(state.names.items(), key=lambda each: (-sizes[each[0]], each[0]))
            ],
            "cluster": packed(state.labels[self.map.rows], np.int32),
        }

    def _rows(self, wanted: Wanted) -> NDArray[np.int64]:
        rows = self.first_rows
        if wanted.cluster is not None:
            rows = rows[self.state.labels[rows] == wanted.cluster]
        if wanted.query:
            query = wanted.query.lower()
            rows = np.array([row for row in rows.tolist() if query in self._lowered[row]], dtype=np.int64)
        order = np.argsort(self.confidence[rows] * (1 if wanted.weak_first else -1), kind="stable")
        return rows[order]

    def texts(self, wanted: Wanted, begin: int = 0, most: int = PAGE) -> dict[str, Any]:
        """A page of the texts that are wanted."""
        rows = self._rows(wanted)
        return {"total": len(rows), "texts": [self.text(int(row)) for row in rows[begin : begin + most]]}

    def text(self, row: int) -> dict[str, Any]:
        """One text and what is known about it."""
        cluster, point = int(self.state.labels[row]), int(self.point_of[row])
        runner_up = -1 if point < 0 else int(self.next_of_points(self.state)[point])
        return {
            "row": row,
            "text": self.corpus.texts[row],
            "times": int(self.corpus.counts[self.corpus.distinct_index[row]]),
            "cluster": cluster,
            "name": self.state.names.get(cluster, "none"),
            "confidence": round(float(self.confidence[row]), 3),
            "moved": bool(self.state.moved[row]),
            "runner_up": self.state.names.get(runner_up),
            "mapped": point >= 0,
        }

    def matching(self, wanted: Wanted) -> str:
        """Which points of the map are wanted, as one byte each."""
        rows = np.zeros(len(self.corpus), dtype=bool)
        rows[self._rows(wanted)] = True
        return packed(rows[self.map.rows], np.uint8)

    def rows_with_texts_of(self, rows: list[int]) -> NDArray[np.int64]:
        """All rows that hold the text of one of these: a text is in one cluster."""
        wrong = [row for row in rows if not 0 <= row < len(self.corpus) or self.corpus.distinct_index[row] < 0]
        if wrong:
            raise InputError(f"there is no text in row {wrong[0] + 1} of this run")
        return np.flatnonzero(np.isin(self.corpus.distinct_index, self.corpus.distinct_index[rows]))

    def vectors_of(self, rows: NDArray[np.int64]) -> Any:
        """Where the method puts the texts of some rows, a sparse table where it counts words.

        From the map where they are on it, else embedded, some at a time: others may want the model meanwhile.
        """
        texts = [self.corpus.texts[row] for row in rows]
        if not self.map.exact:
            return self.embed(texts)
        points = self.point_of[rows]
        found = self.map.vectors[np.maximum(points, 0)]
        missing = np.flatnonzero(points < 0)
        for begin in range(0, len(missing), EMBEDDED_AT_A_TIME):
            some = missing[begin : begin + EMBEDDED_AT_A_TIME]
            found[some] = self.embed([texts[place] for place in some])
        return found

    def embed(self, texts: list[str]) -> Any:
        """Vectors of texts by the run's model."""
        with self.model_lock:
            return self.model.transform(texts)

    def edit(self, edit: Edit, seen: int) -> None:
        """Keep an edit of somebody who had seen so many lines of the log."""
        with self._written(seen) as log:
            self.state.check(edit)
            log.append(edit, seen=seen)

    def step_back(self, seen: int) -> None:
        with self._written(seen) as log:
            log.undo(seen=seen)

    def step_forward(self, seen: int) -> None:
        with self._written(seen) as log:
            log.redo(seen=seen)

    @contextmanager
    def _written(self, seen: int) -> Iterator[EditLog]:
        """The log, to write to; the state is as the log is before and after, whoever else has written."""
        with self.lock:
            if self.edits.lines != seen:
                self._reload()
            try:
                yield self._log
            finally:
                self._reload()


def _told(edit: Edit, state: Edited) -> str:
    """What the last edit was, for the button that takes it back."""
    if edit.kind == "move":
        where = "noise" if edit.to == NOISE else f"“{state.names.get(edit.to, edit.to)}”"
        return f"{len(edit.texts):,} texts moved to {where}"
    if edit.kind == "merge":
        return "marked as noise" if edit.to == NOISE else f"merged into “{state.names.get(edit.to, edit.to)}”"
    if edit.kind == "split":
        return f"split into {len(edit.parts)}"
    return f"renamed to “{edit.name}”"
