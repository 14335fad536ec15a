"""What ``coterie evaluate`` shows of a run beyond its final clusters: snapshots, pairs of texts, attention."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

if TYPE_CHECKING:
    from coterie.metrics.external.pairs import SentencePair

LABEL_COLUMNS = {"ACC %": "accuracy", "NMI %": "nmi", "ARI %": "ari"}
PLAIN_COLUMNS = {"silhouette": "silhouette", "Dunn": "dunn", "intra": "intra", "inter": "inter"}


def show_snapshots(assignments: Path, truth: Sequence[Any] | None, as_json: bool) -> None:
    """How the run developed, epoch by epoch."""
    from coterie.metrics.external.snapshots import read_snapshots, score_snapshots

    kept, rows = read_snapshots(assignments.parent)
    scores = score_snapshots(kept, rows, truth)
    if as_json:
        typer.echo(json.dumps(scores, indent=2))
        return
    from rich import box
    from rich.table import Table

    from coterie.cli.tables import wide_console

    percents = {} if truth is None else LABEL_COLUMNS
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for column in ("stage", "epoch", "step", *percents, *PLAIN_COLUMNS):
        table.add_column(column, justify="left" if column == "stage" else "right")
    for score in scores:
        cells = [f"{100 * score[name]:.1f}" for name in percents.values()]
        cells += ["-" if score[name] is None else f"{score[name]:.3f}" for name in PLAIN_COLUMNS.values()]
        table.add_row(score["stage"], str(score["epoch"]), str(score["step"]), *cells)
    wide_console().print(table)
    typer.echo("intra: mean distance of texts to their centre; inter: of centres to the nearest other one.")
    typer.echo("Dunn: the narrowest gap between clusters over the widest cluster, of at most 2,000 texts.")


def show_pairs(assignments: Path, truth: Sequence[Any] | None, as_json: bool) -> None:
    """Pairs of texts that training drew together or pushed apart."""
    from coterie.errors import InputError
    from coterie.metrics.external.pairs import labels_of_texts, sentence_pairs
    from coterie.metrics.external.snapshots import read_snapshots

    kept, rows = read_snapshots(assignments.parent)
    texts = texts_of(assignments)
    if len(texts) != len(rows):
        raise InputError(
            f"{assignments} has {len(texts):,} rows, the run's snapshots {len(rows):,}: give the run's own folder"
        )
    n_texts = len(kept[0].embeddings)
    # Of a text that occurs several times the first row stands for all.
    row_of = {place: row for row, place in reversed(list(enumerate(rows.tolist())))}
    labels = None if truth is None else labels_of_texts(rows, truth, n_texts)
    pairs = sentence_pairs(kept, labels)
    if as_json:

        def described(place: int) -> dict[str, Any]:
            known = {} if labels is None else {"label": labels[place]}
            return {"row": row_of[place] + 1, "text": texts[row_of[place]], **known}

        content = {
            "snapshots": [{"stage": each.stage, "epoch": each.epoch, "step": each.step} for each in kept],
            "pairs": [
                {
                    "kind": pair.kind,
                    "first": described(pair.first),
                    "second": described(pair.second),
                    "similarities": list(pair.similarities),
                }
                for pair in pairs
            ],
        }
        typer.echo(json.dumps(content, indent=2, ensure_ascii=False, default=str))
        return
    _print_pairs(pairs, {place: texts[row] for place, row in row_of.items()}, labels)


def _print_pairs(pairs: Sequence[SentencePair], texts: dict[int, str], labels: Sequence[Any] | None) -> None:
    from rich import box
    from rich.table import Table
    from rich.text import Text

    from coterie.cli.tables import wide_console
    from coterie.metrics.external.pairs import KINDS

    console = wide_console()
    for kind, title in KINDS.items():
        of_kind = [pair for pair in pairs if pair.kind == kind]
        if not of_kind:
            continue
        table = Table(title=title, title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False, show_lines=True)
        for column in ("before", "after"):
            table.add_column(column, justify="right", no_wrap=True)
        if labels is not None:
            table.add_column("label", max_width=24)
        table.add_column("texts", ratio=1)
        for pair in of_kind:
            both = (pair.first, pair.second)
            cells = [f"{pair.similarities[0]:.3f}", f"{pair.similarities[-1]:.3f}"]
            named = [] if labels is None else [Text("\n".join(dict.fromkeys(str(labels[i]) for i in both)))]
            table.add_row(*cells, *named, Text("\n".join("- " + " ".join(texts[i].split()) for i in both)))
        console.print(table)
    typer.echo("Cosine similarity before training and after it; --json has every snapshot.")


def show_attention(assignments: Path, truth: Sequence[Any], as_json: bool) -> None:
    """NS and PS of the run's model (AECL) on the run's texts."""
    from coterie.methods.persistence import load
    from coterie.metrics.external.attention import corpus_attention

    texts = texts_of(assignments)
    scores = corpus_attention(load(assignments.parent), texts, truth)
    if as_json:
        typer.echo(json.dumps(scores.to_dict(), indent=2))
        return
    from rich.table import Table

    from coterie.cli.tables import wide_console

    table = Table(show_header=False, box=None, pad_edge=False)
    table.add_row("attention to texts of other labels (NS)", f"{100 * scores.negative:.1f} %")
    table.add_row("  were it spread evenly", f"{100 * scores.even:.1f} %")
    table.add_row("attention to texts of the same label (PS)", f"{100 * scores.positive:.1f} %")
    wide_console().print(table)


def texts_of(assignments: Path) -> list[str]:
    """The texts of an assignments file, row by row."""
    from coterie.text.reading import read_columns

    return ["" if cell is None else str(cell) for cell in read_columns(assignments, ["text"])["text"]]
