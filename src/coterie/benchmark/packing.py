"""Join the runs of a folder of results into few files (``coterie benchmark pack``)."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from coterie.benchmark.packed_results import (
    PACKED,
    PackedResults,
    partitions_sha256,
    write_assignments,
    write_runs,
    write_traces,
)
from coterie.benchmark.store import EPOCHS, Store
from coterie.errors import CoterieError, InputError


@dataclass(frozen=True)
class PackingSummary:
    """What a packed folder holds, and how many runs of it had been loose files."""

    folder: Path
    runs: int
    loose: int
    traces: int
    n_bytes: int


def pack_results(folder: Path, output: Path | None = None) -> PackingSummary:
    """Pack all runs of ``folder`` into ``output``, or in place: then the loose files are removed.

    Runs that were packed before are kept; a loose run replaces a packed one of the same name. Everything is read back
    and compared before a file is removed. Partitions of single epochs are large and stay as they are.
    """
    store = Store(folder)
    if not store.names():
        raise InputError(f"{folder} holds no runs: name a folder that `coterie benchmark run --out` has filled")
    target = Store(folder if output is None else output)
    in_place = target.folder.resolve() == folder.resolve()
    if not in_place and target.folder.exists() and any(target.folder.iterdir()):
        raise InputError(f"{target.folder} is not empty: name another folder by --output")
    loose = store.loose_names()
    digests = _write(store, PackedResults(target.folder / PACKED), in_place)
    if not in_place:
        _copy_the_rest(store, target)
    _check(store, PackedResults(target.folder / PACKED), digests)
    if in_place:
        _remove_loose(store)
    packed = Store(target.folder)
    files = [path for path in (target.folder / PACKED).rglob("*") if path.is_file()]
    return PackingSummary(
        target.folder,
        len(packed.names()),
        len(loose),
        len(packed.traced_names()),
        sum(path.stat().st_size for path in files),
    )


def _write(store: Store, packed: PackedResults, in_place: bool) -> dict[str, str]:
    """Write the packed files, and return the digests of the assignments that they were written from.

    In place, the files of data sets without a loose run stay as they are.
    """
    records = {name: store.read(name) for name in store.names()}
    digests = dict.fromkeys(records, "")
    by_dataset: dict[str, list[str]] = {}
    for name, record in records.items():
        by_dataset.setdefault(str(record.get("dataset")), []).append(name)
    for dataset, names in sorted(by_dataset.items()):
        unchanged = in_place and not any(store.assignment_file(name).is_file() for name in names)
        if unchanged:
            digests |= {name: store.assignments_sha256(name) for name in names}
            continue
        assignments = {name: store.stored_partitions(name) for name in names if store.has_assignments(name)}
        digests |= {name: partitions_sha256(partitions) for name, partitions in assignments.items()}
        if assignments:
            write_assignments(packed.assignments_file(dataset), assignments)
    traces = {name: json.dumps(store.read_trace(name), separators=(",", ":")) for name in store.traced_names()}
    if traces:
        write_traces(packed.traces_file, traces)
    write_runs(packed.runs_file, records, digests)
    return digests


def _check(store: Store, packed: PackedResults, digests: Mapping[str, str]) -> None:
    """Compare what was packed with what it was packed from: loose files, records in memory and digests."""
    if sorted(packed.records) != store.names() or sorted(packed.traces) != store.traced_names():
        raise CoterieError(f"{packed.folder} does not hold all runs of {store.folder}; nothing was removed")
    for name in sorted(packed.records, key=lambda each: str(packed.records[each].get("dataset"))):
        same = _as_json(packed.records[name]) == _as_json(store.read(name))
        after = packed.assignments(name)
        same = same and digests[name] == (partitions_sha256(after) if after else "")
        if store.assignment_file(name).is_file():
            before = store.stored_partitions(name)
            same = same and list(before) == list(after) and all(_equal(before[each], after[each]) for each in before)
        if name in packed.traces:
            same = same and _as_json(json.loads(packed.traces[name])) == _as_json(store.read_trace(name))
        if not same:
            raise CoterieError(f"{name} was not packed as it is in {store.folder}; nothing was removed")


def _as_json(content: Any) -> str:
    """Text by which two records are equal only if their keys have the same order, too."""
    return json.dumps(content)


def _equal(first: np.ndarray[Any, Any], second: np.ndarray[Any, Any]) -> bool:
    return first.dtype == second.dtype and np.array_equal(first, second)


def _copy_the_rest(store: Store, target: Store) -> None:
    """Copy the comparisons and the partitions of single epochs."""
    if store.comparisons_file.is_file():
        shutil.copyfile(store.comparisons_file, target.comparisons_file)
    if (store.folder / EPOCHS).is_dir():
        shutil.copytree(store.folder / EPOCHS, target.folder / EPOCHS)


def _remove_loose(store: Store) -> None:
    """Remove the files of loose runs; the record last, which counts as the run."""
    for name in store.names():
        store.trace_file(name).unlink(missing_ok=True)
        store.assignment_file(name).unlink(missing_ok=True)
        store.run_file(name).unlink(missing_ok=True)
    for path in store.loose_folders:
        if path.is_dir() and not any(path.iterdir()):
            path.rmdir()
