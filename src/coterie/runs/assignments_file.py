"""``assignments.csv``: the cluster, confidence and status of every row, as the fit wrote them."""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import IO, TYPE_CHECKING

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


class AssignmentWriter:
    """Write rows of ``assignments.csv``: row (from 1), id (if any), cluster, confidence, status, text, kept columns.

    With ``names`` of the clusters, the column ``cluster_name`` gives that of each row (names of a fit are in
    ``clusters.json`` alone, as they can still change). ``with_texts=False`` leaves the texts out. Texts with a
    confidence below ``min_confidence`` stay unassigned (cluster -1, status ``abstained``); then the column
    ``best_guess`` gives the cluster each text would be in.

    Attributes
    ----------
    abstained:
        How many rows were left unassigned for their confidence.
    """

    def __init__(
        self,
        stream: IO[str],
        corpus: Corpus,
        *,
        with_texts: bool = True,
        min_confidence: float = 0.0,
        names: Mapping[int, str] | None = None,
    ) -> None:
        self.abstained = 0
        self._least = min_confidence
        self._has_ids = corpus.id_column is not None
        self._with_texts = with_texts
        self._names = names
        present = {
            "id": self._has_ids,
            CLUSTER_NAME: names is not None,
            "text": with_texts,
            BEST_GUESS: min_confidence > 0,
        }
        own = [name for name in OWN_COLUMNS if present.get(name, True)]
        self._stream = stream
        self._rows = 0
        self._write([[*own, *renamed_columns(list(corpus.columns))]])

    def write(self, corpus: Corpus, labels: NDArray[np.int64], confidence: NDArray[np.float64]) -> None:
        """Write the rows of ``corpus`` with the cluster and confidence of each."""
        for begin in range(0, len(corpus), WRITTEN_AT_A_TIME):
            some = slice(begin, begin + WRITTEN_AT_A_TIME)
            texts, guesses = corpus.texts[some], labels[some].tolist()
            weak = (confidence[some] < self._least) & (labels[some] >= 0)
            self.abstained += int(weak.sum())
            clusters, status = guesses, corpus.status[some]
            if self._least > 0:
                clusters = [-1 if left else guess for guess, left in zip(guesses, weak, strict=True)]
                status = tuple("abstained" if left else each for each, left in zip(status, weak, strict=True))
            self._write(
                zip(
                    range(self._rows + 1, self._rows + 1 + len(texts)),
                    *([corpus.row_ids[some]] if self._has_ids else []),
                    clusters,
                    *([[self._names.get(each, "") for each in clusters]] if self._names is not None else []),
                    *([guesses] if self._least > 0 else []),
                    [f"{each:.4f}" for each in confidence[some].tolist()],
                    status,
                    *([texts] if self._with_texts else []),
                    *(corpus.columns[name][some] for name in corpus.columns),
                    strict=True,
                )
            )
            self._rows += len(texts)

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
