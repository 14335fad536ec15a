"""What a table or figure of the benchmark shows: which rows, data sets, partitions and measures."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from coterie.benchmark.rows import ROWS

# The row that every method is compared with.
FROZEN = "frozen-kmeans"
# The methods of the five papers.
TRAINED = ("sccl", "aecl", "deccrl", "clusterbert", "uftc")
# The partition that a method returns.
FINAL = "final"
# The assignment of texts that were left out of the fit.
HELD_OUT = "held_out"
# The epoch with the best accuracy.
ORACLE = "oracle"
# Prefix of a stage: the snapshot at its end is shown.
AT = "at_"
MEASURE_TITLES = {
    "accuracy": "ACC",
    "nmi": "NMI",
    "ari": "ARI",
    "purity": "purity",
    "map": "MAP",
    "mrr": "MRR",
    "cosine_same": "cosine × 100, two texts of one class",
    "cosine_other": "cosine × 100, two texts of two classes",
}


@dataclass(frozen=True)
class TableSpec:
    """What a table shows.

    Attributes
    ----------
    name:
        As ``coterie benchmark table`` takes it.
    sets, measures, rows:
        Names of data sets, measures and rows.
    papers:
        The published tables whose figures are printed beside: paper and number.
    answers:
        Which partitions of a run are scored, each in a line of its own: ``final``, ``head``, ``kmeans``, ``held_out``,
        or another clustering of the same embeddings (``on_umap``). ``at_start`` and ``at_hardening`` are snapshots of a
        trace, the end of a stage, with the measures that a trace has.
    remark:
        Printed under the table.
    """

    name: str
    title: str
    sets: tuple[str, ...]
    measures: tuple[str, ...]
    papers: tuple[tuple[str, int], ...] = ()
    rows: tuple[str, ...] = tuple(row.name for row in ROWS)
    answers: tuple[str, ...] = (FINAL,)
    remark: str = ""

    @property
    def traced(self) -> bool:
        """Whether it shows snapshots of traces."""
        return any(answer.startswith(AT) for answer in self.answers)


@dataclass(frozen=True)
class FigureSpec:
    """What a figure shows.

    Attributes
    ----------
    name:
        As ``coterie benchmark figure`` takes it: for most, the paper and the number of its figure.
    title:
        Printed above the figure.
    rows, sets:
        Names of the rows and data sets whose runs it needs.
    plot:
        Plots the runs, given as :class:`coterie.benchmark.figures.FigureData`, into an empty matplotlib figure.
    traced:
        Whether it needs traces (see :mod:`coterie.benchmark.traces`).
    """

    name: str
    title: str
    rows: tuple[str, ...]
    sets: tuple[str, ...]
    plot: Callable[..., None] = field(repr=False)
    traced: bool = False
