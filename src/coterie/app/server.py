"""The explorer's server: one run, on this machine alone, and nothing of the disk but what is named here."""

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

from coterie.app.assign_texts import place
from coterie.app.edit_requests import edit_of
from coterie.app.exporting import MEDIA, export
from coterie.app.runner_ups import next_of_rows
from coterie.app.session import PAGE, Explored, Wanted
from coterie.errors import CoterieError, InputError
from coterie.runs.edits.log import ChangedElsewhereError

LOOPBACK = ("127.0.0.1", "localhost", "::1")
# What is sent to be read at most: a hundred long texts.
LARGEST_REQUEST = 4_000_000
MOST_TEXTS_LISTED = 500
# Pages by the path they are asked for by: their package, file and kind.
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


def explorer(explored: Explored, hosts: Iterable[str] = LOOPBACK) -> FastAPI:
    """The application; requests that name another host than ``hosts`` are refused."""
    app = FastAPI(title="Coterie", docs_url=None, redoc_url=None, openapi_url=None)
    _guard(app, frozenset(hosts))
    _serve_pages(app)

    @app.get("/api/run")
    def overview() -> dict[str, Any]:
        with explored.lock:
            return explored.overview()

    @app.get("/api/texts")
    def texts(
        cluster: int | None = None, query: str = "", weak_first: bool = False, begin: int = 0, most: int = PAGE
    ) -> dict[str, Any]:
        wanted = Wanted(cluster, query, weak_first)
        with explored.lock:
            return explored.texts(wanted, max(0, begin), min(max(1, most), MOST_TEXTS_LISTED))

    @app.get("/api/text/{row}")
    def text(row: int) -> dict[str, Any]:
        with explored.lock:
            explored.rows_with_texts_of([row])
            return explored.text(row)

    @app.get("/api/next")
    def following(rows: str) -> dict[str, Any]:
        """The runner-ups of some texts that are not on the map: asked for apart, as they must be embedded first."""
        if not re.fullmatch(r"\d{1,9}(,\d{1,9})*", rows):
            raise InputError("rows must be numbers with commas between")
        asked = [int(row) for row in rows.split(",")][:MOST_TEXTS_LISTED]
        explored.rows_with_texts_of(asked)
        state = explored.state
        found = next_of_rows(explored, state, np.array(asked, dtype=np.int64)).tolist()
        return {"next": {row: state.names[k] for row, k in zip(asked, found, strict=True) if k in state.names}}

    @app.get("/api/matching")
    def matching(query: str = "", cluster: int | None = None) -> dict[str, Any]:
        with explored.lock:
            return {"points": explored.matching(Wanted(cluster, query))}

    @app.post("/api/edits")
    async def edits(request: Request) -> dict[str, Any]:
        from starlette.concurrency import run_in_threadpool

        return await run_in_threadpool(_edit, explored, await _json(request))

    @app.post("/api/place")
    async def placed(request: Request) -> dict[str, Any]:
        from starlette.concurrency import run_in_threadpool

        asked = await _json(request)
        given = asked.get("texts")
        if not isinstance(given, list) or not all(isinstance(each, str) for each in given):
            raise InputError("texts must be a list of texts")
        return {"placed": await run_in_threadpool(place, explored, given)}

    @app.get("/api/export/{form}")
    def exported(form: str) -> Response:
        content = export(explored, form)
        name = f"coterie-clusters.{form}"
        return Response(
            content, media_type=MEDIA[form], headers={"Content-Disposition": f'attachment; filename="{name}"'}
        )

    return app


def _edit(explored: Explored, asked: dict[str, Any]) -> dict[str, Any]:
    seen = asked.get("seen")
    if not isinstance(seen, int):
        raise InputError("an edit must say how many lines of the log were seen")
    kind = asked.get("kind")
    # To split a large cluster takes seconds, and longer where texts must be embedded: nobody waits for that.
    edit = None if kind in ("undo", "redo") else edit_of(explored, asked)
    with explored.lock:
        if edit is not None:
            explored.edit(edit, seen)
        elif kind == "undo":
            explored.step_back(seen)
        else:
            explored.step_forward(seen)
        return explored.clusters()


async def _json(request: Request) -> dict[str, Any]:
    # A form of another site cannot send this kind.
    if request.headers.get("content-type", "").split(";")[0].strip() != "application/json":
        raise InputError("what is sent must be application/json")
    body = b""
    async for piece in request.stream():
        body += piece
        if len(body) > LARGEST_REQUEST:
            raise InputError(f"what is sent must be smaller than {LARGEST_REQUEST:,} bytes")
    try:
        found = json.loads(body)
    except ValueError as error:
        raise InputError(f"what was sent is no JSON: {error}") from error
    if not isinstance(found, dict):
        raise InputError("what is sent must be a JSON object")
    return found


def _serve_pages(app: FastAPI) -> None:
    """A fixed list: no path that is asked for reaches the disk."""

    def serve(path: str, package: str, name: str, kind: str) -> None:
        content = files(package).joinpath("page").joinpath(name).read_bytes()

        @app.get(path)
        def page() -> Response:
            return Response(content, media_type=kind)

    @app.get("/favicon.ico")
    def icon() -> Response:
        return Response(status_code=204)

    for path, (package, name, kind) in PAGES.items():
        serve(path, package, name, kind)


def _guard(app: FastAPI, hosts: frozenset[str]) -> None:
    """Errors in words, and no answer to other sites: neither by another name of this machine nor from their pages."""

    @app.exception_handler(CoterieError)
    def explain(request: Request, error: CoterieError) -> JSONResponse:
        return JSONResponse({"error": str(error)}, 409 if isinstance(error, ChangedElsewhereError) else 400)

    @app.middleware("http")
    async def check(request: Request, go_on: Callable[[Request], Awaitable[Response]]) -> Response:
        origin = request.headers.get("origin")
        if _host(f"//{request.headers.get('host', '')}") not in hosts:
            return JSONResponse({"error": "this name of the machine is not served"}, 403)
        if origin is not None and (
            _host(origin) not in hosts or urlsplit(origin).netloc != request.headers.get("host")
        ):
            return JSONResponse({"error": "requests of other sites are refused"}, 403)
        answer = await go_on(request)
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
