"""Join semantic and lexical vectors, with a weight that is found without labels."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from coterie.clustering.kmeans import unit_rows
from coterie.metrics.internal.modularity import modularity
from coterie.selection.neighbour_graphs import NeighbourGraphs

# Largest lexical share of a joined vector's squared length. Cosines of trained lexical vectors spread about twice as
# wide as those of an encoder, so at this share both views have about the same influence.
LARGEST_SHARE = 0.25
# Agreement of the views (:func:`view_agreement`) below which the lexical share is 0, and from which it is the largest.
# On the tuning sets lexical vectors cost accuracy where it is below 0.78 (ohsumed_title, most of twentynews_subject,
# the mixed sets), and cost little or help where it is above 0.82.
SMALLEST_AGREEMENT, FULL_AGREEMENT = 0.75, 0.85

Partitions = Sequence[NDArray[np.int64]]


def view_agreement(
    semantic: NeighbourGraphs, lexical: NeighbourGraphs, by_meaning: Partitions, by_words: Partitions
) -> float:
    """Return how well the clusters of each view preserve the neighbours of the other; 1: as well as its own clusters.

    For each view the modularity of the other view's clusters on its neighbours is divided by that of its own clusters.
    Views of which one is mostly noise have a low agreement, and so have two good views of different things.

    Parameters
    ----------
    semantic, lexical:
        Neighbour graphs of the vectors of each view.
    by_meaning, by_words:
        Partitions of the semantic and of the lexical vectors, by the same algorithms.
    """
    ratios = [
        _preserved(graphs, others, own)
        for graphs, own, others in ((semantic, by_meaning, by_words), (lexical, by_words, by_meaning))
    ]
    return float(np.clip(np.mean(ratios), 0, 1))


def _preserved(graphs: NeighbourGraphs, others: Partitions, own: Partitions) -> float:
    pairs = graphs.semantic_pairs
    by_others, by_own = (float(np.mean([modularity(each, *pairs) for each in some])) for some in (others, own))
    return by_others / max(by_own, 1e-9)


def lexical_share(agreement: float) -> float:
    """Return the lexical share of the joined vectors for an agreement of the views."""
    part = (agreement - SMALLEST_AGREEMENT) / (FULL_AGREEMENT - SMALLEST_AGREEMENT)
    return LARGEST_SHARE * float(np.clip(part, 0, 1))


def join_vectors(semantic: NDArray[np.float32], lexical: NDArray[np.float32], share: float) -> NDArray[np.float32]:
    """Return vectors whose cosine is the mean of the cosines of both views, weighted by ``share``.

    Parameters
    ----------
    semantic, lexical:
        One row per text each. A row of zeros, a text without a known word, has no part in the joined vector.
    share:
        Weight of the lexical cosine, from 0 to 1.
    """
    parts = (np.sqrt(1 - share) * unit_rows(semantic), np.sqrt(share) * unit_rows(lexical))
    joined: NDArray[np.float32] = unit_rows(np.concatenate(parts, axis=1, dtype=np.float32))
    return joined
