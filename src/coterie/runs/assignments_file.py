"""``assignments.csv``: the cluster, confidence and status of every row, as the fit wrote them."""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from coterie.errors import InputError
from coterie.text.reading import column_names, read_columns
from coterie.text.source import quoted_list

if TYPE_CHECKING:
    from coterie.text.corpus import Corpus

ASSIGNMENTS_FILE = "assignments.csv"
# The cluster of a text whose confidence was too low to assign it; the column is there where any could be.
BEST_GUESS = "best_guess"
CLUSTER_NAME = "cluster_name"
OWN_COLUMNS = ("row", "id", "cluster", CLUSTER_NAME, BEST_GUESS, "confidence", "status", "text")
# Rows formatted at a time: enough to be fast, few enough to need no memory.
WRITTEN_AT_A_TIME = 8_192
ALL_ROWS = slice(None)


@dataclass(frozen=True)
class AssignmentsFile:
    """An ``assignments.csv`` to read from; each column is read once.

    Attributes
    ----------
    path:
        The file.
    """

    path: Path
    _cells: dict[str, Sequence[object]] = field(default_factory=dict, repr=False)

    @cached_property
    def header(self) -> list[str]:
        """The names of its columns."""
        return list(column_names(self.path))

    @property
    def holds_texts(self) -> bool:
        """Whether the texts are in it; ``coterie fit --no-text`` leaves them out."""
        return "text" in self.header

    def columns(self, names: Sequence[str] | None = None) -> dict[str, Sequence[object]]:
        """Return these columns, or all, with their cells as they stand in the file."""
        wanted = self.header if names is None else names
        missing = [name for name in wanted if name not in self._cells]
        if missing:
            self._cells.update(read_columns(self.path, missing))
        return {name: self._cells[name] for name in wanted}

    @cached_property
    def labels(self) -> NDArray[np.int64]:
        """The cluster of every row as it was fitted; the best guess where the row was left unassigned."""
        name = BEST_GUESS if BEST_GUESS in self.header else "cluster"
        try:
            return np.array([int(str(cell)) for cell in self.columns([name])[name]], dtype=np.int64)
        except ValueError as error:
            raise InputError(f"{self.path}: column 'cluster' must hold whole numbers: {error}") from error

    @cached_property
    def confidence(self) -> NDArray[np.float64]:
        """The confidence of every row, in four digits."""
        return np.array([float(str(cell)) for cell in self.columns(["confidence"])["confidence"]])

    @cached_property
    def texts(self) -> list[str]:
        """The text of every row; ``""`` for an empty one."""
        return [str(text or "") for text in self.columns(["text"])["text"]]

    def kept_columns(self, kept: Sequence[str], wanted: Sequence[str]) -> dict[str, Sequence[object]]:
        """Return columns of the input that the fit kept, by the name they had there.

        ``kept`` are the names of all that the fit kept, in their order.
        """
        # They come last, in this order, under their own names or one like it: ``cluster_input``.
        stored = dict(zip(kept, self.header[len(self.header) - len(kept) :], strict=True))
        for name in wanted:
            if name not in stored and name not in stored.values():
                there = f"it kept {quoted_list(kept)}" if kept else "it kept none"
                raise InputError(
                    f"{self.path.parent}: the run has no column {name!r} (--by); {there} "
                    "(coterie fit --keep keeps more)"
                )
        columns = self.columns([stored.get(name, name) for name in wanted])
        return {name: columns[stored.get(name, name)] for name in wanted}


