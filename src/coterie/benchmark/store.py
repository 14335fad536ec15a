"""Results on disk: one JSON file per run and beside it the assignments of its texts, or many runs packed together."""

from __future__ import annotations

import hashlib
import importlib.util
import json
import lzma
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from coterie.benchmark.packed_results import PACKED, PackedResults, partitions_sha256
from coterie.benchmark.partitions import ENDING, ON, read_partitions, write_compressed
from coterie.benchmark.rows import PROTOCOL, Row
from coterie.benchmark.sets import BenchmarkSet
from coterie.errors import InputError
from coterie.files import atomic_file

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

# Parameters that may differ between runs of the same settings.
OF_THE_RUN = ("device", "random_state", "n_clusters")
# Sub-folders of a folder of results.
RUNS = "runs"
ASSIGNMENTS = "assignments"
EPOCHS = "epochs"
TRACES = "traces"
TRACE_ENDING = ".json.xz"


@dataclass(frozen=True)
class Job:
    """One run: a row of the benchmark on a data set with a seed; with ``trace``, its trace is stored, too."""

    row: Row
    dataset: BenchmarkSet
    seed: int
    trace: bool = False

    @property
    def settings(self) -> dict[str, Any]:
        return self.row.settings_for(self.dataset)

    @property
    def name(self) -> str:
        """The name of the run and its files: row, data set, seed, protocol and a digest of all settings."""
        more = {"reclustered": self.row.reclustered} if self.row.reclustered else {}
        described = json.dumps({**self.settings, **more}, sort_keys=True, default=str)
        digest = hashlib.sha256(described.encode()).hexdigest()[:8]
        return f"{self.row.name}.{self.dataset.name}.s{self.seed}.p{PROTOCOL}.{digest}"


