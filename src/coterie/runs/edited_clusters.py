"""The clusters of a run as they are now: as they were fitted, with what people changed in the explorer.

Whoever shows, compares or applies a run takes its clusters from here. What the fit wrote (``assignments.csv``,
``clusters.json``, ``model/``) stays as it was, so that every edit can be undone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from coterie.describe.cards import ClusterCard
from coterie.describe.clusters import describe_clusters
from coterie.describe.language_model_names import drop_duplicate_names
from coterie.runs.edits.log import Edits
from coterie.runs.edits.replay import EditedClusters, replay


def apply_edits(
    edits: Edits,
    fitted: NDArray[np.int64],
    clusters: Sequence[Mapping[str, Any]],
    language_model_names: Mapping[int, str],
) -> EditedClusters:
    """Return the clusters of a run as they are now.

    Parameters
    ----------
    edits:
        The run's edits.
    fitted:
        The cluster of every row as the fit left it.
    clusters:
        The entries of ``clusters.json``.
    language_model_names:
        Names that a language model gave, by cluster; a name given by a person replaces them.
    """
    state = replay(
        edits.active, fitted, [each["name"] for each in clusters], [list(each.get("keywords", ())) for each in clusters]
    )
    state.notes[:0] = edits.notes
    by_hand = named_by_hand(state)
    given = {k: name for k, name in language_model_names.items() if k in state.names and k not in by_hand}
    state.names |= drop_duplicate_names(state.names, given)
    return state


def named_by_hand(state: EditedClusters) -> set[int]:
    """Return the clusters that a person has renamed."""
    return {cluster for edit in state.applied if edit.kind == "rename" for cluster in edit.clusters}


def changed_clusters(state: EditedClusters, fitted: NDArray[np.int64]) -> set[int]:
    """Return the clusters that do not hold the rows which the fit gave them, new ones among them."""
    moved = state.labels != fitted
    return {int(k) for k in np.unique(np.concatenate([state.labels[moved], fitted[moved]])) if k >= 0}


def edited_cards(
    cards: Sequence[ClusterCard],
    edits: Edits,
    fitted: NDArray[np.int64],
    texts: Sequence[str],
    confidence: NDArray[np.float64],
) -> tuple[list[ClusterCard], EditedClusters]:
    """Return cards of the clusters as they are now, made of the cards of the fit, and what the edits changed.

    A cluster that holds the rows it was fitted with keeps its card, by its new name; others are described by their
    texts alone, the most certain ones first: for more, vectors are needed (``ReportModel``).
    """
    state = replay(edits.active, fitted, [card.name for card in cards], [card.summary.keywords for card in cards])
    changed = changed_clusters(state, fitted)
    by_id = {card.summary.id: card for card in cards}
    found = []
    for summary in describe_clusters(texts, state.labels, center_distance=-confidence):
        name = state.names.get(summary.id)
        if name is None or not summary.size:
            continue
        found.append(ClusterCard(summary, name) if summary.id in changed else replace(by_id[summary.id], name=name))
    return found, state
