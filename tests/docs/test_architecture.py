"""ARCHITECTURE.md is true: its rooms are those of the import check, its paths exist, its picture is up to date."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest
from test_rooms import MAY_IMPORT_LABELS, ROOMS

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src" / "coterie"
PAGE = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
sys.path.insert(0, str(ROOT / "tools"))

from architecture_picture import LABELS, LAYERS, PICTURE, WAY, picture  # noqa: E402

# One printed page, in lines of the file.
LONGEST_PAGE = 80
ENDINGS = (".py", ".md", ".svg", ".toml", "/")


def _rows(heading: str) -> list[list[str]]:
    """The cells of the table below a heading, without its head."""
    part = PAGE.split(f"## {heading}\n")[1].split("\n## ")[0]
    lines = [line for line in part.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[2:]]


def _paths(text: str) -> list[str]:
    found = [*re.findall(r"`([^`\s]+)`", text), *re.findall(r"\]\(([^)\s#]+)\)", text)]
    return [path for path in found if path.endswith(ENDINGS) and "NAME" not in path]


def test_every_room_has_a_row_in_its_order() -> None:
    assert [row[0].strip("`") for row in _rows("The rooms")] == list(ROOMS)


@pytest.mark.parametrize("row", _rows("The rooms"), ids=lambda row: row[0].strip("`"))
def test_every_place_of_a_room_exists(row: list[str]) -> None:
    room = row[0].strip("`").replace(".", "/")
    folder = PACKAGE if (PACKAGE / f"{room}.py").is_file() else PACKAGE / room
    places = _paths(row[2])
    assert places
    for place in places:
        assert (folder / place).exists(), f"{room}: {place}"


def test_every_other_path_exists() -> None:
    text = PAGE.replace(PAGE.split("## The rooms\n")[1].split("\nBeside the package")[0], "")
    paths = _paths(text)
    assert len(paths) > 10
    assert [path for path in paths if not (ROOT / path).exists()] == []


def test_the_page_and_the_import_check_agree_on_labels() -> None:
    (answer,) = (row[1] for row in _rows("Where is ...?") if "labels" in row[0])
    allowed = answer.split("allows")[1].split("to import it")[0]
    assert set(re.findall(r"`([\w.]+)`", allowed)) == MAY_IMPORT_LABELS - {"metrics.external"}
    assert "app" not in MAY_IMPORT_LABELS
    assert "not `app`" in answer


def test_the_answers_name_what_is_there() -> None:
    """The functions that the page names are where it says."""
    assert "def assign(" in (PACKAGE / "methods" / "base.py").read_text(encoding="utf-8")
    assert "def fit(" in (PACKAGE / "api" / "fit.py").read_text(encoding="utf-8")
    for name in ("criteria", "guard", "k_criteria"):
        assert "CRITERIA" in (PACKAGE / "selection" / f"{name}.py").read_text(encoding="utf-8")
    assert ".backward(" in (PACKAGE / "training" / "steps.py").read_text(encoding="utf-8")


def test_it_is_one_page() -> None:
    assert len(PAGE.splitlines()) <= LONGEST_PAGE


# --- the picture ---


def test_the_picture_shows_the_rooms_in_their_order() -> None:
    assert [room for layer in LAYERS for room in layer] == list(ROOMS)
    assert {room for room, _ in WAY} <= set(ROOMS)
    assert set(LABELS) <= set(ROOMS)


def test_the_picture_is_up_to_date() -> None:
    assert PICTURE.read_text(encoding="utf-8") == picture(), "run python tools/architecture_picture.py"
