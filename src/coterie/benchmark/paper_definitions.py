"""Rows, tables and figures that reproduce papers. They are part of a clone, not of the installed package.

``benchmarks/papers/`` in a clone is a Python package. Its ``PAPERS`` are modules with ``ROWS``, ``TABLES`` and
``FIGURES``; ``published.toml`` beside them has the figures that the papers print. It is loaded from its location, under
a name of its own, so ``sys.path`` stays as it is.
"""

from __future__ import annotations

import hashlib
import importlib.util
import sys
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import ModuleType

from coterie.benchmark.published import Published, read_published
from coterie.benchmark.rows import Row
from coterie.benchmark.specs import FigureSpec, TableSpec
from coterie.errors import InputError

# From the root of a clone.
PAPERS_FOLDER = Path("benchmarks", "papers")
PUBLISHED_FILE = "published.toml"
# Files that, together, make a folder the root of a clone.
CLONE_FILES = (
    PAPERS_FOLDER / "__init__.py",
    PAPERS_FOLDER / PUBLISHED_FILE,
    Path("src", "coterie", "benchmark", "__init__.py"),
)
NEEDS_A_CLONE = (
    "the papers' tables and figures are defined in benchmarks/papers of a clone of Coterie, not in the installed "
    "package: run this command inside a clone"
)


@dataclass(frozen=True)
class PaperDefinitions:
    """All that ``benchmarks/papers/`` of a clone defines, paper by paper."""

    package: ModuleType
    rows: tuple[Row, ...]
    tables: tuple[TableSpec, ...]
    figures: tuple[FigureSpec, ...]
    published: tuple[Published, ...]


def find_paper_definitions() -> PaperDefinitions | None:
    """Return the definitions of the clone in use; ``None`` where there is no clone.

    A clone in use is the one that the package runs from; else the current folder, or a parent of it, if that is one.
    """
    package_root = Path(__file__).resolve().parents[3]
    current = Path.cwd()
    for root in (package_root, current, *current.parents):
        if all((root / file).is_file() for file in CLONE_FILES):
            return load_paper_definitions(root / PAPERS_FOLDER)
    return None


def require_paper_definitions() -> PaperDefinitions:
    """Return the definitions of the clone in use, or raise an error that says one is needed."""
    found = find_paper_definitions()
    if found is None:
        raise InputError(NEEDS_A_CLONE)
    return found


@cache
def load_paper_definitions(folder: Path) -> PaperDefinitions:
    """Load ``benchmarks/papers/`` of a clone."""
    package = _load_package(folder)
    papers: tuple[ModuleType, ...] = package.PAPERS
    return PaperDefinitions(
        package,
        tuple(row for paper in papers for row in paper.ROWS),
        tuple(spec for paper in papers for spec in paper.TABLES),
        tuple(spec for paper in papers for spec in paper.FIGURES),
        read_published(folder / PUBLISHED_FILE),
    )


def _load_package(folder: Path) -> ModuleType:
    """Import a package from its folder, under a name that no other clone's definitions have."""
    name = f"coterie_papers_{hashlib.sha256(str(folder).encode()).hexdigest()[:8]}"
    spec = importlib.util.spec_from_file_location(
        name, folder / "__init__.py", submodule_search_locations=[str(folder)]
    )
    assert spec is not None and spec.loader is not None
    package = importlib.util.module_from_spec(spec)
    sys.modules[name] = package
    try:
        spec.loader.exec_module(package)
    except BaseException:
        del sys.modules[name]
        raise
    return package
