"""Compare two runs on the same texts: match their rows, then find what became of the clusters."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from coterie.errors import InputError

if TYPE_CHECKING:
    from coterie.describe.partition_changes import PartitionChanges

# Keywords that stand for a cluster without a name.
KEYWORDS_AS_NAME = 3


@dataclass(frozen=True)
class RunPartition:
    """The partition of a run's rows into clusters, as it is now.

    Attributes
    ----------
    path:
        The run folder or assignments file.
    clusters:
        One cluster per row; -1 for none.
    ids, texts:
        One id and one text per row; ``None`` where the file has no such column.
    names:
        The name of each cluster that has one.
    n_edits:
        How many edits made in the explorer are in ``clusters``.
    notes:
        What a user should know about the edits.
    """

    path: Path
    clusters: list[int]
    ids: list[str] | None
    texts: list[str] | None
    names: dict[int, str]
    n_edits: int = 0
    notes: tuple[str, ...] = ()

    def rows(self, rows: Sequence[int]) -> RunPartition:
        """Return some of the rows, in the order given."""
        return replace(
            self,
            clusters=[self.clusters[row] for row in rows],
            ids=None if self.ids is None else [self.ids[row] for row in rows],
            texts=None if self.texts is None else [self.texts[row] for row in rows],
        )


@dataclass(frozen=True)
class RunComparison:
    """How two runs on the same texts differ.

    Attributes
    ----------
    before, after:
        The two partitions, all their rows.
    changes:
        What became of the clusters.
    notes:
        What a user should know about the comparison.
    """

    before: RunPartition
    after: RunPartition
    changes: PartitionChanges
    notes: tuple[str, ...]


def compare_runs(before: Path, after: Path) -> RunComparison:
    """Compare two runs, each a run folder (with its edits) or an assignments file (as it was fitted)."""
    from coterie.describe.partition_changes import compare_partitions

    first, second = read_partition(before), read_partition(after)
    first_rows, second_rows, notes = _matched_rows(first, second)
    changes = compare_partitions(first_rows.clusters, second_rows.clusters, first_rows.texts or second_rows.texts)
    return RunComparison(first, second, changes, (*first.notes, *second.notes, *notes))


def read_partition(path: Path) -> RunPartition:
    """Read the clusters of a run folder, with its edits, or of an assignments file alone."""
    from coterie.text.reading import column_names, read_columns

    if not path.exists():
        raise InputError(f"{path}: no such run folder")
    assignments = path / "assignments.csv" if path.is_dir() else path
    if not assignments.is_file():
        raise InputError(f"{path} is a folder without assignments.csv, so not a run of Coterie")
    header = column_names(assignments)
    columns = read_columns(assignments, ["cluster", *(name for name in ("id", "text") if name in header)])
    try:
        clusters = [int(str(value)) for value in columns["cluster"]]
    except ValueError as error:
        raise InputError(f"{assignments}: column 'cluster' must hold whole numbers: {error}") from error
    ids, texts = (
        ["" if cell is None else str(cell) for cell in columns[name]] if name in columns else None
        for name in ("id", "text")
    )
    fitted = RunPartition(path, clusters, ids, texts, _names(assignments.parent / "clusters.json"))
    return _with_edits(fitted) if path.is_dir() else fitted


def _with_edits(fitted: RunPartition) -> RunPartition:
    """Apply the edits that people made in the explorer."""
    import numpy as np

    from coterie.runs.saved_run import SavedRun

    # Reading the edits needs no run.json, which a folder given here may lack.
    state, written = SavedRun(fitted.path, {}).edited, np.array(fitted.clusters)
    if state is None:
        return fitted
    # Rows left unassigned for their confidence stay so, unless a person has moved them.
    labels = np.where((written < 0) & ~state.moved, -1, state.labels)
    return replace(
        fitted, clusters=labels.tolist(), names=state.names, n_edits=len(state.applied), notes=tuple(state.notes)
    )


def _names(path: Path) -> dict[int, str]:
    """Return a name, or a few keywords, for each cluster of a run; nothing where the file does not exist."""
    if not path.is_file():
        return {}
    try:
        clusters: list[dict[str, Any]] = json.loads(path.read_text(encoding="utf-8"))["clusters"]
        return {
            int(cluster["id"]): str(cluster.get("name") or ", ".join(cluster.get("keywords", [])[:KEYWORDS_AS_NAME]))
            for cluster in clusters
        }
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise InputError(f"{path} does not hold the clusters of a run ({type(error).__name__}: {error})") from error


def _matched_rows(first: RunPartition, second: RunPartition) -> tuple[RunPartition, RunPartition, list[str]]:
    """Return both partitions row for row, matched by id where both have ids, and notes on the match."""
    if first.ids is not None and second.ids is not None and first.ids != second.ids:
        return _matched_by_id(first, second, first.ids, second.ids)
    if len(first.clusters) != len(second.clusters):
        raise InputError(
            f"{first.path} has {len(first.clusters):,} rows and {second.path} {len(second.clusters):,}: rows are "
            "matched one by one (or by id, where both runs were made with --id-column)"
        )
    differing = _differing_rows(first, second)
    same_ids = first.ids is not None and first.ids == second.ids
    if differing and not same_ids:
        raise InputError(
            f"{first.path} and {second.path} are not about the same texts: row {differing[0] + 1} differs (match "
            "rows by id instead: make both runs with --id-column)"
        )
    return first, second, _notes_on_texts(first, second)


def _matched_by_id(
    first: RunPartition, second: RunPartition, first_ids: list[str], second_ids: list[str]
) -> tuple[RunPartition, RunPartition, list[str]]:
    for run, ids in ((first, first_ids), (second, second_ids)):
        if len(set(ids)) < len(run.clusters):
            raise InputError(f"{run.path}: column 'id' holds an id twice; ids must be unique to match rows by them")
    row_of = {key: row for row, key in enumerate(second_ids)}
    pairs = [(row, row_of[key]) for row, key in enumerate(first_ids) if key in row_of]
    if not pairs:
        raise InputError(f"{first.path} and {second.path} have no id in common: they are not about the same rows")
    ours, theirs = first.rows([row for row, _ in pairs]), second.rows([row for _, row in pairs])
    notes = _notes_on_texts(ours, theirs)
    for run in (first, second):
        if len(run.clusters) > len(pairs):
            notes.append(f"{len(run.clusters) - len(pairs):,} rows are in {run.path} alone and are left out")
    return ours, theirs, notes


def _differing_rows(first: RunPartition, second: RunPartition) -> list[int]:
    """Return the rows whose texts differ; none where one of the runs was written without texts."""
    if first.texts is None or second.texts is None:
        return []
    return [row for row, (text, other) in enumerate(zip(first.texts, second.texts, strict=True)) if text != other]


def _notes_on_texts(first: RunPartition, second: RunPartition) -> list[str]:
    n_differing = len(_differing_rows(first, second))
    return [f"{n_differing:,} rows with the same id have another text in {second.path}"] if n_differing else []
