"""Columns by name, as data frames take them, without any data frame library until one is asked for."""

from __future__ import annotations

import reprlib
from importlib import import_module
from typing import Any

from coterie.errors import InputError


class Table(dict[str, list[Any]]):
    """A dictionary of columns, each a list with one value per row.

    ``pandas.DataFrame(table)``, ``polars.DataFrame(table)`` and ``pyarrow.table(table)`` take it as it is, and so do
    the methods below.

    Examples
    --------
    >>> table = Table(row=[1, 2], cluster=[0, 3])
    >>> table["cluster"], table.n_rows
    ([0, 3], 2)
    """

    @property
    def n_rows(self) -> int:
        """How many rows it has."""
        return len(next(iter(self.values()), []))

    def to_pandas(self) -> Any:
        """Return a ``pandas.DataFrame``; pandas is imported here and nowhere else."""
        return _imported("pandas").DataFrame(dict(self))

    def to_polars(self) -> Any:
        """Return a ``polars.DataFrame``."""
        return _imported("polars").DataFrame(dict(self))

    def to_arrow(self) -> Any:
        """Return a ``pyarrow.Table``."""
        return _imported("pyarrow").table(dict(self))

    def __repr__(self) -> str:
        columns = ", ".join(f"{name}={reprlib.repr(values)}" for name, values in self.items())
        return f"Table({self.n_rows:,} rows: {columns})"


def _imported(library: str) -> Any:
    try:
        return import_module(library)
    except ModuleNotFoundError as error:
        raise InputError(f"this needs {library}: pip install {library}") from error
