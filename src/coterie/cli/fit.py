"""``coterie fit``: cluster a file of texts."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from coterie.cli.options import (
    By,
    Device,
    IdColumn,
    Keep,
    MinConfidence,
    NoText,
    OverwriteRun,
    RunOutput,
    Sample,
    TextColumn,
    columns_to_keep,
    listed,
)

if TYPE_CHECKING:
    from coterie.api.run import Run


def fit(
    input: Annotated[Path, typer.Argument(help="CSV, TSV, JSONL or TXT (each also .gz), or Parquet.")],
    clusters: Annotated[
        str | None, typer.Option("--clusters", "-k", help="The number of clusters; auto: selected without labels.")
    ] = None,
    method: Annotated[str | None, typer.Option("--method", "-m", help="See: coterie methods. [default: auto]")] = None,
    text_column: TextColumn = None,
    id_column: IdColumn = None,
    keep: Keep = None,
    by: By = None,
    seed: Annotated[
        int | None, typer.Option("--seed", help="The same seed gives the same clusters. [default: 0]")
    ] = None,
    k_range: Annotated[
        str | None, typer.Option("--k-range", help="For -k auto: the lowest and highest number to try, such as 5-60.")
    ] = None,
    sample: Sample = None,
    output: RunOutput = Path("coterie-run"),
    overwrite: OverwriteRun = False,
    encoder: Annotated[str | None, typer.Option(help="A model's name or folder. [default: all-MiniLM-L6-v2]")] = None,
    device: Device = "auto",
    set_: Annotated[
        list[str] | None, typer.Option("--set", help="Any parameter of the method: name=value (repeat).")
    ] = None,
    config: Annotated[
        Path | None,
        typer.Option("--config", help="Settings from a file: YAML, an experiment file, or a run's run.json."),
    ] = None,
    snapshots: Annotated[int, typer.Option(help="Store embeddings and labels every N epochs; 0: never.")] = 0,
    min_confidence: MinConfidence = 0.0,
    no_text: NoText = False,
    report: Annotated[bool, typer.Option("--report/--no-report", help="Write report.html, a page of the run.")] = True,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No progress bar, no table.")] = False,
) -> None:
    """Cluster the texts of a file into a run folder.

    **Examples**

    `coterie fit tickets.csv -k 20 -o run`

    `coterie fit answers.parquet -k 12 --text-column answer --id-column respondent --keep age,country -o run`

    `coterie fit tickets.csv -k 20 --by product,opened -o run`

    `coterie fit tickets.csv -k 20 --min-confidence 0.5 -o run`

    `coterie fit tickets.csv -k auto --k-range 5-60 -o run`

    `coterie fit queries.jsonl -k 50 --method frozen --set clusterer=ward -o run`

    `coterie fit titles.csv -k 20 --set training.learning_rate=5e-6 --set training.max_epochs=20 -o run`

    `coterie fit archive.csv.gz -k 100 --sample 100000 -o run`

    `coterie fit titles.csv -k 20 --config experiments/aecl/aecl_stackoverflow.yaml -o run`

    The folder holds **assignments.csv** (row, cluster, confidence, status, text), **clusters.json** (size, keywords,
    representative texts), **model/** (for `coterie predict`, and a plain SentenceTransformer), **run.json**
    (settings, versions, timings, history) and **report.html** (all of it as a page, with a map). Ctrl-C ends training
    early and keeps the model so far. With `-k auto`, **k.svg** plots the criteria behind the number of clusters (it
    needs `coterie[plot]`); take the number as a first guess.
    """
    import coterie
    from coterie.cli.settings import Config, parse_settings, read_config
    from coterie.runs.folder import check_free_for_run
    from coterie.selection.k_grid import parse_range

    check_free_for_run(output, overwrite)
    given = Config() if config is None else read_config(config)
    n_clusters = asked_clusters(clusters, given.clusters)
    began = time.perf_counter()
    run = coterie.fit(
        input,
        n_clusters,
        method or given.method,
        output=output,
        text_column=text_column,
        id_column=id_column,
        keep=columns_to_keep(keep or []),
        by=listed(by or []),
        seed=(given.seed or 0) if seed is None else seed,
        sample=given.sample if sample is None else sample,
        k_range=None if k_range is None else parse_range(k_range),
        encoder=encoder,
        device=device,
        settings={**given.settings, **parse_settings(set_ or [])},
        snapshots=snapshots,
        min_confidence=min_confidence,
        with_texts=not no_text,
        report=report,
        overwrite=overwrite,
        progress=None if quiet else print_progress,
    )
    if not quiet:
        print_run(run, time.perf_counter() - began, report=report)


def asked_clusters(given: str | None, in_config: int | None) -> int | str:
    """Return how many clusters were asked for: a number or ``auto``."""
    from coterie.api.fit import AUTO

    asked: Any = in_config if given is None else given
    if asked is None:
        raise typer.BadParameter("give the number of clusters, such as 20, or auto", param_hint="--clusters / -k")
    if str(asked).strip().lower() == AUTO:
        return AUTO
    try:
        return int(asked)
    except ValueError:
        raise typer.BadParameter(
            f"{asked!r} is neither a whole number nor 'auto'", param_hint="--clusters / -k"
        ) from None


def print_progress(sentence: str) -> None:
    """Print what a fit is doing where it does not mix with its outcome."""
    typer.echo(sentence, err=True)


def print_run(run: Run, seconds: float, *, report: bool) -> None:
    """Print the clusters of a new run, its notes, and where everything is."""
    from coterie.api.reporting import REPORT_FILE
    from coterie.cli.tables import print_clusters

    about = run.about
    for reason in about.get("choice_of_k", {}).get("why", ()):
        typer.echo(f"k: {reason}.")
    print_clusters(run.summaries or [])
    for note in run.notes:
        typer.echo(f"Note: {note}.")
    if about["abstained"]:
        typer.echo(
            f"{about['abstained']:,} rows ({about['abstained'] / about['rows']:.0%}) are below a confidence of "
            f"{about['min_confidence']:g} and stay unassigned in assignments.csv; the clusters are described with all."
        )
    elif about["min_confidence"]:
        typer.echo(f"No row is below a confidence of {about['min_confidence']:g}: all are assigned.")
    typer.echo(f"Wrote {run.folder}/ (assignments.csv, clusters.json, model/, run.json) in {seconds:.0f} s.")
    if report:
        typer.echo(f"Open {run.folder / REPORT_FILE} to see it.")
