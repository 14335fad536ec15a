"""The run as people corrected it, for other tools."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from coterie.app.runner_ups import is_cheap, next_of_rows
from coterie.app.session import Explored
from coterie.errors import InputError
from coterie.runs.edits.replay import Edited
from coterie.runs.saved_run import BEST_GUESS

MEDIA = {
    "csv": "text/csv; charset=utf-8",
    "jsonl": "application/x-ndjson",
    "parquet": "application/vnd.apache.parquet",
}
# Columns of assignments.csv that are told anew.
TOLD_ANEW = ("row", "cluster", BEST_GUESS, "confidence", "text")


def export(explored: Explored, form: str) -> bytes:
    """All rows with their cluster, its name, confidence, runner-up, place on the map and the columns that were kept."""
    if form not in MEDIA:
        raise InputError(f"{form!r} is no form of export; there are {', '.join(MEDIA)}")
    columns = _columns(explored)
    if form == "parquet":
        import pyarrow as pa
        import pyarrow.parquet as pq

        sink = io.BytesIO()
        pq.write_table(pa.table(columns), sink)
        return sink.getvalue()
    if form == "jsonl":
        names = list(columns)
        return "".join(
            json.dumps(dict(zip(names, row, strict=True)), ensure_ascii=False) + "\n" for row in _rows(columns)
        ).encode()
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(["" if cell is None else cell for cell in row] for row in _rows(columns))
    return text.getvalue().encode()


def _columns(explored: Explored) -> dict[str, list[Any]]:
    # The state is looked at once: it may change while texts are embedded.
    state, stored = explored.state, explored.map
    index = explored.corpus.distinct_index
    places = np.full((len(explored.corpus.distinct) + 1, 2), np.nan)
    places[index[stored.rows]] = stored.places
    # The confidence of the model is no longer about where a person put a text.
    confidence = np.where(state.moved, 1.0, explored.confidence)
    told: dict[str, list[Any]] = {
        "row": list(range(1, len(index) + 1)),
        "cluster": state.labels.tolist(),
        "cluster_name": [state.names.get(label) for label in state.labels.tolist()],
        "confidence": np.round(confidence, 4).tolist(),
        "corrected": (state.labels != explored.fitted).tolist(),
        "text": list(explored.corpus.texts),
        "x": _numbers(places[index, 0]),
        "y": _numbers(places[index, 1]),
        "runner_up": [state.names.get(label) for label in _following(explored, state).tolist()],
    }
    for name, cells in explored.columns.items():
        if name not in TOLD_ANEW:
            told[name if name not in told else f"{name}_input"] = [
                None if each is None else str(each) for each in cells
            ]
    return told


def _following(explored: Explored, state: Edited) -> NDArray[np.int64]:
    """The runner-up of every row: of all where that is quick, else of texts on the map."""
    first = explored.first_rows
    some = first if is_cheap(explored) else first[explored.point_of[first] >= 0]
    of_text = np.full(len(explored.corpus.distinct) + 1, -1, dtype=np.int64)
    of_text[explored.corpus.distinct_index[some]] = next_of_rows(explored, state, some)
    return of_text[explored.corpus.distinct_index]


def _numbers(values: np.ndarray[Any, np.dtype[np.float64]]) -> list[float | None]:
    return [None if np.isnan(value) else round(value, 5) for value in values.tolist()]


def _rows(columns: dict[str, list[Any]]) -> Iterator[tuple[Any, ...]]:
    return zip(*columns.values(), strict=True)
