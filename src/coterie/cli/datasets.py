"""``coterie datasets``: list, fetch and find the data sets of the papers and the bundled sample."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from coterie.cli.options import Json

if TYPE_CHECKING:
    from coterie.datasets.cards import DatasetCard

app = typer.Typer(help="List, download and find data sets.", no_args_is_help=True, rich_markup_mode="markdown")


@app.command("list")
def list_(json_: Json = False) -> None:
    """List the data sets, and which of them are on this machine.

    **Example**

    `coterie datasets list`
    """
    from coterie.datasets.cards import list_datasets

    cards = list_datasets()
    if json_:
        import json
        from dataclasses import asdict

        typer.echo(json.dumps([asdict(card) for card in cards], indent=2, ensure_ascii=False, default=str))
        return
    _print_cards(cards)


def _print_cards(cards: Sequence[DatasetCard]) -> None:
    from rich import box
    from rich.table import Table

    from coterie.cli.tables import wide_console

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for column in ("name", "texts", "classes", "on this machine", "for", "what the text is"):
        table.add_column(
            column, justify="right" if column in {"texts", "classes"} else "left", no_wrap=column == "name"
        )
    for card in cards:
        table.add_row(
            card.name,
            "" if card.rows is None else f"{card.rows:,}",
            "" if card.classes is None else str(card.classes),
            _availability(card),
            "tuning" if card.tuning_only else "trying out" if card.bundled else "measuring",
            card.treatment,
        )
    wide_console().print(table)


def _availability(card: DatasetCard) -> str:
    from coterie.datasets.loading import find_dataset

    if card.bundled:
        return "bundled"
    if find_dataset(card.name) is not None:
        return "yes"
    return "no: fetch it" if card.fetchable else "no: bring your own"


@app.command("fetch")
def fetch(
    name: Annotated[str, typer.Argument(help="See: coterie datasets list.")],
    force: Annotated[bool, typer.Option("--force", help="Download it again even if the cache has it.")] = False,
) -> None:
    """Download a data set from its public repository into the cache, and check its checksum.

    **Example**

    `coterie datasets fetch stackoverflow`
    """
    from coterie.datasets.loading import fetch_dataset

    typer.echo(str(fetch_dataset(name, force=force)))


@app.command("path")
def path(name: Annotated[str, typer.Argument(help="See: coterie datasets list.")]) -> None:
    """Print the path of a data set.

    **Example**

    `coterie fit "$(coterie datasets path stackoverflow)" -k 20 -o run`
    """
    from coterie.datasets.cards import dataset_card
    from coterie.datasets.loading import find_dataset
    from coterie.errors import DatasetNotFoundError

    card = dataset_card(name)
    found = find_dataset(name)
    if found is None:
        raise DatasetNotFoundError(
            f"{name} is not on this machine: set COTERIE_DATA to a folder that holds {name}.csv.gz"
            + (f", or run coterie datasets fetch {name}" if card.fetchable else "")
        )
    typer.echo(str(found))
