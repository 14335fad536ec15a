"""The interface of every source of rows, and the choice of its text, id and kept columns."""

from __future__ import annotations

import difflib
from abc import ABC, abstractmethod
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

from coterie.errors import InputError


@dataclass(frozen=True)
class Column:
    """A column's name, and whether it holds strings (None: the format does not define it)."""

    name: str
    holds_text: bool | None = None


@dataclass(frozen=True)
class Batch:
    """Some rows, by column; ``lines`` has the line of the file on which each begins, for files with lines."""

    cells: Mapping[str, Sequence[object]]
    lines: Sequence[int] | None = None


@dataclass(frozen=True)
class Source(ABC):
    """A source of rows, read in batches; ``name`` is its name in error messages."""

    name: str

    @abstractmethod
    def columns(self, requested: Collection[str] | None) -> list[Column]:
        """Return the columns in order.

        A source that has to search may stop once it has found all ``requested`` names; None requests every column.
        """

    @abstractmethod
    def batches(self, names: Sequence[str], optional: Collection[str], size: int) -> Iterator[Batch]:
        """Yield batches of at most ``size`` rows with the columns ``names``.

        Where rows can differ in their columns, a missing cell is null if its column is ``optional`` and an
        error if not. No batch is empty.
        """


@dataclass(frozen=True)
class ColumnChoice:
    """The columns of a source that become texts, ids and kept columns."""

    text: str
    id: str | None
    kept: tuple[str, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """Every column to read, each once."""
        named = (self.text, *(() if self.id is None else (self.id,)), *self.kept)
        return tuple(dict.fromkeys(named))

    @property
    def optional(self) -> frozenset[str]:
        """The columns whose cell a row may leave out."""
        return frozenset(self.kept) - {self.text, self.id}


def choose_columns(
    source: Source, text_column: str | None, id_column: str | None, keep_columns: str | Collection[str]
) -> ColumnChoice:
    """Choose the columns; raise with the columns of the source and the parameter to give if one is missing."""
    keep_all = keep_columns == "all"
    kept = (keep_columns,) if isinstance(keep_columns, str) else tuple(keep_columns)
    requested = [text_column or "text", *((id_column,) if id_column is not None else ()), *kept]
    columns = source.columns(None if keep_all else requested)
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
        f"the columns are {quoted_list([column.name for column in columns])}"
    )


def _require_unique(source: Source, names: list[str]) -> None:
    repeated = [name for name in dict.fromkeys(names) if names.count(name) > 1]
    if repeated:
        raise InputError(f"{source.name}: several columns are named {quoted_list(repeated)}: rename them")


def require_column(source: Source, names: list[str], name: str, parameter: str) -> None:
    """Raise with the columns of the source unless ``name`` is one of them."""
    if name in names:
        return
    close = difflib.get_close_matches(str(name), names, n=1) or [
        other for other in names if other.casefold() == str(name).casefold()
    ]
    hint = f", did you mean {close[0]!r}?" if close else "."
    raise InputError(f"{source.name}: no column {name!r} ({parameter}){hint} The columns are {quoted_list(names)}")


def quoted_list(names: Sequence[str], limit: int = 20) -> str:
    """Return names for a message; a long list is cut."""
    if not names:
        return "none"
    more = f" and {len(names) - limit} more" if len(names) > limit else ""
    return ", ".join(repr(name) for name in names[:limit]) + more
