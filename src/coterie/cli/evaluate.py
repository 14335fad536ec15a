"""``coterie evaluate``: score assignments against known labels."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from coterie.cli.options import Json


def evaluate(
    ctx: typer.Context,
    assignments: Annotated[
        Path, typer.Argument(help="A run folder, its assignments.csv, or what coterie predict wrote.")
    ],
    labels: Annotated[
        Path | None, typer.Option("--labels", help="A file with the true labels; --snapshots and --pairs go without.")
    ] = None,
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
    pairs: Annotated[
        bool, typer.Option("--pairs", help="Show the texts that training drew together or pushed apart instead.")
    ] = False,
    attention: Annotated[
        bool, typer.Option("--attention", help="Score the attention between texts instead (method aecl).")
    ] = False,
    json_: Json = False,
) -> None:
    """Score assignments against known labels.

    Labels are used here and nowhere else. Rows without a label are left out; rows in no cluster count as wrong.

    **Examples**

    `coterie evaluate run/assignments.csv --labels gold.csv --label-column topic`

    `coterie evaluate run/assignments.csv --labels gold.csv --label-column topic --id-column id --json`

    `coterie evaluate run --snapshots` (and with labels, accuracy besides)

    `coterie evaluate run --pairs --labels gold.csv --label-column topic`
    """
    import json

    from coterie.cli.evaluate_run import show_attention, show_pairs, show_snapshots
    from coterie.metrics.external.scores import evaluate as score

    if assignments.is_dir():
        assignments = assignments / "assignments.csv"
    if snapshots + pairs + attention > 1:
        raise typer.BadParameter("one at a time", ctx=ctx, param_hint="--snapshots, --pairs, --attention")
    if labels is None and not (snapshots or pairs):
        raise typer.BadParameter("a file with the true labels is needed", ctx=ctx, param_hint="--labels")
    if snapshots or pairs:
        truth = None if labels is None else matched(assignments, labels, label_column, id_column)[1]
        (show_snapshots if snapshots else show_pairs)(assignments, truth, json_)
        return
    assert labels is not None
    if attention:
        show_attention(assignments, matched(assignments, labels, label_column, id_column)[1], json_)
        return
    clusters, truth = matched(assignments, labels, label_column, id_column)
    scores = score(truth, clusters)
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
    if 0 < scores.n_unassigned < scores.n_rows:
        inside = [place for place, cluster in enumerate(clusters) if cluster >= 0]
        assigned = score([truth[place] for place in inside], [clusters[place] for place in inside])
        table.add_row("  of the rows in a cluster: accuracy", f"{100 * assigned.accuracy:.1f} %")
        table.add_row("  of the rows in a cluster: purity", f"{100 * assigned.purity:.1f} %")
    for name, count in (
        ("labels", scores.n_labels),
        ("clusters with texts", scores.n_clusters),
        ("rows scored", scores.n_rows),
        ("  in no cluster", scores.n_unassigned),
        ("rows without a label, left out", scores.n_without_label),
    ):
        table.add_row(name, f"{count:,}")
    wide_console().print(table)
    if scores.n_clusters > scores.n_labels:
        typer.echo(
            f"Accuracy matches a label with one cluster at most: {scores.n_clusters - scores.n_labels} of "
            f"{scores.n_clusters} clusters have none and count as wrong. Purity and mutual information say more here."
        )


def score_file(assignments: Path, labels: Path, label_column: str, id_column: str | None) -> Any:
    """Scores of an assignments file against a labels file."""
    from coterie.metrics.external.scores import evaluate as score

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
