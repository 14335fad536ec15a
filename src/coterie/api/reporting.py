"""Write the report of a run, and what it adds to the run folder."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from coterie.describe.breakdown import Breakdown, break_down, with_breakdowns
from coterie.describe.language_model_names import with_names
from coterie.errors import InputError
from coterie.files import atomic_file
from coterie.runs.clusters_file import CLUSTERS_FILE, read_cards, update_cards

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from coterie.describe.cards import ClusterCard
    from coterie.report.projection import ProjectionKind
    from coterie.runs.saved_run import SavedRun

REPORT_FILE = "report.html"


@dataclass(frozen=True)
class WrittenReport:
    """What was written.

    Attributes
    ----------
    path:
        The page; ``clusters.json`` where a run without texts has no page to update.
    is_page:
        Whether it is a page.
    notes:
        What a reader should know about the columns counted by.
    """

    path: Path
    is_page: bool
    notes: tuple[str, ...]


def report_run(
    run: SavedRun,
    output: Path | None = None,
    *,
    labels: Sequence[object] | None = None,
    map: ProjectionKind = "tsne",
    points: int = 20_000,
    by: Sequence[str] = (),
    with_texts: bool = True,
) -> WrittenReport:
    """Write the report of a saved run; the parameters are those of :meth:`coterie.Run.report`.

    Counts by columns and names of a language model go into ``clusters.json`` too. A run without texts keeps the page
    that its fit made; counts and names are brought into it.
    """
    columns = by or run.about.get("by", ())
    # Of the clusters as they were fitted, for clusters.json.
    counted = breakdowns(run, columns, run.fitted_labels)
    path = output or run.folder / REPORT_FILE
    notes = tuple(each.note for each in counted if each.note)
    if labels is None and not run.holds_texts and (counted or run.known_names.clusters):
        return WrittenReport(*_update_report(run, path, counted), notes)
    if labels is not None and len(labels) != len(run.fitted_labels):
        raise InputError(f"{len(labels):,} labels, but {run.folder} has {len(run.fitted_labels):,} rows")
    shown = counted if run.edited is None else breakdowns(run, columns, run.labels)
    write_report(run, path, labels, map=map, points=points, with_texts=with_texts, by=shown)
    if counted or run.known_names.clusters:
        _update_cards(run, counted)
    return WrittenReport(path, True, notes)


def breakdowns(run: SavedRun, columns: Sequence[str], clusters: NDArray[np.int64]) -> list[Breakdown]:
    """Count the clusters of a run's rows over columns that its fit kept."""
    return [break_down(name, cells, clusters) for name, cells in run.kept_columns(columns).items()]


def write_report(
    run: SavedRun,
    path: Path,
    labels: Sequence[object] | None = None,
    *,
    map: ProjectionKind = "tsne",
    points: int = 20_000,
    with_texts: bool = True,
    by: Sequence[Breakdown] = (),
) -> tuple[ClusterCard, ...]:
    """Write the report of a run, whole or not at all, and its map beside; return the cards of its clusters."""
    from coterie.report.html.content import build_report
    from coterie.report.html.rendering import render_page

    data = build_report(run, labels=labels, kind=map, points=points, with_texts=with_texts, by=by)
    with atomic_file(path) as stream:
        stream.write(render_page(data.content))
    if with_texts and path == run.folder / REPORT_FILE:
        run.store_map(data.model.stored_map)
    return data.cards


def _update_cards(run: SavedRun, counted: Sequence[Breakdown]) -> list[ClusterCard]:
    """Write names of a language model and counts by columns into ``clusters.json``; return its cards."""
    cards = with_names(read_cards(run.folder), run.known_names.clusters)
    cards = with_breakdowns(cards, counted) if counted else cards
    update_cards(run.folder, cards)
    run.refresh()
    return cards


def _update_report(run: SavedRun, path: Path, counted: Sequence[Breakdown]) -> tuple[Path, bool]:
    """Bring names and counts into the page that the fit of a run without texts left; return what was written."""
    from coterie.report.html.update import update_page

    cards = _update_cards(run, counted)
    made = run.folder / REPORT_FILE
    if not made.is_file():
        return run.folder / CLUSTERS_FILE, False
    page = update_page(made.read_text(encoding="utf-8"), cards, counted)
    with atomic_file(path) as stream:
        stream.write(page)
    return path, True
