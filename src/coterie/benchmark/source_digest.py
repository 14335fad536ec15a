"""Which code a run stands on: a digest of the source files a method imports, with no need of git."""

from __future__ import annotations

import ast
import hashlib
from functools import cache
from pathlib import Path

PACKAGE = Path(__file__).resolve().parent.parent


def source_digest(module: str) -> str:
    """Over ``module`` and all of this package it imports, directly or not, also inside functions."""
    found: set[str] = set()
    waiting = [module]
    while waiting:
        name = waiting.pop()
        path = _file_of(name)
        if path is None or name in found:
            continue
        found.add(name)
        waiting += _imported(path)
    digest = hashlib.sha256()
    for name in sorted(found):
        path = _file_of(name)
        assert path is not None
        digest.update(name.encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()[:16]


def _file_of(module: str) -> Path | None:
    """The file of a module of this package; its bare packages hold no code."""
    parts = module.split(".")
    if parts[0] != "coterie" or len(parts) < 2:
        return None
    path = PACKAGE.joinpath(*parts[1:]).with_suffix(".py")
    return path if path.is_file() else None


@cache
def _imported(path: Path) -> tuple[str, ...]:
    names: list[str] = []
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names += [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
    return tuple(name for name in names if name.startswith("coterie."))
