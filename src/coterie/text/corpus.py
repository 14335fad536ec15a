"""The corpus: checked texts in input order, made from a list or a column."""

from __future__ import annotations

import re
import reprlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import repeat
from pathlib import Path
from typing import Any, TypeGuard, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from coterie.errors import InputError

_Scalar = TypeVar("_Scalar", bound=np.generic)

# Format of a cell in error messages: at most 60 characters.
_SHORT_REPR = reprlib.Repr()
_SHORT_REPR.maxstring = _SHORT_REPR.maxother = 60
# Cells that are joined and checked together: enough for speed, few enough for memory.
_CELLS_AT_A_TIME = 4_096
# Half of a surrogate pair, which UTF-8 cannot hold.
_SURROGATE = re.compile("[\ud800-\udfff]")


@dataclass(frozen=True)
class Corpus:
    """Texts in input order, each with an id and, on request, the other columns of its row.

    Nothing is dropped or changed: empty texts and repeated texts keep their row. Code that needs each text
    once uses ``distinct`` and returns to the rows with :meth:`expand`. The derived arrays are read-only.

    Attributes
    ----------
    texts : one text per row, unchanged; ``""`` where the cell was null.
    row_ids : values of the id column, or 0-based row numbers.
    columns : the kept columns by name, one value per row.
    text_column, id_column : the columns of texts and ids, where they had a name.
    """

    texts: tuple[str, ...]
    row_ids: tuple[object, ...]
    columns: Mapping[str, tuple[object, ...]] = field(default_factory=dict, hash=False)
    text_column: str | None = None
    id_column: str | None = None

    def __post_init__(self) -> None:
        if len(self.row_ids) != len(self.texts):
            raise InputError(f"row_ids has {len(self.row_ids)} values for {len(self.texts)} texts")
        for name, values in self.columns.items():
            if len(values) != len(self.texts):
                raise InputError(f"column {name!r} has {len(values)} values for {len(self.texts)} texts")

    @classmethod
    def from_texts(cls, texts: object) -> Corpus:
        """Return ``as_corpus(texts)``, see :func:`as_corpus`."""
        return as_corpus(texts)

    def __len__(self) -> int:
        return len(self.texts)

    @cached_property
    def empty(self) -> NDArray[np.bool_]:
        """Whether each row's text is empty or only whitespace."""
        return _make_read_only(np.fromiter((not t or t.isspace() for t in self.texts), np.bool_, len(self)))

    @cached_property
    def _place_of_text(self) -> dict[str, int]:
        places = dict.fromkeys(self.texts, 0)
        for blank in {self.texts[row] for row in np.flatnonzero(self.empty).tolist()}:
            del places[blank]
        for place, text in enumerate(places):
            places[text] = place
        return places

    @cached_property
    def distinct(self) -> tuple[str, ...]:
        """The distinct texts that are not empty, in the order of their first row."""
        return tuple(self._place_of_text)

    @cached_property
    def distinct_index(self) -> NDArray[np.int64]:
        """The place of each row's text in ``distinct``; -1 for an empty text."""
        # A whitespace-only text is never a key, so get() covers the empty rows.
        return _make_read_only(np.fromiter(map(self._place_of_text.get, self.texts, repeat(-1)), np.int64, len(self)))

    @cached_property
    def counts(self) -> NDArray[np.int64]:
        """The number of rows of each distinct text."""
        counts = np.bincount(self.distinct_index[~self.empty], minlength=len(self.distinct))
        return _make_read_only(counts.astype(np.int64))

    @cached_property
    def status(self) -> tuple[str, ...]:
        """The status of each row: ``"empty"`` for an empty text, else ``"assigned"``."""
        return tuple("empty" if is_empty else "assigned" for is_empty in self.empty)

    def expand(self, values: NDArray[Any], fill: Any) -> NDArray[Any]:
        """Return one value (or vector) per row from one per distinct text; empty rows get ``fill``.

        The result has the dtype of ``values`` unless that cannot hold ``fill``: integers become floats for a
        NaN, for example.
        """
        values = np.asarray(values)
        if values.ndim not in (1, 2) or len(values) != len(self.distinct):
            raise InputError(
                f"expand: values has shape {values.shape}, expected ({len(self.distinct)},) or "
                f"({len(self.distinct)}, d): one entry per distinct text"
            )
        expanded = np.full((len(self), *values.shape[1:]), fill, dtype=_dtype_holding(values.dtype, fill))
        filled = ~self.empty
        expanded[filled] = values[self.distinct_index[filled]]
        return expanded


def as_corpus(texts: object, *, allow_empty: bool = False) -> Corpus:
    """Check texts and wrap them in a :class:`Corpus`; a corpus is returned unchanged.

    Takes a list or tuple of strings (or another sequence), a 1-D numpy array, a pandas or polars Series, a
    pyarrow Array or ChunkedArray. None, NaN and NA become empty texts. Raises :class:`InputError` for any
    other cell that is not a string. Unless ``allow_empty``, raises it also if there are no texts, or only empty ones.
    """
    if isinstance(texts, Corpus):
        return texts
    name, cells = _column_cells(texts)

    def where(row: int) -> str:
        column = "" if name is None else f", column {name!r}"
        return f"row {row + 1} (index {row}){column}"

    checked = check_texts(cells, where)
    corpus = Corpus(texts=checked, row_ids=tuple(range(len(checked))), text_column=name)
    if not allow_empty:
        require_some_text(corpus, "the input")
    return corpus


