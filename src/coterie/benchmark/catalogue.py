"""Rows, tables, figures and published figures by their names: those of the package and, in a clone, of the papers."""

from __future__ import annotations

from collections.abc import Iterable

from coterie.benchmark.paper_definitions import NEEDS_A_CLONE, find_paper_definitions, require_paper_definitions
from coterie.benchmark.published import RANKED_METRICS, Published
from coterie.benchmark.rows import ROWS, Row
from coterie.benchmark.sets import SETS
from coterie.benchmark.specs import FigureSpec, TableSpec
from coterie.errors import SettingError


def all_rows() -> tuple[Row, ...]:
    """Return the rows of the package and, in a clone, those of the papers' own tables and figures."""
    definitions = find_paper_definitions()
    return (*ROWS, *(definitions.rows if definitions else ()))


def find_row(name: str) -> Row:
    """Return the row called ``name``."""
    for row in ROWS:  # without loading the papers' definitions
        if row.name == name:
            return row
    for row in all_rows():
        if row.name == name:
            return row
    names = ", ".join(row.name for row in ROWS)
    if find_paper_definitions() is None:
        raise SettingError(f"the benchmark has no row {name!r} here; it has: {names}. For others: {NEEDS_A_CLONE}")
    raise SettingError(f"the benchmark has no row {name!r}; it has: {names}, and those of the papers' own tables")


def find_rows(names: Iterable[str]) -> list[Row]:
    """Return the rows called so, each once; ``all`` stands for all rows of the main tables."""
    wanted = [row for name in names for row in (ROWS if name == "all" else (find_row(name),))]
    return list({row.name: row for row in wanted}.values())


def all_tables() -> tuple[TableSpec, ...]:
    """Return the main tables and those of single papers."""
    return require_paper_definitions().tables


def find_table(name: str) -> TableSpec:
    """Return the table called ``name``."""
    for spec in all_tables():
        if spec.name == name:
            return spec
    raise SettingError(f"there is no table {name!r}; there are: {', '.join(spec.name for spec in all_tables())}")


def all_figures() -> tuple[FigureSpec, ...]:
    """Return our own figures and those of the papers."""
    return require_paper_definitions().figures


def find_figure(name: str) -> FigureSpec:
    """Return the figure called ``name``."""
    for spec in all_figures():
        if spec.name == name:
            return spec
    raise SettingError(f"there is no figure {name!r}; there are: {', '.join(spec.name for spec in all_figures())}")


def named_parts() -> dict[str, list[tuple[str, str]]]:
    """Return the names and titles of rows, data sets, tables and figures; in place of those that need a clone, why."""
    definitions = find_paper_definitions()
    absent = [("", NEEDS_A_CLONE)]
    return {
        "rows": [(row.name, row.title) for row in all_rows()],
        "data sets": [(each.name, each.title) for each in SETS],
        "tables": [(spec.name, spec.title) for spec in definitions.tables] if definitions else absent,
        "figures": [(spec.name, spec.title) for spec in definitions.figures] if definitions else absent,
    }


def published_figures() -> tuple[Published, ...]:
    """Return every figure of the papers' tables of results, paper by paper, in the order of the tables."""
    return require_paper_definitions().published


def best_published(dataset: str, metric: str) -> Published | None:
    """Return the highest figure that any of the papers prints for a data set, or ``None`` where there is none.

    Doubtful figures are left out. Of equal ones the first printed wins. Encoders, and in some papers texts, differ:
    read ``backbone`` and ``remark`` before calling anything better.
    """
    if metric not in RANKED_METRICS:
        raise SettingError(f"metric={metric!r} has no best figure: use one of {', '.join(RANKED_METRICS)}")
    asked = (dataset, metric)
    candidates = [each for each in published_figures() if (each.dataset, each.metric) == asked and not each.doubtful]
    return max(candidates, key=lambda figure: figure.value, default=None)
