"""``coterie plot``: a picture of a run."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from coterie.cli.options import Device


def plot(
    what: Annotated[
        list[str], typer.Argument(metavar="RUN... PICTURE", help="Run folders, then: " + "map, curves, sizes, …")
    ],
    output: Annotated[Path, typer.Option("--output", "-o", help="FILE.png, FILE.svg or FILE.html.")],
    labels: Annotated[Path | None, typer.Option(help="A file with true labels.")] = None,
    label_column: Annotated[str, typer.Option(help="The labels' column.")] = "label",
    id_column: Annotated[
        str | None, typer.Option(help="Match the rows of the labels file by this column. [default: row by row]")
    ] = None,
    color: Annotated[str, typer.Option(help="Colours of a map: cluster or label.")] = "cluster",
    sample: Annotated[int | None, typer.Option(min=1, help="The largest number of texts on a map.")] = None,
    device: Device = "auto",
) -> None:
    """Plot a run: map, curves, sizes, confusion, stages, similarity, or k (the criteria behind the number of clusters).

    **Examples**

    `coterie plot run map -o map.png`

    `coterie plot run curves -o curves.svg`

    `coterie plot run confusion --labels gold.csv -o confusion.html`

    `coterie plot run-sccl run-aecl map --labels gold.csv --color label --sample 2000 -o side-by-side.png`

    PNG and SVG need `pip install 'coterie[plot]'`, HTML `pip install 'coterie[plotly]'`.
    """
    from coterie.cli.report import labels_of
    from coterie.errors import SettingError
    from coterie.report.plots.matplotlib_plots import ENDINGS, write_plot
    from coterie.report.plots.plot_data import SUBJECTS, build_plot
    from coterie.report.report_model import ReportModel
    from coterie.runs.saved_run import SavedRun

    *folders, subject = what
    # Checked before anything is loaded.
    if subject not in SUBJECTS or not folders:
        raise SettingError(f"give a run folder, then a plot: coterie plot RUN {'|'.join(SUBJECTS)} -o FILE.png")
    if output.suffix not in ENDINGS:
        raise SettingError(f"--output {output}: the ending must be one of {', '.join(ENDINGS)}")
    runs = []
    for folder in map(Path, folders):
        found = SavedRun.open(folder, device=device)
        runs.append(ReportModel(found, labels=labels_of(folder, labels, label_column, id_column)))
    write_plot(build_plot(runs, subject, color=color, sample=sample), output)
    typer.echo(f"Wrote {output}.")
