"""Export the corrected run as CSV, JSONL or Parquet."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from coterie.app.runner_ups import embeds_quickly, runner_ups_of_rows
from coterie.app.session import ExplorerSession
from coterie.errors import InputError
from coterie.runs.assignments_file import BEST_GUESS
from coterie.runs.edits.replay import EditedClusters

MEDIA = {
    "csv": "text/csv; charset=utf-8",
    "jsonl": "application/x-ndjson",
    "parquet": "application/vnd.apache.parquet",
}
# Columns of assignments.csv that the export computes again.
RECOMPUTED = ("row", "cluster", BEST_GUESS, "confidence", "text")


def export(session: ExplorerSession, file_format: str) -> bytes:
    """Return all rows: cluster, its name, confidence, runner-up, map coordinates and the kept columns."""
    if file_format not in MEDIA:
        raise InputError(f"{file_format!r} is not a format of the export; use one of {', '.join(MEDIA)}")
    columns = _columns(session)
    if file_format == "parquet":
        import pyarrow as pa
        import pyarrow.parquet as pq

        sink = io.BytesIO()
        pq.write_table(pa.table(columns), sink)
        return sink.getvalue()
    if file_format == "jsonl":
        names = list(columns)
        return "".join(
            json.dumps(dict(zip(names, row, strict=True)), ensure_ascii=False) + "\n" for row in _rows(columns)
        ).encode()
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(["" if cell is None else cell for cell in row] for row in _rows(columns))
    return text.getvalue().encode()


def _columns(session: ExplorerSession) -> dict[str, list[Any]]:
    # The state is read once: it may change while texts are embedded.
    state, stored = session.state, session.map
    index = session.corpus.distinct_index
    coordinates = np.full((len(session.corpus.distinct) + 1, 2), np.nan)
    coordinates[index[stored.rows]] = stored.places
    # The confidence of the model says nothing about a cluster that a person chose.
    confidence = np.where(state.moved, 1.0, session.confidence)
    columns: dict[str, list[Any]] = {
        "row": list(range(1, len(index) + 1)),
        "cluster": state.labels.tolist(),
        "cluster_name": [state.names.get(label) for label in state.labels.tolist()],
        "confidence": np.round(confidence, 4).tolist(),
        "corrected": (state.labels != session.fitted).tolist(),
        "text": list(session.corpus.texts),
        "x": _numbers(coordinates[index, 0]),
        "y": _numbers(coordinates[index, 1]),
        "runner_up": [state.names.get(label) for label in _runner_ups(session, state).tolist()],
    }
    for name, cells in session.columns.items():
        if name not in RECOMPUTED:
            columns[name if name not in columns else f"{name}_input"] = [
                None if each is None else str(each) for each in cells
            ]
    return columns


def _runner_ups(session: ExplorerSession, state: EditedClusters) -> NDArray[np.int64]:
    """Return the runner-up of every row; -1 for texts off the map where embedding them would take long."""
    first = session.first_rows
    chosen = first if embeds_quickly(session) else first[session.point_of[first] >= 0]
    of_text = np.full(len(session.corpus.distinct) + 1, -1, dtype=np.int64)
    of_text[session.corpus.distinct_index[chosen]] = runner_ups_of_rows(session, state, chosen)
    return of_text[session.corpus.distinct_index]


def _numbers(values: np.ndarray[Any, np.dtype[np.float64]]) -> list[float | None]:
    return [None if np.isnan(value) else round(value, 5) for value in values.tolist()]


def _rows(columns: dict[str, list[Any]]) -> Iterator[tuple[Any, ...]]:
    return zip(*columns.values(), strict=True)
