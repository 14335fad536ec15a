"""How even are the clusters? Estimate it without labels, and weight clusterings by how even their sizes are.

Which clustering is best depends on the sizes of the classes more than on anything else: of even classes, clusterings
with equal sizes are the best, of very uneven ones average linkage. No criterion of one partition tells the two apart,
since each criterion favours some sizes. What tells is how much the neighbours mind when sizes are made equal.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from coterie.metrics.internal.modularity import NeighbourPairs, normalised_modularity

# Kinds of cluster sizes, and the size penalty of each (see :func:`~coterie.selection.refinement.refine_assignment`):
# under 0.3, sizes keep about half of their spread; under 5 they are nearly equal.
PENALTIES = {"free": 0.0, "penalised": 0.3, "equal": 5.0}
# Average linkage gives the most uneven sizes: clusterings by it count as a kind of their own.
UNEVEN = "uneven"
# Costs of equal sizes between which clusterings with equal sizes lose their weight. On the tuning sets, classes of
# equal size cost up to 0.09, of moderately uneven sizes 0.05 to 0.17, of very uneven ones (1:70 and more) mostly at
# least 0.2. Of six rules for the weights this one was the best there (benchmarks/results/starts.json).
EQUAL_UNTIL = (0.08, 0.16)
# Costs between which clusterings with uneven sizes gain their weight, and all others lose most of theirs: k-means and
# Ward's linkage make sizes too even.
UNEVEN_FROM = (0.16, 0.20)
# Weight of a clustering with uneven sizes beside one with free sizes: there are fewer of them.
UNEVEN_WEIGHT = 4.0
# Share of the weight of clusterings with free sizes that remains where sizes are uneven.
FREE_REMAINS = 0.2


@dataclass(frozen=True)
class SizeEstimate:
    """How much equal sizes cost, and the weights of clusterings that follow from it.

    Attributes
    ----------
    cost:
        Relative loss of normalised modularity when sizes are made equal, summed over semantic and lexical neighbours.
        About 0: the classes may well be of equal size.
    only:
        The one kind of sizes that counts; empty for all of them.
    """

    cost: float
    only: str = ""

    def weight(self, sizes: str) -> float:
        """Return the weight of clusterings with these ``sizes``: a kind of ``PENALTIES``, or ``UNEVEN``.

        The weights change gradually with the cost, so that a small change of it never changes much.
        """
        if self.only:
            return float(sizes == self.only)
        uneven = _ramp(self.cost, *UNEVEN_FROM)
        if sizes == UNEVEN:
            return UNEVEN_WEIGHT * uneven
        if sizes == "equal":
            return 1 - _ramp(self.cost, *EQUAL_UNTIL)
        if sizes == "penalised":
            return 1 - uneven
        return 1 - (1 - FREE_REMAINS) * uneven


def estimate_sizes(
    pairs_of_partitions: Iterable[tuple[NDArray[np.int64], NDArray[np.int64]]], neighbours: Sequence[NeighbourPairs]
) -> SizeEstimate:
    """Estimate how much equal cluster sizes cost.

    Parameters
    ----------
    pairs_of_partitions:
        Partitions with free sizes, each with the same partition after its sizes were made equal.
    neighbours:
        Pairs of neighbours of each kind: semantic, and lexical where there are some.
    """
    costs = [[_relative_loss(free, equal, pairs) for pairs in neighbours] for free, equal in pairs_of_partitions]
    # With one kind of neighbours, their cost counts twice, so that the sum has the same scale.
    return SizeEstimate(float(2 * np.mean(costs)) if costs else 0.0)


def _relative_loss(free: NDArray[np.int64], equal: NDArray[np.int64], pairs: NeighbourPairs) -> float:
    before = normalised_modularity(free, *pairs)
    return (before - normalised_modularity(equal, *pairs)) / max(before, 1e-9) if before > 0 else 0.0


def _ramp(value: float, begin: float, end: float) -> float:
    """Return 0 up to ``begin``, 1 from ``end`` on, and rise linearly in between."""
    return float(np.clip((value - begin) / (end - begin), 0, 1))
