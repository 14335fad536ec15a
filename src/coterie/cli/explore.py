"""``coterie explore``: look at a run in the browser, and correct it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from coterie.cli.options import Device


def explore(
    run: Annotated[Path, typer.Argument(help="A run folder of coterie fit.")],
    port: Annotated[int, typer.Option(min=0, max=65535, help="The port to listen on; 0: any free one.")] = 8640,
    host: Annotated[str, typer.Option(help="The address to listen on; default: this machine only.")] = "127.0.0.1",
    browser: Annotated[bool, typer.Option("--browser/--no-browser", help="Open a browser window.")] = True,
    device: Device = "auto",
) -> None:
    """Explore a run in the browser: search, rename, merge, split, move, export. Needs the extra `app`.

    Every change is stored in **RUN/edits.jsonl**, applied by `coterie predict`, and can be undone. Nothing leaves this
    machine.

    **Examples**

    `coterie explore run`

    `coterie explore run --port 0 --no-browser`
    """
    import coterie
    from coterie.runs.edits.log import EDITS_FILE

    opened = coterie.Run.open(run, device=device)
    opened.explore(
        port=port,
        host=host,
        browser=browser,
        progress=lambda sentence: typer.echo(sentence, err=True),
        on_ready=lambda address: typer.echo(f"Exploring {run} at {address} (Ctrl-C ends it)."),
    )
    typer.echo(f"{len(opened.edits.active):,} edits are kept in {run / EDITS_FILE}.")
