"""``coterie methods``: the methods and their settings."""

from __future__ import annotations

from typing import Annotated

import typer

from coterie.cli.options import Json


def methods(
    name: Annotated[str | None, typer.Argument(help="A method, to see its settings.")] = None, json_: Json = False
) -> None:
    """List the methods, or the settings of one method.

    **Examples**

    `coterie methods`

    `coterie methods sccl`

    `coterie methods --json`
    """
    if name is not None:
        _print_settings(name)
    elif json_:
        import json

        from coterie.methods.registry import METHODS

        typer.echo(json.dumps([info.to_dict() for info in METHODS], indent=2, ensure_ascii=False))
    else:
        _print_methods()


def _print_settings(name: str) -> None:
    from coterie.methods.build_method import setting_defaults
    from coterie.methods.registry import find_method

    method = find_method(name).load()
    typer.echo(f"{name}: {(method.__doc__ or '').strip().splitlines()[0]}")
    typer.echo(f"Settings for --set, with their defaults; help(coterie.{method.__name__}) in Python explains them:")
    for key, default in setting_defaults(method).items():
        typer.echo(f"  {key}={'null' if default is None else default}")


def _print_methods() -> None:
    from rich import box
    from rich.table import Table

    from coterie.cli.tables import wide_console
    from coterie.methods.registry import METHODS

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for column in ("--method", "in Python", "what it does", "trains the encoder", "from"):
        table.add_column(column)
    for info in METHODS:
        # rich reads unescaped brackets as a style.
        needs = f" (needs pip install 'coterie\\[{info.requires}]')" if info.requires else ""
        trains = "yes" if info.trains_encoder else "no"
        table.add_row(info.name, info.class_name, info.summary + needs, trains, info.citation or "Coterie's own")
    wide_console().print(table)
