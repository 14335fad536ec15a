"""``edits.jsonl``: one line an edit, only ever appended to, so that nothing a person did is lost."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from coterie.errors import InputError
from coterie.runs.edits.kinds import Edit

EDITS_FILE = "edits.jsonl"
UNDO, REDO = "undo", "redo"


class ChangedElsewhereError(InputError):
    """Somebody else has edited the run since it was read."""


@dataclass(frozen=True)
class Edits:
    """What a log says.

    Attributes
    ----------
    active:
        The edits that hold, in their order.
    undone:
        Those that could be redone, the next one last.
    lines:
        How many lines the log has.
    notes:
        What could not be read.
    """

    active: tuple[Edit, ...] = ()
    undone: tuple[Edit, ...] = ()
    lines: int = 0
    notes: tuple[str, ...] = ()


class EditLog:
    """The log of a run folder."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / EDITS_FILE

    def read(self) -> Edits:
        try:
            # A last line without its end is one that is being written.
            lines = self.path.read_text(encoding="utf-8").split("\n")[:-1]
        except FileNotFoundError:
            return Edits()
        return _told(lines)

    def append(self, edit: Edit, *, seen: int) -> None:
        """Add an edit made by somebody who had read ``seen`` lines; an error where there are more by now."""
        self._append({**edit.to_dict(), "at": _now()}, seen)

    def undo(self, *, seen: int) -> None:
        if not self.read().active:
            raise InputError("there is nothing to undo")
        self._append({"kind": UNDO, "at": _now()}, seen)

    def redo(self, *, seen: int) -> None:
        if not self.read().undone:
            raise InputError("there is nothing to redo")
        self._append({"kind": REDO, "at": _now()}, seen)

    def _append(self, record: dict[str, Any], seen: int) -> None:
        with self.path.open("a+b") as stream, _locked(stream.fileno()):
            stream.seek(0)
            written = stream.read()
            if written.count(b"\n") != seen:
                raise ChangedElsewhereError("this run was edited elsewhere meanwhile; look at it again and repeat")
            line = json.dumps(record, ensure_ascii=False).encode() + b"\n"
            # A line that was cut off, by a full disk say, must not swallow the next one.
            stream.write(line if not written or written.endswith(b"\n") else b"\n" + line)
            stream.flush()
            os.fsync(stream.fileno())


def read_edits(folder: Path) -> Edits:
    """The edits of a run folder; none where there is no log."""
    return EditLog(folder).read()


def _told(lines: Sequence[str]) -> Edits:
    active: list[Edit] = []
    undone: list[Edit] = []
    notes = []
    for number, line in enumerate(lines, start=1):
        try:
            record = json.loads(line)
            kind = record.get("kind")
            if kind == UNDO:
                undone.append(active.pop())
            elif kind == REDO:
                active.append(undone.pop())
            else:
                active.append(Edit.from_dict(record))
                undone.clear()
        except (ValueError, AttributeError, IndexError, InputError) as error:
            notes.append(f"{EDITS_FILE}, line {number}, was left out: {error}")
    return Edits(tuple(active), tuple(undone), len(lines), tuple(notes))


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


@contextmanager
def _locked(descriptor: int) -> Iterator[None]:
    """One writer at a time, where the system has locks."""
    try:
        import fcntl
    except ImportError:  # Windows: two explorers on one run are told apart by the number of lines alone
        yield
        return
    fcntl.flock(descriptor, fcntl.LOCK_EX)
    try:
        yield
    finally:
        fcntl.flock(descriptor, fcntl.LOCK_UN)
