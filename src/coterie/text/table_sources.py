"""Sources with typed columns: Parquet files, Arrow tables, data frames, and data sets of ``datasets``."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from coterie.errors import InputError
from coterie.text.source import Batch, Column, Source


@dataclass(frozen=True)
class ParquetSource(Source):
    """A Parquet file, of which only the requested columns are read."""

    path: Path

    def columns(self, requested: Collection[str] | None) -> list[Column]:
        import pyarrow as pa
        import pyarrow.parquet as pq

        try:
            schema = pq.read_schema(self.path)
        except (pa.ArrowException, OSError) as error:
            raise self._unreadable(error) from error
        return _arrow_columns(schema)

    def batches(self, names: Sequence[str], optional: Collection[str], size: int) -> Iterator[Batch]:
        import pyarrow as pa
        import pyarrow.parquet as pq

        rows_before = 0
        try:
            with pq.ParquetFile(self.path) as file:
                for batch in file.iter_batches(batch_size=size, columns=list(names)):
                    if batch.num_rows:
                        yield Batch({name: _cells(self, batch, name, rows_before) for name in names})
                    rows_before += batch.num_rows
        except (pa.ArrowException, OSError) as error:
            raise self._unreadable(error) from error

    def _unreadable(self, error: Exception) -> InputError:
        reason = " ".join(str(error).split())
        return InputError(f"{self.name}: not a Parquet file that can be read ({reason})")


@dataclass(frozen=True)
class ArrowTableSource(Source):
    """A pyarrow table in memory."""

    table: Any

    def columns(self, requested: Collection[str] | None) -> list[Column]:
        return _arrow_columns(self.table.schema)

    def batches(self, names: Sequence[str], optional: Collection[str], size: int) -> Iterator[Batch]:
        for first in range(0, self.table.num_rows, size):
            part = self.table.slice(first, size)
            yield Batch({name: _cells(self, part, name, first) for name in names})


@dataclass(frozen=True)
class FrameSource(Source):
    """A pandas, polars or other eager data frame, read through narwhals."""

    frame: Any

    def columns(self, requested: Collection[str] | None) -> list[Column]:
        import narwhals as nw

        string_types = (nw.String, nw.Categorical, nw.Enum)
        return [
            # pandas columns may be called 0, 1, ...; here every name is a string.
            Column(str(name), isinstance(dtype, string_types))
            for name, dtype in self.frame.schema.items()
        ]

    def batches(self, names: Sequence[str], optional: Collection[str], size: int) -> Iterator[Batch]:
        own_names = {str(name): name for name in self.frame.columns}
        for first in range(0, len(self.frame), size):
            part = self.frame[first : first + size]
            yield Batch({name: part.get_column(own_names[name]).to_list() for name in names})


def table_source(value: object) -> Source | None:
    """Return the source for a table in memory, or None if ``value`` is not a table."""
    package = type(value).__module__.partition(".")[0]
    if package == "datasets":
        return _hub_dataset_source(value)
    if package == "pyarrow":
        import pyarrow as pa

        if isinstance(value, pa.RecordBatch):
            value = pa.Table.from_batches([value])
        return ArrowTableSource("the table", value) if isinstance(value, pa.Table) else None
    import narwhals as nw

    try:
        frame = nw.from_native(value)  # type: ignore[call-overload]
    except TypeError:
        return None
    except nw.exceptions.DuplicateError as error:
        reason = " ".join(str(error).split())
        raise InputError(f"the table has columns of the same name: rename them ({reason})") from None
    if isinstance(frame, nw.LazyFrame):
        raise InputError("received a lazy frame: call .collect() on it first")
    return FrameSource("the table", frame)


def _hub_dataset_source(value: Any) -> Source | None:
    """Return the source for a data set of ``datasets``, recognised by name so that ``datasets`` is not imported."""
    kind = type(value).__name__
    if kind == "Dataset":
        # with_format, not .data: a selected or shuffled data set keeps its rows apart in an index.
        return ArrowTableSource("the data set", value.with_format("arrow")[:])
    if kind.endswith("DatasetDict"):
        raise InputError(f"received a {kind} of several splits: pass one of them, such as dataset['train']")
    if kind == "IterableDataset":
        raise InputError("received an IterableDataset, which is not in memory as a whole: pass a Dataset")
    return None


def _arrow_columns(schema: Any) -> list[Column]:
    import pyarrow as pa

    def holds_text(kind: Any) -> bool:
        if pa.types.is_dictionary(kind):
            return holds_text(kind.value_type)
        tests = (pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view)
        return any(test(kind) for test in tests)

    return [Column(field.name, holds_text(field.type)) for field in schema]


def _cells(source: Source, part: Any, name: str, rows_before: int) -> list[object]:
    """Return a column of an Arrow table or record batch as Python objects."""
    column = part.column(name)
    try:
        return list(column.to_pylist())
    except UnicodeDecodeError:
        pass
    # Arrow does not check the bytes of its strings: find the row to name.
    for index in range(len(column)):
        try:
            column[index].as_py()
        except UnicodeDecodeError as error:
            raise InputError(
                f"{source.name}: row {rows_before + index + 1}, column {name!r}, byte {error.start} of the "
                "cell: not UTF-8: write the column again as UTF-8"
            ) from None
    raise InputError(f"{source.name}: column {name!r} is not UTF-8: write it again as UTF-8")
