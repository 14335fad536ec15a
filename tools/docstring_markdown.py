"""A numpy-style docstring as Markdown: paragraphs, tables of parameters, lists, examples."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from itertools import pairwise

# Turns the name in a role (:class:`NAME`) into Markdown.
Link = Callable[[str], str]


@dataclass
class Docstring:
    """The parts of a docstring; ``sections`` keep their order."""

    summary: str
    paragraphs: list[str]
    sections: dict[str, list[str]] = field(default_factory=dict)

    @classmethod
    def parse(cls, text: str) -> Docstring:
        lines = text.strip().splitlines()
        heads = [i for i in range(len(lines) - 1) if lines[i].strip() and re.fullmatch(r"-{3,}", lines[i + 1])]
        first = heads[0] if heads else len(lines)
        opening = _paragraphs(lines[:first])
        sections = {}
        for head, end in pairwise([*heads, len(lines)]):
            sections[lines[head]] = lines[head + 2 : end]
        return cls(opening[0] if opening else "", opening[1:], sections)


def entries(lines: list[str]) -> tuple[list[tuple[list[str], str]], list[str]]:
    """Return parameters or attributes as ``(names, text)``, and the paragraphs that follow them."""
    found: list[tuple[list[str], list[str]]] = []
    rest: list[str] = []
    for line in lines:
        head = re.fullmatch(r"(\w+(?:, \w+)*) ?:( .*)?", line)
        if head and not rest:
            found.append((head[1].split(", "), [head[2] or ""]))
        elif found and (line.startswith("    ") or not line.strip()) and not rest:
            found[-1][1].append(line.strip())
        else:
            rest.append(line)
    return [(names, " ".join(filter(None, map(str.strip, text)))) for names, text in found], _paragraphs(rest)


def table(lines: list[str], link: Link, heading: str, defaults: Mapping[str, str] | None = None) -> str:
    """Return entries as a table, with a column of ``defaults`` (Markdown) if given, and the paragraphs that follow."""
    found, rest = entries(lines)
    columns = [heading, "default", "what it is"] if defaults is not None else [heading, "what it is"]
    rows = [_row(columns), _row(["---"] * len(columns))]
    for names, text in found:
        cells = [", ".join(f"`{name}`" for name in names)]
        if defaults is not None:
            cells.append(", ".join(defaults[name] for name in names))
        rows.append(_row([*cells, inline(text, link)]))
    return "\n\n".join(["\n".join(rows), *(inline(paragraph, link) for paragraph in rest)])


def prose(lines: list[str], link: Link) -> str:
    """Return paragraphs and lists; a line after a list is a paragraph of its own, even without a blank line between."""
    blocks: list[str] = []
    for line in lines:
        if line.startswith("- "):
            # Items of one list stand on consecutive lines.
            if blocks and blocks[-1].startswith("- "):
                blocks[-1] += f"\n{line}"
            else:
                blocks.append(line)
        elif not line.strip():
            blocks.append("")
        elif blocks and blocks[-1] and (line.startswith("  ") or not blocks[-1].startswith("- ")):
            blocks[-1] += f" {line.strip()}"
        else:
            blocks.append(line.strip())
    return "\n\n".join(inline(block, link) for block in blocks if block)


def examples(lines: list[str]) -> str:
    """Return lines of a docstring as a session of the Python prompt."""
    return "```pycon\n" + "\n".join(lines).strip() + "\n```"


def inline(text: str, link: Link) -> str:
    """Return text with code and roles of reStructuredText as Markdown."""
    text = re.sub(r":(?:class|func|meth|mod|attr|data):`~?([^`]+)`", lambda role: link(role[1]), text)
    return re.sub(r"``(.+?)``", r"`\1`", text)


def _paragraphs(lines: list[str]) -> list[str]:
    joined = "\n".join(lines).strip()
    return [" ".join(part.split()) for part in re.split(r"\n\s*\n", joined) if part.strip()]


def _row(cells: list[str]) -> str:
    return "| " + " | ".join(cell.replace("|", r"\|") for cell in cells) + " |"
