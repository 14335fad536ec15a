"""Tables of results: measured beside reported, every cell with the command that runs it again."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from coterie.benchmark.published import Published, published_figures
from coterie.benchmark.rows import ROWS, Row
from coterie.benchmark.sets import EIGHT_SHORT, find_set
from coterie.benchmark.store import Job, Store
from coterie.errors import SettingError

# Every method is measured against this row.
FROZEN = "frozen-kmeans"
# The answer that is printed.
FINAL = "final"


@dataclass(frozen=True)
class TableSpec:
    """What a table shows.

    Attributes
    ----------
    name:
        As ``coterie benchmark table`` takes it.
    papers:
        The tables it stands beside: paper and number.
    """

    name: str
    title: str
    sets: tuple[str, ...]
    measures: tuple[str, ...]
    papers: tuple[tuple[str, int], ...]
    rows: tuple[str, ...] = tuple(row.name for row in ROWS)


TABLES: tuple[TableSpec, ...] = (
    TableSpec(
        "1",
        "All methods on the eight short-text sets",
        EIGHT_SHORT,
        ("accuracy", "nmi"),
        (("sccl", 1), ("aecl", 2), ("deccrl", 2)),
    ),
    TableSpec(
        "2",
        "The sets of ClusterBERT",
        ("stackoverflow", "biomedical", "searchsnippets", "bbc_sentences", "googlenews_t", "agnews_raw32k"),
        ("accuracy", "nmi"),
        (("clusterbert", 2), ("clusterbert", 3)),
    ),
    TableSpec(
        "3",
        "The sets of UFTC",
        ("trec6", "dbpedia14", "yelp5_balanced"),
        ("purity", "accuracy", "nmi"),
        (("uftc", 1), ("uftc", 2)),
    ),
)


def find_table(name: str) -> TableSpec:
    """The table called ``name``."""
    for spec in TABLES:
        if spec.name == name:
            return spec
    raise SettingError(f"there is no table {name!r}; there are: {', '.join(spec.name for spec in TABLES)}")


@dataclass(frozen=True)
class Cell:
    """A row on a set.

    Attributes
    ----------
    values:
        Of each seed, in percent.
    start, oracle:
        Means of where the runs started and of the best epoch by label, where there was training.
    reported:
        The paper's figure, of another encoder.
    frozen:
        Mean of k-means on the frozen encoder.
    mixed:
        Whether the runs stand on more than one state of the code.
    p_value:
        Of the difference to ``frozen``, corrected for the other rows; ``None`` where it was not computed.
    """

    row: str
    dataset: str
    measure: str
    values: tuple[float, ...] = ()
    start: float | None = None
    oracle: float | None = None
    reported: Published | None = None
    frozen: float | None = None
    mixed: bool = False
    p_value: float | None = None
    missing: str = ""

    @property
    def mean(self) -> float | None:
        return statistics.mean(self.values) if self.values else None

    @property
    def deviation(self) -> float | None:
        return statistics.stdev(self.values) if len(self.values) > 1 else None

    @property
    def gain(self) -> float | None:
        """Over k-means on the frozen encoder."""
        return None if self.mean is None or self.frozen is None else self.mean - self.frozen

    @property
    def beyond_reported(self) -> float | None:
        return None if self.mean is None or self.reported is None else self.mean - self.reported.value

    @property
    def mark(self) -> str:
        """Better or worse than the frozen encoder at 5 %, after the correction."""
        if self.p_value is None or self.gain is None or self.p_value >= 0.05:
            return ""
        return "↑" if self.gain > 0 else "↓"

    @property
    def command(self) -> str:
        return f"coterie benchmark run --methods {self.row} --datasets {self.dataset} --seeds 0-4"


@dataclass(frozen=True)
class Table:
    """Cells by row, set and measure; rows without any run or figure are left out."""

    spec: TableSpec
    rows: tuple[Row, ...]
    cells: Mapping[tuple[str, str, str], Cell]


def build_table(spec: TableSpec, store: Store, p_values: Mapping[tuple[str, str], float] | None = None) -> Table:
    """``p_values`` are by row and set (see :mod:`coterie.benchmark.marks`)."""
    records = store.records()
    cells: dict[tuple[str, str, str], Cell] = {}
    rows = [row for row in ROWS if row.name in spec.rows]
    for dataset in spec.sets:
        runs = {row.name: found_runs(row, dataset, records) for row in rows}
        for measure in spec.measures:
            frozen = _mean(runs.get(FROZEN, []), FINAL, measure)
            for row in rows:
                cells[row.name, dataset, measure] = Cell(
                    row.name,
                    dataset,
                    measure,
                    tuple(run["scores"][FINAL][measure] for run in runs[row.name]),
                    _mean(runs[row.name], "frozen", measure),
                    _mean(runs[row.name], "oracle", measure),
                    reported(row, dataset, measure, spec.papers),
                    frozen,
                    len({run["source_digest"] for run in runs[row.name]}) > 1,
                    (p_values or {}).get((row.name, dataset)) if measure == spec.measures[0] else None,
                    row.missing,
                )
    shown = [row for row in rows if row.missing or any(cell.values for cell in cells.values() if cell.row == row.name)]
    return Table(spec, tuple(shown), cells)


def found_runs(row: Row, dataset: str, records: Mapping[str, dict[str, Any]]) -> list[dict[str, Any]]:
    """The runs of a row on a set with its present settings, seed by seed."""
    return [records[name] for name in run_names(row, dataset) if name in records]


def run_names(row: Row, dataset: str) -> list[str]:
    """Of all its seeds, whether there are such runs or not."""
    return [Job(row, find_set(dataset), seed).name for seed in row.seeds]


def reported(row: Row, dataset: str, measure: str, papers: Sequence[tuple[str, int]]) -> Published | None:
    """What a paper prints for the row: its own paper first, then the others in their order."""
    found = [
        figure
        for figure in published_figures()
        if (figure.method, figure.dataset, figure.metric) == (row.published, dataset, measure)
        and (figure.paper, figure.table) in papers
        and not figure.doubtful
    ]
    found.sort(key=lambda figure: (figure.paper != row.published, papers.index((figure.paper, figure.table))))
    return found[0] if found else None


def _mean(runs: Sequence[Mapping[str, Any]], answer: str, measure: str) -> float | None:
    values = [run["scores"][answer][measure] for run in runs if run["scores"][answer] is not None]
    return statistics.mean(values) if values else None
