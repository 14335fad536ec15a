"""One run as the explorer holds it in memory: its texts, its map, and its clusters with all edits."""

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
from coterie.describe.geometry import cluster_means, find_runner_ups
from coterie.errors import InputError
from coterie.report.html.content import pack, pack_coordinates
from coterie.report.html.headline import sentence_without_criteria
from coterie.runs.calibration import Calibration
from coterie.runs.edits.kinds import NOISE, Edit
from coterie.runs.edits.log import EditLog, Edits
from coterie.runs.edits.replay import EditedClusters
from coterie.runs.map_file import StoredMap
from coterie.runs.saved_run import SavedRun
from coterie.text.corpus import Corpus

# Texts of a list that are sent at a time.
PAGE_SIZE = 50
# Texts per call of the model: between two calls, other requests may use it.
EMBEDDED_AT_A_TIME = 512


@dataclass(frozen=True)
class TextFilter:
    """Which texts a list contains, and in which order.

    Attributes
    ----------
    cluster:
        Only texts of this cluster; ``None`` for all, -1 for texts in no cluster.
    query:
        Only texts that contain this string, in upper or lower case.
    lowest_first:
        Order by confidence, the lowest first; otherwise the highest.
    """

    cluster: int | None = None
    query: str = ""
    lowest_first: bool = False


