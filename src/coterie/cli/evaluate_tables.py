"""Tables that ``coterie evaluate`` prints."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import typer

from coterie.cli.tables import wide_console

if TYPE_CHECKING:
    from rich.table import Table

    from coterie.metrics.external.attention import AttentionScores
    from coterie.metrics.external.pairs import SentencePair
    from coterie.metrics.external.run_evaluation import RunPairs
    from coterie.metrics.external.scores import Scores

# Columns of the table of snapshots, with the names of their scores.
LABEL_COLUMNS = {"ACC %": "accuracy", "NMI %": "nmi", "ARI %": "ari"}
LABEL_FREE_COLUMNS = {"silhouette": "silhouette", "Dunn": "dunn", "intra": "intra", "inter": "inter"}

# Width of the column of labels, in characters: longer labels are wrapped.
LABEL_WIDTH = 24


def print_scores(scores: Scores, of_assigned: Scores | None) -> None:
    """Print the scores of an assignments file; ``of_assigned`` are those of the rows in a cluster alone."""
    table = _plain_table()
    for name, value in (
        ("accuracy (best one-to-one match)", scores.accuracy),
        ("normalised mutual information", scores.nmi),
        ("  with the geometric mean", scores.nmi_geometric),
        ("adjusted Rand index", scores.ari),
        ("purity", scores.purity),
    ):
        table.add_row(name, f"{100 * value:.1f} %")
    if of_assigned is not None:
        table.add_row("  of the rows in a cluster: accuracy", f"{100 * of_assigned.accuracy:.1f} %")
        table.add_row("  of the rows in a cluster: purity", f"{100 * of_assigned.purity:.1f} %")
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
            f"Accuracy matches each label with at most one cluster: {scores.n_clusters - scores.n_labels} of "
            f"{scores.n_clusters} clusters have none and count as wrong. Purity and mutual information say more here."
        )


def print_snapshots(scores: Sequence[dict[str, Any]], *, with_labels: bool) -> None:
    """Print the scores of a run's snapshots, one row per epoch."""
    from rich import box
    from rich.table import Table

    percentages = LABEL_COLUMNS if with_labels else {}
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for column in ("stage", "epoch", "step", *percentages, *LABEL_FREE_COLUMNS):
        table.add_column(column, justify="left" if column == "stage" else "right")
    for score in scores:
        cells = [f"{100 * score[name]:.1f}" for name in percentages.values()]
        cells += ["-" if score[name] is None else f"{score[name]:.3f}" for name in LABEL_FREE_COLUMNS.values()]
        table.add_row(score["stage"], str(score["epoch"]), str(score["step"]), *cells)
    wide_console().print(table)
    typer.echo("intra: mean distance of texts to their centre; inter: of centres to the nearest other one.")
    typer.echo("Dunn: the narrowest gap between clusters over the widest cluster, of at most 2,000 texts.")


def print_pairs(found: RunPairs) -> None:
    """Print pairs of texts with their similarities before and after training, one table per kind."""
    from coterie.metrics.external.pairs import KINDS

    console = wide_console()
    for kind, title in KINDS.items():
        of_kind = [pair for pair in found.pairs if pair.kind == kind]
        if of_kind:
            console.print(_pairs_table(title, of_kind, found))
    typer.echo("Cosine similarity before training and after it; --json has every snapshot.")


def _pairs_table(title: str, pairs: Sequence[SentencePair], found: RunPairs) -> Table:
    from rich import box
    from rich.table import Table
    from rich.text import Text

    table = Table(title=title, title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False, show_lines=True)
    for column in ("before", "after"):
        table.add_column(column, justify="right", no_wrap=True)
    if found.labels is not None:
        table.add_column("label", max_width=LABEL_WIDTH)
    table.add_column("texts", ratio=1)
    for pair in pairs:
        both = (pair.first, pair.second)
        cells: list[str | Text] = [f"{pair.similarities[0]:.3f}", f"{pair.similarities[-1]:.3f}"]
        if found.labels is not None:
            cells.append(Text("\n".join(dict.fromkeys(str(found.labels[place]) for place in both))))
        cells.append(Text("\n".join("- " + " ".join(found.text(place).split()) for place in both)))
        table.add_row(*cells)
    return table


def print_attention(scores: AttentionScores) -> None:
    """Print NS and PS of a run's model."""
    table = _plain_table()
    table.add_row("attention to texts of other labels (NS)", f"{100 * scores.negative:.1f} %")
    table.add_row("  if it were spread evenly", f"{100 * scores.even:.1f} %")
    table.add_row("attention to texts of the same label (PS)", f"{100 * scores.positive:.1f} %")
    wide_console().print(table)


def _plain_table() -> Table:
    from rich.table import Table

    return Table(show_header=False, box=None, pad_edge=False)
