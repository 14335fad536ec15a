"""``coterie report``: a run as one HTML page."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from coterie.cli.options import Device, NoText

if TYPE_CHECKING:
    from coterie.report.cards import ClusterCard
    from coterie.report.projection import Kind
    from coterie.report.run import Run

REPORT_FILE = "report.html"


class MapKind(StrEnum):
    """Ways to make a map."""

    TSNE = "tsne"
    UMAP = "umap"
    PCA = "pca"


def report(
    run: Annotated[Path, typer.Argument(help="A run folder of coterie fit.")],
    labels: Annotated[Path | None, typer.Option(help="A file with true labels, to compare with.")] = None,
    label_column: Annotated[str, typer.Option(help="The labels' column.")] = "label",
    id_column: Annotated[
        str | None, typer.Option(help="Match rows of the labels' file by this column (else one by one).")
    ] = None,
    map_: Annotated[MapKind, typer.Option("--map", help="How the map is made; umap is an extra.")] = MapKind.TSNE,
    points: Annotated[int, typer.Option(min=100, help="Texts on the map at most.")] = 20_000,
    no_text: NoText = False,
    output: Annotated[Path | None, typer.Option("--output", "-o", help="[default: RUN/report.html]")] = None,
    device: Device = "auto",
) -> None:
    """Make a run's report anew: one HTML file that opens from disk.

    **Examples**

    `coterie report run`

    `coterie report run --labels labels.csv --label-column topic`

    `coterie report run --no-text -o shareable.html`
    """
    from coterie.report.run import ASSIGNMENTS_FILE, read_run

    path = output or run / REPORT_FILE
    found = read_run(run, device=device)
    truth = labels_of(run / ASSIGNMENTS_FILE, labels, label_column, id_column)
    write_report(found, path, truth, kind=map_.value, points=points, with_texts=not no_text)
    typer.echo(f"Wrote {path} ({path.stat().st_size / 1e6:.1f} MB).")


def add_report(run: Run, labels: Sequence[object] | None = None, *, with_texts: bool = True) -> None:
    """The report of a new run; its clusters.json is told what only the vectors say."""
    from coterie.cli.run_folder import write_cards

    cards = write_report(run, run.folder / REPORT_FILE, labels, with_texts=with_texts)
    write_cards(run.folder, cards, with_texts=with_texts)


def write_report(
    run: Run,
    path: Path,
    labels: Sequence[object] | None = None,
    *,
    kind: Kind = "tsne",
    points: int = 20_000,
    with_texts: bool = True,
) -> tuple[ClusterCard, ...]:
    """Write the report of a run, whole or not at all; the cards of its clusters."""
    from coterie.files import whole_file
    from coterie.report.data import build_report
    from coterie.report.rendering import render_report

    data = build_report(run, labels=labels, kind=kind, points=points, with_texts=with_texts)
    with whole_file(path) as stream:
        stream.write(render_report(data))
    return data.cards


def labels_of(
    assignments: Path, labels: Path | None, label_column: str, id_column: str | None
) -> Sequence[object] | None:
    """The labels of a run's rows from a file, where one is given."""
    from coterie.cli.evaluate import matched

    return None if labels is None else matched(assignments, labels, label_column, id_column)[1]
