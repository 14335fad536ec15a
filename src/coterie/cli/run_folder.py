"""What a run leaves behind, written whole or not at all."""

from __future__ import annotations

import csv
import json
import os
import shutil
import sys
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from coterie.errors import InputError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from coterie.text.corpus import Corpus

RUN_FILE = "run.json"
OWN_COLUMNS = ("row", "id", "cluster", "confidence", "status", "text")


def check_free(path: Path, overwrite: bool) -> None:
    """Refuse an existing target early, before any work; never replace a folder that is not a run."""
    if not path.exists():
        return
    if not overwrite:
        raise InputError(f"{path} exists already; choose another --output or add --overwrite")
    if path.is_dir() and any(path.iterdir()) and not (path / RUN_FILE).is_file():
        raise InputError(f"{path} is a folder without {RUN_FILE}, so not a run of Coterie; it is left alone")


@contextmanager
def whole_folder(target: Path) -> Iterator[Path]:
    """A scratch folder beside ``target`` that takes its place if the block succeeds, and vanishes if not."""
    target = Path(os.path.abspath(target))
    target.parent.mkdir(parents=True, exist_ok=True)
    scratch = Path(tempfile.mkdtemp(prefix=f".{target.name}-", dir=target.parent))
    try:
        yield scratch
        scratch.chmod(0o755)
        if target.is_dir():
            old = Path(tempfile.mkdtemp(prefix=f".{target.name}-old-", dir=target.parent))
            os.replace(target, old / "run")
            os.replace(scratch, target)
            shutil.rmtree(old, ignore_errors=True)
        else:
            target.unlink(missing_ok=True)
            os.replace(scratch, target)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


@contextmanager
def whole_file(target: Path) -> Iterator[IO[str]]:
    """A text file that takes ``target``'s place if the block succeeds, and vanishes if not."""
    target.parent.mkdir(parents=True, exist_ok=True)
    descriptor, name = tempfile.mkstemp(prefix=f".{target.name}-", dir=target.parent)
    scratch = Path(name)
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8", newline="") as stream:
            yield stream
        scratch.chmod(0o644)
        os.replace(scratch, target)
    finally:
        scratch.unlink(missing_ok=True)


class AssignmentWriter:
    """Rows of ``assignments.csv``: row (from 1), id (if any), cluster, confidence, status, text, kept columns."""

    def __init__(self, stream: IO[str], corpus: Corpus) -> None:
        self._has_ids = corpus.id_column is not None
        self._kept = list(corpus.columns)
        own = [name for name in OWN_COLUMNS if name != "id" or self._has_ids]
        # A kept column may carry one of our names.
        renamed = [f"{name}_input" if name in OWN_COLUMNS else name for name in self._kept]
        self._writer = csv.writer(stream, lineterminator="\n")
        self._writer.writerow([*own, *renamed])
        self._rows = 0

    def write(self, corpus: Corpus, labels: NDArray[np.int64], confidence: NDArray[np.float64]) -> None:
        statuses = corpus.status
        for i, text in enumerate(corpus.texts):
            self._rows += 1
            ids = [corpus.row_ids[i]] if self._has_ids else []
            kept = [corpus.columns[name][i] for name in self._kept]
            self._writer.writerow([self._rows, *ids, int(labels[i]), f"{confidence[i]:.4f}", statuses[i], text, *kept])


def write_json(path: Path, content: Any) -> None:
    path.write_text(json.dumps(content, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


def versions(names: Iterable[str] = ("torch", "transformers", "scikit-learn", "numpy")) -> dict[str, str]:
    """Versions of Coterie, Python and the libraries a result depends on."""
    from importlib.metadata import PackageNotFoundError, version

    from coterie import __version__

    found = {"coterie": __version__, "python": sys.version.split()[0]}
    for name in names:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = "not installed"
    return found


def read_run(path: Path) -> dict[str, Any]:
    """The contents of a run's ``run.json``."""
    file = path / RUN_FILE
    if not file.is_file():
        raise InputError(f"{path} is not a run folder: {RUN_FILE} is missing")
    content: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
    return content


def listed_columns(values: Sequence[str]) -> str | tuple[str, ...]:
    """``--keep`` options as :func:`~coterie.text.reading.read_corpus` takes them."""
    names = tuple(name.strip() for value in values for name in value.split(",") if name.strip())
    return "all" if names == ("all",) else names
