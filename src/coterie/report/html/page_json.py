"""JSON as it may stand in a page."""

from __future__ import annotations

import json
from typing import Any


def script_json(content: Any) -> str:
    """JSON that may stand inside a script element: nothing in it can end the element or begin a comment."""
    told = json.dumps(content, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return told.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")
