"""The runs behind a cell of a table: of a row on a data set, with the row's present settings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from coterie.benchmark.rows import Row
from coterie.benchmark.sets import find_set
from coterie.benchmark.store import Job


def run_names(row: Row, dataset: str) -> list[str]:
    """Return the names of the runs of all seeds, whether they exist or not."""
    return [Job(row, find_set(dataset), seed).name for seed in row.seeds]


def existing_names(row: Row, dataset: str, records: Mapping[str, dict[str, Any]]) -> list[str]:
    """Return the names of those runs that exist, in the order of seeds.

    Runs from before the row's method was changed are left out, unless there are no others.
    """
    found = [name for name in run_names(row, dataset) if name in records]
    return [name for name in found if not row.is_outdated(records[name])] or found


def existing_runs(row: Row, dataset: str, records: Mapping[str, dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the records of :func:`existing_names`."""
    return [records[name] for name in existing_names(row, dataset, records)]


def values_of(runs: Sequence[Mapping[str, Any]], answer: str, measure: str) -> tuple[float, ...]:
    """Return a measure of a partition, of each run that has it."""
    scores = [run["scores"].get(answer) for run in runs]
    return tuple(each[measure] for each in scores if each is not None and measure in each)
