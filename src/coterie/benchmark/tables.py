"""Tables of results: measured beside published figures, every cell with the command that runs it again."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from coterie.benchmark.catalogue import all_rows, all_tables, find_row, published_figures
from coterie.benchmark.cell_runs import existing_runs, run_names, values_of
from coterie.benchmark.partitions import ON
from coterie.benchmark.published import Published
from coterie.benchmark.rows import Row
from coterie.benchmark.sets import SETS, find_set
from coterie.benchmark.specs import AT, FINAL, FROZEN, HELD_OUT, ORACLE, TableSpec
from coterie.benchmark.store import Job, Store

# The table of all runs in a folder, which needs no definition.
FOUND = "found"
FOUND_TITLE = "All runs of the folder"
ANSWER_TITLES = {
    HELD_OUT: "texts held out",
    "head": "its head",
    "kmeans": "k-means on its embeddings",
    ORACLE: "best epoch by label (oracle)",
}


@dataclass(frozen=True)
class Line:
    """A line of a table: a row and which of its partitions is scored."""

    row: Row
    answer: str = FINAL

    @property
    def title(self) -> str:
        return self.row.title if self.answer == FINAL else f"{self.row.title}: {_answer_title(self.answer)}"

    @property
    def key(self) -> str:
        """The row's name, with the partition if it is not the returned one."""
        return self.row.name if self.answer == FINAL else f"{self.row.name}:{self.answer}"


@dataclass(frozen=True)
class Cell:
    """A measure of a line on a data set.

    Attributes
    ----------
    values:
        The value of each seed, in percent.
    start, oracle:
        Means of the partitions before training and of the epochs with the best accuracy, where there was training.
    reported:
        The paper's figure, of another encoder.
    frozen:
        Mean of k-means on the frozen encoder.
    mixed:
        Whether the runs were made with different versions of the code.
    outdated:
        Whether runs were made before the row's method was changed.
    p_value:
        Of the difference to ``frozen``, corrected for the other rows; ``None`` where it was not computed.
    missing:
        Why the row is not run, if so.
    traced_by:
        The table whose runs store the traces that the cell is computed from, if it is.
    """

    line: Line
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
    traced_by: str = ""
    outdated: bool = False

    @property
    def mean(self) -> float | None:
        return statistics.mean(self.values) if self.values else None

    @property
    def deviation(self) -> float | None:
        return statistics.stdev(self.values) if len(self.values) > 1 else None

    @property
    def gain(self) -> float | None:
        """The difference to k-means on the frozen encoder."""
        return None if self.mean is None or self.frozen is None else self.mean - self.frozen

    @property
    def beyond_reported(self) -> float | None:
        return None if self.mean is None or self.reported is None else self.mean - self.reported.value

    @property
    def mark(self) -> str:
        """An arrow where the difference to the frozen encoder is significant at 5 %, after the correction."""
        if self.p_value is None or self.gain is None or self.p_value >= 0.05:
            return ""
        return "↑" if self.gain > 0 else "↓"

    @property
    def command(self) -> str:
        if self.traced_by:
            return f"coterie benchmark run --table {self.traced_by} --seeds 0-4 --out again"
        return f"coterie benchmark run --methods {self.line.row.name} --datasets {self.dataset} --seeds 0-4 --out again"


@dataclass(frozen=True)
class Table:
    """Cells by the line's key, data set and measure.

    Lines without a run are left out, unless they cannot be run here; ``waiting`` are their rows.
    """

    spec: TableSpec
    lines: tuple[Line, ...]
    cells: Mapping[tuple[str, str, str], Cell]
    waiting: tuple[Row, ...] = ()


