"""The project's promises about itself: every method is exported, cited, documented; every module keeps the rules."""

from __future__ import annotations

import ast
import functools
import inspect
import re
import runpy
from collections.abc import Callable
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
import yaml

import coterie
from coterie.methods.base import ClusteringMethod
from coterie.methods.registry import METHODS, MethodInfo, find_method

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src" / "coterie"
TESTS = ROOT / "tests"
MODULES = sorted(PACKAGE.rglob("*.py"))
LONGEST_FILE = 350
PAPERS = [info for info in METHODS if info.kind == "paper"]
PICKLES = {"pickle", "cPickle", "_pickle", "joblib", "dill", "cloudpickle", "shelve", "marshal"}
# Library calls that read or write pickles behind another name.
PICKLING_CALLS = {"torch.load", "torch.save", "np.load", "np.save", "np.savez", "numpy.load", "pd.read_pickle"}
EXPERIMENT_KEYS = {"method", "paper", "dataset", "settings", "published"}


def _relative(path: Path) -> str:
    return str(path.relative_to(PACKAGE))


def _ids(info: MethodInfo) -> str:
    return info.name


def _sections(documentation: str) -> set[str]:
    """Headings underlined with dashes."""
    return set(re.findall(r"^(\S.*)\n-{3,}$", documentation, flags=re.MULTILINE))


every_method = pytest.mark.parametrize("info", METHODS, ids=_ids)
every_paper = pytest.mark.parametrize("info", PAPERS, ids=_ids)


# --- methods ---


def test_names_are_unique_and_every_method_is_registered() -> None:
    assert len({info.name for info in METHODS}) == len({info.class_name for info in METHODS}) == len(METHODS)
    for info in METHODS:
        assert find_method(info.name) is info
    registered = {info.load() for info in METHODS}

    def leaves(kind: type) -> set[type]:
        return {kind}.union(*(leaves(child) for child in kind.__subclasses__()))

    # Those that can be made and that nothing refines: the others are steps on the way.
    ours = {kind for kind in leaves(ClusteringMethod) if kind.__module__.startswith("coterie.")}
    refined = {parent for kind in ours for parent in kind.__bases__}
    assert {kind for kind in ours - refined if not inspect.isabstract(kind)} == registered


@every_method
def test_exported(info: MethodInfo) -> None:
    assert info.class_name in coterie.__all__
    assert info.class_name in dir(coterie)
    assert getattr(coterie, info.class_name) is info.load()
    assert issubclass(info.load(), ClusteringMethod)


