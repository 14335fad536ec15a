"""``coterie benchmark``: run methods side by side without labels, score what they saved, print tables."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from coterie.cli.options import Device

if TYPE_CHECKING:
    from collections.abc import Iterable

app = typer.Typer(no_args_is_help=True, help="Compare methods under one protocol. Labels are used only for the scores.")

RESULTS = Path("benchmarks/results/benchmark")
# The same as in job_selection.py, which is slow to import and not needed for --help.
ALL_METHODS = "all"
SHORT_SETS = "short"
ALL_SEEDS = "0-4"
Results = Annotated[Path, typer.Option("--out", "-o", help="Folder of results.")]
Methods = Annotated[
    str,
    typer.Option("--methods", "-m", help="Rows, comma-separated, or `all`. See `coterie benchmark list`."),
]
Sets = Annotated[
    str, typer.Option("--datasets", "-d", help="Data sets, comma-separated; `short` for the eight short-text sets.")
]
OfTable = Annotated[
    str | None, typer.Option("--table", help="All runs of this table, in place of --methods and --datasets.")
]
OfFigure = Annotated[
    str | None, typer.Option("--figure", help="All runs of this figure, in place of --methods and --datasets.")
]
Seeds = Annotated[str, typer.Option("--seeds", "-s", help="Such as 0, 0,2 or 0-4.")]


@app.command("run")
def run(
    methods: Methods = ALL_METHODS,
    datasets: Sets = SHORT_SETS,
    seeds: Seeds = ALL_SEEDS,
    jobs: Annotated[int, typer.Option("--jobs", "-j", min=1, help="Runs at once, also on one GPU.")] = 1,
    out: Results = RESULTS,
    time_budget: Annotated[
        float | None, typer.Option("--time-budget", help="Seconds; no run is started that would exceed it.")
    ] = None,
    device: Device = "auto",
    table: OfTable = None,
    figure: OfFigure = None,
) -> None:
    """Run all missing combinations of methods, data sets and seeds; finished runs are kept.

    The processes that fit get the texts without labels. If the command is interrupted, the runs in progress are
    lost; start it again to continue.

    **Examples**

    `coterie benchmark run --methods bow,tfidf --datasets support --seeds 0-1 --out try`  (the bundled sample)

    `coterie benchmark run --methods sccl --datasets stackoverflow --seeds 0-4 --out again`

    `coterie benchmark run --methods all --datasets short --seeds 0 --jobs 8 --time-budget 540`

    `coterie benchmark run --table 5-imbalance --seeds 0`
    """
    from coterie.benchmark.job_selection import JobSelection, run_selection
    from coterie.benchmark.store import Store

    selection = JobSelection(methods, datasets, seeds, table, figure)
    failed = run_selection(
        selection, Store(out), at_once=jobs, device=device, time_budget=time_budget, echo=typer.echo, warn=_warn
    )
    if failed:
        raise typer.Exit(1)


@app.command("score")
def score(out: Results = RESULTS) -> None:
    """Compute the scores of all runs again from their stored assignments."""
    from coterie.benchmark.scoring import score_again
    from coterie.benchmark.store import Store

    score_again(Store(out), typer.echo)


@app.command("list")
def list_names() -> None:
    """List all rows, data sets, tables and figures by their names."""
    from coterie.benchmark.catalogue import named_parts

    for part, names in named_parts().items():
        typer.echo(f"{part}:")
        _echo_names(names)


@app.command("status")
def status(
    methods: Methods = ALL_METHODS,
    datasets: Sets = SHORT_SETS,
    seeds: Seeds = ALL_SEEDS,
    out: Results = RESULTS,
    table: OfTable = None,
    figure: OfFigure = None,
) -> None:
    """Print how many runs are finished, and the commands for those that are missing."""
    from coterie.benchmark.job_selection import JobSelection, missing_jobs
    from coterie.benchmark.store import Store

    selection = JobSelection(methods, datasets, seeds, table, figure)
    wanted = selection.jobs(_warn)
    missing = missing_jobs(wanted, Store(out))
    typer.echo(f"{len(wanted) - len(missing)} of {len(wanted)} runs are there")
    for command in selection.commands_for(wanted, missing, "" if out == RESULTS else f" --out {out}"):
        typer.echo(f"missing: {command}")


@app.command("table")
def table(
    name: Annotated[str, typer.Argument(help="Such as 1; `found` for all runs of the folder; `list` for all.")] = "1",
    form: Annotated[str, typer.Option("--format", "-f", help="md, csv or html.")] = "md",
    marks: Annotated[bool, typer.Option("--marks/--no-marks", help="Compare with the frozen encoder.")] = True,
    out: Results = RESULTS,
) -> None:
    """Print a table of measured figures, beside what the papers report.

    All tables but `found` need a clone of the project, in which the papers' tables are defined.

    **Examples**

    `coterie benchmark table found --out try`  (the rows and data sets that were run into the folder try)

    `coterie benchmark table 1`
    """
    from coterie.benchmark.store import Store
    from coterie.benchmark.table_formats import table_as_text
    from coterie.benchmark.tables import table_names

    if name == "list":
        _echo_names(table_names())
    else:
        typer.echo(table_as_text(name, form, Store(out), _warn if marks else None), nl=False)


@app.command("figure")
def figure(
    name: Annotated[str, typer.Argument(help="Such as sccl-3; `list` for all.")] = "list",
    file: Annotated[Path, typer.Option("--file", "-f", help="PNG, SVG or PDF, by its ending.")] = Path("figure.svg"),
    out: Results = RESULTS,
) -> None:
    """Plot a figure of a paper from measured results, in a clone (`pip install 'coterie[plot]'`)."""
    from coterie.benchmark.catalogue import all_figures, find_figure
    from coterie.benchmark.figures import plot_figure
    from coterie.benchmark.store import Store

    if name == "list":
        _echo_names((each.name, each.title) for each in all_figures())
        return
    plot_figure(find_figure(name), Store(out), file)
    typer.echo(f"plotted: {file}")


@app.command("topics")
def topics(
    datasets: Sets = "stackoverflow", methods: Methods = "deccrl", seeds: Seeds = "0", out: Results = RESULTS
) -> None:
    """Print the clusters of a run and the words of their topics, where the method learns topics (DECCRL's Table 4).

    **Example**

    `coterie benchmark topics --datasets stackoverflow`
    """
    from coterie.benchmark.job_selection import JobSelection
    from coterie.benchmark.run_description import topics_as_markdown
    from coterie.benchmark.store import Store

    jobs = JobSelection(methods, datasets, seeds).jobs(_warn)
    typer.echo("\n".join(topics_as_markdown(job, Store(out)) for job in jobs), nl=False)


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
    """Print the run behind a cell of a table: settings, scores, versions and notes.

    **Example**

    `coterie benchmark show sccl stackoverflow 0`
    """
    from coterie.benchmark.run_description import find_runs, run_as_text
    from coterie.benchmark.store import Store

    store = Store(out)
    name, *others = find_runs(store, method, dataset, seed)
    typer.echo(json.dumps(store.read(name), indent=1) if as_json else run_as_text(store, name), nl=as_json)
    for other in others:
        typer.echo(f"also there, with other settings: {other}", err=as_json)


def _warn(line: str) -> None:
    typer.echo(line, err=True)


def _echo_names(names: Iterable[tuple[str, str]]) -> None:
    for name, title in names:
        typer.echo(f"  {name:30s} {title}")
