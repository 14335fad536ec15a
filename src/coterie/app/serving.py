"""Serve a run to the browser of this machine."""

from __future__ import annotations

import socket
from collections.abc import Callable
from contextlib import suppress

import uvicorn

from coterie.app.server import LOOPBACK, create_app
from coterie.app.session import ExplorerSession
from coterie.errors import InputError
from coterie.runs.saved_run import SavedRun


def serve(
    run: SavedRun,
    *,
    port: int = 8640,
    host: str = "127.0.0.1",
    browser: bool = True,
    progress: Callable[[str], object] | None = None,
    on_ready: Callable[[str], object] | None = None,
) -> None:
    """Serve ``run`` until it is interrupted (Ctrl-C); the parameters are those of :meth:`coterie.Run.explore`."""
    inform = progress or (lambda sentence: None)
    session = ExplorerSession(run)
    listening = listen(host, port)
    if not session.has_map:
        inform("This run has no map yet: making one, which embeds all texts ...")
    _ = session.map  # made before the first request
    bound = listening.getsockname()[1]
    names = {*LOOPBACK, host} if host in LOOPBACK else {*LOOPBACK, host, socket.gethostname(), socket.getfqdn()}
    address = f"http://{f'[{host}]' if ':' in host else host}:{bound}/"
    if host not in LOOPBACK:
        inform(f"Note: everyone who can reach {host} can read these texts and change the clusters.")
    if on_ready is not None:
        on_ready(address)
    if browser:
        import webbrowser

        webbrowser.open(address)
    config = uvicorn.Config(create_app(session, names), log_level="warning", timeout_graceful_shutdown=2)
    server = uvicorn.Server(config)
    # Ctrl-C is the normal way to stop the server.
    with suppress(KeyboardInterrupt):
        server.run(sockets=[listening])


def listen(host: str, port: int) -> socket.socket:
    """Return a socket that listens on the address; raise where the port is in use, before anything is loaded."""
    listening = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((host, port))
        # From now on a browser waits for the server instead of getting an error.
        listening.listen()
    except OSError as error:
        listening.close()
        raise InputError(
            f"the explorer cannot listen on {host}:{port} ({error.strerror or error}): "
            "choose another --port, or --port 0 for any free one"
        ) from error
    return listening
