"""``coterie predict``: assign new texts to the clusters of a run."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from coterie.cli.options import Device, IdColumn, Keep, MinConfidence, NoText, TextColumn, columns_to_keep

if TYPE_CHECKING:
    from coterie.runs.saved_run import SavedRun

# Rows read, assigned and written at a time: enough texts of like length to keep a GPU busy, and soon forgotten.
CHUNK_ROWS = 8_192


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
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Say nothing.")] = False,
) -> None:
    """Assign new texts to the clusters of a run.

    The file is read and written piece by piece: memory does not grow with it. A text gets the same cluster alone,
    in a batch, and in any order; empty texts get cluster -1. What was renamed, merged, split or moved in
    `coterie explore` is so here too: **cluster_name** is what the cluster is called now (empty where there is none).

    **Examples**

    `coterie predict run tomorrow.csv -o tomorrow-clusters.csv`

    `coterie predict run archive.csv.gz --text-column body --id-column ticket -o archive-clusters.csv`
    """
    from coterie.errors import InputError
    from coterie.files import atomic_file
    from coterie.runs.assignments_file import AssignmentWriter
    from coterie.runs.folder import check_free
    from coterie.text.reading import iter_corpus

    if output.is_dir():
        raise InputError(f"{output} is a folder; --output must name a file")
    if output.suffix.lower() != ".csv":
        raise InputError(f"{output}: the output is CSV; give --output a name that ends in .csv")
    if output.exists() and input.exists() and output.samefile(input):
        raise InputError(f"{output} is the input itself; give --output another name")
    check_free(output, overwrite)
    # The new file is looked at before the model is loaded: a wrong column should not cost seconds.
    chunks = iter_corpus(
        input,
        text_column=text_column or _column_of(run, input),
        id_column=id_column,
        keep_columns=columns_to_keep(keep or []),
        chunk_rows=CHUNK_ROWS,
    )
    with _unseen("pandas"):
        import numpy as np

        from coterie.methods.persistence import load
        from coterie.runs.calibration import Calibration
        from coterie.runs.edits import apply_to_new
        from coterie.runs.edits.log import EDITS_FILE

    opened = _opened(run, device)
    if opened is None:
        model, edited, calibration = load(run, device=device), None, Calibration.read(run)
    else:
        model, edited, calibration = opened.model, opened.state_for_new_texts, opened.calibration
    edits = [] if edited is None else edited.applied
    rows = empty = cut = 0
    writer: AssignmentWriter | None = None
    show_count = not quiet and sys.stderr.isatty()
    with atomic_file(output) as stream:
        for corpus in chunks:
            answer = model.assign(corpus)
            labels, confidence = answer.labels, answer.confidence
            if calibration is not None:
                confidence = calibration.confidence(labels, confidence)
            if edits:
                labels, placed = apply_to_new(edits, corpus.texts, labels, model.transform)
                # Where a person has put the very text, nothing is in doubt.
                confidence = np.where(placed, 1.0, confidence)
            writer = writer or AssignmentWriter(
                stream,
                corpus,
                with_texts=not no_text,
                min_confidence=min_confidence,
                names=None if edited is None else edited.names,
            )
            writer.write(corpus, labels, confidence)
            cut += answer.n_truncated
            rows += len(corpus)
            empty += int(corpus.empty.sum())
            if show_count:
                typer.echo(f"\r{rows:,} rows", err=True, nl=False)
    if show_count:
        typer.echo("", err=True)
    if not quiet:
        typer.echo(f"Wrote {rows:,} rows to {output}" + (f", {empty:,} of them empty (cluster -1)." if empty else "."))
        if writer is not None and writer.abstained:
            typer.echo(f"{writer.abstained:,} rows are below a confidence of {min_confidence:g} and stay unassigned.")
        if edits:
            typer.echo(f"As corrected by {len(edits):,} edits in {run / EDITS_FILE}.")
        for note in () if edited is None else edited.notes:
            typer.echo(f"Note: {note}.")
        if calibration is None:
            typer.echo(
                "Note: the model was saved without a calibration: confidence is a margin, not a chance of being right."
            )
        if cut:
            typer.echo(f"Note: distinct texts cut at the model's length limit: {cut:,}.")


def _opened(run: Path, device: str) -> SavedRun | None:
    """Open a run folder; ``None`` for the folder of a model without a run around it."""
    from coterie.runs.clusters_file import CLUSTERS_FILE
    from coterie.runs.run_file import RUN_FILE
    from coterie.runs.saved_run import SavedRun

    is_run = (run / CLUSTERS_FILE).is_file() and (run / RUN_FILE).is_file()
    return SavedRun.open(run, device=device) if is_run else None


@contextmanager
def _unseen(module: str) -> Iterator[None]:
    """What is imported meanwhile goes without ``module``, which it would import if it could.

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


def _column_of(run: Path, input: Path) -> str | None:
    """The text column the run was fitted on, where the new file has it too."""
    import json

    from coterie.text.reading import column_names

    try:
        column = json.loads((run / "run.json").read_text(encoding="utf-8"))["input"]["text_column"]
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return column if column in column_names(input) else None
