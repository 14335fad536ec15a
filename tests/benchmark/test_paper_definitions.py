"""The papers' definitions are found in a clone, and their absence is explained elsewhere."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

import coterie.benchmark.paper_definitions as paper_definitions
from coterie.benchmark.catalogue import all_rows, find_row, find_rows, find_table
from coterie.benchmark.paper_definitions import NEEDS_A_CLONE, find_paper_definitions, require_paper_definitions
from coterie.benchmark.rows import PROTOCOL, ROWS
from coterie.benchmark.sets import find_set
from coterie.benchmark.store import Job, Store
from coterie.cli.main import app
from coterie.errors import InputError, SettingError

ROOT = Path(__file__).parents[2]


def _call(*arguments: object) -> Result:
    return CliRunner().invoke(app, ["benchmark", *map(str, arguments)])


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The package as if it ran from ``site-packages``, and the current folder, which is no clone."""
    module = tmp_path / "environment" / "site-packages" / "coterie" / "benchmark" / "paper_definitions.py"
    monkeypatch.setattr(paper_definitions, "__file__", str(module))
    here = tmp_path / "here"
    here.mkdir()
    monkeypatch.chdir(here)
    return here


def test_the_clone_that_the_package_runs_from_has_them_wherever_one_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    path = list(sys.path)
    found = require_paper_definitions()
    assert Path(found.package.__file__ or "").parent == ROOT / "benchmarks" / "papers"
    assert sys.path == path and "papers" not in sys.modules
    assert find_paper_definitions() is found  # loaded once
    assert {"1", "7-parts", "4-sccl-3"} <= {spec.name for spec in found.tables}
    assert {"cost", "sccl-3"} <= {spec.name for spec in found.figures}
    assert find_row("aecl-no-ic") in found.rows


def test_an_installed_package_finds_them_in_a_parent_of_the_current_folder(
    installed: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert find_paper_definitions() is None
    shutil.copytree(ROOT / "benchmarks" / "papers", installed / "benchmarks" / "papers")
    assert find_paper_definitions() is None  # any folder may be called so: a clone has the source beside it
    (installed / "src" / "coterie" / "benchmark").mkdir(parents=True)
    (installed / "src" / "coterie" / "benchmark" / "__init__.py").touch()
    below = installed / "benchmarks" / "results"
    below.mkdir()
    for folder in (installed, below):
        monkeypatch.chdir(folder)
        found = require_paper_definitions()
        assert Path(found.package.__file__ or "").parent == installed / "benchmarks" / "papers"
        assert find_table("1").title


@pytest.mark.parametrize(
    "command",
    [
        ("table", "1"),
        ("table", "list"),
        ("figure", "sccl-3"),
        ("figure", "list"),
        ("run", "--table", "7-parts"),
        ("run", "--figure", "sccl-3"),
        ("status", "--table", "1"),
    ],
)
def test_without_a_clone_the_papers_tables_and_figures_say_that_one_is_needed(
    installed: Path, command: tuple[str, ...]
) -> None:
    (installed / "results").mkdir()
    ended = _call(*command, *(() if command[-1] == "list" else ("--out", installed / "results")))
    assert ended.exit_code != 0
    assert isinstance(ended.exception, InputError)
    assert str(ended.exception) == NEEDS_A_CLONE and "\n" not in NEEDS_A_CLONE


def test_without_a_clone_ones_own_runs_work(installed: Path) -> None:
    store = Store(installed / "results")
    job = Job(find_row("tfidf"), find_set("support"), 0)
    scores = {"final": {"accuracy": 40.0, "nmi": 30.0, "ari": 20.0}, "frozen": None, "oracle": None}
    record = {"row": "tfidf", "dataset": "support", "seed": 0, "protocol": PROTOCOL, "source_digest": "a"}
    store.write(job.name, {**record, "method": "tfidf", "settings": job.settings, "scores": scores})
    assert all_rows() == ROWS and find_rows(["all"]) == list(ROWS)
    table = _call("table", "found", "--no-marks", "--out", store.folder).output
    assert "| TF-IDF (1,500) + k-means | 40.0 ×1 |" in table
    assert (
        "1 of 1 runs are there" in _call("status", "-m", "tfidf", "-d", "support", "-s", 0, "-o", store.folder).output
    )
    assert "accuracy 40" in _call("show", "tfidf", "support", 0, "--out", store.folder).output
    listed = _call("list").output
    assert "frozen-kmeans" in listed and "stackoverflow-k0.5" in listed and NEEDS_A_CLONE in listed
    assert "sccl-wordnet-10" not in listed
    with pytest.raises(SettingError, match=r"no row 'sccl-wordnet-10' here; it has: bow.*inside a clone"):
        find_row("sccl-wordnet-10")
