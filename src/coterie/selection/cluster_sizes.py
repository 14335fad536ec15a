"""How even are the classes? Estimate it without labels, and weight clusterings by their sizes accordingly.

Which clustering is best depends on the sizes of the classes more than on anything else: of even classes, clusterings
with equal sizes are the best, of very uneven ones average linkage. No criterion of one partition tells the two apart,
since each criterion favours some sizes. What tells is how neighbours respond to a change of the sizes: whether they are
separated when sizes are made equal, and whether more of them are together when sizes are as uneven as average linkage
makes them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from coterie.metrics.internal.modularity import NeighbourPairs, modularity, neighbour_pairs, normalised_modularity

Partitions = Sequence[NDArray[np.int64]]

# Kinds of cluster sizes, and the size penalty of each (see :func:`~coterie.selection.refinement.refine_assignment`):
# under 0.3, sizes keep about half of their spread; under 5 they are nearly equal.
PENALTIES = {"free": 0.0, "penalised": 0.3, "equal": 5.0}
# Average linkage gives the most uneven sizes: clusterings by it count as a kind of their own.
UNEVEN = "uneven"
# Costs of equal sizes between which clusterings with equal sizes lose their weight. On the tuning sets, classes of
# equal size cost up to 0.09, of moderately uneven sizes 0.05 to 0.17, of very uneven ones mostly at least 0.2.
EQUAL_UNTIL = (0.10, 0.20)
# Evidence between which clusterings with uneven sizes gain their weight, and all others lose most of theirs: k-means
# and Ward's linkage make sizes too even. On the tuning sets average linkage is better by 1 to 17 points where the
# evidence is above 0.215 (five sets), better or worse from 0.18 to 0.215, and worse on most sets below
# (benchmarks/results/starts.json). The evidence misses some very uneven sets, such as atis and r8_short.
UNEVEN_FROM = (0.18, 0.24)
# Weight of an algorithm with uneven sizes beside one with free sizes: there is one of them and five others.
UNEVEN_WEIGHT = 8.0
# Share of the weight of clusterings with free sizes that remains where sizes are uneven.
FREE_REMAINS = 0.2
# Nearest semantic neighbours that the evidence counts: fewer than a small cluster has texts.
EVIDENCE_NEIGHBOURS = 5
# Smallest modularity that others are divided by.
SMALLEST = 1e-3


@dataclass(frozen=True)
class SizeEstimate:
    """What equal and uneven sizes do to the neighbours, and the weights of clusterings that follow from it.

    Attributes
    ----------
    cost:
        Relative loss of normalised modularity when sizes are made equal, summed over semantic and lexical neighbours.
        About 0: the classes may well be of equal size.
    evidence:
        Gain of normalised modularity from equal sizes to those of average linkage, as an effect size (Cohen's h: the
        difference of ``2 arcsin(sqrt(share))``, by which shares near 1 count as much as others), less the relative loss
        of modularity, which is large where one cluster holds many classes. Large: the classes are of very uneven sizes.
    only:
        The one kind of sizes that counts; empty for all of them.
    """

    cost: float
    evidence: float = 0.0
    only: str = ""

    def weight(self, sizes: str) -> float:
        """Return the weight of clusterings with these ``sizes``: a kind of ``PENALTIES``, or ``UNEVEN``.

        The weights change gradually with the estimates, so that a small change of them never changes much.
        """
        if self.only:
            return float(sizes == self.only)
        uneven = _ramp(self.evidence, *UNEVEN_FROM)
        if sizes == UNEVEN:
            return UNEVEN_WEIGHT * uneven
        if sizes == "equal":
            return (1 - _ramp(self.cost, *EQUAL_UNTIL)) * (1 - uneven)
        if sizes == "penalised":
            return 1 - uneven
        return 1 - (1 - FREE_REMAINS) * uneven


def estimate_sizes(
    free: Partitions,
    equal: Partitions,
    uneven: Partitions,
    semantic_neighbours: NDArray[np.int64],
    lexical_pairs: NeighbourPairs | None,
) -> SizeEstimate:
    """Estimate what equal and uneven cluster sizes do to the neighbours.

    Parameters
    ----------
    free, equal:
        Partitions with free sizes, and the same partitions after their sizes were made equal.
    uneven:
        Partitions of the same texts by average linkage; may be empty.
    semantic_neighbours:
        The nearest rows of each row by the encoder, the nearest first.
    lexical_pairs:
        Pairs of lexical neighbours; ``None`` without any: the semantic ones count twice then.
    """
    semantic = neighbour_pairs(semantic_neighbours)
    kinds = (semantic, semantic if lexical_pairs is None else lexical_pairs)
    cost = sum(
        float(np.mean([_relative_loss(*both, pairs) for both in zip(free, equal, strict=True)])) for pairs in kinds
    )
    if not uneven:
        return SizeEstimate(cost)
    nearest = neighbour_pairs(semantic_neighbours[:, :EVIDENCE_NEIGHBOURS])
    of_equal, of_uneven = (
        float(np.mean([normalised_modularity(labels, *nearest) for labels in some])) for some in (equal, uneven)
    )
    before, after = (float(np.mean([modularity(labels, *nearest) for labels in some])) for some in (free, uneven))
    loss = max(0.0, 1 - after / max(before, SMALLEST))
    return SizeEstimate(cost, effect_size(of_equal, of_uneven) - loss)


def effect_size(first: float, second: float) -> float:
    """Return Cohen's h between two shares (Cohen, 1988); values below 0 count as 0."""
    return float(np.subtract(*(2 * np.arcsin(np.sqrt(np.clip(each, 0, 1))) for each in (second, first))))


def _relative_loss(free: NDArray[np.int64], equal: NDArray[np.int64], pairs: NeighbourPairs) -> float:
    before = normalised_modularity(free, *pairs)
    return (before - normalised_modularity(equal, *pairs)) / before if before > SMALLEST else 0.0


def _ramp(value: float, begin: float, end: float) -> float:
    """Return 0 up to ``begin``, 1 from ``end`` on, and rise linearly in between."""
    return float(np.clip((value - begin) / (end - begin), 0, 1))
