"""What the papers print: every figure of their tables of results, with where it stands and what to know about it.

The figures themselves stand in ``published.toml`` beside this file. They are of other encoders than the benchmark's,
and some of other texts (the remarks say which): columns to stand beside measured ones, never among them.
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from coterie.errors import InputError, SettingError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

FIGURES_FILE = Path(__file__).with_name("published.toml")
RANKED_METRICS = ("accuracy", "nmi", "purity")
"""The measures of which a higher value is a better clustering."""
# A dash in the paper, and a figure that the text of the paper does not give back.
NO_FIGURE = ("-", "?")


@dataclass(frozen=True)
class Published:
    """One figure of one table.

    Attributes
    ----------
    paper, table:
        The paper, by the name of its method, and the number of the table there.
    backbone:
        The encoder or word vectors behind it; empty for counts of words.
    dataset:
        The data set by its name here; ``remark`` says where the paper's texts are others.
    method:
        A name of the registry where the method has one; ``aecl/no_ic`` is a variant, ``sccl+umap+idec`` another
        clustering of the method's vectors.
    metric:
        ``accuracy``, ``nmi`` or ``purity``, in percent, or ``cosine``. NMI is as the paper defines it: where it says
        the geometric mean, so does ``remark``.
    value, deviation:
        As printed; ``deviation`` is ``None`` where there is none.
    remark:
        What to know before comparing.
    doubtful:
        Whether the value is hardly right: it stands in two columns, or two values look exchanged.
    """

    paper: str
    table: int
    backbone: str
    dataset: str
    method: str
    metric: str
    value: float
    deviation: float | None = None
    remark: str = ""
    doubtful: bool = False


@cache
def published_figures() -> tuple[Published, ...]:
    """Every figure, paper by paper, in the order of the tables."""
    tables: list[dict[str, Any]] = tomllib.loads(FIGURES_FILE.read_text(encoding="utf-8"))["table"]
    return tuple(figure for table in tables for row in table["rows"] for figure in _figures(table, row))


def best_published(dataset: str, metric: str) -> Published | None:
    """The highest figure any of the papers prints for a data set, or ``None`` where there is none.

    Doubtful figures are left out. Of equal ones the first printed wins. Encoders, and in some papers texts, differ:
    read ``backbone`` and ``remark`` before calling anything better.
    """
    if metric not in RANKED_METRICS:
        raise SettingError(f"metric={metric!r} has no best figure: use one of {', '.join(RANKED_METRICS)}")
    asked = (dataset, metric)
    candidates = [each for each in published_figures() if (each.dataset, each.metric) == asked and not each.doubtful]
    return max(candidates, key=lambda figure: figure.value, default=None)


def _figures(table: Mapping[str, Any], row: Mapping[str, Any]) -> Iterator[Published]:
    place = f"table {table['table']} of {table['paper']}, row {row['method']}"
    columns, values = table["columns"], row["values"]
    deviations = row.get("deviations", [None] * len(values))
    if not len(columns) == len(values) == len(deviations):
        raise InputError(f"{place}: {len(values)} values and {len(deviations)} deviations for {len(columns)} columns")
    general, notes, doubtful = table.get("remarks", {}), row.get("notes", {}), row.get("doubtful", {})
    for column, value, deviation in zip(columns, values, deviations, strict=True):
        if value in NO_FIGURE:
            continue
        dataset, metric = column.split()
        sources = (row.get("remark"), *(each.get(dataset) for each in (doubtful, notes, general)), general.get(metric))
        yield Published(
            paper=table["paper"],
            table=table["table"],
            backbone=row.get("backbone", table["backbone"]),
            dataset=dataset,
            method=row["method"],
            metric=metric,
            value=float(value),
            deviation=None if deviation is None else float(deviation),
            remark="; ".join(remark for remark in sources if remark),
            doubtful=dataset in doubtful,
        )
