"""``run.json``: what a run was made from and how: method, settings, input, notes, history, versions."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from coterie.errors import InputError

RUN_FILE = "run.json"


def read_about(folder: Path) -> dict[str, Any]:
    """Return the content of a run folder's ``run.json``."""
    if not (folder / RUN_FILE).is_file():
        what = f"it has no {RUN_FILE}" if folder.is_dir() else "there is no such folder"
        raise InputError(f"{folder} is not a run of Coterie: {what}")
    return dict(json.loads((folder / RUN_FILE).read_text(encoding="utf-8")))


def write_about(folder: Path, about: Mapping[str, Any]) -> None:
    """Write ``run.json``."""
    from coterie.files import write_json

    write_json(folder / RUN_FILE, about)


def versions(names: Iterable[str] = ("torch", "transformers", "scikit-learn", "numpy")) -> dict[str, str]:
    """Return the versions of Coterie, Python and the libraries a result depends on."""
    from importlib.metadata import PackageNotFoundError, version

    from coterie.version import __version__

    found = {"coterie": __version__, "python": sys.version.split()[0]}
    for name in names:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = "not installed"
    return found
