"""``coterie explore``: look at a run in the browser, and correct it."""

from __future__ import annotations

import socket
from contextlib import suppress
from pathlib import Path
from typing import Annotated

import typer

from coterie.cli.options import Device


def explore(
    run: Annotated[Path, typer.Argument(help="A run folder of coterie fit.")],
    port: Annotated[int, typer.Option(min=0, max=65535, help="Where to listen; 0 for any free port.")] = 8640,
    host: Annotated[str, typer.Option(help="Who can reach it; by default this machine alone.")] = "127.0.0.1",
    browser: Annotated[bool, typer.Option("--browser/--no-browser", help="Open it in the browser.")] = True,
    device: Device = "auto",
) -> None:
    """Explore a run in the browser: search, rename, merge, split, move, export. Needs the extra `app`.

    Every change is kept in **RUN/edits.jsonl** and holds for `coterie predict` from then on; all can be undone. Nothing
    leaves this machine.

    **Examples**

    `coterie explore run`

    `coterie explore run --port 0 --no-browser`
    """
    from coterie.errors import InputError

    try:
        import uvicorn

        from coterie.app.server import LOOPBACK, create_app
    except ModuleNotFoundError as error:
        if error.name not in ("fastapi", "uvicorn", "starlette", "pydantic"):
            raise
        raise InputError("exploring needs FastAPI: pip install 'coterie[app]'") from error
    from coterie.app.session import ExplorerSession

    session = ExplorerSession(run, device=device)
    listening = listen(host, port)
    if not session.has_map:
        typer.echo("Making the map first (the report would have left it) ...", err=True)
    _ = session.map  # made before anybody looks
    bound = listening.getsockname()[1]
    names = {*LOOPBACK, host} if host in LOOPBACK else {*LOOPBACK, host, socket.gethostname(), socket.getfqdn()}
    address = f"http://{f'[{host}]' if ':' in host else host}:{bound}/"
    if host not in LOOPBACK:
        typer.echo(f"Note: whoever can reach {host} can read these texts and change the clusters.", err=True)
    typer.echo(f"Exploring {run} at {address} (Ctrl-C ends it).")
    if browser:
        import webbrowser

        webbrowser.open(address)
    server = uvicorn.Server(
        uvicorn.Config(create_app(session, names), log_level="warning", timeout_graceful_shutdown=2)
    )
    # Ctrl-C is how it is meant to end.
    with suppress(KeyboardInterrupt):
        server.run(sockets=[listening])
    typer.echo(f"{len(session.edits.active):,} edits are kept in {run / 'edits.jsonl'}.")


def listen(host: str, port: int) -> socket.socket:
    """A socket that listens there; a port in use is told before anything is loaded."""
    from coterie.errors import InputError

    listening = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((host, port))
        # From now on a browser waits instead of being refused.
        listening.listen()
    except OSError as error:
        listening.close()
        raise InputError(
            f"{host}:{port} cannot be listened on ({error.strerror or error}); "
            "choose another --port, or --port 0 for any that is free"
        ) from error
    return listening
