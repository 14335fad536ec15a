"""``coterie predict``: assign new texts to the clusters of a run."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from coterie.cli.options import Device, IdColumn, Keep, MinConfidence, NoText, TextColumn, columns_to_keep
from coterie.formatting import counted

if TYPE_CHECKING:
    from coterie.runs.prediction import PredictionCounts, Predictor


def predict(
    run: Annotated[Path, typer.Argument(help="A run folder, or a model folder.")],
    input: Annotated[Path, typer.Argument(help="New texts: CSV, TSV, JSONL or TXT (each also .gz), or Parquet.")],
    output: Annotated[Path, typer.Option("--output", "-o", help="The CSV to write.")],
    text_column: TextColumn = None,
    id_column: IdColumn = None,
    keep: Keep = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace an existing output file.")] = False,
    min_confidence: MinConfidence = 0.0,
    no_text: NoText = False,
    device: Device = "auto",
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print nothing.")] = False,
) -> None:
    """Assign new texts to the clusters of a run.

    The file is read and written in chunks: memory does not grow with it. A text gets the same cluster alone, in a
    batch, and in any order; empty texts get cluster -1. Changes made in `coterie explore` are applied.
    **cluster_name** is the present name of the cluster; it is empty for a text in no cluster.

    **Examples**

    `coterie predict run tomorrow.csv -o tomorrow-clusters.csv`

    `coterie predict run archive.csv.gz --text-column body --id-column ticket -o archive-clusters.csv`
    """
    from coterie.errors import InputError

    if output.exists() and input.exists() and output.samefile(input):
        raise InputError(f"{output} is the input itself; give --output another name")
    with _without_import("pandas"):
        from coterie.runs.prediction import check_csv, open_predictor, predict_file

    check_csv(output, overwrite)
    predictor = open_predictor(run, device=device)
    corpora = predictor.read(input, text_column=text_column, id_column=id_column, keep=columns_to_keep(keep or []))
    show_count = not quiet and sys.stderr.isatty()
    counts = predict_file(
        predictor,
        corpora,
        output,
        overwrite=overwrite,
        min_confidence=min_confidence,
        with_texts=not no_text,
        on_rows=_show_rows if show_count else None,
    )
    if show_count:
        typer.echo("", err=True)
    if not quiet:
        _print_counts(counts, predictor, output, min_confidence)


def _show_rows(rows: int) -> None:
    typer.echo(f"\r{rows:,} rows", err=True, nl=False)


def _print_counts(counts: PredictionCounts, predictor: Predictor, output: Path, min_confidence: float) -> None:
    from coterie.runs.edits.log import EDITS_FILE

    empty = f", {counts.empty:,} of them empty (cluster -1)." if counts.empty else "."
    typer.echo(f"Wrote {counts.rows:,} rows to {output}{empty}")
    if counts.abstained:
        typer.echo(f"{counts.abstained:,} rows are below a confidence of {min_confidence:g} and stay unassigned.")
    state = predictor.state
    if state is not None and state.applied:
        typer.echo(f"As corrected by {counted(len(state.applied), 'edit')} in {predictor.source.folder / EDITS_FILE}.")
    for note in () if state is None else state.notes:
        typer.echo(f"Note: {note}.")
    if predictor.source.calibration is None:
        typer.echo(
            "Note: the model was saved without a calibration: confidence is a margin, not a chance of being right."
        )
    if counts.truncated:
        typer.echo(f"Note: distinct texts cut at the model's length limit: {counts.truncated:,}.")


@contextmanager
def _without_import(module: str) -> Iterator[None]:
    """Hide ``module`` from what is imported inside the block.

    scikit-learn does that with pandas: 65 MB and half a second at the start, for data frames that do not occur here.
    """
    if module in sys.modules:
        yield
        return
    sys.modules[module] = None  # type: ignore[assignment]
    try:
        yield
    finally:
        del sys.modules[module]
