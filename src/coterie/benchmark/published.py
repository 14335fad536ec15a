"""What the papers print: every figure of their tables of results, with its place and what to know about it.

``benchmarks/papers/published.toml`` has the figures. They are of other encoders than the benchmark's, and some of other
texts (the remarks mention it): they are printed beside measured figures, never among them.
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from coterie.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

RANKED_METRICS = ("accuracy", "nmi", "purity")
"""The measures of which a higher value is a better clustering."""
# A dash in the paper, and a figure that is illegible in the text of the paper.
NO_FIGURE = ("-", "?")


@dataclass(frozen=True)
class Published:
    """One figure of one published table.

    Attributes
    ----------
    paper, table:
        The paper, by the name of its method, and the number of the table there.
    backbone:
        The encoder or word vectors behind it; empty for counts of words.
    dataset:
        The data set by its name here; ``remark`` mentions where the paper has other texts.
    method:
        A name of the registry where the method has one; ``aecl/no_ic`` is a variant, ``sccl+umap+idec`` another
        clustering of the method's vectors.
    metric:
        ``accuracy``, ``nmi`` or ``purity``, in percent, or ``cosine``. NMI is as the paper defines it; ``remark``
        mentions the geometric mean.
    value, deviation:
        As printed; ``deviation`` is ``None`` where there is none.
    remark:
        What to know before comparing.
    doubtful:
        Whether the value is probably wrong: it is printed in two columns, or two values look exchanged.
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


def read_published(file: Path) -> tuple[Published, ...]:
    """Return every figure in the file, in its order."""
    tables: list[dict[str, Any]] = tomllib.loads(file.read_text(encoding="utf-8"))["table"]
    return tuple(figure for table in tables for row in table["rows"] for figure in _figures(table, row))


def _figures(table: Mapping[str, Any], row: Mapping[str, Any]) -> Iterator[Published]:
    """Yield the figures of a row of a table."""
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