def build_table(spec: TableSpec, store: Store, p_values: Mapping[tuple[str, str], float] | None = None) -> Table:
    """Compute the cells of a table; ``p_values`` are by row and data set (see significance_marks.py)."""
    records = store.records()
    cells: dict[tuple[str, str, str], Cell] = {}
    lines = [Line(find_row(name), answer) for name in spec.rows for answer in spec.answers]
    for dataset in spec.sets:
        frozen_runs = existing_runs(find_row(FROZEN), dataset, records)
        for line in lines:
            runs = existing_runs(line.row, dataset, records)
            for measure in spec.measures:
                if spec.traced:
                    values = _stage_values(store, line, dataset, measure)
                else:
                    values = values_of(runs, line.answer, measure)
                marked = measure == "accuracy" and line.answer == FINAL  # the only comparison
                cells[line.key, dataset, measure] = Cell(
                    line,
                    dataset,
                    measure,
                    values,
                    _mean(runs, "frozen", measure),
                    _mean(runs, "oracle", measure),
                    reported(line, dataset, measure, spec.papers),
                    _mean(frozen_runs, line.answer if line.answer == HELD_OUT else FINAL, measure),
                    len({run["source_digest"] for run in runs}) > 1,
                    (p_values or {}).get((line.row.name, dataset)) if marked else None,
                    line.row.missing,
                    spec.name if spec.traced else "",
                    any(map(line.row.is_outdated, runs)),
                )
    with_runs = {key for (key, _, _), cell in cells.items() if cell.values}
    shown = tuple(line for line in lines if line.row.missing or line.key in with_runs)
    left_out = {line.row.name: line.row for line in lines if line not in shown}
    waiting = tuple(row for row in left_out.values() if row not in [line.row for line in shown])
    return Table(spec, shown, cells, waiting)


def table_jobs(spec: TableSpec, seeds: Sequence[int]) -> list[Job]:
    """Return the runs that a table needs, seed by seed, without those of rows that cannot be run here."""
    rows = [row for row in dict.fromkeys((FROZEN, *spec.rows)) if find_row(row).runs_here]
    if spec.traced:
        rows = [row for row in rows if row in spec.rows]  # a trace has its own start to compare with
    wanted = [(seed, find_row(row)) for seed in seeds for row in rows]
    return [
        Job(row, find_set(name), seed, trace=spec.traced)
        for seed, row in wanted
        if row.has_seed(seed)
        for name in spec.sets
    ]


def reported(line: Line, dataset: str, measure: str, papers: Sequence[tuple[str, int]]) -> Published | None:
    """Return what a paper prints for the line: its own paper first, then the others in the order of ``papers``."""
    row = line.row
    method = row.published
    if not papers:
        return None  # without a clone there are no published figures either
    if line.answer.startswith(ON) and line.answer != f"{ON}kmeans":
        method += "+" + line.answer.removeprefix(ON).replace("-", "+")  # as in sccl+umap+idec
    candidates = [
        figure
        for figure in published_figures()
        if (figure.method, figure.dataset, figure.metric) == (method, find_set(dataset).source, measure)
        and (figure.paper, figure.table) in papers
        and not figure.doubtful
        # Other papers' figures are of fits on all texts.
        and (line.answer != HELD_OUT or figure.paper == method)
    ]
    candidates.sort(key=lambda figure: (figure.paper != row.published, papers.index((figure.paper, figure.table))))
    return candidates[0] if candidates else None


def _answer_title(answer: str) -> str:
    from coterie.benchmark.reclustering import TITLES

    if answer.startswith(AT):
        stage = answer.removeprefix(AT)
        return "before training" if stage == "start" else f"after {stage}"
    return TITLES[answer.removeprefix(ON)] if answer.startswith(ON) else ANSWER_TITLES[answer]


def _stage_values(store: Store, line: Line, dataset: str, measure: str) -> tuple[float, ...]:
    """Return a measure at the end of a stage, from the traces of a row; cosines in percent, as all else in a table."""
    from coterie.benchmark.traces import at_stage

    names = [name for name in run_names(line.row, dataset) if store.has_trace(name)]
    snapshots = [at_stage(store.read_trace(name), line.answer.removeprefix(AT)) for name in names]
    scale = 100 if measure.startswith("cosine") else 1
    return tuple(scale * each[measure] for each in snapshots if each is not None)


def _mean(runs: Sequence[Mapping[str, Any]], answer: str, measure: str) -> float | None:
    values = values_of(runs, answer, measure)
    return statistics.mean(values) if values else None


def table_names() -> list[tuple[str, str]]:
    """Return the names and titles of all tables."""
    return [*((spec.name, spec.title) for spec in all_tables()), (FOUND, FOUND_TITLE)]


def found_table(store: Store) -> TableSpec:
    """Return a table of all rows and data sets that ``store`` has runs of."""
    records = store.records().values()
    rows, sets = {each["row"] for each in records}, {each["dataset"] for each in records}
    return TableSpec(
        FOUND,
        FOUND_TITLE,
        tuple(each.name for each in SETS if each.name in sets),
        ("accuracy", "nmi", "ari"),
        rows=tuple(row.name for row in all_rows() if row.name in rows),
    )