def assignment_columns(
    corpus: Corpus,
    labels: NDArray[np.int64],
    confidence: NDArray[np.float64],
    *,
    names: Mapping[int, str] | None = None,
    min_confidence: float = 0.0,
    with_texts: bool = True,
    first_row: int = 1,
    some: slice = ALL_ROWS,
) -> dict[str, Sequence[Any]]:
    """Return rows as the columns of ``assignments.csv``, and of what ``coterie predict`` writes.

    Parameters
    ----------
    corpus, labels, confidence:
        The texts, and one cluster (-1: none) and one confidence per row.
    names:
        Of the clusters, for the column ``cluster_name``; without them there is no such column.
    min_confidence:
        Texts with a confidence below it are left unassigned: cluster -1, status ``abstained``, and the cluster they
        would be in as ``best_guess``. 0: all are assigned, and there is no such column.
    with_texts:
        Whether there is a column of texts.
    first_row:
        The number of the first row.
    some:
        Which rows.
    """
    weak = (confidence[some] < min_confidence) & (labels[some] >= 0)
    guesses, texts = labels[some].tolist(), corpus.texts[some]
    clusters = np.where(weak, -1, labels[some]).tolist()
    abstained = zip(corpus.status[some], weak.tolist(), strict=True)
    columns: dict[str, Sequence[Any] | None] = {
        "row": range(first_row, first_row + len(texts)),
        "id": None if corpus.id_column is None else corpus.row_ids[some],
        "cluster": clusters,
        CLUSTER_NAME: None if names is None else [names.get(cluster, "") for cluster in clusters],
        BEST_GUESS: guesses if min_confidence > 0 else None,
        "confidence": [round(each, 4) for each in confidence[some].tolist()],
        "status": ["abstained" if left_out else status for status, left_out in abstained],
        "text": texts if with_texts else None,
    }
    kept = zip(renamed_columns(list(corpus.columns)), corpus.columns.values(), strict=True)
    return {name: cells for name, cells in columns.items() if cells is not None} | {
        name: cells[some] for name, cells in kept
    }


class AssignmentWriter:
    """Write rows of ``assignments.csv``, block by block; see :func:`assignment_columns`.

    Attributes
    ----------
    rows, empty, abstained:
        How many rows were written, how many of them hold no text, and how many were left unassigned for their
        confidence.
    """

    def __init__(
        self,
        stream: IO[str],
        *,
        with_texts: bool = True,
        min_confidence: float = 0.0,
        names: Mapping[int, str] | None = None,
    ) -> None:
        self.rows = self.empty = self.abstained = 0
        self._stream = stream
        self._with_texts, self._min_confidence, self._names = with_texts, min_confidence, names

    def write(self, corpus: Corpus, labels: NDArray[np.int64], confidence: NDArray[np.float64]) -> None:
        """Write the rows of ``corpus`` with the cluster and confidence of each; the header first."""
        for begin in range(0, len(corpus), WRITTEN_AT_A_TIME):
            columns = assignment_columns(
                corpus,
                labels,
                confidence,
                names=self._names,
                min_confidence=self._min_confidence,
                with_texts=self._with_texts,
                first_row=self.rows + 1,
                some=slice(begin, begin + WRITTEN_AT_A_TIME),
            )
            if not self.rows:
                self._write([list(columns)])
            columns["confidence"] = [f"{each:.4f}" for each in columns["confidence"]]
            self._write(zip(*columns.values(), strict=True))
            self.rows += len(columns["row"])
            self.abstained += sum(status == "abstained" for status in columns["status"])
        self.empty += int(corpus.empty.sum())

    def _write(self, rows: Iterable[Sequence[object]]) -> None:
        records: list[str] = []
        # Records end with a line feed, but the csv module quotes a carriage return only if its own line end holds one.
        csv.writer(_Collector(records.append), lineterminator="\r\n").writerows(rows)
        self._stream.write("".join([f"{record[:-2]}\n" for record in records]))


@dataclass(frozen=True)
class _Collector:
    """A stream for the csv module that passes each record on to a function, without a method in between."""

    write: Callable[[str], object]


def renamed_columns(kept: Sequence[str]) -> list[str]:
    """Return names for kept columns that are none of our own: ``cluster`` becomes ``cluster_input``.

    Examples
    --------
    >>> renamed_columns(["country", "cluster"])
    ['country', 'cluster_input']
    """
    taken = {*OWN_COLUMNS, *kept}
    found = []
    for name in kept:
        renamed = name
        while renamed in OWN_COLUMNS or (renamed != name and renamed in taken):
            renamed = f"{renamed}_input"
        taken.add(renamed)
        found.append(renamed)
    return found
