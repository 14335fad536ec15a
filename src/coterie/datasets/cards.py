"""The cards of data sets: facts, source, and checksums of each.

The cards themselves are in ``cards.toml`` beside this file.
"""

from __future__ import annotations

import difflib
import tomllib
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from coterie.errors import DatasetNotFoundError

if TYPE_CHECKING:
    from collections.abc import Mapping

CARDS_FILE = Path(__file__).with_name("cards.toml")
_LISTS = ("extra_columns", "splits", "papers", "paths")


@dataclass(frozen=True, kw_only=True)
class DatasetCard:
    """Declared facts about one data set.

    ``imbalance`` is the size of the largest class divided by that of the smallest; ``duplicate_rows`` is the number of
    rows whose text is also in an earlier row. ``sha256`` is that of the gzip CSV file; ``content_digest`` is the
    SHA-256 over ``label<TAB>text<LF>`` of every row in file order: it does not depend on the compression, nor on the
    other columns. In a ranking set, the text is ``question<TAB>candidate``. Figures are ``None`` for the bundled set,
    which may grow.
    """

    name: str
    title: str
    treatment: str
    licence: str
    kind: str = "clustering"
    rows: int | None = None
    classes: int | None = None
    words_per_text: float | None = None
    imbalance: float | None = None
    duplicate_rows: int | None = None
    extra_columns: tuple[str, ...] = ()
    splits: tuple[str, ...] = ()
    papers: tuple[str, ...] = ()
    tuning_only: bool = False
    bundled: bool = False
    repository: str = ""
    commit: str = ""
    paths: tuple[str, ...] = ()
    source_format: str = ""
    why_not_fetchable: str = ""
    sha256: str = ""
    content_digest: str = ""
    note: str = ""

    @property
    def fetchable(self) -> bool:
        """Whether Coterie can download and convert the public files."""
        return bool(self.source_format)

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that a file of this data set must have."""
        text = () if self.kind == "ranking" else ("text",)
        return ("label", *text, *self.extra_columns)


@cache
def _cards() -> Mapping[str, DatasetCard]:
    tables: dict[str, dict[str, Any]] = tomllib.loads(CARDS_FILE.read_text(encoding="utf-8"))
    return MappingProxyType({name: _card(name, table) for name, table in tables.items()})


def _card(name: str, table: dict[str, Any]) -> DatasetCard:
    fields: dict[str, Any] = {key: tuple(value) if key in _LISTS else value for key, value in table.items()}
    return DatasetCard(name=name, **fields)


def list_datasets() -> list[DatasetCard]:
    """Return the cards of all data sets."""
    return list(_cards().values())


def dataset_card(name: str) -> DatasetCard:
    """Return the card called ``name``; raise with the nearest names if there is none."""
    cards = _cards()
    if name in cards:
        return cards[name]
    near = difflib.get_close_matches(str(name).lower(), cards, n=3, cutoff=0.5)
    hint = f"did you mean {' or '.join(map(repr, near))}?" if near else f"known are: {', '.join(cards)}"
    raise DatasetNotFoundError(f"no data set is called {name!r}; {hint}")
