"""A language model's endpoint for the tests: a real HTTP server in a thread, answering by a script."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self


@dataclass(frozen=True)
class Reply:
    """What the server sends back."""

    body: bytes = b""
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    after: float = 0.0


def says(content: object) -> Reply:
    """An answer as chat completions have it."""
    return Reply(json.dumps({"choices": [{"message": {"role": "assistant", "content": content}}]}).encode())


def fails(status: int, message: str = "no", **headers: str) -> Reply:
    output = json.dumps({"error": {"message": message}}).encode()
    return Reply(output, status, {name.replace("_", "-"): value for name, value in headers.items()})


@dataclass(frozen=True)
class Request:
    path: str
    headers: Mapping[str, str]
    body: dict[str, Any]

    @property
    def question(self) -> str:
        return str(self.body["messages"][-1]["content"])


class ChatServer:
    """Replies one after the other (the last for good), or by a function of the request."""

    def __init__(self, replies: Sequence[Reply] | Callable[[Request], Reply]) -> None:
        self.requests: list[Request] = []
        ours = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                request = Request(self.path, dict(self.headers), body)
                ours.requests.append(request)
                number = min(len(ours.requests), len(replies)) - 1 if not callable(replies) else 0
                reply = replies(request) if callable(replies) else replies[number]
                time.sleep(reply.after)
                try:
                    self.send_response(reply.status)
                    for name, value in {"Content-Length": str(len(reply.body)), **reply.headers}.items():
                        self.send_header(name, value)
                    self.end_headers()
                    self.wfile.write(reply.body)
                except OSError:  # the other side has left
                    pass

            def log_message(self, *_: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True)

    @property
    def host(self) -> str:
        return f"127.0.0.1:{self._server.server_address[1]}"

    @property
    def url(self) -> str:
        return f"http://{self.host}/v1"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()
