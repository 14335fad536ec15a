"""A server of the explorer for the tests, on a port of its own."""

from __future__ import annotations

import json
import threading
import time
import urllib.error
import urllib.request
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import uvicorn

from coterie.app.server import create_app
from coterie.app.serving import listen
from coterie.app.session import ExplorerSession


class Served:
    """A run folder, served while the block lasts."""

    def __init__(self, run: Path) -> None:
        self.session = ExplorerSession(run, device="cpu")
        self._socket = listen("127.0.0.1", 0)
        self.address = f"http://127.0.0.1:{self._socket.getsockname()[1]}"
        self._server = uvicorn.Server(uvicorn.Config(create_app(self.session), log_level="error"))
        self._thread = threading.Thread(target=self._server.run, kwargs={"sockets": [self._socket]}, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        while not self._server.started:
            time.sleep(0.01)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.should_exit = True
        self._thread.join(10)
        self._socket.close()

    def raw(self, path: str, sent: bytes | None = None, **headers: str) -> tuple[int, bytes]:
        request = urllib.request.Request(self.address + path, data=sent, headers=headers)
        try:
            with urllib.request.urlopen(request, timeout=60) as answer:
                return answer.status, answer.read()
        except urllib.error.HTTPError as error:
            return error.code, error.read()

    def ask(self, path: str, sent: object = None) -> dict[str, Any]:
        body = None if sent is None else json.dumps(sent).encode()
        status, answer = self.raw(path, body, **{"Content-Type": "application/json"})
        return {"status": status, **json.loads(answer)}

    def edit(self, **asked: Any) -> dict[str, Any]:
        return self.ask("/api/edits", {"log_lines": self.session.edits.lines, **asked})
