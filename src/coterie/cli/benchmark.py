"""``coterie benchmark``: run methods side by side without labels, score what they saved, print tables."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from coterie.cli.options import Device

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from coterie.benchmark.rows import Row
    from coterie.benchmark.runner import Outcome
    from coterie.benchmark.store import Job

app = typer.Typer(no_args_is_help=True, help="Methods side by side under one protocol, no label in sight.")

Results = Annotated[Path, typer.Option("--out", "-o", help="Folder of results.")]
RESULTS = Path("benchmarks/results/benchmark")
ALL, SHORT = "all", "short"
Methods = Annotated[
    str,
    typer.Option("--methods", "-m", help="Rows of the benchmark, with commas; `all`. See `coterie benchmark list`."),
]
Sets = Annotated[str, typer.Option("--datasets", "-d", help="Data sets, with commas; `short` for the eight.")]
OfTable = Annotated[
    str | None, typer.Option("--table", help="All runs of this table, in place of --methods and --datasets.")
]
OfFigure = Annotated[
    str | None, typer.Option("--figure", help="All runs of this figure, in place of --methods and --datasets.")
]
Seeds = Annotated[str, typer.Option("--seeds", "-s", help="Such as 0, 0,2 or 0-4.")]


@app.command("run")
def run(
    methods: Methods = ALL,
    datasets: Sets = SHORT,
    seeds: Seeds = "0-4",
    jobs: Annotated[int, typer.Option("--jobs", "-j", min=1, help="Runs at once, also on one GPU.")] = 1,
    out: Results = RESULTS,
    time_budget: Annotated[
        float | None, typer.Option("--time-budget", help="Seconds; no run is started that would not end within.")
    ] = None,
    device: Device = "auto",
    table: OfTable = None,
    figure: OfFigure = None,
) -> None:
    """Run what is missing of methods x data sets x seeds; what is there already stays.

    Fitting happens in processes that are given the texts alone. Interrupted, it loses the runs in flight and goes on
    from there when started again.

    **Examples**

    `coterie benchmark run --methods bow,tfidf --datasets support --seeds 0-1 --out try`  (the bundled sample)

    `coterie benchmark run --methods sccl --datasets stackoverflow --seeds 0-4 --out again`

    `coterie benchmark run --methods all --datasets short --seeds 0 --jobs 8 --time-budget 540`

    `coterie benchmark run --table 5-imbalance --seeds 0`
    """
    from coterie.benchmark.runner import run_jobs
    from coterie.benchmark.store import Store

    store = Store(out)
    store.records()  # refuses a folder of another protocol before any work
    wanted = _jobs(methods, datasets, seeds, table, figure)
    missing = [job for job in wanted if not store.has(job)]
    typer.echo(f"{len(wanted)} runs wanted, {len(wanted) - len(missing)} there already, {len(missing)} to do")
    counted = {"done": 0, "failed": 0}

    def tell(outcome: Outcome) -> None:
        counted["done" if outcome.record else "failed"] += 1
        typer.echo(f"[{sum(counted.values())}/{len(missing)}] {_line(outcome)}")

    left = run_jobs(missing, store, at_once=jobs, device=device, time_budget=time_budget, tell=tell)
    if left:
        typer.echo(f"{len(left)} runs were not started: they would not end within {time_budget:.0f} s")
    if counted["failed"]:
        raise typer.Exit(1)


@app.command("score")
def score(out: Results = RESULTS) -> None:
    """Score the saved assignments of all runs again."""
    from coterie.benchmark.scoring import scores_of
    from coterie.benchmark.sets import find_set, load_set
    from coterie.benchmark.store import Store
    from coterie.errors import InputError

    store = Store(out)
    sets = {}
    changed = 0
    for name, record in store.records().items():
        dataset = record["dataset"]
        if dataset not in sets:
            sets[dataset] = load_set(find_set(dataset))
        if sets[dataset].sha256 != record["data_sha256"]:
            raise InputError(f"{name}: the texts of {dataset!r} here are not those of the run")
        if sets[dataset].questions:
            typer.echo(f"{name}: ranked by embeddings, which are not kept, left as it is")
            continue
        if not store.has_assignments(name):
            typer.echo(f"{name}: no assignments, left as it is")
            continue
        scores = scores_of(sets[dataset], store.assignments(name))
        if not store.epochs_file(name).is_file():
            scores["oracle"] = record["scores"]["oracle"]  # the curve of all epochs stays as well
        if scores != record["scores"]:
            store.write(name, {**record, "scores": scores})
            changed += 1
    typer.echo(f"{changed} of {len(store.names())} runs changed")


@app.command("list")
def everything() -> None:
    """All rows, data sets, tables and figures by their names."""
    from coterie.benchmark.figures import all_figures
    from coterie.benchmark.rows import all_rows
    from coterie.benchmark.sets import SETS
    from coterie.benchmark.tables import all_tables

    groups = {
        "rows": [(row.name, row.title) for row in all_rows()],
        "data sets": [(each.name, each.title) for each in SETS],
        "tables": [(spec.name, spec.title) for spec in all_tables()],
        "figures": [(spec.name, spec.title) for spec in all_figures()],
    }
    for group, found in groups.items():
        typer.echo(f"{group}:")
        _tell_names(found)


@app.command("status")
def status(
    methods: Methods = ALL,
    datasets: Sets = SHORT,
    seeds: Seeds = "0-4",
    out: Results = RESULTS,
    table: OfTable = None,
    figure: OfFigure = None,
) -> None:
    """What is there, what is missing, and the command that would run it."""
    from coterie.benchmark.store import Store

    store = Store(out)
    store.records()
    rows: dict[str, dict[str, list[int]]] = {}
    wanted = _jobs(methods, datasets, seeds, table, figure)
    missing = [job for job in wanted if not store.has(job)]
    for job in missing:
        rows.setdefault(job.row.name, {}).setdefault(job.chosen.name, []).append(job.seed)
    typer.echo(f"{len(wanted) - len(missing)} of {len(wanted)} runs are there")
    into = "" if out == RESULTS else f" --out {out}"
    if any(job.trace for job in wanted) and rows:  # by its name: more is kept of such runs
        lacking_seeds = sorted({job.seed for job in missing})
        of = f"--figure {figure}" if figure is not None else f"--table {table}"
        typer.echo(f"missing: coterie benchmark run {of} --seeds {','.join(map(str, lacking_seeds))}{into}")
        return
    for row, sets in rows.items():
        for dataset, lacking in sets.items():
            told = ",".join(map(str, lacking))
            typer.echo(f"missing: coterie benchmark run --methods {row} --datasets {dataset} --seeds {told}{into}")


@app.command("table")
def table(
    name: Annotated[str, typer.Argument(help="Such as 1; `found` for whatever was run; `list` tells of all.")] = "1",
    form: Annotated[str, typer.Option("--format", "-f", help="md, csv or html.")] = "md",
    marks: Annotated[bool, typer.Option("--marks/--no-marks", help="Compare with the frozen encoder.")] = True,
    out: Results = RESULTS,
) -> None:
    """A table of what was measured, beside what the papers report.

    **Examples**

    `coterie benchmark table found --out try`  (the rows and sets that were run into the folder try)

    `coterie benchmark table 1`
    """
    from coterie.benchmark.found import FOUND, FOUND_TITLE, found_table
    from coterie.benchmark.marks import p_values
    from coterie.benchmark.rendering import FORMATS
    from coterie.benchmark.store import Store
    from coterie.benchmark.tables import all_tables, build_table, find_table
    from coterie.checks import check_choice
    from coterie.errors import InputError

    if name == "list":
        _tell_names([*((each.name, each.title) for each in all_tables()), (FOUND, FOUND_TITLE)])
        return
    check_choice("--format", form, tuple(FORMATS))
    if not out.is_dir():
        raise InputError(
            f"there is no folder {out}: go to a clone of the project, or name a folder of results by --out"
        )
    store = Store(out)
    spec = found_table(store) if name == FOUND else find_table(name)
    found = p_values(spec, store, lambda told: typer.echo(told, err=True)) if marks else None
    typer.echo(FORMATS[form](build_table(spec, store, found)), nl=False)


@app.command("figure")
def figure(
    name: Annotated[str, typer.Argument(help="Such as sccl-3; `list` tells of all.")] = "list",
    file: Annotated[Path, typer.Option("--file", "-f", help="PNG, SVG or PDF, by its ending.")] = Path("figure.svg"),
    out: Results = RESULTS,
) -> None:
    """Draw a figure from what was measured (`pip install 'coterie[plot]'`)."""
    from coterie.benchmark.figures import all_figures, draw_figure, find_figure
    from coterie.benchmark.store import Store

    if name == "list":
        _tell_names((each.name, each.title) for each in all_figures())
        return
    draw_figure(find_figure(name), Store(out), file)
    typer.echo(f"drawn: {file}")


@app.command("topics")
def topics(
    datasets: Sets = "stackoverflow", methods: Methods = "deccrl", seeds: Seeds = "0", out: Results = RESULTS
) -> None:
    """The clusters of a run and the words of their topics, where the method learns some (DECCRL's Table 4).

    **Example**

    `coterie benchmark topics --datasets stackoverflow`
    """
    from coterie.benchmark.store import Store
    from coterie.benchmark.topics import topics_as_markdown

    store = Store(out)
    typer.echo("\n".join(topics_as_markdown(job, store) for job in _jobs(methods, datasets, seeds)), nl=False)


@app.command("pack")
def pack(
    folder: Annotated[Path, typer.Argument(help="Folder of results.")] = RESULTS,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="New folder for the packed results; without it, in place.")
    ] = None,
) -> None:
    """Join the files of a folder of results, one per run, into a few Parquet files.

    All commands read a packed folder as before, and new runs are stored beside the packed ones; `pack` joins them
    again. Everything is read back and compared before a file is removed.

    **Example**

    `coterie benchmark pack try --output try-packed`
    """
    from coterie.benchmark.packing import pack_results

    packed = pack_results(folder, output)
    typer.echo(
        f"{packed.folder}: {packed.runs} runs ({packed.loose} of them newly packed) and {packed.traces} traces in "
        f"{packed.n_bytes / 1e6:.1f} MB"
    )


@app.command("show")
def show(
    method: Annotated[str, typer.Argument(help="A row of the benchmark. See `coterie benchmark list`.")],
    dataset: Annotated[str, typer.Argument(help="A data set of the benchmark.")],
    seed: Annotated[int, typer.Argument(help="The seed of the run.")],
    as_json: Annotated[bool, typer.Option("--json", help="Print the whole record as JSON.")] = False,
    out: Results = RESULTS,
) -> None:
    """Show the run behind a cell of a table: settings, scores, versions and notes.

    **Example**

    `coterie benchmark show sccl stackoverflow 0`
    """
    import json

    from coterie.benchmark.run_lookup import find_runs, run_as_text
    from coterie.benchmark.store import Store

    store = Store(out)
    name, *others = find_runs(store, method, dataset, seed)
    typer.echo(json.dumps(store.read(name), indent=1) if as_json else run_as_text(store, name), nl=as_json)
    for other in others:
        typer.echo(f"also there, with other settings: {other}", err=as_json)


def _tell_names(found: Iterable[tuple[str, str]]) -> None:
    for name, title in found:
        typer.echo(f"  {name:30s} {title}")


def _jobs(methods: str, datasets: str, seeds: str, table: str | None = None, figure: str | None = None) -> list[Job]:
    """Seed by seed, so that the first of every cell comes first."""
    from coterie.benchmark.figures import figure_jobs, find_figure
    from coterie.benchmark.rows import find_rows
    from coterie.benchmark.sets import EIGHT_SHORT, find_set
    from coterie.benchmark.store import Job
    from coterie.benchmark.tables import find_table, table_jobs
    from coterie.errors import SettingError

    numbers, wanted = _numbers(seeds), []
    if table is None and figure is None:
        names = [name for each in _listed(datasets) for name in (EIGHT_SHORT if each == SHORT else (each,))]
        sets = [find_set(name) for name in dict.fromkeys(names)]
        rows = _runnable(find_rows(_listed(methods)), by_name=_listed(methods))
        both = [(seed, row) for seed in numbers for row in rows if row.has_seed(seed)]
        wanted = [Job(row, chosen, seed) for seed, row in both for chosen in sets]
    elif (methods, datasets) != (ALL, SHORT):
        raise SettingError("--table and --figure say what is run: leave out --methods and --datasets")
    if table is not None:
        _runnable(find_rows(find_table(table).rows))
        wanted += table_jobs(find_table(table), numbers)
    if figure is not None:
        _runnable(find_rows(find_figure(figure).rows))
        wanted += figure_jobs(find_figure(figure), numbers)
    if not wanted:
        raise SettingError(f"there is nothing to run for --seeds {seeds} (a row without chance has seed 0 alone)")
    return wanted


def _runnable(rows: Sequence[Row], by_name: Sequence[str] = ()) -> list[Row]:
    """Those that can be run, and a word about the others; one without weights is tried if it is asked for by name."""
    from coterie.methods.registry import find_method

    found = []
    for row in rows:
        if not row.installed:
            typer.echo(f"{row.name}: {row.requires or find_method(row.method).requires} is not installed", err=True)
        elif row.missing and row.name not in by_name:
            typer.echo(f"{row.name}: {row.missing}; to try it all the same: --methods {row.name}", err=True)
        else:
            found.append(row)
    return found


def _listed(text: str) -> list[str]:
    return [part.strip() for part in text.split(",") if part.strip()]


def _numbers(text: str) -> list[int]:
    from coterie.errors import SettingError

    found: list[int] = []
    try:
        for part in _listed(text):
            first, dash, last = part.partition("-")
            found += range(int(first), int(last if dash else first) + 1)
    except ValueError as error:
        raise SettingError(f"--seeds {text!r} is not of the form 0, 0,2 or 0-4") from error
    return list(dict.fromkeys(found))


def _line(outcome: Outcome) -> str:
    from coterie.benchmark.rendering import MEASURES

    job = outcome.job
    where = f"{job.row.name:18s} {job.chosen.name:16s} seed {job.seed}"
    if outcome.record is None:
        return f"{where}  FAILED: {outcome.error}"
    scores = outcome.record["scores"]
    first, second = ("map", "mrr") if job.chosen.ranking else ("accuracy", "nmi")
    start = "" if scores["frozen"] is None else f"  start {scores['frozen'][first]:5.1f}"
    end = "".join(f"  {MEASURES[name]} {scores['final'][name]:5.1f}" for name in (first, second))
    return f"{where}  {outcome.record['seconds']['fit']:6.1f} s{start}{end}"
