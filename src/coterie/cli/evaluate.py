"""``coterie evaluate``: score assignments against known labels."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from coterie.cli.options import Json


def evaluate(
    ctx: typer.Context,
    assignments: Annotated[
        Path, typer.Argument(help="A run folder, its assignments.csv, or a file that coterie predict wrote.")
    ],
    labels: Annotated[
        Path | None,
        typer.Option("--labels", help="A file with the true labels; not needed for --snapshots and --pairs."),
    ] = None,
    label_column: Annotated[str, typer.Option(help="The column with the labels.")] = "label",
    id_column: Annotated[
        str | None,
        typer.Option(help="Match this column of the labels file with 'id' of the assignments. [default: row by row]"),
    ] = None,
    snapshots: Annotated[
        bool, typer.Option("--snapshots", help="Score the snapshots of the run instead (made by fit --snapshots N).")
    ] = False,
    pairs: Annotated[
        bool, typer.Option("--pairs", help="Show instead the pairs of texts that training moved together or apart.")
    ] = False,
    attention: Annotated[
        bool, typer.Option("--attention", help="Score the attention between texts instead (method aecl).")
    ] = False,
    json_: Json = False,
) -> None:
    """Score assignments against known labels.

    Labels are used only for the scores. Rows without a label are left out; rows in no cluster count as wrong.

    **Examples**

    `coterie evaluate run/assignments.csv --labels gold.csv --label-column topic`

    `coterie evaluate run/assignments.csv --labels gold.csv --label-column topic --id-column id --json`

    `coterie evaluate run --snapshots` (with labels, also accuracy)

    `coterie evaluate run --pairs --labels gold.csv --label-column topic`
    """
    if assignments.is_dir():
        assignments = assignments / "assignments.csv"
    if snapshots + pairs + attention > 1:
        raise typer.BadParameter("give only one of these", ctx=ctx, param_hint="--snapshots, --pairs, --attention")
    if labels is None and not (snapshots or pairs):
        raise typer.BadParameter("give a file with the true labels", ctx=ctx, param_hint="--labels")

    from coterie.metrics.external.run_evaluation import attention_of_run, match_labels, pairs_of_run

    clusters: list[int] = []
    truth: list[Any] | None = None
    if labels is not None:
        clusters, truth = match_labels(assignments, labels, label_column, id_column)
    if snapshots:
        _show_snapshots(assignments.parent, truth, json_)
    elif pairs:
        from coterie.cli.evaluate_tables import print_pairs

        found = pairs_of_run(assignments, truth)
        _print_json(found.to_dict()) if json_ else print_pairs(found)
    elif attention:
        from coterie.cli.evaluate_tables import print_attention

        scores = attention_of_run(assignments, truth or [])
        _print_json(scores.to_dict()) if json_ else print_attention(scores)
    else:
        _show_scores(clusters, truth or [], json_)


def _show_scores(clusters: list[int], truth: list[Any], as_json: bool) -> None:
    from coterie.cli.evaluate_tables import print_scores
    from coterie.metrics.external.run_evaluation import score_assigned_rows
    from coterie.metrics.external.scores import evaluate as score

    scores = score(truth, clusters)
    if as_json:
        _print_json(scores.to_dict())
        return
    partly_assigned = 0 < scores.n_unassigned < scores.n_rows
    print_scores(scores, score_assigned_rows(clusters, truth) if partly_assigned else None)


def _show_snapshots(run: Path, truth: list[Any] | None, as_json: bool) -> None:
    from coterie.cli.evaluate_tables import print_snapshots
    from coterie.metrics.external.run_evaluation import read_snapshots
    from coterie.metrics.external.snapshots import score_snapshots

    scores = score_snapshots(*read_snapshots(run), truth)
    _print_json(scores) if as_json else print_snapshots(scores, with_labels=truth is not None)


def _print_json(content: Any) -> None:
    import json

    typer.echo(json.dumps(content, indent=2, ensure_ascii=False, default=str))
