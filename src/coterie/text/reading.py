"""Read a file or a table into a :class:`~coterie.text.corpus.Corpus`, at once or in chunks."""

from __future__ import annotations

import stat
from collections.abc import Callable, Collection, Iterator, Sequence
from functools import partial
from itertools import chain
from pathlib import Path

from coterie.errors import InputError, SettingError
from coterie.text.corpus import Corpus, as_corpus, check_texts, require_some_text, require_utf8, short_repr, type_name
from coterie.text.csv_source import DelimitedSource
from coterie.text.line_sources import JsonLinesSource, PlainTextSource
from coterie.text.source import Batch, ColumnChoice, Source, choose_columns, require_column
from coterie.text.table_sources import ParquetSource, table_source

_READERS: dict[str, Callable[[Path], Source]] = {
    ".csv": lambda path: DelimitedSource(str(path), path, separator=None),
    ".tsv": lambda path: DelimitedSource(str(path), path, separator="\t"),
    ".jsonl": lambda path: JsonLinesSource(str(path), path),
    ".ndjson": lambda path: JsonLinesSource(str(path), path),
    ".txt": lambda path: PlainTextSource(str(path), path),
    ".parquet": lambda path: ParquetSource(str(path), path),
}
# Parquet is compressed inside the file.
_WITHOUT_GZIP = frozenset({".parquet"})
_KNOWN_ENDINGS = ", ".join(ending if ending in _WITHOUT_GZIP else f"{ending}, {ending}.gz" for ending in _READERS)
# Rows read at a time: enough for speed, few enough for memory.
_BATCH_ROWS = 10_000


def read_corpus(
    source: object,
    *,
    text_column: str | None = None,
    id_column: str | None = None,
    keep_columns: str | Collection[str] = (),
) -> Corpus:
    """Read and check all texts of a file or a table.

    Parameters
    ----------
    source : a path (.csv, .tsv, .jsonl, .ndjson, .txt, each also .gz, or .parquet); a pandas or polars data
        frame; a pyarrow table; a ``datasets.Dataset``; or any input of ``as_corpus``.
    text_column : the column of texts. If not given: ``text``, or the only column, or the only column of
        strings (the id column aside).
    id_column : the column whose values become ``row_ids``; row numbers from 0 if not given.
    keep_columns : names of columns to keep, or ``"all"`` for all others.
    """
    if isinstance(source, (str, Path)):
        opened: Source | None = _file_source(source)
    elif isinstance(source, (Corpus, list, tuple)):
        opened = None
    else:
        opened = table_source(source)
    if opened is None:
        _require_no_columns(source, text_column, id_column, keep_columns)
        return as_corpus(source)
    choice = choose_columns(opened, text_column, id_column, keep_columns)
    corpus = _join(list(_read_chunks(opened, choice, _BATCH_ROWS)), choice)
    require_some_text(corpus, opened.name)
    return corpus


def iter_corpus(
    path: str | Path,
    *,
    text_column: str | None = None,
    id_column: str | None = None,
    keep_columns: str | Collection[str] = (),
    chunk_rows: int = 10_000,
) -> Iterator[Corpus]:
    """Read a file in chunks of ``chunk_rows`` rows, so that memory does not grow with the file.

    The parameters are those of :func:`read_corpus`. Row numbers run on from chunk to chunk. A chunk may
    consist of empty texts only; a file without rows is an error. The file and its columns are checked in
    the call itself, the rows while the chunks are read.
    """
    if chunk_rows < 1:
        raise SettingError(f"chunk_rows is {chunk_rows}: give 1 or more")
    source = _file_source(path)
    choice = choose_columns(source, text_column, id_column, keep_columns)
    return _read_chunks(source, choice, chunk_rows)


def read_columns(path: str | Path, names: Sequence[str]) -> dict[str, list[object]]:
    """Return whole columns of a file by name, of any type, for example labels and ids."""
    source = _file_source(path)
    known = [column.name for column in source.columns(names)]
    for name in names:
        require_column(source, known, name, "column")
    columns: dict[str, list[object]] = {name: [] for name in names}
    for batch in source.batches(tuple(dict.fromkeys(names)), frozenset(), _BATCH_ROWS):
        for name in columns:
            columns[name].extend(batch.cells[name])
    return columns


def column_names(path: str | Path) -> list[str]:
    """Return the names of a file's columns (of its first rows, where rows can differ)."""
    return [column.name for column in _file_source(path).columns(())]


def _file_source(name: str | Path) -> Source:
    try:
        path = Path(name).expanduser()
        mode = path.stat().st_mode
    except (FileNotFoundError, NotADirectoryError):
        raise InputError(f"{name}: no such file") from None
    except (OSError, ValueError, RuntimeError) as error:
        # No permission, or not a valid file name: too long, with a NUL, an unknown ~user.
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise InputError(f"{short_repr(str(name))} cannot be read as a file ({reason})") from None
    if stat.S_ISDIR(mode):
        raise InputError(f"{path} is a directory: give a file ({_KNOWN_ENDINGS})")
    ending, gzipped = path.suffix.lower(), False
    if ending == ".gz":
        ending, gzipped = Path(path.stem).suffix.lower(), True
    if ending not in _READERS or (gzipped and ending in _WITHOUT_GZIP):
        spreadsheet = " (in a spreadsheet program: save as CSV UTF-8)" if ending in {".xlsx", ".xls", ".ods"} else ""
        raise InputError(f"{path}: unknown file ending {path.suffix!r}: known are {_KNOWN_ENDINGS}{spreadsheet}")
    return _READERS[ending](path)


def _read_chunks(source: Source, choice: ColumnChoice, rows: int) -> Iterator[Corpus]:
    rows_before = 0
    for batch in source.batches(choice.names, choice.optional, rows):
        chunk = _make_corpus(source, choice, batch, rows_before)
        rows_before += len(chunk)
        yield chunk
    if rows_before == 0:
        raise InputError(f"{source.name} holds no rows: give at least one text")


def _make_corpus(source: Source, choice: ColumnChoice, batch: Batch, rows_before: int) -> Corpus:
    def where(index: int, column: str = choice.text) -> str:
        line = "" if batch.lines is None else f" (line {batch.lines[index]})"
        return f"{source.name}: row {rows_before + index + 1}{line}, column {column!r}"

    texts = check_texts(batch.cells[choice.text], where)
    for name in choice.names:
        if name != choice.text:
            require_utf8(batch.cells[name], partial(where, column=name))
    numbers = range(rows_before, rows_before + len(texts))
    return Corpus(
        texts=texts,
        row_ids=tuple(numbers if choice.id is None else batch.cells[choice.id]),
        columns={name: tuple(batch.cells[name]) for name in choice.kept},
        text_column=choice.text,
        id_column=choice.id,
    )


def _join(chunks: list[Corpus], choice: ColumnChoice) -> Corpus:
    return Corpus(
        texts=tuple(chain.from_iterable(chunk.texts for chunk in chunks)),
        row_ids=tuple(chain.from_iterable(chunk.row_ids for chunk in chunks)),
        columns={name: tuple(chain.from_iterable(chunk.columns[name] for chunk in chunks)) for name in choice.kept},
        text_column=choice.text,
        id_column=choice.id,
    )


def _require_no_columns(
    source: object, text_column: str | None, id_column: str | None, keep_columns: str | Collection[str]
) -> None:
    columns = {"text_column": text_column, "id_column": id_column, "keep_columns": keep_columns or None}
    for parameter, value in columns.items():
        if value is not None:
            raise InputError(f"{parameter} is {value!r}, but {type_name(source)} has no columns: leave it out")
