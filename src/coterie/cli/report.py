"""``coterie report``: a run as one HTML page."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from coterie.cli.options import By, Device, NoText, listed
from coterie.formatting import counted


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
        str | None, typer.Option(help="Match the rows of the labels file by this column. [default: row by row]")
    ] = None,
    map_: Annotated[MapKind, typer.Option("--map", help="How the map is made; umap is an extra.")] = MapKind.TSNE,
    points: Annotated[int, typer.Option(min=100, help="The largest number of texts on the map.")] = 20_000,
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
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Send the texts without asking for consent.")] = False,
    no_text: NoText = False,
    output: Annotated[Path | None, typer.Option("--output", "-o", help="[default: RUN/report.html]")] = None,
    device: Device = "auto",
) -> None:
    """Write the report of a run: one HTML file that opens from disk.

    **Examples**

    `coterie report run`

    `coterie report run --labels labels.csv --label-column topic`

    `coterie report run --no-text -o shareable.html`

    `coterie report run --by country --by date` (columns that the fit kept)

    `coterie report run --name-with http://localhost:11434/v1 --model llama3.2 --name-clusters 0,3,7-9`

    With **--labels** every card shows the most frequent label of its texts, and the map can be coloured by label.

    The report shows the run with the edits made in `coterie explore` (**edits.jsonl**). **clusters.json** and
    **assignments.csv** stay as the fit wrote them.

    A language model is asked for names after an estimate and your consent. **names.json** keeps them for later reports,
    and **clusters.json** lists them beside the names made of keywords. Nothing else is sent anywhere.
    """
    import coterie
    from coterie.api.reporting import breakdowns, report_run
    from coterie.cli.name_clusters import check_options
    from coterie.cli.name_clusters import name_clusters as ask_for_names

    check_options(name_with, model, name_clusters, yes)
    opened = coterie.Run.open(run, device=device)
    columns = listed(by or [])
    # All that is cheap to check is checked before anything is sent and paid for.
    breakdowns(opened, columns, opened.fitted_labels)
    truth = labels_of(run, labels, label_column, id_column)
    if name_with is not None:
        ask_for_names(opened, name_with, model or "", name_clusters, yes=yes, with_texts=not no_text)
    written = report_run(
        opened, output, labels=truth, map=map_.value, points=points, by=columns, with_texts=not no_text
    )
    for note in written.notes:
        typer.echo(f"Note: {note}.")
    if not written.is_page:
        typer.echo(f"Wrote {written.path}; a run without texts gets its report when it is fitted.")
        return
    if opened.edited is not None:
        count = len(opened.edited.applied)
        typer.echo(f"As corrected by {counted(count, 'edit')} in {opened.edit_log.path}.")
    typer.echo(f"Wrote {written.path} ({written.path.stat().st_size / 1e6:.1f} MB).")


def labels_of(run: Path, labels: Path | None, label_column: str, id_column: str | None) -> Sequence[object] | None:
    """Return the labels of a run's rows from a file, where one is given."""
    from coterie.metrics.external.run_evaluation import match_labels
    from coterie.runs.assignments_file import ASSIGNMENTS_FILE

    return None if labels is None else match_labels(run / ASSIGNMENTS_FILE, labels, label_column, id_column)[1]
