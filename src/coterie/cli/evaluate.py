"""``coterie evaluate``: score assignments against known labels."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer


def evaluate(
    assignments: Annotated[Path, typer.Argument(help="assignments.csv of a run, or the output of coterie predict.")],
    labels: Annotated[Path, typer.Option("--labels", help="A file with the true labels.")],
    label_column: Annotated[str, typer.Option(help="The column with the labels.")] = "label",
    id_column: Annotated[
        str | None,
        typer.Option(
            help="Match rows by this column of the labels file and 'id' of the assignments. [default: row by row]"
        ),
    ] = None,
    json_: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Score assignments against known labels.

    Labels are used here and nowhere else. Rows without a label are left out; rows in no cluster count as wrong.

    **Examples**

    `coterie evaluate run/assignments.csv --labels gold.csv --label-column topic`

    `coterie evaluate run/assignments.csv --labels gold.csv --label-column topic --id-column id --json`
    """
    import json

    scores = score_file(assignments, labels, label_column, id_column)
    if json_:
        typer.echo(json.dumps(scores.to_dict(), indent=2))
        return
    from rich.table import Table

    from coterie.cli.tables import wide_console

    table = Table(show_header=False, box=None, pad_edge=False)
    for name, value in (
        ("accuracy (best one-to-one match)", scores.accuracy),
        ("normalised mutual information", scores.nmi),
        ("  with the geometric mean", scores.nmi_geometric),
        ("adjusted Rand index", scores.ari),
        ("purity", scores.purity),
    ):
        table.add_row(name, f"{100 * value:.1f}")
    for name, count in (
        ("clusters with texts", scores.n_clusters),
        ("rows scored", scores.n_rows),
        ("  in no cluster", scores.n_unassigned),
        ("rows without a label, left out", scores.n_without_label),
    ):
        table.add_row(name, f"{count:,}")
    wide_console().print(table)


def score_file(assignments: Path, labels: Path, label_column: str, id_column: str | None) -> Any:
    """Scores of an assignments file against a labels file."""
    from coterie.errors import InputError
    from coterie.evaluation.external import evaluate as score
    from coterie.text.reading import read_columns

    wanted = ["cluster"] if id_column is None else ["cluster", "id"]
    ours = read_columns(assignments, wanted)
    try:
        clusters = [int(str(value)) for value in ours["cluster"]]
    except ValueError as error:
        raise InputError(f"{assignments}: column 'cluster' must hold whole numbers: {error}") from error
    theirs = read_columns(labels, [label_column] if id_column is None else [label_column, id_column])
    truth = theirs[label_column]
    if id_column is not None:
        by_id = {str(key): label for key, label in zip(theirs[id_column], truth, strict=True)}
        missing = [key for key in ours["id"] if str(key) not in by_id]
        if missing:
            raise InputError(f"{labels}: no row with {id_column} {missing[0]!r} (and {len(missing) - 1} more missing)")
        truth = [by_id[str(key)] for key in ours["id"]]
    elif len(truth) != len(clusters):
        raise InputError(
            f"{labels} has {len(truth):,} rows, {assignments} has {len(clusters):,}: rows are matched one by one "
            "(or match them by id with --id-column)"
        )
    return score(truth, clusters)
