"""``edits.jsonl``: one line per edit, only ever appended to, so that no edit is lost."""

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
UNDO = "undo"
REDO = "redo"


class EditConflictError(InputError):
    """Another program has edited the run since it was read."""


@dataclass(frozen=True)
class Edits:
    """The content of a log.

    Attributes
    ----------
    active:
        The edits that apply, in their order.
    undone:
        Edits that can be redone, the next one last.
    lines:
        The number of lines of the log.
    notes:
        Lines that could not be read, in sentences.
    """

    active: tuple[Edit, ...] = ()
    undone: tuple[Edit, ...] = ()
    lines: int = 0
    notes: tuple[str, ...] = ()


class EditLog:
    """The edit log of a run folder."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / EDITS_FILE

    def read(self) -> Edits:
        """Return the edits; none where there is no log."""
        try:
            # A last line without its end is one that is being written.
            lines = self.path.read_text(encoding="utf-8").split("\n")[:-1]
        except FileNotFoundError:
            return Edits()
        return _parse(lines)

    def append(self, edit: Edit, *, seen: int) -> None:
        """Add an edit that was made when the log had ``seen`` lines; an error where it has more by now."""
        self._append({**edit.to_dict(), "at": _now()}, seen)

    def undo(self, *, seen: int) -> None:
        """Undo the last edit that applies."""
        if not self.read().active:
            raise InputError("there is nothing to undo")
        self._append({"kind": UNDO, "at": _now()}, seen)

    def redo(self, *, seen: int) -> None:
        """Redo the last edit that was undone."""
        if not self.read().undone:
            raise InputError("there is nothing to redo")
        self._append({"kind": REDO, "at": _now()}, seen)

    def _append(self, record: dict[str, Any], seen: int) -> None:
        with self.path.open("a+b") as stream, _locked(stream.fileno()):
            stream.seek(0)
            written = stream.read()
            if written.count(b"\n") != seen:
                raise EditConflictError("this run was edited elsewhere meanwhile; look at it again and repeat")
            line = json.dumps(record, ensure_ascii=False).encode() + b"\n"
            # A line that was cut off, by a full disk say, must not swallow the next one.
            stream.write(line if not written or written.endswith(b"\n") else b"\n" + line)
            stream.flush()
            os.fsync(stream.fileno())


def _parse(lines: Sequence[str]) -> Edits:
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
    """Let one writer at a time in, where the system has file locks."""
    try:
        import fcntl
    except ImportError:  # Windows: two explorers on one run differ in the number of lines they have read, which must do
        yield
        return
    fcntl.flock(descriptor, fcntl.LOCK_EX)
    try:
        yield
    finally:
        fcntl.flock(descriptor, fcntl.LOCK_UN)
