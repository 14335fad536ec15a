"""A digest of the source files that a method imports: which code a run was made with, without git."""

from __future__ import annotations

import ast
import hashlib
from functools import cache
from pathlib import Path

PACKAGE = Path(__file__).resolve().parent.parent


def source_digest(module: str) -> str:
    """Return a digest of ``module`` and all modules of this package that it imports, directly or not.

    Imports inside functions count, too.
    """
    visited: set[str] = set()
    waiting = [module]
    while waiting:
        name = waiting.pop()
        path = _file_of(name)
        if path is None or name in visited:
            continue
        visited.add(name)
        waiting += _imported(path)
    digest = hashlib.sha256()
    for name in sorted(visited):
        path = _file_of(name)
        assert path is not None
        digest.update(name.encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()[:16]


def _file_of(module: str) -> Path | None:
    """Return the file of a module of this package; ``None`` for packages, which contain no code, and others."""
    parts = module.split(".")
    if parts[0] != "coterie" or len(parts) < 2:
        return None
    path = PACKAGE.joinpath(*parts[1:]).with_suffix(".py")
    return path if path.is_file() else None


@cache
def _imported(path: Path) -> tuple[str, ...]:
    """Return the names that a file imports from this package: modules, and perhaps their members."""
    names: list[str] = []
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names += [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
    return tuple(name for name in names if name.startswith("coterie."))