@dataclass(frozen=True)
class Store:
    """A folder of results: loose runs, one JSON file each, beside packed ones (see
    :mod:`coterie.benchmark.packed_results`). A loose run replaces a packed one of the same name.
    """

    folder: Path

    @cached_property
    def _packed(self) -> PackedResults:
        return PackedResults(self.folder / PACKED)

    @property
    def packed_runs_file(self) -> Path:
        return self._packed.runs_file

    @property
    def comparisons_file(self) -> Path:
        """Where comparisons with the frozen encoder are stored (see :mod:`coterie.benchmark.significance_marks`)."""
        return self.folder / "comparisons.json"

    @property
    def loose_folders(self) -> tuple[Path, ...]:
        return tuple(self.folder / name for name in (RUNS, ASSIGNMENTS, TRACES))

    def require_folder(self) -> None:
        """Raise an error where the folder does not exist."""
        if not self.folder.is_dir():
            raise InputError(
                f"there is no folder {self.folder}: go to a clone of the project, or name a folder of results by --out"
            )

    def run_file(self, name: str) -> Path:
        return self.folder / RUNS / f"{name}.json"

    def assignment_file(self, name: str) -> Path:
        return self.folder / ASSIGNMENTS / f"{name}{ENDING}"

    def epochs_file(self, name: str) -> Path:
        """Return where the partitions of all epochs are: large, needed for the oracle alone, and never packed."""
        return self.folder / EPOCHS / f"{name}{ENDING}"

    def trace_file(self, name: str) -> Path:
        """Return where a loose trace is (see :mod:`coterie.benchmark.traces`)."""
        return self.folder / TRACES / f"{name}{TRACE_ENDING}"

    def names(self) -> list[str]:
        """Return the names of all runs, sorted."""
        return sorted({*self.loose_names(), *self._packed.records})

    def loose_names(self) -> list[str]:
        """Return the names of the runs with a JSON file of their own, sorted."""
        return sorted(path.stem for path in (self.folder / RUNS).glob("*.json"))

    def traced_names(self) -> list[str]:
        """Return the names of the runs with a trace, sorted."""
        loose = [path.name.removesuffix(TRACE_ENDING) for path in (self.folder / TRACES).glob(f"*{TRACE_ENDING}")]
        return sorted({*loose, *self._packed.traces})

    def has_run(self, name: str) -> bool:
        return name in self._packed.records or self.run_file(name).is_file()

    def has_assignments(self, name: str) -> bool:
        return self.assignment_file(name).is_file() or bool(self._packed.assignments_sha256(name))

    def has_trace(self, name: str) -> bool:
        return name in self._packed.traces or self.trace_file(name).is_file()

    def has(self, job: Job) -> bool:
        """Return whether the run is stored, with a trace if one is wanted, and of the method as it is now."""
        if not self.has_run(job.name):
            return False
        record = self.read(job.name)
        if job.row.is_outdated(record):
            return False
        # A method that is not trained leaves no trace.
        traced = not job.trace or self.has_trace(job.name) or record.get("snapshots") == []
        return traced and _reclustered(record, job) and not changed_parameters(record, job)

    def write(self, name: str, record: Mapping[str, Any]) -> None:
        """Write a loose run as a whole or not at all: one that is killed leaves nothing that looks like a result."""
        with atomic_file(self.run_file(name)) as stream:
            stream.write(json.dumps(record, indent=1) + "\n")

    def write_trace(self, name: str, trace: Mapping[str, Any]) -> None:
        """Write a loose trace; before the run itself, which would count as done without it."""
        write_compressed(self.trace_file(name), json.dumps(trace).encode())

    def read_trace(self, name: str) -> dict[str, Any]:
        path = self.trace_file(name)
        text = lzma.decompress(path.read_bytes()) if path.is_file() else self._packed.traces[name]
        found: dict[str, Any] = json.loads(text)
        return found

    def read(self, name: str) -> dict[str, Any]:
        """Return the record of a run; it is shared with other readers and must not be changed."""
        path = self.run_file(name)
        if not path.is_file() and name in self._packed.records:
            return self._packed.records[name]
        found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        return found

    def records(self) -> dict[str, dict[str, Any]]:
        """Return all runs by name; raise an error where they are of more than one protocol."""
        loose = {name: self.read(name) for name in self.loose_names()}
        found = dict(sorted({**self._packed.records, **loose}.items()))
        protocols = sorted({record["protocol"] for record in found.values()})
        if len(protocols) > 1:
            raise InputError(
                f"{self.folder} mixes results of protocols {', '.join(map(str, protocols))}, which cannot be compared; "
                "move those of the older ones to another folder"
            )
        return found

    def assignments(self, name: str) -> dict[str, NDArray[np.int64]]:
        """Return the partitions of a run: ``final``, ``frozen``, ``head``, ``kmeans``, and ``epochs`` where there are.

        Where the method has no such partition, the key is absent.
        """
        epochs = self.epochs_file(name)
        found = {**self.stored_partitions(name), **(read_partitions(epochs) if epochs.is_file() else {})}
        return {partition: labels.astype("int64") for partition, labels in found.items()}

    def stored_partitions(self, name: str) -> dict[str, NDArray[Any]]:
        """Return the partitions of a run, without its epochs, with the integer types they were saved with."""
        path = self.assignment_file(name)
        return read_partitions(path) if path.is_file() else self._packed.assignments(name)

    def assignments_sha256(self, name: str) -> str:
        """Return a digest of the partitions of a run, the same whether they are loose or packed."""
        path = self.assignment_file(name)
        return partitions_sha256(read_partitions(path)) if path.is_file() else self._packed.assignments_sha256(name)


def changed_parameters(record: Mapping[str, Any], job: Job) -> list[str]:
    """Return the parameters that had another value in the run than they would have now.

    The name of a run covers the settings of its row alone. Parameters that were added to the method since do not count.
    """
    from coterie.methods.build_method import build_method
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
    """Return whether the run has all other clusterings that are possible here.

    A run that was made without UMAP lacks those that need it; it is incomplete where UMAP is installed.
    """
    lacking = [name for name in job.row.reclustered if f"{ON}{name}" not in record["scores"]]
    return not any(name.startswith("umap") for name in lacking) or importlib.util.find_spec("umap") is None
