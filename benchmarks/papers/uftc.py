"""UFTC (Huang et al., 2020): the ablation and maps of its paper."""

from __future__ import annotations

from typing import TYPE_CHECKING

from coterie.benchmark.figures import FigureData
from coterie.benchmark.matplotlib_plots import maps
from coterie.benchmark.rows import Row
from coterie.benchmark.specs import FROZEN, FigureSpec, TableSpec

if TYPE_CHECKING:
    from matplotlib.figure import Figure

ROWS: tuple[Row, ...] = (
    Row(
        "uftc-no-masked-loss",
        "UFTC without the masked-language loss",
        "uftc",
        {"masked_loss": False},
        published="uftc/without_masked_loss",
    ),
    Row(
        "uftc-cls",
        "UFTC with CLS, not average pooling",
        "uftc",
        {"pooling": "cls"},
        published="uftc/without_average_pooling",
    ),
)

TABLES: tuple[TableSpec, ...] = (
    TableSpec(
        "4-uftc-2",
        "UFTC without its parts",
        ("trec6", "dbpedia14", "yelp5_balanced"),
        ("purity", "accuracy", "nmi"),
        (("uftc", 2),),
        (FROZEN, "uftc", *(row.name for row in ROWS)),
        remark="This encoder was trained with average pooling and comes without a masked-language head, which is "
        "trained first; the paper's came with one.",
    ),
)


def _maps(data: FigureData, figure: Figure) -> None:
    """Plot maps of the start, which is the paper's epoch 1, and of later epochs.

    Our second map is of the frozen encoder, too, and left out: the end of the stage that trains the head for masked
    words.
    """
    epochs = [("uftc", f"epoch {place}", place) for place in range(2, 6)]
    maps(data, figure, [("uftc", "epoch 1 (the start)", 0), *epochs, ("uftc", "the end", -1)])


FIGURES: tuple[FigureSpec, ...] = (
    FigureSpec(
        "uftc-2",
        "1,000 texts of DBpedia while UFTC is trained, coloured by true class",
        ("uftc",),
        ("dbpedia14",),
        _maps,
        traced=True,
    ),
)
