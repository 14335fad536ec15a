"""``coterie evaluate``: score assignments against known labels."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from coterie.cli.options import Json


def evaluate(
    assignments: Annotated[
        Path, typer.Argument(help="A run folder, its assignments.csv, or what coterie predict wrote.")
    ],
    labels: Annotated[Path, typer.Option("--labels", help="A file with the true labels.")],
    label_column: Annotated[str, typer.Option(help="The column with the labels.")] = "label",
    id_column: Annotated[
        str | None,
        typer.Option(
            help="Match rows by this column of the labels file and 'id' of the assignments. [default: row by row]"
        ),
    ] = None,
    snapshots: Annotated[
        bool, typer.Option("--snapshots", help="Score the snapshots of the run (fit --snapshots N) instead.")
    ] = False,
    json_: Json = False,
) -> None:
    """Score assignments against known labels.

    Labels are used here and nowhere else. Rows without a label are left out; rows in no cluster count as wrong.

    **Examples**

    `coterie evaluate run/assignments.csv --labels gold.csv --label-column topic`

    `coterie evaluate run/assignments.csv --labels gold.csv --label-column topic --id-column id --json`

    `coterie evaluate run/assignments.csv --labels gold.csv --label-column topic --snapshots`
    """
    import json

    if assignments.is_dir():
        assignments = assignments / "assignments.csv"
    if snapshots:
        _show_snapshots(assignments, labels, label_column, id_column, json_)
        return
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
        table.add_row(name, f"{100 * value:.1f} %")
    for name, count in (
        ("clusters with texts", scores.n_clusters),
        ("rows scored", scores.n_rows),
        ("  in no cluster", scores.n_unassigned),
        ("rows without a label, left out", scores.n_without_label),
    ):
        table.add_row(name, f"{count:,}")
    wide_console().print(table)


def _show_snapshots(assignments: Path, labels: Path, label_column: str, id_column: str | None, as_json: bool) -> None:
    """How the run developed, epoch by epoch."""
    import json

    from coterie.evaluation.snapshots import read_snapshots, score_snapshots

    _, truth = matched(assignments, labels, label_column, id_column)
    kept, rows = read_snapshots(assignments.parent)
    scores = score_snapshots(kept, rows, truth)
    if as_json:
        typer.echo(json.dumps(scores, indent=2))
        return
    from rich import box
    from rich.table import Table

    from coterie.cli.tables import wide_console

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for column in ("stage", "epoch", "step", "ACC %", "NMI %", "ARI %", "silhouette", "intra", "inter"):
        table.add_column(column, justify="left" if column == "stage" else "right")
    for score in scores:
        percents = [f"{100 * score[name]:.1f}" for name in ("accuracy", "nmi", "ari")]
        plain = [f"{score[name]:.3f}" for name in ("silhouette", "intra", "inter")]
        table.add_row(score["stage"], str(score["epoch"]), str(score["step"]), *percents, *plain)
    wide_console().print(table)
    typer.echo("intra: mean distance of texts to their centre; inter: of centres to the nearest other one.")


def score_file(assignments: Path, labels: Path, label_column: str, id_column: str | None) -> Any:
    """Scores of an assignments file against a labels file."""
    from coterie.evaluation.external import evaluate as score

    clusters, truth = matched(assignments, labels, label_column, id_column)
    return score(truth, clusters)


def matched(
    assignments: Path, labels: Path, label_column: str, id_column: str | None
) -> tuple[list[int], list[object]]:
    """Clusters and labels, row for row."""
    from coterie.errors import InputError
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
        if len({str(key) for key in theirs[id_column]}) < len(truth):
            raise InputError(
                f"{labels}: column {id_column!r} holds an id twice; ids must be unique to match rows by them"
            )
        by_id = {str(key): label for key, label in zip(theirs[id_column], truth, strict=True)}
        # Labels of a sample are the usual case: rows that have none are left out and counted.
        truth = [by_id.get(str(key)) for key in ours["id"]]
        if not any(str(key) in by_id for key in ours["id"]):
            raise InputError(f"{labels}: none of the ids in column {id_column!r} is in {assignments}")
    elif len(truth) != len(clusters):
        raise InputError(
            f"{labels} has {len(truth):,} rows, {assignments} has {len(clusters):,}: rows are matched one by one "
            "(or match them by id with --id-column)"
        )
    return clusters, truth