def check_texts(cells: Sequence[object], where: Callable[[int], str]) -> tuple[str, ...]:
    """Return each cell as a text, null cells as ``""``; ``where(i)`` names cell ``i`` in an error."""
    checked: list[str] = []
    for begin in range(0, len(cells), _CELLS_AT_A_TIME):
        some = cells[begin : begin + _CELLS_AT_A_TIME]
        if _are_plain_texts(some):
            checked.extend(some)
        else:
            # One by one, to replace nulls and to name the cell that is wrong.
            checked.extend(_check_text(cell, begin + i, where) for i, cell in enumerate(some))
    return tuple(checked)


def require_some_text(corpus: Corpus, source: str) -> None:
    """Raise if there is no text, or only empty ones."""
    column = "" if corpus.text_column is None else f" in column {corpus.text_column!r}"
    if len(corpus) == 0:
        raise InputError(f"{source} holds no texts{column}: give at least one")
    if corpus.empty.all():
        raise InputError(
            f"{source}: all {len(corpus)} texts{column} are empty or only whitespace: check that this is the "
            "right input and column"
        )


def is_null(cell: object) -> bool:
    """Return whether ``cell`` is None, a NaN of Python or numpy, or pandas' NA or NaT."""
    if cell is None:
        return True
    if isinstance(cell, (float, np.floating)):
        return bool(np.isnan(cell))
    # By name: checking a cell must not import pandas.
    kind = type(cell)
    return kind.__name__ in ("NAType", "NaTType") and kind.__module__.startswith("pandas.")


def type_name(value: object) -> str:
    """Return the name of a type for messages: ``int``, ``numpy.int64``, ``pandas.DataFrame``."""
    kind = type(value)
    package = kind.__module__.partition(".")[0]
    return kind.__qualname__ if package == "builtins" else f"{package}.{kind.__qualname__}"


def short_repr(value: object) -> str:
    """Return ``repr(value)`` on one line, cut to about 60 characters."""
    return " ".join(_SHORT_REPR.repr(value).split())


def require_utf8(cells: Sequence[object], where: Callable[[int], str]) -> None:
    """Raise for half of a surrogate pair, which JSON allows and UTF-8 does not; cells of other types pass."""
    for index, cell in enumerate(cells):
        if isinstance(cell, str) and not cell.isascii() and (found := _SURROGATE.search(cell)):
            raise InputError(
                f"{where(index)}: half of a character pair (U+{ord(found[0]):04X}) at position {found.start()} cannot "
                "be written as UTF-8: repair or remove it"
            )


def _are_plain_texts(cells: Sequence[object]) -> TypeGuard[Sequence[str]]:
    """Return whether all cells are valid strings; checking them together is much faster than one by one."""
    if any(type(cell) is not str for cell in cells):
        return False
    joined = "".join(cast("Sequence[str]", cells))
    # Without surrogates encoding cannot fail; halves of two cells do not become a pair when joined.
    return "\0" not in joined and (joined.isascii() or not _SURROGATE.search(joined))


def _check_text(cell: object, index: int, where: Callable[[int], str]) -> str:
    if not isinstance(cell, str):
        if is_null(cell):
            return ""
        raise InputError(
            f"{where(index)}: expected a text, received {type_name(cell)} {short_repr(cell)}: convert it "
            "to a string first, or leave the cell null"
        )
    if "\0" in cell:
        raise InputError(f"{where(index)}: the text holds a NUL character: remove it ({short_repr(cell)})")
    require_utf8([cell], lambda _: where(index))
    # Subclasses such as numpy.str_ become plain strings; str() would call their own __str__.
    return cell if type(cell) is str else str.__str__(cell)


def _column_cells(texts: object) -> tuple[str | None, Sequence[object]]:
    """Return the name, if any, and the cells of any input that :func:`as_corpus` accepts."""
    if isinstance(texts, (str, bytes, Path)):
        raise InputError(
            f"received a single {type_name(texts)} {short_repr(texts)}: pass a list of texts (a file is read "
            "with read_corpus)"
        )
    if isinstance(texts, (list, tuple)):
        return None, texts
    if isinstance(texts, np.ndarray):
        if texts.ndim != 1:
            raise InputError(f"received an array of shape {texts.shape}: pass a 1-D array of texts")
        return None, texts.tolist()
    if isinstance(texts, Sequence):  # a lazily read column of a `datasets` data set, for one
        return None, list(texts)
    if type(texts).__module__.partition(".")[0] == "pyarrow":
        import pyarrow as pa

        if isinstance(texts, (pa.Array, pa.ChunkedArray)):
            return None, texts.to_pylist()
    return _series_cells(texts)


def _series_cells(texts: object) -> tuple[str | None, Sequence[object]]:
    import narwhals as nw

    try:
        series = nw.from_native(texts, series_only=True)  # type: ignore[call-overload]
    except TypeError:
        raise InputError(
            f"cannot take texts from {type_name(texts)}: pass a list of strings, a numpy array, a pandas or "
            "polars Series or a pyarrow Array; read_corpus takes tables and files"
        ) from None
    name = None if series.name in (None, "") else str(series.name)
    return name, series.to_list()


def _dtype_holding(dtype: np.dtype[Any], fill: Any) -> np.dtype[Any]:
    """Return ``dtype``, or the nearest one that can also hold ``fill``."""
    if isinstance(fill, int) and not isinstance(fill, bool) and dtype.kind in "iu":
        limits = np.iinfo(dtype)
        fits = limits.min <= fill <= limits.max
        return dtype if fits else np.result_type(dtype, np.min_scalar_type(fill))
    if isinstance(fill, (bool, int, float)) and dtype.kind in "biuf":
        return np.result_type(dtype, fill)
    return np.result_type(dtype, np.asarray(fill).dtype)


def _make_read_only(array: NDArray[_Scalar]) -> NDArray[_Scalar]:
    array.setflags(write=False)
    return array
