"""The site is complete: every page is in the navigation, no link is broken, nothing is loaded from another machine."""

from __future__ import annotations

import re
import shlex
import sys
from pathlib import Path

import pytest
import typer
import yaml

from coterie.cli.main import app
from coterie.methods.registry import METHODS

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
sys.path.insert(0, str(ROOT / "tools"))

from docs_site import build, complaints, without_links_out  # noqa: E402
from docstring_markdown import Docstring, entries, inline, prose, table  # noqa: E402


def _leaves(part: object) -> list[str]:
    if isinstance(part, str):
        return [part]
    children = part.values() if isinstance(part, dict) else part
    assert not isinstance(children, str)
    return [leaf for child in children for leaf in _leaves(child)]  # type: ignore[union-attr]


def test_every_page_has_its_place() -> None:
    settings = yaml.safe_load((ROOT / "mkdocs.yml").read_text(encoding="utf-8"))
    pages = sorted(path.relative_to(DOCS).as_posix() for path in DOCS.rglob("*.md"))
    assert sorted(_leaves(settings["nav"])) == pages
    assert {f"methods/{info.name}.md" for info in METHODS} <= set(pages)


def test_no_font_from_elsewhere() -> None:
    settings = yaml.safe_load((ROOT / "mkdocs.yml").read_text(encoding="utf-8"))
    assert settings["theme"]["font"] is False
    # The plugin of that name loads a script from another machine.
    assert "offline" not in settings.get("plugins", [])


def test_the_site_builds_and_is_whole(tmp_path: Path) -> None:
    pytest.importorskip("zensical", reason="zensical is not installed: make docs")
    build(tmp_path / "site")
    assert complaints(tmp_path / "site") == []
    assert (tmp_path / "site" / "methods" / "sccl.html").exists()


@pytest.mark.parametrize(
    ("html", "complaint"),
    [
        ('<script src="https://cdn.example/x.js"></script>', "loads https://cdn.example/x.js"),
        ('<link rel="stylesheet" href="//fonts.example/css">', "loads //fonts.example/css"),
        ('<link rel="preconnect" href="https://fonts.example">', "loads https://fonts.example"),
        ('<img src="https://example.org/a.png">', "loads https://example.org/a.png"),
        ("<p style=\"background: url('https://example.org/b.png')\">", "loads https://example.org/b.png"),
        ('<a href="gone.html">', "gone.html, which is not there"),
        ('<img src="gone.png">', "gone.png, which is not there"),
        ('<a href="#gone">', "has no such place"),
        ('<a href="other.html#gone">', "has no such place"),
    ],
)
def test_complaints(html: str, complaint: str, tmp_path: Path) -> None:
    (tmp_path / "index.html").write_text(f"<html>{html}</html>", encoding="utf-8")
    (tmp_path / "other.html").write_text('<h2 id="here">', encoding="utf-8")
    (found,) = complaints(tmp_path)
    assert complaint in found


def test_no_complaints(tmp_path: Path) -> None:
    html = (
        '<a href="https://example.org">out</a><a href="other.html#here">on</a><a href="mailto:a@example.org">mail</a>'
    )
    (tmp_path / "index.html").write_text(html, encoding="utf-8")
    (tmp_path / "other.html").write_text('<h2 id="here">', encoding="utf-8")
    assert complaints(tmp_path) == []
    (tmp_path / "a.css").write_text("@import 'https://fonts.example/css';", encoding="utf-8")
    assert len(complaints(tmp_path)) == 1


def test_links_out_of_the_docs_become_words(tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    (tmp_path / "notes.md").touch()
    page = tmp_path / "docs" / "page.md"
    for text, made in (
        ("see [notes](../notes.md#a).", "see notes (`notes.md`)."),
        ("see [notes.md](../notes.md).", "see `notes.md`."),
        ("[a](other.md#b) [c](https://example.org) [d](#e) ![f](g.svg)", None),
    ):
        assert without_links_out(text, page, tmp_path) == (made or text)
    with pytest.raises(FileNotFoundError, match="gone"):
        without_links_out("[x](../gone.md)", page, tmp_path)


# --- what is generated ---


def _link(name: str) -> str:
    return f"<{name}>"


def test_docstring_in_its_parts() -> None:
    doc = Docstring.parse("First.\n\nSecond\nline.\n\nParameters\n----------\na, b:\n    Both.\n\nNotes\n-----\nMore.")
    assert (doc.summary, doc.paragraphs, list(doc.sections)) == ("First.", ["Second line."], ["Parameters", "Notes"])
    assert Docstring.parse("Alone.").sections == {}


def test_entries_and_what_stands_behind() -> None:
    lines = ["a, b:", "    Both", "    of them.", "c : right here;", "    and on.", "", "``f`` is more."]
    assert entries(lines) == ([(["a", "b"], "Both of them."), (["c"], "right here; and on.")], ["``f`` is more."])
    made = table(lines, _link, "setting", {"a": "`1`", "b": "`x`", "c": "-"}).splitlines()
    assert made[2] == "| `a`, `b` | `1`, `x` | Both of them. |"
    assert made[-1] == "`f` is more."
    assert r"this \| that" in table(["a:", "    this | that"], _link, "setting")


def test_prose_keeps_lists_apart() -> None:
    assert prose(["- one", "  more", "- two", "Last line."], _link) == "- one more\n- two\n\nLast line."
    assert prose(["a", "b", "", "c"], _link) == "a b\n\nc"


def test_inline() -> None:
    assert inline("``x`` and :class:`~a.b.C`, :func:`d`", _link) == "`x` and <a.b.C>, <d>"


@pytest.mark.parametrize("page", ["reference/cli.md", *(f"methods/{info.name}.md" for info in METHODS)])
def test_commands_of_the_reference_can_be_parsed(page: str) -> None:
    """They name files that nobody has, so they are read as the command line would read them, and not run."""
    blocks = re.findall(r"^```bash\n(.*?)^```$", (DOCS / page).read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    lines = [line.split("  #")[0] for line in "".join(blocks).splitlines()]
    assert lines
    for line in lines:
        program, *arguments = shlex.split(line)
        assert program == "coterie", line
        command, name = typer.main.get_command(app), "coterie"
        while getattr(command, "commands", None):
            name, *arguments = arguments
            command = command.commands[name]  # type: ignore[attr-defined]
        command.make_context(name, list(arguments))
