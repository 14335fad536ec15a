"""A run as it is now: as it was fitted, with what people changed in the explorer.

Whoever shows, compares or applies a run reads its clusters here. What the fit wrote (``assignments.csv``,
``clusters.json``, ``model/``) stays as it was, so that every edit can be taken back.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from coterie.describe.cards import ClusterCard
from coterie.describe.clusters import describe_clusters
from coterie.describe.language_model_names import KnownNames, settle
from coterie.runs.edits.log import Edits, read_edits
from coterie.runs.edits.replay import Edited, replay
from coterie.runs.saved_run import ASSIGNMENTS_FILE, fitted_column, read_told_clusters, whole_numbers
from coterie.text.reading import column_names, read_columns


def read_edited(
    folder: Path,
    fitted: NDArray[np.int64],
    *,
    edits: Edits | None = None,
    told: Sequence[Mapping[str, Any]] | None = None,
) -> Edited:
    """The clusters of a run as they are now.

    Parameters
    ----------
    fitted:
        The cluster of every row as the fit left it.
    edits, told:
        What ``edits.jsonl`` and ``clusters.json`` hold, where that was read already.
    """
    edits = read_edits(folder) if edits is None else edits
    told = read_told_clusters(folder) if told is None else told
    state = replay(
        edits.active, fitted, [each["name"] for each in told], [list(each.get("keywords", ())) for each in told]
    )
    state.notes[:0] = edits.notes
    # A language model may have named what was merged or split; what a person called a cluster stands.
    by_hand = named_by_hand(state)
    asked = {k: name for k, name in KnownNames.read(folder).clusters.items() if k in state.names and k not in by_hand}
    state.names |= settle(state.names, asked)
    return state


def named_by_hand(state: Edited) -> set[int]:
    """The clusters that a person has renamed."""
    return {cluster for edit in state.applied if edit.kind == "rename" for cluster in edit.clusters}


def changed_clusters(state: Edited, fitted: NDArray[np.int64]) -> set[int]:
    """Those that do not hold the rows which the fit gave them, new ones among them."""
    moved = state.labels != fitted
    return {int(k) for k in np.unique(np.concatenate([state.labels[moved], fitted[moved]])) if k >= 0}


def edited_cards(folder: Path, cards: Sequence[ClusterCard]) -> tuple[list[ClusterCard], Edited | None]:
    """Cards of the clusters as they are now, made of those of the fit, and what was changed; ``None`` for nothing.

    A cluster that holds the rows it was fitted with keeps its card, by its new name; others are described by their
    texts alone, the surest ones first: for more, vectors are needed (``ReportModel``).
    """
    edits = read_edits(folder)
    if not edits.active:
        return list(cards), None
    names = column_names(folder / ASSIGNMENTS_FILE)
    columns = read_columns(folder / ASSIGNMENTS_FILE, [fitted_column(names), "confidence", "text"])
    fitted = whole_numbers(columns[fitted_column(names)], folder)
    state = replay(edits.active, fitted, [card.name for card in cards], [card.summary.keywords for card in cards])
    changed = changed_clusters(state, fitted)
    by_id = {card.summary.id: card for card in cards}
    summaries = describe_clusters(
        [str(text or "") for text in columns["text"]],
        state.labels,
        center_distance=-np.array([float(str(cell)) for cell in columns["confidence"]]),
    )
    found = []
    for summary in summaries:
        name = state.names.get(summary.id)
        if name is None or not summary.size:
            continue
        found.append(ClusterCard(summary, name) if summary.id in changed else replace(by_id[summary.id], name=name))
    return found, state
