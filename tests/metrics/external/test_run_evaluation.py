"""A file of labels matched with an assignments file, and the scores of the two."""

from __future__ import annotations

from pathlib import Path

import pytest

from coterie.errors import InputError
from coterie.metrics.external.run_evaluation import match_labels, read_texts, score_assigned_rows, score_assignments
from coterie.metrics.external.scores import evaluate


@pytest.fixture
def assignments(tmp_path: Path) -> Path:
    path = tmp_path / "assignments.csv"
    path.write_text("id,cluster,text\na,0,one\nb,1,\nc,1,three\nd,-1,four\n", encoding="utf-8")
    return path


def _labels(tmp_path: Path, content: str) -> Path:
    path = tmp_path / "labels.csv"
    path.write_text(content, encoding="utf-8")
    return path


def test_row_by_row(assignments: Path, tmp_path: Path) -> None:
    labels = _labels(tmp_path, "topic\nx\ny\nx\ny\n")
    assert match_labels(assignments, labels, "topic") == ([0, 1, 1, -1], ["x", "y", "x", "y"])
    assert score_assignments(assignments, labels, "topic") == evaluate(["x", "y", "x", "y"], [0, 1, 1, -1])
    with pytest.raises(InputError, match="3 rows.*--id-column"):
        match_labels(assignments, _labels(tmp_path, "topic\nx\ny\nx\n"), "topic")


def test_by_id(assignments: Path, tmp_path: Path) -> None:
    labels = _labels(tmp_path, "key,topic\nd,x\na,y\nzz,y\n")
    assert match_labels(assignments, labels, "topic", "key") == ([0, 1, 1, -1], ["y", None, None, "x"])
    with pytest.raises(InputError, match="holds an id twice"):
        match_labels(assignments, _labels(tmp_path, "key,topic\nd,x\nd,y\n"), "topic", "key")
    with pytest.raises(InputError, match="none of the ids"):
        match_labels(assignments, _labels(tmp_path, "key,topic\nq,x\n"), "topic", "key")


def test_rows_in_a_cluster_alone() -> None:
    scores = score_assigned_rows([0, 1, -1, 1], ["x", "y", "x", "y"])
    assert (scores.n_rows, scores.n_unassigned, scores.accuracy) == (3, 0, 1)


def test_texts_of_an_assignments_file(assignments: Path) -> None:
    assert read_texts(assignments) == ["one", "", "three", "four"]
