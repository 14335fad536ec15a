"""A table of whatever was run, for results of one's own."""

from __future__ import annotations

from coterie.benchmark.rows import all_rows
from coterie.benchmark.sets import SETS
from coterie.benchmark.store import Store
from coterie.benchmark.tables import TableSpec

FOUND, FOUND_TITLE = "found", "Whatever was run"


def found_table(store: Store) -> TableSpec:
    """The rows and sets of which ``store`` has results."""
    records = store.records().values()
    rows, sets = {each["row"] for each in records}, {each["dataset"] for each in records}
    return TableSpec(
        FOUND,
        FOUND_TITLE,
        tuple(each.name for each in SETS if each.name in sets),
        ("accuracy", "nmi", "ari"),
        rows=tuple(row.name for row in all_rows() if row.name in rows),
    )
