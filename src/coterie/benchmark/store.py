"""Results on disk: one JSON a run, and beside it what each text was assigned to."""

from __future__ import annotations

import hashlib
import importlib.util
import json
import lzma
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from coterie.benchmark.partitions import ENDING, ON, read_partitions, write_packed
from coterie.benchmark.rows import PROTOCOL, Row
from coterie.benchmark.sets import BenchmarkSet
from coterie.errors import InputError
from coterie.files import whole_file

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

# Parameters that say where and with which seed, not what.
OF_THE_RUN = ("device", "random_state", "n_clusters")
RUNS, ASSIGNMENTS, EPOCHS, TRACES = "runs", "assignments", "epochs", "traces"


@dataclass(frozen=True)
class Job:
    """One run: a row of the benchmark on a set with a seed; with ``trace``, how its embeddings moved is kept."""

    row: Row
    chosen: BenchmarkSet
    seed: int
    trace: bool = False

    @property
    def settings(self) -> dict[str, Any]:
        return self.row.settings_for(self.chosen)

    @property
    def name(self) -> str:
        """Of its files: row, set, seed, protocol and settings, other clusterings included."""
        more = {"reclustered": self.row.reclustered} if self.row.reclustered else {}
        told = json.dumps({**self.settings, **more}, sort_keys=True, default=str)
        digest = hashlib.sha256(told.encode()).hexdigest()[:8]
        return f"{self.row.name}.{self.chosen.name}.s{self.seed}.p{PROTOCOL}.{digest}"


@dataclass(frozen=True)
class Store:
    """A folder of results."""

    folder: Path

    def run_file(self, name: str) -> Path:
        return self.folder / RUNS / f"{name}.json"

    def assignment_file(self, name: str) -> Path:
        return self.folder / ASSIGNMENTS / f"{name}{ENDING}"

    def epochs_file(self, name: str) -> Path:
        """What each text was assigned to in every epoch: large, and needed for the oracle alone."""
        return self.folder / EPOCHS / f"{name}{ENDING}"

    def trace_file(self, name: str) -> Path:
        """How the embeddings of some texts moved (see :mod:`coterie.benchmark.traces`); a ninth as large packed."""
        return self.folder / TRACES / f"{name}.json.xz"

    def has(self, job: Job) -> bool:
        """Whether it is done, with all that is wanted of it, by a method whose defaults are still the same."""
        if not self.run_file(job.name).is_file():
            return False
        record = self.read(job.name)
        # A method that is not trained leaves no trace.
        traced = not job.trace or self.trace_file(job.name).is_file() or record.get("snapshots") == []
        return traced and _reclustered(record, job) and not changed_parameters(record, job)

    def write(self, name: str, record: Mapping[str, Any]) -> None:
        """Whole or not at all: a run that is killed leaves nothing that looks like a result."""
        _write(self.run_file(name), json.dumps(record, indent=1))

    def write_trace(self, name: str, trace: Mapping[str, Any]) -> None:
        """Before the run itself is written, which would count as done without it."""
        write_packed(self.trace_file(name), json.dumps(trace).encode())

    def read_trace(self, name: str) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(lzma.decompress(self.trace_file(name).read_bytes()))
        return found

    def read(self, name: str) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.run_file(name).read_text(encoding="utf-8"))
        return found

    def names(self) -> list[str]:
        return sorted(path.stem for path in (self.folder / RUNS).glob("*.json"))

    def records(self) -> dict[str, dict[str, Any]]:
        """All runs by name; an error where they are of more than one protocol."""
        found = {name: self.read(name) for name in self.names()}
        protocols = sorted({record["protocol"] for record in found.values()})
        if len(protocols) > 1:
            raise InputError(
                f"{self.folder} mixes results of protocols {', '.join(map(str, protocols))}, which cannot be compared; "
                "move those of the older ones to another folder"
            )
        return found

    def assignments(self, name: str) -> dict[str, NDArray[np.int64]]:
        """The partitions of a run: ``final``, ``frozen``, ``head``, ``kmeans``, and ``epochs`` where they are kept."""
        epochs = self.epochs_file(name)
        return {**read_partitions(self.assignment_file(name)), **(read_partitions(epochs) if epochs.is_file() else {})}


def changed_parameters(record: Mapping[str, Any], job: Job) -> list[str]:
    """Parameters that had another value in the run than they would have now.

    A run's name holds the settings of its row alone. Parameters that a method has got since are no matter.
    """
    from coterie.methods.building import build_method
    from coterie.methods.results import plain

    model = build_method(job.row.method, record.get("n_clusters", 2), job.seed, job.settings, {})
    now = json.loads(json.dumps({name: plain(value) for name, value in model.get_params(deep=False).items()}))
    then = record.get("parameters", {})
    return [name for name in now if name not in OF_THE_RUN and name in then and not _agree(now[name], then[name])]


def _agree(now: Any, then: Any) -> bool:
    if isinstance(now, dict) and isinstance(then, dict):
        return all(now[name] == then[name] for name in now if name in then)
    return bool(now == then)


def _reclustered(record: Mapping[str, Any], job: Job) -> bool:
    """Whether every other clustering is there that could be had here: one was left out where its package was absent."""
    lacking = [name for name in job.row.reclustered if f"{ON}{name}" not in record["scores"]]
    return not any(name.startswith("umap") for name in lacking) or importlib.util.find_spec("umap") is None


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with whole_file(path) as stream:
        stream.write(text + "\n")
