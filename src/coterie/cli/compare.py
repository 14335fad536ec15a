"""``coterie compare``: what differs between two runs on the same texts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from coterie.cli.options import Json
from coterie.formatting import percent

if TYPE_CHECKING:
    from coterie.describe.changes import ChangeKind, ClusterChange, PartitionChanges

# Lines printed of each kind of change, and characters of an example.
MOST_LINES = 10
MOST_CHARACTERS = 100
# A text that holds them could move the cursor or change colours of the terminal.
CONTROL_CHARACTERS = dict.fromkeys([*range(0x20), *range(0x7F, 0xA0)], " ")

TITLES: dict[ChangeKind, str] = {
    "split": "Split: these clusters went to several",
    "merged": "Merged: these clusters came from several",
    "gone": "Gone: these have no match, and make up no large part of any other",
    "new": "New: these have no match, and took no large part of any other",
}


def compare(
    run1: Annotated[Path, typer.Argument(metavar="RUN1", help="A run folder (or assignments.csv): before.")],
    run2: Annotated[Path, typer.Argument(metavar="RUN2", help="Another one on the same texts.")],
    json_: Json = False,
) -> None:
    """Tell what differs between two runs on the same texts.

    How far they agree; which clusters split, merged, are gone or new; and which texts moved. Rows are matched by id
    where both runs have ids (fit --id-column), else one by one. Texts in no cluster of one of the runs are left out.

    A run folder is taken as it is now, with what was changed in `coterie explore`; its **assignments.csv** as it was
    fitted. So `coterie compare run/assignments.csv run` tells what people changed.

    **Examples**

    `coterie compare run-frozen run-sccl`

    `coterie compare monday tuesday --json`
    """
    import json

    from coterie.describe.changes import compare_partitions

    first, second = _read(run1), _read(run2)
    before, after, texts, notes = _matched(first, second)
    changes = compare_partitions(before, after, texts)
    for note in [*first.notes, *second.notes, *notes]:
        typer.echo(f"Note: {note}.", err=True)
    if json_:
        typer.echo(json.dumps(changes.to_dict(), indent=2, ensure_ascii=False))
        return
    for line in _told(changes, first, second):
        typer.echo(line)


@dataclass(frozen=True)
class _Run:
    """What is compared of a run; ids and texts are None where its file has no such column."""

    path: Path
    clusters: list[int]
    ids: list[str] | None
    texts: list[str] | None
    names: dict[int, str]
    edits: int = 0
    notes: tuple[str, ...] = ()


def _read(path: Path) -> _Run:
    from coterie.errors import InputError
    from coterie.text.reading import column_names, read_columns

    if not path.exists():
        raise InputError(f"{path}: no such run folder")
    assignments = path / "assignments.csv" if path.is_dir() else path
    if not assignments.is_file():
        raise InputError(f"{path} is a folder without assignments.csv, so not a run of Coterie")
    there = column_names(assignments)
    columns = read_columns(assignments, ["cluster", *(name for name in ("id", "text") if name in there)])
    try:
        clusters = [int(str(value)) for value in columns["cluster"]]
    except ValueError as error:
        raise InputError(f"{assignments}: column 'cluster' must hold whole numbers: {error}") from error
    ids, texts = (
        ["" if cell is None else str(cell) for cell in columns[name]] if name in columns else None
        for name in ("id", "text")
    )
    read = _Run(path, clusters, ids, texts, _names(assignments.parent / "clusters.json"))
    return _as_edited(read) if path.is_dir() else read


def _as_edited(run: _Run) -> _Run:
    """With what people changed in the explorer."""
    from coterie.runs.edits import read_edits

    edits = read_edits(run.path)
    if not edits.active:
        return run
    import numpy as np

    from coterie.runs.edited_clusters import read_edited
    from coterie.runs.saved_run import read_clusters

    fitted, written = read_clusters(run.path), np.array(run.clusters)
    state = read_edited(run.path, fitted, edits=edits)
    # What was left unassigned for its confidence stays so, unless a person has put it somewhere.
    labels = np.where((written < 0) & ~state.moved, -1, state.labels)
    return replace(run, clusters=labels.tolist(), names=state.names, edits=len(state.applied), notes=tuple(state.notes))


def _names(path: Path) -> dict[int, str]:
    """A name or a few keywords for each cluster of a run; none where the file is not there."""
    import json

    from coterie.errors import InputError

    if not path.is_file():
        return {}
    try:
        clusters: list[dict[str, Any]] = json.loads(path.read_text(encoding="utf-8"))["clusters"]
        return {
            int(cluster["id"]): str(cluster.get("name") or ", ".join(cluster.get("keywords", [])[:3]))
            for cluster in clusters
        }
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise InputError(f"{path} does not hold the clusters of a run ({type(error).__name__}: {error})") from error


def _matched(first: _Run, second: _Run) -> tuple[list[int], list[int], list[str] | None, list[str]]:
    """Clusters of both runs row for row, the texts where known, and what the user should know about the match."""
    from coterie.errors import InputError

    if first.ids is None or second.ids is None or first.ids == second.ids:
        by_id = first.ids is not None and first.ids == second.ids
        if len(first.clusters) != len(second.clusters):
            raise InputError(
                f"{first.path} has {len(first.clusters):,} rows and {second.path} {len(second.clusters):,}: rows are "
                "matched one by one (or by id, where both runs were made with --id-column)"
            )
        differing = _differing(first.texts, second.texts)
        if differing and not by_id:
            raise InputError(
                f"{first.path} and {second.path} are not about the same texts: row {differing[0] + 1} differs (match "
                "rows by id instead: make both runs with --id-column)"
            )
        notes = _note_on_texts(len(differing), second)
        return first.clusters, second.clusters, first.texts or second.texts, notes
    for run in (first, second):
        if len(set(run.ids or ())) < len(run.clusters):
            raise InputError(f"{run.path}: column 'id' holds an id twice; ids must be unique to match rows by them")
    place = {key: row for row, key in enumerate(second.ids)}
    pairs = [(row, place[key]) for row, key in enumerate(first.ids) if key in place]
    if not pairs:
        raise InputError(f"{first.path} and {second.path} have no id in common: they are not about the same rows")
    ours, theirs = [row for row, _ in pairs], [row for _, row in pairs]
    texts = None if first.texts is None else [first.texts[row] for row in ours]
    other_texts = None if second.texts is None else [second.texts[row] for row in theirs]
    notes = _note_on_texts(len(_differing(texts, other_texts)), second)
    for run in (first, second):
        if len(run.clusters) > len(pairs):
            notes.append(f"{len(run.clusters) - len(pairs):,} rows are in {run.path} alone and are left out")
    clusters = [first.clusters[row] for row in ours], [second.clusters[row] for row in theirs]
    return *clusters, texts or other_texts, notes


def _differing(texts: Sequence[str] | None, others: Sequence[str] | None) -> list[int]:
    """Rows with another text; none where one of the runs was written without texts."""
    if texts is None or others is None:
        return []
    return [row for row, (text, other) in enumerate(zip(texts, others, strict=True)) if text != other]


def _note_on_texts(n_differing: int, second: _Run) -> list[str]:
    return [f"{n_differing:,} rows with the same id have another text in {second.path}"] if n_differing else []


# --- in words -----------------------------------------------------------------------------------------------


def _told(changes: PartitionChanges, first: _Run, second: _Run) -> Iterator[str]:
    left_out = f"; {changes.n_left_out:,} are in no cluster of one of the runs" if changes.n_left_out else ""
    yield f"{first.path} has {_many(changes.n_before, 'cluster')}, {second.path} {changes.n_after:,}."
    for run in (first, second):
        if run.edits:
            yield f"{run.path} is taken as corrected by {_many(run.edits, 'edit')}."
    yield f"{_many(changes.n_rows, 'row')} compared{left_out}."
    yield ""
    yield f"rows that stayed in matching clusters  {percent(changes.agreement, 1):>7}"
    yield f"adjusted Rand index                    {percent(changes.ari, 1):>7}"
    yield f"normalised mutual information          {percent(changes.nmi, 1):>7}"
    yield ""
    counts = changes.counts
    yield ", ".join(
        f"{_many(counts[kind], 'cluster') if kind == 'stayed' else f'{counts[kind]:,}'} {kind}"
        for kind in ("stayed", "split", "merged", "gone", "new")
    )
    for kind, title in TITLES.items():
        yield from _listed(changes, kind, title, first, second)
    if changes.moves:
        yield ""
        yield "Moved: the most rows that changed to a cluster that is not their own one's match"
        for move in changes.moves[:MOST_LINES]:
            yield f"  {move.rows:,} from {_called(move.before, first)} to {_called(move.after, second)}"
            for example in move.examples:
                yield f"      - {_shortened(example)}"


def _listed(changes: PartitionChanges, kind: ChangeKind, title: str, first: _Run, second: _Run) -> Iterator[str]:
    found = changes.of_kind(kind)
    if not found:
        return
    yield ""
    yield title
    for change in found[:MOST_LINES]:
        yield from _change(change, first, second)
    if len(found) > MOST_LINES:
        yield f"  … and {len(found) - MOST_LINES:,} more, all in --json"


def _change(change: ClusterChange, first: _Run, second: _Run) -> Iterator[str]:
    if change.kind in ("split", "gone"):
        size = change.size_before[0]
        yield f"  {_called(change.before[0], first)}, {_many(size, 'row')}"
        most = "most of them " if change.kind == "gone" else ""
        for cluster, rows in zip(change.after, change.rows, strict=True):
            yield f"      {most}{rows:,} ({percent(rows / size)}) to {_called(cluster, second)}"
    else:
        size = change.size_after[0]
        yield f"  {_called(change.after[0], second)}, {_many(size, 'row')}"
        most = "most of them " if change.kind == "new" else ""
        for cluster, rows in zip(change.before, change.rows, strict=True):
            yield f"      {most}{rows:,} ({percent(rows / size)}) from {_called(cluster, first)}"


def _called(cluster: int, run: _Run) -> str:
    name = run.names.get(cluster, "")
    return f"{cluster} ({_shortened(name)})" if name else str(cluster)


def _many(count: int, what: str) -> str:
    return f"{count:,} {what}{'' if count == 1 else 's'}"


def _shortened(text: str) -> str:
    """The beginning of a text, on one line."""
    # No more than is shown is looked at: a text may be very long.
    begin = " ".join(text[: 4 * MOST_CHARACTERS].translate(CONTROL_CHARACTERS).split())
    if len(begin) <= MOST_CHARACTERS and len(text) <= 4 * MOST_CHARACTERS:
        return begin
    return begin[: MOST_CHARACTERS - 1].rstrip() + "…"
