"""``coterie methods``: what there is."""

from __future__ import annotations

import typer

from coterie.cli.options import Json


def methods(json_: Json = False) -> None:
    """List the methods.

    **Examples**

    `coterie methods`

    `coterie methods --json`
    """
    from coterie.methods.registry import METHODS

    if json_:
        import json

        typer.echo(json.dumps([info.to_dict() for info in METHODS], indent=2, ensure_ascii=False))
        return
    from rich import box
    from rich.table import Table

    from coterie.cli.tables import wide_console

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for column in ("--method", "in Python", "what it does", "trains the encoder", "from"):
        table.add_column(column)
    for info in METHODS:
        table.add_row(info.name, info.class_name, info.summary, "yes" if info.trains_encoder else "no", info.citation)
    wide_console().print(table)
