"""Which runs a command asks for: rows x data sets x seeds, or all runs of a table or figure; and running them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from coterie.benchmark.catalogue import find_figure, find_row, find_rows, find_table
from coterie.benchmark.figures import figure_jobs
from coterie.benchmark.rows import Row
from coterie.benchmark.runner import Outcome, run_jobs
from coterie.benchmark.sets import EIGHT_SHORT, find_set
from coterie.benchmark.specs import FigureSpec, TableSpec
from coterie.benchmark.store import Job, Store
from coterie.benchmark.tables import table_jobs
from coterie.errors import SettingError
from coterie.methods.registry import find_method

# All rows of the main tables.
ALL_METHODS = "all"
# The eight short-text sets.
SHORT_SETS = "short"
ALL_SEEDS = "0-4"


@dataclass(frozen=True)
class JobSelection:
    """The options of a command; names in a text are separated by commas.

    Attributes
    ----------
    methods, datasets:
        Names of rows and data sets, ``all`` and ``short`` included.
    seeds:
        Such as ``0``, ``0,2`` or ``0-4``.
    table, figure:
        In place of methods and data sets: all runs that it needs.
    """

    methods: str = ALL_METHODS
    datasets: str = SHORT_SETS
    seeds: str = ALL_SEEDS
    table: str | None = None
    figure: str | None = None

    def jobs(self, warn: Callable[[str], object]) -> list[Job]:
        """Return the runs seed by seed, so that the first run of every cell comes first.

        ``warn`` is called with a line about every row that cannot be run here.
        """
        seeds = parse_seeds(self.seeds)
        jobs = []
        if self.table is None and self.figure is None:
            jobs += self._named_jobs(seeds, warn)
        elif (self.methods, self.datasets) != (ALL_METHODS, SHORT_SETS):
            raise SettingError("--table and --figure say what is run: leave out --methods and --datasets")
        if self.table is not None:
            table = find_table(self.table)
            _runnable(_rows_of(table), warn)
            jobs += table_jobs(table, seeds)
        if self.figure is not None:
            figure = find_figure(self.figure)
            _runnable(_rows_of(figure), warn)
            jobs += figure_jobs(figure, seeds)
        if not jobs:
            raise SettingError(
                f"there is nothing to run for --seeds {self.seeds} (a row that uses no seed has seed 0 alone)"
            )
        return jobs

    def _named_jobs(self, seeds: Sequence[int], warn: Callable[[str], object]) -> list[Job]:
        names = [name for each in _listed(self.datasets) for name in (EIGHT_SHORT if each == SHORT_SETS else (each,))]
        sets = [find_set(name) for name in dict.fromkeys(names)]
        rows = _runnable(find_rows(_listed(self.methods)), warn, by_name=_listed(self.methods))
        return [Job(row, dataset, seed) for seed in seeds for row in rows if row.has_seed(seed) for dataset in sets]

    def commands_for(self, jobs: Sequence[Job], missing: Sequence[Job], out: str) -> list[str]:
        """Return the commands that would make the ``missing`` runs of ``jobs``; ``out`` is the option of the folder."""
        if missing and any(job.trace for job in jobs):
            # By the name of the table or figure: only then a trace is stored.
            seeds = ",".join(map(str, sorted({job.seed for job in missing})))
            of = f"--figure {self.figure}" if self.figure is not None else f"--table {self.table}"
            return [f"coterie benchmark run {of} --seeds {seeds}{out}"]
        cells: dict[tuple[str, str], list[int]] = {}
        for job in missing:
            cells.setdefault((job.row.name, job.dataset.name), []).append(job.seed)
        return [
            f"coterie benchmark run --methods {row} --datasets {dataset} --seeds {','.join(map(str, seeds))}{out}"
            for row, of_row in _by_row(cells).items()
            for dataset, seeds in of_row.items()
        ]


def missing_jobs(jobs: Sequence[Job], store: Store) -> list[Job]:
    """Return the jobs that ``store`` has no run of; an error where it has runs of another protocol."""
    store.records()
    return [job for job in jobs if not store.has(job)]


def run_selection(
    selection: JobSelection,
    store: Store,
    *,
    at_once: int,
    device: str,
    time_budget: float | None,
    echo: Callable[[str], object],
    warn: Callable[[str], object],
) -> int:
    """Run what is missing of a selection and return how many runs failed; ``echo`` is called with lines of progress."""
    wanted = selection.jobs(warn)
    missing = missing_jobs(wanted, store)
    echo(f"{len(wanted)} runs wanted, {len(wanted) - len(missing)} there already, {len(missing)} to do")
    outcomes: list[Outcome] = []

    def report(outcome: Outcome) -> None:
        outcomes.append(outcome)
        echo(f"[{len(outcomes)}/{len(missing)}] {outcome.description}")

    left = run_jobs(missing, store, at_once=at_once, device=device, time_budget=time_budget, on_outcome=report)
    if left:
        echo(f"{len(left)} runs were not started: they would not end within {time_budget:.0f} s")
    return sum(outcome.record is None for outcome in outcomes)


def parse_seeds(text: str) -> list[int]:
    """Return the seeds of ``0``, ``0,2`` or ``0-4``, each once."""
    seeds: list[int] = []
    try:
        for part in _listed(text):
            first, dash, last = part.partition("-")
            seeds += range(int(first), int(last if dash else first) + 1)
    except ValueError as error:
        raise SettingError(f"--seeds {text!r} is not of the form 0, 0,2 or 0-4") from error
    return list(dict.fromkeys(seeds))


def _by_row(cells: dict[tuple[str, str], list[int]]) -> dict[str, dict[str, list[int]]]:
    rows: dict[str, dict[str, list[int]]] = {}
    for (row, dataset), seeds in cells.items():
        rows.setdefault(row, {})[dataset] = seeds
    return rows


def _rows_of(spec: TableSpec | FigureSpec) -> list[Row]:
    return list({name: find_row(name) for name in spec.rows}.values())


def _runnable(rows: Sequence[Row], warn: Callable[[str], object], by_name: Sequence[str] = ()) -> list[Row]:
    """Return the rows that can be run here; one without weights is tried if it is asked for by its name."""
    runnable = []
    for row in rows:
        if not row.installed:
            warn(f"{row.name}: {row.requires or find_method(row.method).requires} is not installed")
        elif row.missing and row.name not in by_name:
            warn(f"{row.name}: {row.missing}; to try it all the same: --methods {row.name}")
        else:
            runnable.append(row)
    return runnable


def _listed(text: str) -> list[str]:
    return [part.strip() for part in text.split(",") if part.strip()]
