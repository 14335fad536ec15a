"""Write a report's content into one HTML file that needs no network, and read it back."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Mapping
from importlib.resources import files
from typing import Any


def render_page(content: Mapping[str, Any]) -> str:
    """Return the HTML page; everything from the data stands in it as JSON, never as markup."""
    page = files("coterie.report.html").joinpath("page")
    parts = {
        "title": html.escape(f"{content['about']['title']}: Coterie report"),
        "style": page.joinpath("report.css").read_text(encoding="utf-8"),
        "script": "\n".join(
            page.joinpath(name).read_text(encoding="utf-8") for name in ("map.js", "charts.js", "report.js")
        ),
        "data": script_json(content),
    }
    template = page.joinpath("report.html").read_text(encoding="utf-8")
    # Split instead of replaced one after the other: a text may contain what looks like a placeholder.
    pieces = template.replace("{{", "\0").replace("}}", "\0").split("\0")
    return "".join(piece if place % 2 == 0 else parts[piece] for place, piece in enumerate(pieces))


def read_content(page: str) -> dict[str, Any] | None:
    """Return the content that a page was rendered from; ``None`` where it is not a report of Coterie."""
    found = re.search(r'<script type="application/json" id="data">(.*?)</script>', page, re.DOTALL)
    return None if found is None else dict(json.loads(found[1]))


def script_json(content: Any) -> str:
    """Return JSON that is safe inside a script element: nothing in it can end the element or begin a comment."""
    written = json.dumps(content, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return written.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")
