"""Many runs in few files: Parquet files of run records, of assignments per data set, and of traces.

``coterie benchmark pack`` writes them; :class:`coterie.benchmark.store.Store` reads them beside loose runs, which have
one JSON file each. The layout inside a folder of results::

    packed/runs.parquet                  one row per run: name, row, dataset, seed, assignments_sha256, record (JSON)
    packed/assignments/<dataset>.parquet one row per partition of a run: name, partition, dtype, labels (bytes)
    packed/traces.parquet                one row per traced run: name, trace (JSON)

The same runs give the same bytes, so version control sees a change only where there is one.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from coterie.benchmark.partitions import shortest

if TYPE_CHECKING:
    from numpy.typing import NDArray

# The sub-folder of packed results, and the files in it.
PACKED = "packed"
RUNS_FILE = "runs.parquet"
ASSIGNMENTS_FOLDER = "assignments"
TRACES_FILE = "traces.parquet"
ENDING = ".parquet"
# The strongest level: files are packed seldom and read often, and reading does not depend on it.
ZSTD_LEVEL = 22
# Bytes of a page: a whole column, so that zstd finds what runs have in common.
PAGE_BYTES = 64 << 20


@dataclass(frozen=True)
class PackedResults:
    """The packed runs of a folder of results; empty where nothing was packed.

    What was read is kept in memory and must not be changed by its readers.
    """

    folder: Path
    _assignments: dict[str, dict[str, dict[str, NDArray[Any]]]] = field(default_factory=dict, repr=False, compare=False)

    @property
    def runs_file(self) -> Path:
        return self.folder / RUNS_FILE

    @property
    def traces_file(self) -> Path:
        return self.folder / TRACES_FILE

    def assignments_file(self, dataset: str) -> Path:
        return self.folder / ASSIGNMENTS_FOLDER / f"{dataset}{ENDING}"

    @cached_property
    def _runs(self) -> dict[str, dict[str, Any]]:
        """The rows of the file of runs, by name."""
        return {row["name"]: row for row in _read_rows(self.runs_file)}

    @cached_property
    def records(self) -> dict[str, dict[str, Any]]:
        """All records by the name of their run."""
        return {name: json.loads(row["record"]) for name, row in self._runs.items()}

    def assignments_sha256(self, name: str) -> str:
        """Return the digest of a run's partitions (see :func:`partitions_sha256`); empty where it has none."""
        return self._runs[name]["assignments_sha256"] if name in self._runs else ""

    def assignments(self, name: str) -> dict[str, NDArray[Any]]:
        """Return the partitions of a run with the integer types they were saved with; empty where there are none."""
        if not self.assignments_sha256(name):
            return {}
        dataset = self._runs[name]["dataset"]
        if dataset not in self._assignments:
            self._assignments.clear()  # one data set at a time: all of them are ten times what one takes
            self._assignments[dataset] = _read_assignments(self.assignments_file(dataset))
        return self._assignments[dataset][name]

    @cached_property
    def traces(self) -> dict[str, str]:
        """The traces, as JSON, by the name of their run."""
        return {row["name"]: row["trace"] for row in _read_rows(self.traces_file)}


def partitions_sha256(partitions: Mapping[str, NDArray[Any]]) -> str:
    """Return a digest of the labels, whichever integer type they come in."""
    digest = hashlib.sha256()
    for name, labels in sorted(partitions.items()):
        short = shortest(labels)
        digest.update(f"{name} {short.dtype} {short.shape}\0".encode() + short.tobytes())
    return digest.hexdigest()


def write_runs(path: Path, records: Mapping[str, Mapping[str, Any]], digests: Mapping[str, str]) -> None:
    """Write records with the digests of their assignments, which are empty for runs without any."""
    rows = [
        {
            "name": name,
            **{key: record.get(key) for key in ("row", "dataset", "seed")},
            "assignments_sha256": digests[name],
            "record": json.dumps(record, ensure_ascii=False, separators=(",", ":")),
        }
        for name, record in sorted(records.items())
    ]
    _write_rows(
        path,
        rows,
        {
            "name": "string",
            "row": "string",
            "dataset": "string",
            "seed": "int64",
            "assignments_sha256": "string",
            "record": "string",
        },
    )


def write_assignments(path: Path, assignments: Mapping[str, Mapping[str, NDArray[Any]]]) -> None:
    """Write the partitions of the runs of one data set; equal partitions of several runs are stored once."""
    rows = [
        {"name": name, "partition": partition, "dtype": labels.dtype.name, "labels": labels.tobytes()}
        for name, partitions in assignments.items()
        for partition, labels in partitions.items()
    ]
    rows.sort(key=lambda row: (row["partition"], row["name"]))  # like beside like takes the least room
    _write_rows(path, rows, {"name": "string", "partition": "string", "dtype": "string", "labels": "binary"})


def write_traces(path: Path, traces: Mapping[str, str]) -> None:
    """Write traces, each as JSON."""
    rows = [{"name": name, "trace": trace} for name, trace in sorted(traces.items())]
    _write_rows(path, rows, {"name": "string", "trace": "string"})


def _write_rows(path: Path, rows: Iterable[Mapping[str, Any]], schema: Mapping[str, str]) -> None:
    """Write a Parquet file as a whole or not at all."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    types = pa.schema([(name, pa.type_for_alias(kind)) for name, kind in schema.items()])
    path.parent.mkdir(parents=True, exist_ok=True)
    scratch = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        pq.write_table(
            pa.Table.from_pylist(list(rows), types),
            scratch,
            compression="zstd",
            compression_level=ZSTD_LEVEL,
            data_page_size=PAGE_BYTES,
            dictionary_pagesize_limit=PAGE_BYTES,
            write_statistics=False,
            store_schema=False,
        )
        os.replace(scratch, path)
    finally:
        scratch.unlink(missing_ok=True)


def _read_rows(path: Path) -> list[dict[str, Any]]:
    import pyarrow.parquet as pq

    if not path.is_file():
        return []
    # Not pq.read_table, which loads pyarrow's data sets: half of the time this takes.
    with pq.ParquetFile(path) as file:
        rows: list[dict[str, Any]] = file.read().to_pylist()
    return rows


def _read_assignments(path: Path) -> dict[str, dict[str, NDArray[Any]]]:
    """Return the partitions of every run in the file, in the order of their names."""
    import numpy as np

    found: dict[str, dict[str, NDArray[Any]]] = {}
    for row in _read_rows(path):
        found.setdefault(row["name"], {})[row["partition"]] = np.frombuffer(row["labels"], dtype=row["dtype"])
    return found
