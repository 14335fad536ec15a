"""``coterie compare``: what differs between two runs on the same texts."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from coterie.cli.options import Json
from coterie.formatting import counted, percent

if TYPE_CHECKING:
    from coterie.describe.partition_changes import ChangeKind, ClusterChange
    from coterie.runs.comparison import RunComparison, RunPartition

# Lines printed of each kind of change.
MOST_LINES = 10

# Characters shown of an example or a name.
MOST_CHARACTERS = 100

# Control characters, which could move the cursor or change colours of the terminal, become spaces.
CONTROL_CHARACTERS = dict.fromkeys([*range(0x20), *range(0x7F, 0xA0)], " ")

TITLES: dict[ChangeKind, str] = {
    "split": "Split: these clusters went to several",
    "merged": "Merged: these clusters came from several",
    "gone": "Gone: these have no match, and make up no large part of any other cluster",
    "new": "New: these have no match, and took no large part of any other cluster",
}


def compare(
    run1: Annotated[Path, typer.Argument(metavar="RUN1", help="A run folder (or assignments.csv): before.")],
    run2: Annotated[Path, typer.Argument(metavar="RUN2", help="Another one on the same texts: after.")],
    json_: Json = False,
) -> None:
    """Show what differs between two runs on the same texts.

    It shows how far they agree; which clusters were split or merged, are gone or new; and which texts moved. Rows are
    matched by id if both runs have ids (fit --id-column), else one by one. Texts in no cluster of one of the runs are
    left out.

    A run folder is read with the changes made in `coterie explore`; its **assignments.csv** as it was fitted. So
    `coterie compare run/assignments.csv run` shows what people changed.

    **Examples**

    `coterie compare run-frozen run-sccl`

    `coterie compare monday tuesday --json`
    """
    from coterie.runs.comparison import compare_runs

    compared = compare_runs(run1, run2)
    for note in compared.notes:
        typer.echo(f"Note: {note}.", err=True)
    if json_:
        import json

        typer.echo(json.dumps(compared.changes.to_dict(), indent=2, ensure_ascii=False))
        return
    for line in _lines(compared):
        typer.echo(line)


def _lines(compared: RunComparison) -> Iterator[str]:
    """Yield the comparison as lines of text."""
    changes, before, after = compared.changes, compared.before, compared.after
    left_out = f"; {changes.n_left_out:,} are in no cluster of one of the runs" if changes.n_left_out else ""
    yield f"{before.path} has {counted(changes.n_before, 'cluster')}, {after.path} {changes.n_after:,}."
    for run in (before, after):
        if run.n_edits:
            yield f"{run.path} is read with {counted(run.n_edits, 'edit')}."
    yield f"{counted(changes.n_rows, 'row')} compared{left_out}."
    yield ""
    yield f"rows that stayed in matching clusters  {percent(changes.agreement, 1):>7}"
    yield f"adjusted Rand index                    {percent(changes.ari, 1):>7}"
    yield f"normalised mutual information          {percent(changes.nmi, 1):>7}"
    yield ""
    counts = changes.counts
    yield ", ".join(
        f"{counted(counts[kind], 'cluster') if kind == 'stayed' else f'{counts[kind]:,}'} {kind}"
        for kind in ("stayed", "split", "merged", "gone", "new")
    )
    for kind in TITLES:
        yield from _lines_of_kind(compared, kind)
    if changes.moves:
        yield ""
        yield "Moved: the most rows that went to a cluster other than the match of their own"
        for move in changes.moves[:MOST_LINES]:
            yield f"  {move.rows:,} from {_named(move.before, before)} to {_named(move.after, after)}"
            for example in move.examples:
                yield f"      - {_shortened(example)}"


def _lines_of_kind(compared: RunComparison, kind: ChangeKind) -> Iterator[str]:
    found = compared.changes.of_kind(kind)
    if not found:
        return
    yield ""
    yield TITLES[kind]
    for change in found[:MOST_LINES]:
        yield from _lines_of_change(change, compared.before, compared.after)
    if len(found) > MOST_LINES:
        yield f"  … and {len(found) - MOST_LINES:,} more, all in --json"


def _lines_of_change(change: ClusterChange, before: RunPartition, after: RunPartition) -> Iterator[str]:
    if change.kind in ("split", "gone"):
        size = change.size_before[0]
        yield f"  {_named(change.before[0], before)}, {counted(size, 'row')}"
        most = "most of them " if change.kind == "gone" else ""
        for cluster, rows in zip(change.after, change.rows, strict=True):
            yield f"      {most}{rows:,} ({percent(rows / size)}) to {_named(cluster, after)}"
    else:
        size = change.size_after[0]
        yield f"  {_named(change.after[0], after)}, {counted(size, 'row')}"
        most = "most of them " if change.kind == "new" else ""
        for cluster, rows in zip(change.before, change.rows, strict=True):
            yield f"      {most}{rows:,} ({percent(rows / size)}) from {_named(cluster, before)}"


def _named(cluster: int, run: RunPartition) -> str:
    name = run.names.get(cluster, "")
    return f"{cluster} ({_shortened(name)})" if name else str(cluster)


def _shortened(text: str) -> str:
    """Return the beginning of a text, on one line."""
    # A text may be very long: only a little more than is shown is cleaned.
    begin = " ".join(text[: 4 * MOST_CHARACTERS].translate(CONTROL_CHARACTERS).split())
    if len(begin) <= MOST_CHARACTERS and len(text) <= 4 * MOST_CHARACTERS:
        return begin
    return begin[: MOST_CHARACTERS - 1].rstrip() + "…"