def test_a_row_of_the_registry_is_all_a_method_needs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Public name, type stub, documentation pages and navigation follow from the row."""
    monkeypatch.syspath_prepend(str(ROOT / "tools"))
    docs_pages, public_names = import_module("docs_pages"), import_module("public_names")
    assert docs_pages.site_settings() == (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    assert public_names.stub() == public_names.STUB.read_text(encoding="utf-8")

    row = replace(find_method("sccl"), name="new", target="coterie.methods.new:NewMethod", title="New method")
    rows = (*METHODS, row)
    monkeypatch.setattr("coterie.methods.registry.METHODS", rows)
    monkeypatch.setattr(docs_pages, "METHODS", rows)
    package = runpy.run_path(coterie.__file__)
    assert "NewMethod" in package["__all__"] and "NewMethod" in package["__dir__"]()
    monkeypatch.setattr(coterie, "_PUBLIC", package["_PUBLIC"])
    assert "from coterie.methods.new import NewMethod as NewMethod\n" in public_names.stub()
    assert "      - New method: methods/new.md\n" in docs_pages.site_settings()
    assert "[`new`](new.md)" in docs_pages.methods_page()


@every_method
def test_described(info: MethodInfo) -> None:
    assert info.kind in {"own", "paper", "baseline"}
    assert info.title and info.summary
    assert (info.kind == "own") == (not info.citation)
    assert info.kind == "own" or re.search(r"\b(19|20)\d\d\b", info.citation), "a citation has a year"
    assert info.to_dict()["name"] == info.name


@every_method
def test_documented(info: MethodInfo) -> None:
    target = info.load()
    documentation = inspect.cleandoc(vars(target)["__doc__"])
    sections = _sections(documentation)
    assert {"Parameters", "Examples"} <= sections
    assert ">>>" in documentation
    parameters = documentation.split("Parameters\n")[1]
    for name in inspect.signature(target).parameters:
        assert re.search(rf"^(\w+, )*{name}(, \w+)*:", parameters, flags=re.MULTILINE), name


@every_paper
def test_papers_say_where_they_differ(info: MethodInfo) -> None:
    documentation = inspect.cleandoc(vars(info.load())["__doc__"])
    assert "Differs from the paper" in _sections(documentation)
    assert "Eq." in documentation
    source = inspect.getsource(inspect.getmodule(info.load()))  # type: ignore[arg-type]
    assert re.search(r"# Eq\. \d", source), "the equations are named beside the code"


@every_paper
def test_papers_have_experiments(info: MethodInfo) -> None:
    from coterie.datasets.cards import list_datasets

    files = sorted((ROOT / "experiments" / info.name).glob("*.yaml"))
    assert files
    cards = {card.name for card in list_datasets()}
    known = set(inspect.signature(info.load()).parameters)
    for file in files:
        content: Any = yaml.safe_load(file.read_text(encoding="utf-8"))
        assert set(content) >= EXPERIMENT_KEYS, file.name
        assert content["method"] == info.name
        assert content["dataset"] in cards
        assert file.stem.endswith(f"_{content['dataset']}")
        assert content["published"], file.name
        names = {str(name).partition(".")[0].partition("__")[0] for name in content["settings"]}
        assert names <= known, file.name


@every_method
def test_in_the_table_of_methods(info: MethodInfo) -> None:
    page = (ROOT / "docs" / "methods" / "index.md").read_text(encoding="utf-8")
    table = page.split("## Settings that many methods share")[0]
    rows = [line for line in table.splitlines() if line.startswith("|")]
    (row,) = (row for row in rows if f"`{info.class_name}`" in row)
    assert f"[`{info.name}`]({info.name}.md)" in row
    assert info.citation in row


@every_method
def test_named_in_a_test(info: MethodInfo) -> None:
    """Beyond the contract, which all methods pass through."""
    files = [path for path in TESTS.rglob("test_*.py") if path.name != "test_meta.py"]
    word = re.compile(rf"\b{info.class_name}\b")
    assert any(path.stem == f"test_{info.name}" or word.search(path.read_text(encoding="utf-8")) for path in files)


# --- modules ---


@functools.cache
def _tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


@functools.cache
def _calls(path: Path) -> tuple[str, ...]:
    """Return what each call of a module names, in the order of the file."""
    return tuple(ast.unparse(node.func) for node in ast.walk(_tree(path)) if isinstance(node, ast.Call))


def _offenders(offends: Callable[[Path], object]) -> list[str]:
    return [_relative(path) for path in MODULES if offends(path)]


def test_modules_have_a_docstring() -> None:
    begins = re.compile(r'[\w`"]')
    assert _offenders(lambda path: not begins.match(ast.get_docstring(_tree(path)) or "")) == []


def test_files_stay_readable() -> None:
    assert _offenders(lambda path: len(path.read_text(encoding="utf-8").splitlines()) > LONGEST_FILE) == []
    assert _offenders(lambda path: path.name in {"utils.py", "helpers.py", "misc.py", "common.py"}) == []


def test_only_the_command_line_prints() -> None:
    room = {path: path.relative_to(PACKAGE).parts[0] for path in MODULES}
    assert _offenders(lambda path: room[path] != "cli" and "print" in _calls(path)) == []


def _imported(path: Path) -> set[str]:
    """Return the packages that a module imports, anywhere in it."""
    imported = set()
    for node in ast.walk(_tree(path)):
        if isinstance(node, ast.Import):
            imported |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            imported.add(node.module.partition(".")[0])
    return imported


def test_no_pickles() -> None:
    assert _offenders(lambda path: _imported(path) & PICKLES) == []
    assert _offenders(lambda path: set(_calls(path)) & PICKLING_CALLS) == []


def test_one_place_computes_gradients() -> None:
    places = {_relative(path) for path in MODULES for call in _calls(path) if call.endswith(".backward")}
    assert places == {"training/steps.py"}


def test_nothing_seeds_or_sets_threads_for_everyone() -> None:
    """One ``random_state`` drives everything, through local generators (the trainer restores what it seeds)."""
    forbidden = {"np.random.seed", "numpy.random.seed", "random.seed", "torch.set_num_threads", "torch.manual_seed"}
    allowed = {"training/trainer.py": {"torch.manual_seed"}}
    assert _offenders(lambda path: set(_calls(path)) & (forbidden - allowed.get(_relative(path), set()))) == []


def test_nothing_asks_what_an_object_can_do() -> None:
    assert _offenders(lambda path: "hasattr" in _calls(path)) == []


def test_the_package_is_typed() -> None:
    assert (PACKAGE / "py.typed").is_file()
