"""The rooms of the package: which may import which, and what is imported only when it is needed."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import coterie

SOURCE = Path(__file__).parents[1] / "src"
PACKAGE = SOURCE / "coterie"
# From top to bottom: a room imports rooms above it, and itself.
ROOMS = (
    "version",
    "errors",
    "checks",
    "formatting",
    "files",
    "types",
    "text",
    "encoders",
    "clustering",
    "metrics.internal",
    "selection",
    "losses",
    "training",
    "language",
    "methods",
    "metrics.external",
    "datasets",
    "describe",
    "runs",
    "benchmark",
    "report",
    "app",
    "api",
    "cli",
)
# Rooms that are split in two: one half may be imported where the other may not.
SPLIT = {"metrics"}
# Only these rooms may see true labels: they compare a finished clustering with labels that the user gives.
MAY_IMPORT_LABELS = {"metrics.external", "benchmark", "report", "cli"}
HEAVY = ("torch", "sklearn", "transformers", "scipy", "pandas", "pyarrow")


def _modules() -> list[Path]:
    return sorted(PACKAGE.rglob("*.py"))


def _name(path: Path) -> str:
    parts = path.relative_to(SOURCE).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def _room(module: str) -> str | None:
    """The room a module stands in; ``None`` for the root and ``__main__``."""
    parts = module.split(".")
    if len(parts) == 1 or parts[1] == "__main__":
        return None
    return ".".join(parts[1:3]) if parts[1] in SPLIT else parts[1]


def _imports(tree: ast.AST, package: str) -> Iterator[tuple[int, str]]:
    """Line and full name of everything of ours that is imported, wherever in the file, for type checkers or not."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield node.lineno, alias.name
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                above = package.split(".")[: len(package.split(".")) - node.level + 1]
                base = ".".join([*above, *([base] if base else [])])
            for alias in node.names:
                yield node.lineno, f"{base}.{alias.name}"
        elif isinstance(node, ast.Call) and node.args and isinstance(node.args[0], ast.Constant):
            called = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            if called in {"import_module", "__import__"} and isinstance(node.args[0].value, str):
                yield node.lineno, node.args[0].value


def _offences(path: Path, text: str) -> list[str]:
    module = _name(path)
    room = _room(module)
    package = module if path.name == "__init__.py" else module.rpartition(".")[0]
    found = []
    for line, target in _imports(ast.parse(text), package):
        if not target.startswith("coterie.") and target != "coterie":
            continue
        other = _room(target)
        if target == "coterie":
            continue
        place = f"{module}:{line} imports {target}"
        if other in SPLIT:  # the folder of the two halves itself, which holds nothing
            continue
        if other not in ROOMS:
            found.append(f"{place}: not a room")
        elif room in ROOMS and ROOMS.index(other) > ROOMS.index(room):
            found.append(f"{place}: {other} is below {room}")
        elif other == "metrics.external" and room not in MAY_IMPORT_LABELS and module != "coterie":
            found.append(f"{place}: only {', '.join(sorted(MAY_IMPORT_LABELS))} may see labels")
    return found


def test_every_room_has_its_place() -> None:
    standing = {path.stem for path in PACKAGE.iterdir() if path.suffix == ".py" or (path / "__init__.py").is_file()}
    assert standing - {"__init__", "__main__"} <= {room.split(".")[0] for room in ROOMS}


def test_imports_point_upward() -> None:
    assert [offence for path in _modules() for offence in _offences(path, path.read_text(encoding="utf-8"))] == []


@pytest.mark.parametrize(
    ("file", "text", "allowed"),
    [
        ("losses/x.py", "from coterie.clustering.kmeans import kmeans", True),
        ("losses/x.py", "from coterie.methods.base import ClusteringMethod", False),
        ("losses/x.py", "def f():\n    from coterie.training import trainer", False),
        ("losses/x.py", "from coterie import training", False),
        ("losses/x.py", "from ..training import trainer", False),
        ("losses/x.py", "from .nt_xent import nt_xent", True),
        ("losses/__init__.py", "from .nt_xent import nt_xent", True),
        ("losses/__init__.py", "from ..methods import base", False),
        ("text/x.py", "import importlib\nimportlib.import_module('coterie.methods.base')", False),
        ("methods/x.py", "if TYPE_CHECKING:\n    from coterie.metrics.external.scores import ari", False),
        ("datasets/x.py", "from coterie.metrics.external.scores import ari", False),
        ("report/x.py", "from coterie.metrics.external.scores import ari", True),
        ("benchmark/x.py", "from coterie.metrics.external.scores import ari", True),
        ("cli/x.py", "from coterie.metrics.external.scores import ari", True),
        ("metrics/external/x.py", "from coterie.metrics.external.scores import ari", True),
        ("app/x.py", "from coterie.metrics.external.scores import ari", False),
        ("app/x.py", "def f():\n    from coterie.metrics import external", False),
        ("app/x.py", "from coterie.metrics.internal.silhouette import silhouette", True),
        ("api.py", "from coterie.metrics.external.scores import ari", False),
        ("runs/x.py", "from coterie.metrics.external.scores import ari", False),
        ("describe/x.py", "from coterie.metrics.external.scores import ari", False),
        ("selection/x.py", "from coterie.metrics.external.scores import ari", False),
        ("metrics/internal/x.py", "from ..external.scores import ari", False),
        ("selection/x.py", "from coterie.metrics.internal.silhouette import silhouette", True),
        ("metrics/internal/x.py", "from coterie.selection.criteria import CRITERIA", False),
        ("methods/x.py", "from coterie.version import __version__", True),
        ("methods/x.py", "from coterie import __version__", False),
        ("methods/x.py", "from coterie import SCCL", False),
        ("__init__.py", "from coterie.metrics.external.scores import ari", True),
    ],
)
def test_the_check_itself(file: str, text: str, allowed: bool) -> None:
    assert (_offences(PACKAGE / file, text) == []) == allowed


