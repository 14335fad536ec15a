"""The log of edits: only appended to, readable whatever happened to it, one writer at a time."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from coterie.errors import InputError
from coterie.runs.edits.kinds import NOISE, Edit, Part
from coterie.runs.edits.log import EditConflictError, EditLog

RENAME = Edit("rename", [1], name="Late parcels")
MERGE = Edit("merge", [2, 3], 0)
MOVE = Edit("move", to=NOISE, rows=[4, 5], texts=["hm"])
SPLIT = Edit("split", [0], parts=[Part(0, "a", ["x"], [0, 1], [0.5, 1.0]), Part(7, "b", [], [2], [0.0, -1.0])])


def _without_time(edits: tuple[Edit, ...]) -> list[Edit]:
    return [Edit.from_dict({**edit.to_dict(), "at": ""}) for edit in edits]


@pytest.mark.parametrize("edit", [RENAME, MERGE, MOVE, SPLIT], ids=lambda edit: edit.kind)
def test_an_edit_is_read_as_it_was_written(edit: Edit, tmp_path: Path) -> None:
    EditLog(tmp_path).append(edit, seen=0)
    found = EditLog(tmp_path).read()
    assert _without_time(found.active) == [edit]
    assert found.active[0].at.endswith("+00:00")


def test_undo_and_redo_are_lines_too(tmp_path: Path) -> None:
    log = EditLog(tmp_path)
    log.append(RENAME, seen=0)
    log.append(MERGE, seen=1)
    log.undo(seen=2)
    assert _without_time(log.read().active) == [RENAME]
    log.redo(seen=3)
    assert _without_time(log.read().active) == [RENAME, MERGE]
    log.undo(seen=4)
    log.append(MOVE, seen=5)
    found = log.read()
    assert _without_time(found.active) == [RENAME, MOVE]
    assert found.undone == ()
    with pytest.raises(InputError, match="nothing to redo"):
        log.redo(seen=6)
    assert found.lines == len((tmp_path / "edits.jsonl").read_text().splitlines()) == 6


def test_nothing_can_be_undone_where_nothing_was_done(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="nothing to undo"):
        EditLog(tmp_path).undo(seen=0)
    assert EditLog(tmp_path).read().lines == 0


def test_who_has_not_seen_the_last_edit_is_refused_and_nothing_is_lost(tmp_path: Path) -> None:
    one, other = EditLog(tmp_path), EditLog(tmp_path)
    one.append(RENAME, seen=0)
    with pytest.raises(EditConflictError):
        other.append(MERGE, seen=0)
    assert _without_time(other.read().active) == [RENAME]
    other.append(MERGE, seen=1)
    assert _without_time(one.read().active) == [RENAME, MERGE]


def test_lines_that_cannot_be_read_are_left_out_and_told(tmp_path: Path) -> None:
    lines = [
        json.dumps(RENAME.to_dict()),
        "{broken",
        json.dumps({"kind": "explode"}),
        "3",
        json.dumps({"kind": "merge"}),
    ]
    (tmp_path / "edits.jsonl").write_text("\n".join([*lines, json.dumps(MERGE.to_dict())]) + "\n")
    found = EditLog(tmp_path).read()
    assert [edit.kind for edit in found.active] == ["rename", "merge"]
    assert [note.split(",")[1] for note in found.notes] == [" line 2", " line 3", " line 4", " line 5"]


def test_a_line_that_was_cut_off_does_not_swallow_the_next(tmp_path: Path) -> None:
    (tmp_path / "edits.jsonl").write_text(json.dumps(RENAME.to_dict()) + '\n{"kind": "mer')
    log = EditLog(tmp_path)
    assert log.read().lines == 1
    log.append(MERGE, seen=1)
    assert [edit.kind for edit in log.read().active] == ["rename", "merge"]
