"""DECCRL: what its paper shows beside the main table."""

from __future__ import annotations

from coterie.benchmark.figures import FigureSpec
from coterie.benchmark.rows import Row
from coterie.benchmark.tables import TableSpec

ROWS: tuple[Row, ...] = ()
TABLES: tuple[TableSpec, ...] = ()
FIGURES: tuple[FigureSpec, ...] = ()
