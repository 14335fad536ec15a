"""``coterie methods``: what there is."""

from __future__ import annotations

from typing import Annotated

import typer

from coterie.cli.options import Json


def methods(
    name: Annotated[str | None, typer.Argument(help="A method, to see its settings.")] = None, json_: Json = False
) -> None:
    """List the methods, or the settings of one.

    **Examples**

    `coterie methods`

    `coterie methods sccl`

    `coterie methods --json`
    """
    from coterie.methods.registry import METHODS, find_method

    if name is not None:
        from coterie.methods.building import setting_defaults

        target = find_method(name).load()
        typer.echo(f"{name}: {(target.__doc__ or '').strip().splitlines()[0]}")
        typer.echo(f"Settings for --set, with their defaults; help(coterie.{target.__name__}) in Python explains them:")
        for key, default in setting_defaults(target).items():
            typer.echo(f"  {key}={'null' if default is None else default}")
        return
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
        # Brackets would be read as a style.
        needs = f" (needs pip install 'coterie\\[{info.requires}]')" if info.requires else ""
        trains = "yes" if info.trains_encoder else "no"
        table.add_row(info.name, info.class_name, info.summary + needs, trains, info.citation or "Coterie's own")
    wide_console().print(table)
