"""Options that several commands share."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

TextColumn = Annotated[
    str | None, typer.Option("--text-column", help="The column with the texts. [default: text, or the only one]")
]
IdColumn = Annotated[str | None, typer.Option("--id-column", help="A column with ids to carry along.")]
Keep = Annotated[
    list[str] | None, typer.Option("--keep", help="Other columns to carry along (repeat, or a,b), or 'all'.")
]
Device = Annotated[str, typer.Option("--device", help="auto, cpu, cuda or mps.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]
NoText = Annotated[bool, typer.Option("--no-text", help="Write no texts to the output.")]
MinConfidence = Annotated[
    float,
    typer.Option(
        "--min-confidence",
        min=0.0,
        max=1.0,
        help="Leave texts of lower confidence unassigned: cluster -1, the likeliest one in best_guess.",
    ),
]
RunOutput = Annotated[Path, typer.Option("--output", "-o", help="The run folder to write.")]
OverwriteRun = Annotated[bool, typer.Option("--overwrite", help="Replace an existing run folder.")]
By = Annotated[
    list[str] | None, typer.Option("--by", help="Count each cluster by this column, values or dates (repeat, or a,b).")
]
Seed = Annotated[int, typer.Option("--seed", help="The same seed gives the same clusters.")]
Sample = Annotated[
    int | None,
    typer.Option("--sample", help="Fit on a sample of this many distinct texts, and assign the others."),
]


def listed(values: Sequence[str]) -> tuple[str, ...]:
    """Return the values of an option that repeats, each one name or several with commas between, as single names."""
    return tuple(dict.fromkeys(name.strip() for value in values for name in value.split(",") if name.strip()))


def columns_to_keep(keep: Sequence[str]) -> str | tuple[str, ...]:
    """Return ``--keep`` options as :func:`~coterie.text.reading.read_corpus` takes them."""
    names = listed(keep)
    return "all" if names == ("all",) else names
