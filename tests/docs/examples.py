"""The examples of a Markdown page: its fenced blocks of shell and Python, and the output it shows."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

FENCE = re.compile(r"^```([^\n`]*)\n(.*?)^```\s*$", re.MULTILINE | re.DOTALL)
REASON = re.compile(r"<!-- not run: (.+?) -->\s*\Z")


@dataclass
class Example:
    """One block; ``reason`` says why it is not run, ``shown`` what the page says it prints."""

    language: str
    code: str
    line: int
    reason: str = ""
    shown: str = ""


def examples_of(page: Path) -> list[Example]:
    """Return the blocks in bash and Python, each with the block of text that follows it."""
    text = page.read_text(encoding="utf-8")
    found: list[Example] = []
    for fence in FENCE.finditer(text):
        language = fence[1].strip()
        if language in {"bash", "python"}:
            reason = REASON.search(text[: fence.start()])
            line = text.count("\n", 0, fence.start()) + 1
            found.append(Example(language, fence[2], line, reason[1] if reason else ""))
        elif language == "text" and found:
            found[-1].shown += fence[2]
    return found


def missing_lines(shown: str, printed: str) -> list[str]:
    """Return lines that a page shows and that were not printed; spaces count once, and ``…`` matches anything."""
    lines = [" ".join(line.split()) for line in printed.splitlines()]
    missing = []
    for line in filter(str.strip, shown.splitlines()):
        pattern = re.compile(".*".join(re.escape(part) for part in " ".join(line.split()).split("…")))
        if not any(pattern.fullmatch(each) for each in lines):
            missing.append(line)
    return missing
