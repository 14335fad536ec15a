"""The explorer's server: one run, reachable from this machine only, and no file but those listed here."""

from __future__ import annotations

import json
import re
from collections.abc import Awaitable, Callable, Iterable
from importlib.resources import files
from typing import Any
from urllib.parse import urlsplit

import numpy as np
from fastapi import FastAPI, Request
from fastapi.responses import JSONResponse, Response

from coterie.app.assign_texts import assign_texts
from coterie.app.edit_requests import build_edit
from coterie.app.export import MEDIA, export
from coterie.app.runner_ups import runner_ups_of_rows
from coterie.app.session import PAGE_SIZE, ExplorerSession, TextFilter
from coterie.errors import CoterieError, InputError
from coterie.runs.edits.log import EditConflictError

LOOPBACK = ("127.0.0.1", "localhost", "::1")
# Bytes of a request that are read: a hundred long texts.
MAX_REQUEST_BYTES = 4_000_000
# Texts of one answer.
MAX_LISTED_TEXTS = 500
# Pages by their path: package, file and media type.
PAGES = {
    "/": ("coterie.app", "explorer.html", "text/html; charset=utf-8"),
    "/explorer.js": ("coterie.app", "explorer.js", "text/javascript; charset=utf-8"),
    "/explorer.css": ("coterie.app", "explorer.css", "text/css; charset=utf-8"),
    "/map.js": ("coterie.report.html", "map.js", "text/javascript; charset=utf-8"),
    "/report.css": ("coterie.report.html", "report.css", "text/css; charset=utf-8"),
}
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; connect-src 'self'; form-action 'none'"
)


def create_app(session: ExplorerSession, hosts: Iterable[str] = LOOPBACK) -> FastAPI:
    """Return the application; requests to a host other than ``hosts`` are refused."""
    app = FastAPI(title="Coterie", docs_url=None, redoc_url=None, openapi_url=None)
    _guard(app, frozenset(hosts))
    _serve_pages(app)

    @app.get("/api/run")
    def overview() -> dict[str, Any]:
        with session.lock:
            return session.overview()

    @app.get("/api/texts")
    def texts(
        cluster: int | None = None, query: str = "", lowest_first: bool = False, begin: int = 0, most: int = PAGE_SIZE
    ) -> dict[str, Any]:
        text_filter = TextFilter(cluster, query, lowest_first)
        with session.lock:
            return session.texts(text_filter, max(0, begin), min(max(1, most), MAX_LISTED_TEXTS))

    @app.get("/api/text/{row}")
    def text(row: int) -> dict[str, Any]:
        with session.lock:
            session.rows_with_texts_of([row])
            return session.text(row)

    @app.get("/api/runner-ups")
    def runner_ups(rows: str) -> dict[str, Any]:
        """Runner-ups of texts that are not on the map: a separate request, as they must be embedded first."""
        if not re.fullmatch(r"\d{1,9}(,\d{1,9})*", rows):
            raise InputError(f"rows={rows!r}: give row numbers with commas between them")
        numbers = [int(row) for row in rows.split(",")][:MAX_LISTED_TEXTS]
        session.rows_with_texts_of(numbers)
        state = session.state
        found = runner_ups_of_rows(session, state, np.array(numbers, dtype=np.int64)).tolist()
        return {"runner_ups": {row: state.names[k] for row, k in zip(numbers, found, strict=True) if k in state.names}}

    @app.get("/api/matching")
    def matching(query: str = "", cluster: int | None = None) -> dict[str, Any]:
        with session.lock:
            return {"points": session.matching_points(TextFilter(cluster, query))}

    @app.post("/api/edits")
    async def edits(request: Request) -> dict[str, Any]:
        from starlette.concurrency import run_in_threadpool

        return await run_in_threadpool(_edit, session, await _json(request))

    @app.post("/api/assign")
    async def assigned(request: Request) -> dict[str, Any]:
        from starlette.concurrency import run_in_threadpool

        texts = (await _json(request)).get("texts")
        if not isinstance(texts, list) or not all(isinstance(text, str) for text in texts):
            raise InputError("texts must be a list of strings")
        return {"assigned": await run_in_threadpool(assign_texts, session, texts)}

    @app.get("/api/export/{file_format}")
    def exported(file_format: str) -> Response:
        content = export(session, file_format)
        disposition = f'attachment; filename="coterie-clusters.{file_format}"'
        return Response(content, media_type=MEDIA[file_format], headers={"Content-Disposition": disposition})

    return app


def _edit(session: ExplorerSession, request: dict[str, Any]) -> dict[str, Any]:
    log_lines = request.get("log_lines")
    if not isinstance(log_lines, int):
        raise InputError("log_lines must be the number of lines of the edit log that the page knows of")
    kind = request.get("kind")
    # A split of a large cluster takes seconds; other requests are answered meanwhile.
    edit = None if kind in ("undo", "redo") else build_edit(session, request)
    with session.lock:
        if edit is not None:
            session.edit(edit, log_lines)
        elif kind == "undo":
            session.undo(log_lines)
        else:
            session.redo(log_lines)
        return session.clusters()


async def _json(request: Request) -> dict[str, Any]:
    # A form on another site cannot send this media type.
    if request.headers.get("content-type", "").split(";")[0].strip() != "application/json":
        raise InputError("the content type of the request must be application/json")
    body = b""
    async for piece in request.stream():
        body += piece
        if len(body) > MAX_REQUEST_BYTES:
            raise InputError(f"the request must be smaller than {MAX_REQUEST_BYTES:,} bytes")
    try:
        found = json.loads(body)
    except ValueError as error:
        raise InputError(f"the request is not valid JSON: {error}") from error
    if not isinstance(found, dict):
        raise InputError("the request must be a JSON object")
    return found


def _serve_pages(app: FastAPI) -> None:
    """Serve a fixed list of files: no requested path reaches the disk."""

    def serve(path: str, package: str, name: str, media_type: str) -> None:
        content = files(package).joinpath("page").joinpath(name).read_bytes()

        @app.get(path)
        def page() -> Response:
            return Response(content, media_type=media_type)

    @app.get("/favicon.ico")
    def icon() -> Response:
        return Response(status_code=204)

    for path, (package, name, media_type) in PAGES.items():
        serve(path, package, name, media_type)


def _guard(app: FastAPI, hosts: frozenset[str]) -> None:
    """Return errors as JSON, and refuse other sites: other names of this machine and requests from their pages."""

    @app.exception_handler(CoterieError)
    def explain(request: Request, error: CoterieError) -> JSONResponse:
        return JSONResponse({"error": str(error)}, 409 if isinstance(error, EditConflictError) else 400)

    @app.middleware("http")
    async def check(request: Request, proceed: Callable[[Request], Awaitable[Response]]) -> Response:
        origin = request.headers.get("origin")
        if _host(f"//{request.headers.get('host', '')}") not in hosts:
            return JSONResponse(
                {"error": "the explorer does not answer under this host name; coterie explore prints its address"}, 403
            )
        if origin is not None and (
            _host(origin) not in hosts or urlsplit(origin).netloc != request.headers.get("host")
        ):
            return JSONResponse({"error": "requests from other sites are refused"}, 403)
        answer = await proceed(request)
        answer.headers["Content-Security-Policy"] = POLICY
        answer.headers["X-Content-Type-Options"] = "nosniff"
        answer.headers["Referrer-Policy"] = "no-referrer"
        answer.headers["Cache-Control"] = "no-store"
        return answer


def _host(url: str) -> str | None:
    try:
        return urlsplit(url).hostname
    except ValueError:
        return None
