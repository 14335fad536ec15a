"""CSV and TSV files, read strictly: a row with too many or too few cells is an error, never a guess."""

from __future__ import annotations

import csv
import threading
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

from coterie.errors import InputError
from coterie.text.line_sources import read_lines
from coterie.text.source import Batch, Column, Source

# Most characters in one cell: a longer cell is nearly always an unclosed quote.
MAX_CELL_CHARACTERS = 2**24

# The csv module has one cell limit per process. One reader at a time raises it, only while it reads rows, and then
# restores the old limit.
_cell_limit_lock = threading.Lock()


@contextmanager
def _raise_cell_limit() -> Iterator[None]:
    with _cell_limit_lock:
        before = csv.field_size_limit()
        csv.field_size_limit(max(before, MAX_CELL_CHARACTERS))
        try:
            yield
        finally:
            csv.field_size_limit(before)


@dataclass(frozen=True)
class DelimitedSource(Source):
    """A CSV or TSV file whose first row names the columns.

    ``separator`` None means a comma, or a semicolon if the header line has semicolons and no comma. Cells are
    always strings: ``null``, ``nan`` and ``NA`` are texts. A blank line is an empty text if there is only one
    column, and is skipped otherwise.
    """

    path: Path
    separator: str | None

    def columns(self, requested: Collection[str] | None) -> list[Column]:
        with _raise_cell_limit():
            return [Column(name) for name in _Rows(self).header]

    def batches(self, names: Sequence[str], optional: Collection[str], size: int) -> Iterator[Batch]:
        with _raise_cell_limit():
            rows = _Rows(self)
        places = [rows.header.index(name) for name in names]
        while True:
            with _raise_cell_limit():
                chunk, lines = rows.take(size)
            if not chunk:
                return
            cells = {name: [row[place] for row in chunk] for name, place in zip(names, places, strict=True)}
            yield Batch(cells, lines)


class _Rows:
    """Read the header, then one checked row after another."""

    def __init__(self, source: DelimitedSource) -> None:
        self._name = source.name
        lines = read_lines(source.path)
        first = next(lines, None)
        if first is None:
            raise InputError(f"{self._name}: the file is empty: the first line must name the columns")
        separator = source.separator or (";" if ";" in first and "," not in first else ",")
        self._reader = csv.reader(chain([first], lines), delimiter=separator, strict=True)
        self._row_number = 0  # 0 stands for the header
        self.row_line = 1
        try:
            header = [cell.strip() for cell in next(self._reader, [])]
        except csv.Error as error:
            raise self._csv_error(error) from None
        if not any(header):
            raise InputError(f"{self._name}: line 1 is blank, but must name the columns")
        self.header = header

    def take(self, size: int) -> tuple[list[list[str]], list[int]]:
        """Return at most ``size`` rows and the line on which each begins; none at the end of the file."""
        expected, reader = len(self.header), self._reader
        chunk: list[list[str]] = []
        lines: list[int] = []
        self._row_number += 1
        self.row_line = reader.line_num + 1
        try:
            for row in reader:
                if len(row) != expected:
                    if not row and expected > 1:
                        self.row_line = reader.line_num + 1
                        continue
                    if row:
                        raise InputError(
                            f"{self._place()}: expected {expected} cells, found {len(row)}: put cells that hold the "
                            "separator in double quotes"
                        )
                    row = [""]
                chunk.append(row)
                lines.append(self.row_line)
                if len(chunk) == size:
                    break
                self._row_number += 1
                self.row_line = reader.line_num + 1
        except csv.Error as error:
            raise self._csv_error(error) from None
        return chunk, lines

    def _csv_error(self, error: csv.Error) -> InputError:
        return InputError(f"{self._place()}: {_explain(str(error))}")

    def _place(self) -> str:
        row = f"row {self._row_number}" if self._row_number else "header"
        return f"{self._name}: {row} (line {self.row_line})"


def _explain(message: str) -> str:
    if "unexpected end of data" in message:
        return "a quote is opened and never closed: close it, or double a quote that belongs to the text"
    if "field larger than field limit" in message:
        return f"a cell has more than {MAX_CELL_CHARACTERS:,} characters: is a quote never closed?"
    if "expected after" in message:
        return "text follows a closing quote: double a quote that belongs to the text"
    if "new-line character" in message:
        return "a carriage return outside quotes: end lines with a line feed"
    return message
