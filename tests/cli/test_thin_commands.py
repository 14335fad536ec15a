"""The commands are a thin skin: parse, call, print. What they do is in other rooms."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import coterie.cli

FOLDER = Path(coterie.cli.__file__).parent
# Lines of a function without its signature, docstring, comments and blank lines.
MOST_LINES = 40


def _functions(path: Path) -> Iterator[tuple[str, int]]:
    text = path.read_text(encoding="utf-8")
    lines = text.splitlines()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            body = node.body[1:] if ast.get_docstring(node) is not None else node.body
            if body:
                of_body = lines[body[0].lineno - 1 : body[-1].end_lineno]
                yield node.name, sum(bool(line.strip()) and not line.strip().startswith("#") for line in of_body)


def test_no_command_is_long() -> None:
    found = {f"{path.name}: {name}": length for path in FOLDER.glob("*.py") for name, length in _functions(path)}
    assert len(found) > 40
    assert {name: length for name, length in found.items() if length > MOST_LINES} == {}


def test_the_measure_itself(tmp_path: Path) -> None:
    path = tmp_path / "x.py"
    path.write_text(
        'def f(\n    a,\n    b,\n):\n    """Text.\n\n    More.\n    """\n    # why\n    a\n\n    b\n', encoding="utf-8"
    )
    assert list(_functions(path)) == [("f", 2)]