# --- what importing costs, counted in modules ---


def _environment(**extra: str) -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(SOURCE), **extra}


def _python(code: str) -> str:
    run = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env=_environment(), timeout=60, check=False
    )
    assert run.returncode == 0, run.stderr
    return run.stdout.strip()


def _loaded_by(code: str) -> list[str]:
    """Return the modules that a new interpreter loads for ``code``, beyond those it starts with."""
    before, after = "import sys; started_with = set(sys.modules)", "print(*(set(sys.modules) - started_with))"
    return _python(f"{before}\n{code}\n{after}").splitlines()[-1].split()


def _ours(modules: list[str]) -> list[str]:
    return sorted(name for name in modules if name.partition(".")[0] == "coterie")


@pytest.mark.parametrize("module", ["coterie", "coterie.errors", "coterie.methods.registry", "coterie.cli.main"])
def test_nothing_heavy_is_imported(module: str) -> None:
    loaded = _python(f"import sys, {module}; print(*[name for name in {HEAVY!r} if name in sys.modules])")
    assert loaded == ""


def test_listing_methods_and_names_imports_nothing_heavy() -> None:
    code = (
        "import sys, coterie; from coterie.methods.registry import METHODS, find_method; "
        "[info.to_dict() for info in METHODS]; find_method('sccl'); dir(coterie); coterie.CoterieError; "
        f"print(*[name for name in {HEAVY!r} if name in sys.modules])"
    )
    assert _python(code) == ""


def test_every_public_name_can_be_imported() -> None:
    _python("from coterie import *; import coterie; [getattr(coterie, name) for name in coterie.__all__]")
    with pytest.raises(AttributeError, match="no_such_name"):
        coterie.no_such_name  # noqa: B018


# Modules of Coterie that ``import coterie`` loads at most: the root, the version, the errors, the table of methods.
MOST_OURS_ON_IMPORT = 8
# All modules that ``import coterie`` loads at most; most are those of dataclasses and inspect.
MOST_ON_IMPORT = 80
# Modules that ``coterie --help`` loads at most beside the commands' own and beyond those of typer and rich.
MOST_ON_HELP = 60


def test_importing_the_package_loads_few_modules() -> None:
    loaded = _loaded_by("import coterie")
    assert len(_ours(loaded)) <= MOST_OURS_ON_IMPORT, _ours(loaded)
    assert len(loaded) <= MOST_ON_IMPORT, sorted(loaded)


def test_help_loads_the_commands_and_what_draws_it() -> None:
    ask = "sys.argv = ['coterie', '--help']; from coterie.cli.main import main\ntry: main()\nexcept SystemExit: pass"
    loaded, drawing = _loaded_by(ask), _loaded_by("import typer.rich_utils")
    assert not set(HEAVY) & set(loaded)
    rest = [name for name in loaded if not name.startswith("coterie.cli")]
    assert len(_ours(rest)) <= MOST_OURS_ON_IMPORT, _ours(rest)
    assert len(set(rest) - set(drawing)) <= MOST_ON_HELP, sorted(set(rest) - set(drawing))


def test_the_command_line_works_from_the_sources_anywhere(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "coterie", "--help"]
    run = subprocess.run(
        command, capture_output=True, text=True, env=_environment(COLUMNS="120"), cwd=tmp_path, timeout=60, check=False
    )
    assert run.returncode == 0, run.stderr
    for name in ("fit", "predict", "evaluate", "methods", "demo", "doctor"):
        assert name in run.stdout
    assert list(tmp_path.iterdir()) == []


# --- cycles ---


def _runtime_imports(path: Path) -> set[str]:
    """The modules that a module imports at any time, also inside functions; those for type checkers are left out."""
    module = _name(path)
    package = module if path.name == "__init__.py" else module.rpartition(".")[0]
    tree = ast.parse(path.read_text(encoding="utf-8"))
    for node in ast.walk(tree):
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            node.body = []
    return {target for _, target in _imports(tree, package)}


def _cycles(imports: dict[str, set[str]]) -> list[set[str]]:
    """Return the strongly connected components of more than one module (by reachability: there are few modules)."""
    reached = {}
    for module in imports:
        found: set[str] = set()
        waiting = [module]
        while waiting:
            new = imports[waiting.pop()] - found
            found |= new
            waiting += new
        reached[module] = found
    cycles = [frozenset(m for m in reached[module] if module in reached[m]) for module in imports]
    return [set(cycle) for cycle in set(cycles) if len(cycle) > 1]


def test_no_cycle_has_more_than_three_modules() -> None:
    paths = {_name(path): path for path in _modules()}
    imports = {}
    for module, path in paths.items():
        # ``from coterie.room import name`` imports the module ``name``, or the room where there is no such module.
        targets = _runtime_imports(path)
        imports[module] = {each if each in paths else each.rpartition(".")[0] for each in targets} & paths.keys()
        imports[module].discard(module)
    assert [sorted(cycle) for cycle in _cycles(imports) if len(cycle) > 3] == []


def test_the_search_for_cycles_itself() -> None:
    imports = {"a": {"b"}, "b": {"c"}, "c": {"a", "d"}, "d": {"e"}, "e": {"d"}, "f": {"a"}}
    assert sorted(map(sorted, _cycles(imports))) == [["a", "b", "c"], ["d", "e"]]
