"""The card of a data set: what it is, where it comes from, and how its content is recognised.

The cards themselves stand in ``cards.toml`` beside this file.
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

    ``imbalance`` is the size of the largest class over that of the smallest; ``duplicate_rows`` counts rows
    whose text stood in an earlier row. ``sha256`` is that of the gzip CSV file; ``content_digest`` is the
    SHA-256 over ``label<TAB>text<LF>`` of every row in file order, so it survives re-compression and says
    nothing about the columns beyond these two. For a ranking set the text is ``question<TAB>candidate``.
    Figures are ``None`` where the set is bundled and may grow.
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
        """Whether the public files can be downloaded and converted here."""
        return bool(self.source_format)

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that a file of this set must have."""
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
    """The cards of all known data sets."""
    return list(_cards().values())


def dataset_card(name: str) -> DatasetCard:
    """The card called ``name``; an unknown name is answered with the nearest ones."""
    cards = _cards()
    if name in cards:
        return cards[name]
    near = difflib.get_close_matches(str(name).lower(), cards, n=3, cutoff=0.5)
    hint = f"did you mean {' or '.join(map(repr, near))}?" if near else f"known are: {', '.join(cards)}"
    raise DatasetNotFoundError(f"no data set is called {name!r}; {hint}")
