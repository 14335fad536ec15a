"""Figures of what was measured, a command each: ``coterie benchmark figure sccl-3 -f ablation.svg``.

They are drawn from the results alone; ``coterie benchmark run --figure sccl-3`` makes the runs they stand on.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from coterie.benchmark.drawing import quality_against_cost
from coterie.benchmark.rows import find_row
from coterie.benchmark.sets import EIGHT_SHORT, find_set
from coterie.benchmark.store import Job, Store
from coterie.benchmark.tables import FINAL, FROZEN, TRAINED, found_runs, run_names, values_of
from coterie.errors import InputError, SettingError, require_extra
from coterie.methods.registry import find_method

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# Seeds of a run whose embeddings are followed: a map shows one.
TRACED_SEEDS = (0,)


@dataclass(frozen=True)
class FigureData:
    """What a figure may look at."""

    store: Store
    rows: tuple[str, ...]
    sets: tuple[str, ...]

    @cached_property
    def _records(self) -> dict[str, dict[str, Any]]:
        return self.store.records()

    def runs(self, row: str, dataset: str) -> list[dict[str, Any]]:
        """The records of a row on a set, seed by seed."""
        return found_runs(find_row(row), dataset, self._records)

    def scores(self, row: str, dataset: str, measure: str, answer: str = FINAL) -> list[float]:
        """Of all seeds that are there."""
        return list(values_of(self.runs(row, dataset), answer, measure))

    def mean(self, row: str, dataset: str, measure: str, answer: str = FINAL) -> float | None:
        found = self.scores(row, dataset, measure, answer)
        return statistics.mean(found) if found else None

    def seconds_alone(self, row: str, dataset: str) -> list[float]:
        """Of fits on a GPU, or of methods that need none, that had the machine to themselves, with any seed."""
        wanted = Job(find_row(row), find_set(dataset), 0).settings
        return [
            run["seconds"]["fit"]
            for run in self._records.values()
            if (run["row"], run["dataset"], run["settings"]) == (row, dataset, wanted)
            and run.get("runs_at_once") == 1
            and (run["machine"]["device"] != "cpu" or not find_method(run["method"]).trains_encoder)
        ]

    def trace(self, row: str, dataset: str) -> dict[str, Any] | None:
        """Of the first seed that has one (see :mod:`coterie.benchmark.traces`)."""
        for name in run_names(find_row(row), dataset):
            if self.store.has_trace(name):
                return self.store.read_trace(name)
        return None

    def title(self, row: str) -> str:
        return find_row(row).title

    def missing(self, row: str) -> str:
        """Why it is not run, if so."""
        return find_row(row).missing


@dataclass(frozen=True)
class FigureSpec:
    """A figure.

    Attributes
    ----------
    name:
        As ``coterie benchmark figure`` takes it: the paper and the number of its figure, for most.
    title:
        What it shows.
    rows, sets:
        The runs it stands on.
    draw:
        Draws it from the data into an empty figure.
    traced:
        Whether it needs to know how embeddings moved.
    """

    name: str
    title: str
    rows: tuple[str, ...]
    sets: tuple[str, ...]
    draw: Callable[[FigureData, Figure], None] = field(repr=False)
    traced: bool = False


FIGURES: tuple[FigureSpec, ...] = (
    FigureSpec(
        "cost",
        "Quality on eight short-text sets against the cost of one of them",
        (FROZEN, "tfidf", "frozen-ward", "umap-kmeans", "dec-embedding", "idec-embedding", "rstc", "tsdae", *TRAINED),
        EIGHT_SHORT,
        quality_against_cost,
    ),
)


def draw_figure(spec: FigureSpec, store: Store, path: Path) -> None:
    """Draw into ``path``; its ending says in which form."""
    matplotlib = require_extra("matplotlib", "plot")
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    data = FigureData(store, spec.rows, spec.sets)
    there = data.trace if spec.traced else data.runs
    if not any(there(row, dataset) for row in spec.rows for dataset in spec.sets):
        raise InputError(f"{store.folder} has no run of this figure yet: coterie benchmark run --figure {spec.name}")
    # The same data give the same file.
    with matplotlib.rc_context({"svg.hashsalt": spec.name, "svg.fonttype": "none", "font.size": 9}):
        figure = Figure(layout="constrained")
        FigureCanvasAgg(figure)
        spec.draw(data, figure)
        figure.suptitle(spec.title, fontsize=11)
        path.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(path, dpi=150, metadata={"Date": None} if path.suffix == ".svg" else None)


def figure_jobs(spec: FigureSpec, seeds: Sequence[int]) -> list[Job]:
    """The runs a figure stands on; traces are taken of the first seed alone."""
    rows = [find_row(name) for name in spec.rows]
    wanted = [(seed, row) for seed in seeds for row in rows if row.runs_here and row.has_seed(seed)]
    return [
        Job(row, find_set(name), seed, trace=spec.traced and seed in TRACED_SEEDS)
        for seed, row in wanted
        for name in spec.sets
    ]


def all_figures() -> tuple[FigureSpec, ...]:
    """Ours, and those of the papers."""
    from coterie.benchmark.papers import PAPERS

    return (*FIGURES, *(spec for paper in PAPERS for spec in paper.FIGURES))


def find_figure(name: str) -> FigureSpec:
    """The figure called ``name``."""
    for spec in all_figures():
        if spec.name == name:
            return spec
    raise SettingError(f"there is no figure {name!r}; there are: {', '.join(spec.name for spec in all_figures())}")
