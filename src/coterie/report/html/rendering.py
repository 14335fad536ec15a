"""The report as one HTML file that needs no network."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Mapping
from importlib.resources import files
from typing import Any

from coterie.report.html.content import ReportData
from coterie.report.html.page_json import script_json


def render_report(data: ReportData) -> str:
    """The whole page; what comes from the data stands in it as data, never as markup."""
    return render_content(data.content)


def render_content(content: Mapping[str, Any]) -> str:
    """The page of a report's content."""
    page = files("coterie.report.html").joinpath("page")
    parts = {
        "title": html.escape(f"{content['about']['title']}: Coterie report"),
        "style": page.joinpath("report.css").read_text(encoding="utf-8"),
        "script": "\n".join(page.joinpath(name).read_text(encoding="utf-8") for name in ("map.js", "report.js")),
        "data": script_json(content),
    }
    template = page.joinpath("report.html").read_text(encoding="utf-8")
    # Split, not replaced one after the other: a text may hold what looks like a placeholder.
    pieces = template.replace("{{", "\0").replace("}}", "\0").split("\0")
    return "".join(piece if place % 2 == 0 else parts[piece] for place, piece in enumerate(pieces))


def content_of(page: str) -> dict[str, Any] | None:
    """The content that a page was rendered from; ``None`` where it is none of ours."""
    found = re.search(r'<script type="application/json" id="data">(.*?)</script>', page, re.DOTALL)
    return None if found is None else dict(json.loads(found[1]))
