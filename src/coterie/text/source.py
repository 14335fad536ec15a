"""What every source of rows offers, and how its text, id and kept columns are chosen."""

from __future__ import annotations

import difflib
from abc import ABC, abstractmethod
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

from coterie.errors import InputError


@dataclass(frozen=True)
class Column:
    """A column's name and whether it holds strings (None: the format does not say)."""

    name: str
    holds_text: bool | None = None


@dataclass(frozen=True)
class Batch:
    """Some rows, by column; ``lines`` says on which line of the file each begins, where there are lines."""

    cells: Mapping[str, Sequence[object]]
    lines: Sequence[int] | None = None


@dataclass(frozen=True)
class Source(ABC):
    """Rows from one place, read in batches; ``name`` is how error messages call it."""

    name: str

    @abstractmethod
    def columns(self, sought: Collection[str] | None) -> list[Column]:
        """The columns in order. A source that has to search may stop once it has met all ``sought`` names;
        None asks for every column."""

    @abstractmethod
    def batches(self, names: Sequence[str], optional: Collection[str], size: int) -> Iterator[Batch]:
        """Batches of at most ``size`` rows with the columns ``names``.

        Where rows can differ in their columns, a missing cell is null if its column is ``optional`` and an
        error if not. No batch is empty.
        """


@dataclass(frozen=True)
class ColumnChoice:
    """Which columns of a source become texts, ids and kept columns."""

    text: str
    id: str | None
    kept: tuple[str, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """Every column to read, once."""
        named = (self.text, *(() if self.id is None else (self.id,)), *self.kept)
        return tuple(dict.fromkeys(named))

    @property
    def optional(self) -> frozenset[str]:
        """Columns whose cell a row may leave out."""
        return frozenset(self.kept) - {self.text, self.id}


def choose_columns(
    source: Source, text_column: str | None, id_column: str | None, keep_columns: str | Collection[str]
) -> ColumnChoice:
    """Settle the columns, or say which are there and which parameter to give."""
    keep_all = keep_columns == "all"
    kept = (keep_columns,) if isinstance(keep_columns, str) else tuple(keep_columns)
    sought = [text_column or "text", *((id_column,) if id_column is not None else ()), *kept]
    columns = source.columns(None if keep_all else sought)
    names = [column.name for column in columns]
    _require_unique(source, names)
    if not keep_all:
        for name in kept:
            require_column(source, names, name, "keep_columns")
    if id_column is not None:
        require_column(source, names, id_column, "id_column")
    if text_column is None:
        text_column = _only_text_column(source, columns, id_column)
    else:
        require_column(source, names, text_column, "text_column")
    if keep_all:
        kept = tuple(name for name in names if name not in (text_column, id_column))
    return ColumnChoice(text_column, id_column, tuple(dict.fromkeys(kept)))


def _only_text_column(source: Source, columns: list[Column], id_column: str | None) -> str:
    candidates = [column for column in columns if column.name != id_column]
    if any(column.name == "text" for column in candidates):
        return "text"
    if len(candidates) > 1:
        candidates = [column for column in candidates if column.holds_text]
    if len(candidates) == 1:
        return candidates[0].name
    raise InputError(
        f"{source.name}: which column holds the texts? Give text_column (--text-column); "
        f"the columns are {listed([column.name for column in columns])}"
    )


def _require_unique(source: Source, names: list[str]) -> None:
    repeated = [name for name in dict.fromkeys(names) if names.count(name) > 1]
    if repeated:
        raise InputError(f"{source.name}: two columns or more are named {listed(repeated)}: rename them")


def require_column(source: Source, names: list[str], name: str, parameter: str) -> None:
    """Raise unless ``name`` is there, with what is."""
    if name in names:
        return
    close = difflib.get_close_matches(str(name), names, n=1) or [
        other for other in names if other.casefold() == str(name).casefold()
    ]
    hint = f", did you mean {close[0]!r}?" if close else "."
    raise InputError(f"{source.name}: no column {name!r} ({parameter}){hint} The columns are {listed(names)}")


def listed(names: Sequence[str], limit: int = 20) -> str:
    """Names for a message, a long list cut."""
    if not names:
        return "none"
    more = f" and {len(names) - limit} more" if len(names) > limit else ""
    return ", ".join(repr(name) for name in names[:limit]) + more
