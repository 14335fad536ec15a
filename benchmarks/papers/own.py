"""Coterie's own method without each of its parts."""

from __future__ import annotations

from coterie.benchmark.rows import Row
from coterie.benchmark.specs import FROZEN, TableSpec

PARTS = (
    Row("auto-start-kmeans", "Coterie from plain k-means", "auto", {"start": "kmeans"}),
    Row("auto-no-words", "Coterie without words", "auto", {"words": False}),
    Row("auto-no-views", "Coterie without contrast of views", "auto", {"view_weight": 0.0}),
    Row("auto-no-neighbours", "Coterie without contrast of neighbours", "auto", {"neighbour_weight": 0.0}),
    Row("auto-equal-sizes", "Coterie with equal sizes", "auto", {"sizes": "equal"}),
    Row("auto-free-sizes", "Coterie with nothing that keeps clusters alive", "auto", {"sizes": "free"}),
    Row("auto-one-round", "Coterie clustered anew only at the end", "auto", {"rounds": 1}),
    Row("auto-no-guard", "Coterie without the guard", "auto", {"guard": False}),
)
ROWS: tuple[Row, ...] = PARTS
TABLES: tuple[TableSpec, ...] = (
    TableSpec(
        "7-parts",
        "Coterie's own method without each of its parts",
        ("stackoverflow", "searchsnippets", "googlenews_t", "tweet"),
        ("accuracy", "nmi"),
        rows=(FROZEN, "frozen-chosen", "auto", *(row.name for row in PARTS)),
        remark="The row of the frozen encoder with a clustering chosen without labels is Coterie's start, and what it "
        "returns where training does not help.",
    ),
)
FIGURES = ()
