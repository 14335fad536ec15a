"""``coterie fit``: cluster a file of texts."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

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
    from coterie.methods.base import ClusteringMethod
    from coterie.methods.cost_estimate import Estimate
    from coterie.runs.saved_run import SavedRun
    from coterie.selection import ChosenK
    from coterie.text.corpus import Corpus


def fit(
    input: Annotated[Path, typer.Argument(help="CSV, TSV, JSONL or TXT (each also .gz), or Parquet.")],
    clusters: Annotated[
        str | None, typer.Option("--clusters", "-k", help="How many clusters to make; auto: chosen without labels.")
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
        str | None, typer.Option("--k-range", help="Of -k auto, the numbers to choose from: 5-60.")
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
    snapshots: Annotated[int, typer.Option(help="Keep embeddings and labels every so many epochs.")] = 0,
    min_confidence: MinConfidence = 0.0,
    no_text: NoText = False,
    report: Annotated[bool, typer.Option("--report/--no-report", help="Make report.html, the run as a page.")] = True,
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
    early and keeps the model so far. With `-k auto`, **k.svg** shows why that many (it needs `coterie[plot]`); take the
    number as a first guess.
    """
    from coterie.cli.choose import asked_clusters, choose_for
    from coterie.cli.settings import Config, parse_settings, read_config
    from coterie.errors import SettingError
    from coterie.methods.building import build_method
    from coterie.methods.registry import DEFAULT_METHOD, find_method
    from coterie.runs.folder import check_free_for_run
    from coterie.selection.k_grid import parse_range
    from coterie.text.reading import read_corpus

    check_free_for_run(output, overwrite)
    given = Config() if config is None else read_config(config)
    method = method or given.method or DEFAULT_METHOD
    asked = asked_clusters(clusters, given.clusters, k_range)
    seed = (given.seed or 0) if seed is None else seed
    sample = given.sample if sample is None else sample
    from_range = None if k_range is None else parse_range(k_range)
    info = find_method(method)
    settings = {**given.settings, **parse_settings(set_ or [])}
    # The file is looked at before anything heavy is loaded: a wrong column should not cost seconds.
    began = time.perf_counter()
    counted_by = listed(by or [])
    kept = columns_to_keep(keep or [])
    kept = kept if isinstance(kept, str) else (*kept, *counted_by)
    corpus = read_corpus(input, text_column=text_column, id_column=id_column, keep_columns=kept)
    for name in counted_by:
        if name not in corpus.columns:  # with --keep all, the column of the texts or of the ids
            raise SettingError(f"--by {name}: this column is read as texts or ids; name it under --keep to count by it")
    reading = time.perf_counter() - began
    if encoder is not None:
        settings["encoder"] = encoder
    if snapshots:
        if not info.trains_encoder:
            raise SettingError(f"--snapshots needs a method that trains; {method} does not")
        settings["training.snapshot_every"] = snapshots
    # Wrong settings are told before the number is chosen, which may take a minute.
    model = build_method(
        method, 2 if asked is None else asked, seed, settings, {"device": device, "training.progress": not quiet}
    )
    seconds, choice = {"reading": reading}, None
    if asked is None:
        began = time.perf_counter()
        choice = choose_for(model, corpus, from_range, seed, device, quiet)
        model.set_params(n_clusters=choice.k)
        seconds["choosing"] = time.perf_counter() - began
    run(
        model,
        method,
        corpus,
        str(input),
        output,
        quiet,
        sample=sample,
        seconds=seconds,
        report=report,
        with_texts=not no_text,
        by=counted_by,
        choice=choice,
        min_confidence=min_confidence,
    )