class ExplorerSession:
    """A saved run, opened. The model is loaded when the first text has to be embedded."""

    def __init__(self, run: Path | SavedRun, *, device: str = "auto") -> None:
        self.run = run if isinstance(run, SavedRun) else SavedRun.open(run, device=device)
        self.about, self.device = self.run.about, self.run.device
        file = self.run.assignments_file
        if file.holds_texts:
            self.columns = file.columns()
        self.corpus: Corpus = self.run.corpus
        self.fitted = self.run.fitted_labels
        self.confidence = file.confidence
        # The state is locked for moments, the model for as long as it embeds.
        self.lock, self.model_lock = RLock(), RLock()
        self._runner_ups: tuple[EditedClusters, NDArray[np.int64]] | None = None
        self._reload()
        # The first row of every distinct text: what lists and the map show.
        index = self.corpus.distinct_index
        first = np.unique(index[index >= 0], return_index=True)[1]
        self.first_rows = np.sort(np.flatnonzero(index >= 0)[first])

    def _reload(self) -> None:
        self.run.refresh()
        self.edits: Edits = self.run.edits
        self.state: EditedClusters = self.run.state

    @property
    def model(self) -> Any:
        """The run's model, loaded when a text has to be embedded."""
        return self.run.model

    @property
    def has_map(self) -> bool:
        """Whether the run has a map, so that none has to be made."""
        return self.run.stored_map is not None

    @cached_property
    def map(self) -> StoredMap:
        """The map that the report stored, or a new one, which takes as long as embedding the texts."""
        found = self.run.stored_map
        if found is None:
            from coterie.report.report_model import ReportModel

            found = self.run.store_map(ReportModel(self.run).stored_map)
        return found

    @property
    def calibration(self) -> Calibration | None:
        """How the margin of a new text becomes a confidence."""
        return self.run.calibration

    @cached_property
    def map_vectors(self) -> Any:
        """The vectors of the map's texts as the method computes them: a sparse matrix where it counts words."""
        return self.map.vectors if self.map.exact else self.embed([self.corpus.texts[row] for row in self.map.rows])

    @cached_property
    def map_directions(self) -> Any:
        """The same vectors, scaled to length 1."""
        return unit_rows(self.map_vectors)

    def runner_ups_of_points(self, state: EditedClusters) -> NDArray[np.int64]:
        """Return the runner-up of every point of the map; cached until the clusters change."""
        cached = self._runner_ups
        if cached is None or cached[0] is not state:
            vectors, clusters = self.map.vectors, state.labels[self.map.rows]
            cached = state, find_runner_ups(vectors, cluster_means(vectors, clusters, state.next_id), clusters)
            self._runner_ups = cached
        return cached[1]

    @cached_property
    def _lower_case_texts(self) -> list[str]:
        return [text.lower() for text in self.corpus.texts]

    @cached_property
    def point_of(self) -> NDArray[np.int64]:
        """The point of the map that shows each row's text; -1 for texts that are not on the map."""
        of_text = np.full(len(self.corpus.distinct) + 1, -1, dtype=np.int64)
        of_text[self.corpus.distinct_index[self.map.rows]] = np.arange(len(self.map.rows))
        return of_text[self.corpus.distinct_index]

    def overview(self) -> dict[str, Any]:
        """Return the run as the page loads it: what stays the same, and the clusters."""
        return {
            "title": Path(self.about["input"]["source"]).name,
            "calibrated": self.calibration is not None,
            "method": self.about["method"],
            "verdict": self._verdict,
            "rows": len(self.corpus),
            "distinct": len(self.corpus.distinct),
            "points": {
                "count": len(self.map.rows),
                **pack_coordinates(self.map.places),
                "confidence": pack(np.round(255 * np.clip(self.confidence[self.map.rows], 0, 1)), np.uint8),
                "row": pack(self.map.rows, np.int32),
            },
            **self.clusters(),
        }

    @property
    def _verdict(self) -> dict[str, str] | None:
        """The stored verdict on the training; to judge a run of an earlier version would load its model."""
        verdict = self.run.training_verdict if "training_verdict" in self.about else None
        if verdict is None:
            return None
        return {"sentence": sentence_without_criteria(verdict), "details": verdict.sentence}

    def clusters(self) -> dict[str, Any]:
        """Return the current clusters, and the cluster of every point."""
        state = self.state
        inside = state.labels >= 0
        sizes = np.bincount(state.labels[inside], minlength=state.next_id)
        sums = np.bincount(state.labels[inside], weights=self.confidence[inside], minlength=state.next_id)
        return {
            "log_lines": self.edits.lines,
            "can_undo": bool(self.edits.active),
            "can_redo": bool(self.edits.undone),
            "last": _describe_edit(self.edits.active[-1], state) if self.edits.active else "",
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
            "cluster": pack(state.labels[self.map.rows], np.int32),
        }

    def _filter_rows(self, text_filter: TextFilter) -> NDArray[np.int64]:
        rows = self.first_rows
        if text_filter.cluster is not None:
            rows = rows[self.state.labels[rows] == text_filter.cluster]
        if text_filter.query:
            query = text_filter.query.lower()
            rows = np.array([row for row in rows.tolist() if query in self._lower_case_texts[row]], dtype=np.int64)
        order = np.argsort(self.confidence[rows] * (1 if text_filter.lowest_first else -1), kind="stable")
        return rows[order]

    def texts(self, text_filter: TextFilter, begin: int = 0, most: int = PAGE_SIZE) -> dict[str, Any]:
        """Return a part of the texts that pass the filter, and how many there are."""
        rows = self._filter_rows(text_filter)
        return {"total": len(rows), "texts": [self.text(int(row)) for row in rows[begin : begin + most]]}

    def text(self, row: int) -> dict[str, Any]:
        """Return one text with its cluster, confidence and runner-up."""
        cluster, point = int(self.state.labels[row]), int(self.point_of[row])
        runner_up = -1 if point < 0 else int(self.runner_ups_of_points(self.state)[point])
        return {
            "row": row,
            "text": self.corpus.texts[row],
            "times": int(self.corpus.counts[self.corpus.distinct_index[row]]),
            "cluster": cluster,
            "name": self.state.names.get(cluster, "no cluster"),
            "confidence": round(float(self.confidence[row]), 3),
            "moved": bool(self.state.moved[row]),
            "runner_up": self.state.names.get(runner_up),
            "mapped": point >= 0,
        }

    def matching_points(self, text_filter: TextFilter) -> str:
        """Return which points of the map pass the filter, as one byte each."""
        passes = np.zeros(len(self.corpus), dtype=bool)
        passes[self._filter_rows(text_filter)] = True
        return pack(passes[self.map.rows], np.uint8)

    def rows_with_texts_of(self, rows: list[int]) -> NDArray[np.int64]:
        """Return all rows that have the text of one of ``rows``: a text is in one cluster only."""
        invalid = [row for row in rows if not 0 <= row < len(self.corpus) or self.corpus.distinct_index[row] < 0]
        if invalid:
            raise InputError(f"row {invalid[0] + 1} of this run has no text")
        return np.flatnonzero(np.isin(self.corpus.distinct_index, self.corpus.distinct_index[rows]))

    def vectors_of(self, rows: NDArray[np.int64]) -> Any:
        """Return the vectors of the texts of some rows, a sparse matrix where the method counts words.

        Texts on the map have stored vectors; the others are embedded in parts, so that other requests can use the
        model in between.
        """
        texts = [self.corpus.texts[row] for row in rows]
        if not self.map.exact:
            return self.embed(texts)
        points = self.point_of[rows]
        vectors = self.map.vectors[np.maximum(points, 0)]
        unmapped = np.flatnonzero(points < 0)
        for begin in range(0, len(unmapped), EMBEDDED_AT_A_TIME):
            part = unmapped[begin : begin + EMBEDDED_AT_A_TIME]
            vectors[part] = self.embed([texts[i] for i in part])
        return vectors

    def embed(self, texts: list[str]) -> Any:
        """Return the vectors of texts by the run's model."""
        with self.model_lock:
            return self.model.transform(texts)

    def edit(self, edit: Edit, log_lines: int) -> None:
        """Append an edit to the log; an error where the log no longer has the ``log_lines`` that the page knows of."""
        with self._write_log(log_lines) as log:
            self.state.check(edit)
            log.append(edit, seen=log_lines)

    def undo(self, log_lines: int) -> None:
        """Undo the last edit."""
        with self._write_log(log_lines) as log:
            log.undo(seen=log_lines)

    def redo(self, log_lines: int) -> None:
        """Redo the edit that was undone last."""
        with self._write_log(log_lines) as log:
            log.redo(seen=log_lines)

    @contextmanager
    def _write_log(self, log_lines: int) -> Iterator[EditLog]:
        """Yield the log for one edit; the state is read again before and after, with what others have written."""
        with self.lock:
            if self.edits.lines != log_lines:
                self._reload()
            try:
                yield self.run.edit_log
            finally:
                self._reload()


def _describe_edit(edit: Edit, state: EditedClusters) -> str:
    """Return what an edit did, for the tooltip of the undo button."""
    target = "noise" if edit.to == NOISE else f"“{state.names.get(edit.to, edit.to)}”"
    if edit.kind == "move":
        return f"{len(edit.texts):,} texts moved to {target}"
    if edit.kind == "merge":
        return "marked as noise" if edit.to == NOISE else f"merged into {target}"
    if edit.kind == "split":
        return f"split into {len(edit.parts)}"
    return f"renamed to “{edit.name}”"
