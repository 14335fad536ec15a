"""Where a run folder may be written: never over a file, nor over a folder that is no run."""

from __future__ import annotations

import os
from pathlib import Path

from coterie.errors import InputError
from coterie.runs.run_file import RUN_FILE


def check_free(path: Path, overwrite: bool) -> None:
    """Refuse an existing target early, before any work."""
    if not path.exists():
        parent = next(parent for parent in path.absolute().parents if parent.exists())
        if not parent.is_dir() or not os.access(parent, os.W_OK):
            raise InputError(f"{path} cannot be written: {parent} is not a folder one can write to")
        return
    if not overwrite:
        raise InputError(f"{path} exists already; choose another --output or add --overwrite")


def check_free_for_run(path: Path, overwrite: bool) -> None:
    """Refuse a target that must not become a run folder; a file, or a folder that is no run, is never replaced."""
    check_free(path, overwrite)
    if path.exists() and not path.is_dir():
        raise InputError(f"{path} is a file; --output must name a folder")
    if path.is_dir() and any(path.iterdir()) and not (path / RUN_FILE).is_file():
        raise InputError(f"{path} is a folder without {RUN_FILE}, so not a run of Coterie; it is left alone")
