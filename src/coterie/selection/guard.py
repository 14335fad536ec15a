"""Compare the partitions before and during training without labels, and select one of them.

The criteria use only the pretrained encoder's vectors and the words of the texts. In the trained embeddings, which
training pulled apart along the clusters, every trained partition would look good.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from coterie.selection.criteria import compute_criteria, relative_change
from coterie.selection.neighbour_graphs import NeighbourGraphs

SEMANTIC_CRITERION = "semantic_modularity"
LEXICAL_CRITERIA = ("lexical_modularity", "word_likelihood_gain")
# The criteria of a candidate (see :mod:`coterie.selection.criteria`).
CRITERIA = (SEMANTIC_CRITERION, *LEXICAL_CRITERIA)


@dataclass(frozen=True)
class Candidate:
    """A partition with its criteria; larger is better.

    Attributes
    ----------
    name, labels:
        ``"start"``, or the round after which the partition was made.
    criteria:
        Those of ``CRITERIA``, by name; the lexical ones are NaN where no texts share a word.
    lexical_weight:
        Weight of the lexical criteria beside the semantic one, from 0 to 1
        (see :func:`~coterie.selection.neighbour_graphs.build_graphs`).
    """

    name: str
    labels: NDArray[np.int64]
    criteria: Mapping[str, float]
    lexical_weight: float

    def gain_over(self, start: Candidate) -> float:
        """Return the weighted sum of the relative changes of the criteria since ``start``; positive is better.

        Training always separates some neighbours of the pretrained encoder; lexical gains must outweigh that.
        """
        changes = {name: relative_change(start.criteria[name], self.criteria[name]) for name in CRITERIA}
        semantic = changes[SEMANTIC_CRITERION]
        if np.isnan(self.criteria[LEXICAL_CRITERIA[0]]):
            return semantic
        return semantic + self.lexical_weight * sum(changes[name] for name in LEXICAL_CRITERIA)


def score_candidate(name: str, labels: NDArray[np.int64], graphs: NeighbourGraphs) -> Candidate:
    """Compute the criteria of a partition on the neighbour graphs of the texts before training."""
    return Candidate(name, labels, compute_criteria(CRITERIA, labels, graphs), graphs.lexical_weight)


def best_candidate(candidates: Sequence[Candidate]) -> Candidate:
    """Return the candidate with the largest gain over the first one, and the earliest of equals.

    So the start is kept unless training shows a gain.
    """
    return max(candidates, key=lambda each: each.gain_over(candidates[0]))
