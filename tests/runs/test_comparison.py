"""Two runs compared: how rows are matched, and which partition of a run is read."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from pathlib import Path

import pytest

from coterie.errors import InputError
from coterie.runs.comparison import compare_runs, read_partition


def _write(path: Path, clusters: Sequence[int], **columns: Sequence[object]) -> Path:
    names = {"cluster": clusters, **columns}
    with path.open("w", encoding="utf-8", newline="") as stream:
        writer = csv.writer(stream)
        writer.writerow(names)
        writer.writerows(zip(*names.values(), strict=True))
    return path


def test_rows_one_by_one(tmp_path: Path) -> None:
    texts = ["a", "b", "c", "d"]
    before = _write(tmp_path / "before.csv", [0, 0, 1, 1], text=texts)
    compared = compare_runs(before, _write(tmp_path / "after.csv", [0, 0, 1, 2], text=texts))
    assert (compared.changes.n_before, compared.changes.n_after, compared.changes.agreement) == (2, 3, 0.75)
    assert compared.before.clusters == [0, 0, 1, 1] and compared.notes == ()
    with pytest.raises(InputError, match="row 2 differs"):
        compare_runs(before, _write(tmp_path / "other.csv", [0, 0, 1, 2], text=["a", "x", "c", "d"]))
    with pytest.raises(InputError, match="4 rows and .* 3"):
        compare_runs(before, _write(tmp_path / "short.csv", [0, 0, 1], text=texts[:3]))


def test_rows_by_id(tmp_path: Path) -> None:
    before = _write(tmp_path / "before.csv", [0, 0, 1], id=["x", "y", "z"], text=["a", "b", "c"])
    after = _write(tmp_path / "after.csv", [5, 4, 4, 4], id=["z", "y", "x", "w"], text=["c", "B", "a", "d"])
    compared = compare_runs(before, after)
    assert compared.changes.agreement == 1 and compared.changes.n_rows == 3
    assert len(compared.before.clusters) == 3 and len(compared.after.clusters) == 4
    assert [note.split(" in ")[0] for note in compared.notes] == [
        "1 rows with the same id have another text",
        "1 rows are",
    ]
    twice = _write(tmp_path / "twice.csv", [0, 0, 1], id=["x", "x", "z"], text=["a", "b", "c"])
    with pytest.raises(InputError, match="holds an id twice"):
        compare_runs(before, twice)


def test_a_partition_without_ids_texts_and_names(tmp_path: Path) -> None:
    read = read_partition(_write(tmp_path / "assignments.csv", [1, -1, 0]))
    assert read.clusters == [1, -1, 0]
    assert (read.ids, read.texts, read.names, read.n_edits) == (None, None, {}, 0)
    assert read.rows([2, 0]).clusters == [0, 1]
    with pytest.raises(InputError, match="no such run folder"):
        read_partition(tmp_path / "missing")