def run(
    model: ClusteringMethod,
    method: str,
    corpus: Corpus,
    source: str,
    output: Path,
    quiet: bool,
    *,
    sample: int | None = None,
    seconds: Mapping[str, float] | None = None,
    report: bool = True,
    with_texts: bool = True,
    by: Sequence[str] = (),
    choice: ChosenK | None = None,
    min_confidence: float = 0.0,
) -> SavedRun:
    """Fit, write the run folder and its report, and show what came out; ``seconds`` is what earlier phases took."""
    from coterie.cli.choose import draw_choice
    from coterie.cli.report import REPORT_FILE, add_report
    from coterie.cli.tables import print_clusters
    from coterie.describe.breakdown import break_down, with_breakdowns
    from coterie.describe.cards import build_cards
    from coterie.describe.clusters import describe_clusters
    from coterie.files import atomic_folder, write_json
    from coterie.methods.trained import Clock
    from coterie.runs.assignments_file import AssignmentWriter
    from coterie.runs.calibration import calibrate_model
    from coterie.runs.clusters_file import write_cards
    from coterie.runs.run_file import versions
    from coterie.runs.saved_run import SavedRun
    from coterie.runs.snapshots_file import write_snapshots

    model.check(corpus, sample)
    if not quiet:
        typer.echo(f"{len(corpus):,} rows from {source}; {model.n_clusters} clusters by {method}", err=True)
    # The folder is opened first: a place that cannot be written to should not cost a training run.
    with atomic_folder(output) as folder:
        expected = None if quiet else _estimated(model, corpus, sample)
        began = time.perf_counter()
        clock = Clock(dict(seconds or {}))
        model.fit(corpus, sample=sample)
        clock.lap("fitting")
        calibration = calibrate_model(model, corpus)
        confidence = model.confidence_
        if calibration is not None:
            confidence = calibration.confidence(model.labels_, model.confidence_)
        clock.lap("calibrating")
        summaries = describe_clusters(
            corpus.texts,
            model.labels_,
            confidence=confidence,
            center_distance=model.center_distance_,
            topics=model.cluster_topics(),
        )
        clock.lap("describing")
        with (folder / "assignments.csv").open("w", encoding="utf-8", newline="") as stream:
            writer = AssignmentWriter(stream, corpus, with_texts=with_texts, min_confidence=min_confidence)
            writer.write(corpus, model.labels_, confidence)
        clock.lap("writing")
        cards = build_cards(summaries, corpus.texts, model.labels_, vectors=None, confidence=confidence)
        counted = [break_down(name, corpus.columns[name], model.labels_) for name in by]
        write_cards(folder, with_breakdowns(cards, counted), with_texts=with_texts)
        model.save_pretrained(folder / "model")
        if calibration is not None:
            calibration.write(folder / "model")
        write_snapshots(folder, model, corpus)
        clock.lap("saving")
        about = {
            "method": method,
            "settings": model.settings(),
            "seed": model.seed_,
            "sample": sample,
            "input": {
                "source": source,
                "text_column": corpus.text_column,
                "id_column": corpus.id_column,
                "kept": list(corpus.columns),
            },
            "by": list(by),
            "min_confidence": min_confidence,
            "abstained": writer.abstained,
            "rows": len(corpus),
            "distinct_texts": len(corpus.distinct),
            "empty_rows": int(corpus.empty.sum()),
            "notes": list(model.notes_),
            "versions": versions(),
            **model.provenance(),
            "estimate": None if expected is None else asdict(expected),
            "seconds": {"total": time.perf_counter() - began, **clock.seconds, **model.timings_},
            "history": model.history_.to_dict(),
        }
        if choice is not None:
            about["choice_of_k"] = choice.to_dict()
            draw_choice(choice, folder)
        write_json(folder / "run.json", about)
    made = SavedRun.of_fit(output, about, corpus, model, calibration=calibration, summaries=summaries)
    if report:
        add_report(made, with_texts=with_texts, by=counted)
    if not quiet:
        print_clusters(summaries)
        for note in [*model.notes_, *(each.note for each in counted if each.note)]:
            typer.echo(f"Note: {note}.")
        if writer.abstained:
            typer.echo(
                f"{writer.abstained:,} rows ({writer.abstained / len(corpus):.0%}) are below a confidence of "
                f"{min_confidence:g} and stay unassigned in assignments.csv; the clusters are described with all."
            )
        elif min_confidence:
            typer.echo(f"No row is below a confidence of {min_confidence:g}: all are assigned.")
        typer.echo(
            f"Wrote {output}/ (assignments.csv, clusters.json, model/, run.json) "
            f"in {time.perf_counter() - began:.0f} s."
        )
        if report:
            typer.echo(f"Open {output / REPORT_FILE} to see it.")
    return made


def _estimated(model: ClusteringMethod, corpus: Corpus, sample: int | None) -> Estimate | None:
    """Tell how long it will take, where that is long enough to want to know."""
    from coterie.formatting import duration
    from coterie.methods.cost_estimate import estimate, worth_estimating

    if not worth_estimating(model, corpus, sample):
        return None
    typer.echo("Trying it on a few texts first, to tell how long it will take ...", err=True)
    found = estimate(model, corpus, sample)
    if found is None:
        return None
    gpu = f", {found.device_memory / 1e9:.1f} GB on the GPU" if found.device_memory else ""
    typer.echo(
        f"This will take at most about {duration(found.seconds)} and {found.memory / 1e9:.1f} GB of memory{gpu} "
        f"(estimated by a trial of {found.trial_seconds:.0f} s on this machine).",
        err=True,
    )
    return found
