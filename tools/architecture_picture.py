"""Draw docs/architecture.svg: the rooms of src/coterie and the way of a text through them.

    python tools/architecture_picture.py            write it
    python tools/architecture_picture.py --check    fail if it is not up to date

The rooms are those of tests/test_rooms.py, from top to bottom; tests/docs/test_architecture.py compares the two.
"""

from __future__ import annotations

import sys
from html import escape
from itertools import pairwise
from pathlib import Path

PICTURE = Path(__file__).resolve().parent.parent / "docs" / "architecture.svg"

# One line per layer: a room imports only rooms to its left in the same line, and rooms of the lines above.
LAYERS = (
    ("version", "errors", "checks", "formatting", "files", "types"),
    ("text", "encoders", "clustering"),
    ("metrics.internal", "selection"),
    ("losses", "training", "language", "methods"),
    ("metrics.external", "datasets"),
    ("describe", "runs"),
    ("benchmark", "report", "app"),
    ("api", "cli"),
)
# The way of a text: the room, and what happens there.
WAY = (
    ("text", "A file or list becomes a Corpus: checked, empty texts marked, duplicates counted."),
    ("encoders", "Texts become token ids, once, then embeddings."),
    ("selection", "Label-free criteria select a first clustering."),
    ("training", "Views of the texts train the encoder, by the losses of a method."),
    ("methods", "The method assigns every text to a cluster; predict decides here."),
    ("describe", "Clusters get names, keywords and typical texts."),
    ("runs", "A run folder is written; edits and calibration are applied."),
    ("report", "People read the report,"),
    ("app", "correct clusters in the explorer,"),
    ("cli", "and use the command line, or coterie.fit from Python."),
)
# Rooms that true labels may enter: outlined in red.
LABELS = ("metrics.external",)

# Sizes in pixels.
WIDTH, HEIGHT = 1000, 560
LEFT, TOP = 20, 54
BOX, GAP_X, GAP_Y = 44, 10, 18  # height of a room; space between rooms and between layers
AREA = 480  # width of the rooms
CAPTIONS = 560  # where the captions begin
FONT = "font-family='system-ui, sans-serif'"
INK, PAPER, ROOM, STEP, FORBIDDEN = "#1f2933", "#ffffff", "#eef2f7", "#1d4ed8", "#b91c1c"


def places() -> dict[str, tuple[float, float, float]]:
    """Left edge, upper edge and width of every room."""
    found = {}
    for row, layer in enumerate(LAYERS):
        width = (AREA - GAP_X * (len(layer) - 1)) / len(layer)
        for column, room in enumerate(layer):
            found[room] = (LEFT + column * (width + GAP_X), TOP + row * (BOX + GAP_Y), width)
    return found


def text(x: float, y: float, content: str, size: int = 14, fill: str = INK, **more: str) -> str:
    extra = "".join(f" {name.replace('_', '-')}='{value}'" for name, value in more.items())
    return f"<text x='{x:g}' y='{y:g}' font-size='{size}' fill='{fill}' {FONT}{extra}>{escape(content)}</text>"


def badge(x: float, y: float, number: int) -> list[str]:
    return [
        f"<circle cx='{x:g}' cy='{y:g}' r='11' fill='{STEP}'/>",
        text(x, y + 4, str(number), 12, PAPER, text_anchor="middle", font_weight="bold"),
    ]


def room_boxes() -> list[str]:
    lines = []
    for room, (x, y, width) in places().items():
        edge, dashes = (FORBIDDEN, " stroke-dasharray='6 4'") if room in LABELS else ("#9aa5b1", "")
        lines.append(
            f"<rect x='{x:g}' y='{y:g}' width='{width:g}' height='{BOX}' rx='6' fill='{ROOM}' stroke='{edge}' "
            f"stroke-width='1.5'{dashes}/>"
        )
        lines.append(text(x + width / 2, y + BOX / 2 + 5, room, 13, text_anchor="middle"))
    return lines


def badge_place(room: str) -> tuple[float, float]:
    x, y, _ = places()[room]
    return x + 14, y + 2


def way() -> list[str]:
    """A line from room to room; it is drawn before the rooms, so that it does not cross their names."""
    lines = []
    for (before, _), (after, _) in pairwise(WAY):
        (x1, y1), (x2, y2) = badge_place(before), badge_place(after)
        middle = y2 - GAP_Y / 2 - 2 if y2 > y1 else y1
        lines.append(
            f"<path d='M{x1:g} {y1:g} L{x1:g} {middle:g} L{x2:g} {middle:g} L{x2:g} {y2:g}' fill='none' "
            f"stroke='{STEP}' stroke-width='1.5' stroke-opacity='0.6'/>"
        )
    return lines


def steps() -> list[str]:
    """A number on every room of the way, and its caption beside."""
    lines = []
    for number, (room, caption) in enumerate(WAY, 1):
        lines += badge(*badge_place(room), number)
        y = TOP + 16 + (number - 1) * 40
        lines += badge(CAPTIONS, y, number)
        pieces = wrapped(caption)
        first = y + (4 if len(pieces) == 1 else -4)
        lines += [text(CAPTIONS + 20, first + 17 * line, piece, 13) for line, piece in enumerate(pieces)]
    return lines


def wrapped(caption: str, columns: int = 60) -> list[str]:
    lines = [""]
    for word in caption.split():
        if len(lines[-1]) + len(word) >= columns:
            lines.append("")
        lines[-1] = f"{lines[-1]} {word}".strip()
    return lines


def picture() -> str:
    note = TOP + 16 + len(WAY) * 40
    parts = [
        f"<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 {WIDTH} {HEIGHT}' role='img' "
        "aria-label='The rooms of Coterie and the way of a text through them'>",
        f"<rect width='{WIDTH}' height='{HEIGHT}' rx='10' fill='{PAPER}'/>",
        text(LEFT, 30, "The rooms: each imports only rooms to its left and above", 15, font_weight="bold"),
        text(CAPTIONS - 11, 30, "The way of a text", 15, font_weight="bold"),
        *way(),
        *room_boxes(),
        *steps(),
        f"<rect x='{CAPTIONS - 11}' y='{note - 10}' width='22' height='16' rx='3' fill='{ROOM}' stroke='{FORBIDDEN}' "
        "stroke-width='1.5' stroke-dasharray='6 4'/>",
        text(CAPTIONS + 20, note - 3, "True labels enter here and nowhere earlier: only benchmark,", 13),
        text(CAPTIONS + 20, note + 14, "report and cli import this room.", 13),
        "</svg>",
    ]
    return "\n".join(parts) + "\n"


def main() -> None:
    if "--check" in sys.argv[1:]:
        if not PICTURE.is_file() or PICTURE.read_text(encoding="utf-8") != picture():
            sys.exit("docs/architecture.svg is not up to date: run python tools/architecture_picture.py")
        return
    PICTURE.write_text(picture(), encoding="utf-8")


if __name__ == "__main__":
    main()
