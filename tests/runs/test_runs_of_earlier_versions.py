"""Run folders of version 0.1.0 keep loading, and answer as version 0.1.0 did.

``tests/data/runs_of_version_0.1.0.zip`` was written by that version: a run of TF-IDF and one of SCCL on a tiny random
encoder (whose pretrained weights are not kept), each renamed, merged, moved and split in the explorer. Beside them are
its answers: ``NAME-fitted.csv`` is what ``coterie predict`` wrote before the edits, ``NAME-edited.csv`` after them,
and ``NAME-least.csv`` with ``--min-confidence 0.5``.
"""

from __future__ import annotations

import json
import shutil
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from command_line import done, read_rows

import coterie
from coterie.app.session import ExplorerSession
from coterie.runs.edits.log import EDITS_FILE

ARCHIVE = Path(__file__).parents[1] / "data" / "runs_of_version_0.1.0.zip"


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The unpacked archive, which tests leave as it is."""
    unpacked = tmp_path_factory.mktemp("stored")
    with zipfile.ZipFile(ARCHIVE) as archive:
        archive.extractall(unpacked)
    return unpacked


@pytest.fixture(params=["tfidf", "sccl"])
def folder(request: pytest.FixtureRequest, stored: Path, tmp_path: Path) -> Path:
    """A copy of a run, which tests may change."""
    shutil.copytree(stored / request.param, tmp_path / request.param)
    return tmp_path / request.param


def _recorded(stored: Path, folder: Path, what: str) -> Any:
    return json.loads((stored / f"{folder.name}-{what}.json").read_text(encoding="utf-8"))


def test_it_opens_with_the_edits(stored: Path, folder: Path) -> None:
    run, state = coterie.Run.open(folder, device="cpu"), _recorded(stored, folder, "state")
    assert run.labels.tolist() == state["labels"]
    assert {str(k): name for k, name in run.names.items()} == state["names"]
    np.testing.assert_allclose(run.confidence, _recorded(stored, folder, "confidence"), atol=1e-9)
    assert sorted(card.name for card in run.clusters) == sorted(
        each["name"] for each in state["clusters"] if each["size"]
    )
    assert run.assignments.n_rows == 62
    assert run.notes == run.about["notes"]


@pytest.mark.parametrize(("what", "options"), [("edited", ()), ("least", ("--min-confidence", 0.5))])
def test_it_predicts_the_same(
    stored: Path, folder: Path, tmp_path: Path, what: str, options: tuple[object, ...]
) -> None:
    output = tmp_path / "new.csv"
    done("predict", folder, stored / "new.csv", "--id-column", "key", "-o", output, "--device", "cpu", *options)
    assert read_rows(output) == read_rows(stored / f"{folder.name}-{what}.csv")


def test_it_predicts_as_before_without_the_edits(stored: Path, folder: Path, tmp_path: Path) -> None:
    (folder / EDITS_FILE).unlink()
    output = tmp_path / "new.csv"
    done("predict", folder, stored / "new.csv", "--id-column", "key", "-o", output, "--device", "cpu")
    assert read_rows(output) == read_rows(stored / f"{folder.name}-fitted.csv")


def test_the_explorer_shows_the_same(stored: Path, folder: Path) -> None:
    session, state = ExplorerSession(folder, device="cpu"), _recorded(stored, folder, "state")
    assert session.state.labels.tolist() == state["labels"]
    assert session.state.moved.tolist() == state["moved"]
    assert session.clusters()["clusters"] == state["clusters"]
    assert session.has_map


def test_its_report_can_be_made_again(folder: Path) -> None:
    run = coterie.Run.open(folder, device="cpu")
    page = run.report().read_text(encoding="utf-8")
    assert "A name by hand" in page
    if folder.name == "sccl":
        assert run.training_verdict is not None
        assert run.training_verdict.outcome == "unknown", "its pretrained encoder is not there"
    else:
        assert run.training_verdict is None


def test_it_is_evaluated_the_same(stored: Path, folder: Path) -> None:
    found = json.loads(done("evaluate", folder, "--labels", stored / "texts.csv", "--json").out)
    assert found == pytest.approx(_recorded(stored, folder, "evaluate"))
