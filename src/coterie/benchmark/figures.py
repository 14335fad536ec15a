"""Figures of measured results: ``coterie benchmark figure sccl-3 -f ablation.svg``.

They are plotted from stored runs alone; ``coterie benchmark run --figure sccl-3`` makes the runs.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from coterie.benchmark.catalogue import find_row
from coterie.benchmark.cell_runs import existing_runs, run_names, values_of
from coterie.benchmark.sets import find_set
from coterie.benchmark.specs import FINAL, FigureSpec
from coterie.benchmark.store import Job, Store
from coterie.errors import InputError, require_extra
from coterie.methods.registry import find_method

# Seeds of runs with a trace: a map shows a single run.
TRACED_SEEDS = (0,)


@dataclass(frozen=True)
class FigureData:
    """The runs of some rows on some data sets, as figures read them."""

    store: Store
    rows: tuple[str, ...]
    sets: tuple[str, ...]

    @cached_property
    def _records(self) -> dict[str, dict[str, Any]]:
        return self.store.records()

    def runs(self, row: str, dataset: str) -> list[dict[str, Any]]:
        """Return the records of a row on a data set, seed by seed."""
        return existing_runs(find_row(row), dataset, self._records)

    def scores(self, row: str, dataset: str, measure: str, answer: str = FINAL) -> list[float]:
        """Return a measure of a partition, of all seeds that were run."""
        return list(values_of(self.runs(row, dataset), answer, measure))

    def mean(self, row: str, dataset: str, measure: str, answer: str = FINAL) -> float | None:
        values = self.scores(row, dataset, measure, answer)
        return statistics.mean(values) if values else None

    def seconds_alone(self, row: str, dataset: str) -> list[float]:
        """Return the seconds of fits that had the machine to themselves, on a GPU unless the method needs none."""
        wanted = Job(find_row(row), find_set(dataset), 0).settings
        return [
            run["seconds"]["fit"]
            for run in self._records.values()
            if (run["row"], run["dataset"], run["settings"]) == (row, dataset, wanted)
            and run.get("runs_at_once") == 1
            and (run["machine"]["device"] != "cpu" or not find_method(run["method"]).trains_encoder)
        ]

    def trace(self, row: str, dataset: str) -> dict[str, Any] | None:
        """Return the trace of the first seed that has one (see :mod:`coterie.benchmark.traces`)."""
        for name in run_names(find_row(row), dataset):
            if self.store.has_trace(name):
                return self.store.read_trace(name)
        return None

    def title(self, row: str) -> str:
        return find_row(row).title

    def missing(self, row: str) -> str:
        """Return why a row is not run, if so; else an empty text."""
        return find_row(row).missing


def plot_figure(spec: FigureSpec, store: Store, path: Path) -> None:
    """Plot a figure into ``path``; the ending decides the format."""
    matplotlib = require_extra("matplotlib", "plot")
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    data = FigureData(store, spec.rows, spec.sets)
    read = data.trace if spec.traced else data.runs
    if not any(read(row, dataset) for row in spec.rows for dataset in spec.sets):
        raise InputError(f"{store.folder} has no run of this figure yet: coterie benchmark run --figure {spec.name}")
    # The same data give the same file.
    with matplotlib.rc_context({"svg.hashsalt": spec.name, "svg.fonttype": "none", "font.size": 9}):
        figure = Figure(layout="constrained")
        FigureCanvasAgg(figure)
        spec.plot(data, figure)
        figure.suptitle(spec.title, fontsize=11)
        path.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(path, dpi=150, metadata={"Date": None} if path.suffix == ".svg" else None)


def figure_jobs(spec: FigureSpec, seeds: Sequence[int]) -> list[Job]:
    """Return the runs that a figure needs; only the first seed has a trace."""
    rows = [find_row(name) for name in spec.rows]
    wanted = [(seed, row) for seed in seeds for row in rows if row.runs_here and row.has_seed(seed)]
    return [
        Job(row, find_set(name), seed, trace=spec.traced and seed in TRACED_SEEDS)
        for seed, row in wanted
        for name in spec.sets
    ]
