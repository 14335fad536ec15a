"""``coterie report``: a run as one HTML page."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from coterie.cli.options import By, Device, NoText, listed

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from coterie.describe.breakdown import Breakdown
    from coterie.describe.cards import ClusterCard
    from coterie.report.projection import ProjectionKind
    from coterie.runs.saved_run import SavedRun

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
    by: By = None,
    name_with: Annotated[
        str | None,
        typer.Option(
            metavar="URL",
            help="Name clusters by a language model at this OpenAI-compatible address (mostly one that ends in /v1); "
            "a key is taken from COTERIE_API_KEY or OPENAI_API_KEY.",
        ),
    ] = None,
    model: Annotated[str | None, typer.Option(metavar="NAME", help="The language model's name there.")] = None,
    name_clusters: Annotated[
        str | None, typer.Option(metavar="IDS", help="Clusters to name: 0,3,7-9. [default: all]")
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Send it without asking.")] = False,
    no_text: NoText = False,
    output: Annotated[Path | None, typer.Option("--output", "-o", help="[default: RUN/report.html]")] = None,
    device: Device = "auto",
) -> None:
    """Make a run's report anew: one HTML file that opens from disk.

    **Examples**

    `coterie report run`

    `coterie report run --labels labels.csv --label-column topic`

    `coterie report run --no-text -o shareable.html`

    `coterie report run --by country --by date` (columns that the fit kept)

    `coterie report run --name-with http://localhost:11434/v1 --model llama3.2 --name-clusters 0,3,7-9`

    With **--labels** every card says what most of its texts are labelled, and the map can be coloured by label.

    Names and clusters are as they were left in `coterie explore` (**edits.jsonl**); **clusters.json** and
    **assignments.csv** stay as the fit wrote them.

    Names from a language model are asked for after an estimate and your consent; **names.json** keeps them for later
    reports, and **clusters.json** tells them beside those made of keywords. Nothing else sends anything anywhere.
    """
    from coterie.cli.name_clusters import check_options
    from coterie.cli.name_clusters import name_clusters as ask_for_names
    from coterie.runs.assignments_file import ASSIGNMENTS_FILE
    from coterie.runs.edits.log import EDITS_FILE
    from coterie.runs.names_file import NAMES_FILE
    from coterie.runs.saved_run import SavedRun

    path = output or run / REPORT_FILE
    check_options(name_with, model, name_clusters, yes)
    found = SavedRun.open(run, device=device)
    columns = listed(by or []) or found.about.get("by", ())
    # Of the clusters as they were fitted, for clusters.json.
    counted = breakdowns_of(found, columns, found.fitted_labels) if columns else []
    truth = labels_of(run / ASSIGNMENTS_FILE, labels, label_column, id_column)
    # All that is cheap to check is checked before anything is sent and paid for.
    if name_with is not None:
        ask_for_names(found, name_with, model or "", name_clusters, yes=yes, with_texts=not no_text)
    if (counted or name_with) and labels is None and not found.holds_texts:
        _retell(found, path, counted)
        return
    now = breakdowns_of(found, columns, found.labels) if columns and found.edited is not None else counted
    write_report(found, path, truth, kind=map_.value, points=points, with_texts=not no_text, by=now)
    if counted or (run / NAMES_FILE).is_file():
        _update_cards(found, counted)
    _tell_notes(counted)
    if found.edited is not None:
        typer.echo(f"As corrected by {_edits(len(found.edited.applied))} in {run / EDITS_FILE}.")
    typer.echo(f"Wrote {path} ({path.stat().st_size / 1e6:.1f} MB).")


def _edits(count: int) -> str:
    return "1 edit" if count == 1 else f"{count:,} edits"


def breakdowns_of(run: SavedRun, columns: Sequence[str], clusters: NDArray[np.int64]) -> list[Breakdown]:
    """Count the clusters of a run's rows over columns that its fit kept."""
    from coterie.describe.breakdown import break_down

    return [break_down(name, cells, clusters) for name, cells in run.kept_columns(columns).items()]


def _update_cards(run: SavedRun, counted: Sequence[Breakdown]) -> list[ClusterCard]:
    """Write names of a language model and counts by columns into clusters.json; return its cards."""
    from coterie.describe.breakdown import with_breakdowns
    from coterie.describe.language_model_names import with_names
    from coterie.runs.clusters_file import read_cards, update_cards

    cards = with_names(read_cards(run.folder), run.known_names.clusters)
    cards = with_breakdowns(cards, counted) if counted else cards
    update_cards(run.folder, cards)
    run.refresh()
    return cards


def _retell(run: SavedRun, path: Path, counted: Sequence[Breakdown]) -> None:
    """Write names and columns into the report that the fit of a run without texts left: only a fit can make more."""
    from coterie.files import atomic_file
    from coterie.report.html.update import update_page
    from coterie.runs.clusters_file import CLUSTERS_FILE

    cards = _update_cards(run, counted)
    _tell_notes(counted)
    made = run.folder / REPORT_FILE
    if not made.is_file():
        typer.echo(f"Wrote {run.folder / CLUSTERS_FILE}; a run without texts gets its report when it is fitted.")
        return
    page = update_page(made.read_text(encoding="utf-8"), cards, counted)
    with atomic_file(path) as stream:
        stream.write(page)
    typer.echo(f"Wrote {path} ({path.stat().st_size / 1e6:.1f} MB).")


def _tell_notes(counted: Sequence[Breakdown]) -> None:
    for each in counted:
        if each.note:
            typer.echo(f"Note: {each.note}.")


def add_report(
    run: SavedRun,
    labels: Sequence[object] | None = None,
    *,
    with_texts: bool = True,
    by: Sequence[Breakdown] = (),
) -> None:
    """The report of a new run; its clusters.json is told what only the vectors say."""
    from coterie.runs.clusters_file import write_cards

    cards = write_report(run, run.folder / REPORT_FILE, labels, with_texts=with_texts, by=by)
    write_cards(run.folder, cards, with_texts=with_texts)


def write_report(
    run: SavedRun,
    path: Path,
    labels: Sequence[object] | None = None,
    *,
    kind: ProjectionKind = "tsne",
    points: int = 20_000,
    with_texts: bool = True,
    by: Sequence[Breakdown] = (),
) -> tuple[ClusterCard, ...]:
    """Write the report of a run, whole or not at all; the cards of its clusters."""
    from coterie.files import atomic_file
    from coterie.report.html.content import build_report
    from coterie.report.html.rendering import render_page

    data = build_report(run, labels=labels, kind=kind, points=points, with_texts=with_texts, by=by)
    with atomic_file(path) as stream:
        stream.write(render_page(data.content))
    if with_texts and path == run.folder / REPORT_FILE:
        run.store_map(data.model.stored_map)
    return data.cards


def labels_of(
    assignments: Path, labels: Path | None, label_column: str, id_column: str | None
) -> Sequence[object] | None:
    """The labels of a run's rows from a file, where one is given."""
    from coterie.metrics.external.run_evaluation import match_labels

    return None if labels is None else match_labels(assignments, labels, label_column, id_column)[1]
