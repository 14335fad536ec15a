"""The paired bootstrap and Holm's correction, written out in plain Python: rows copied, matchings tried one by one."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from itertools import permutations

Draw = tuple[Sequence[int], Sequence[int], Sequence[int]]
"""Rows, runs of the first method, runs of the second: those that were drawn, with repetition."""


def accuracy(true: Sequence[int], pred: Sequence[int]) -> float:
    """The best share of right rows over all ways to give each cluster a class of its own, or none."""
    clusters = sorted(set(pred) - {-1})
    classes = [*sorted(set(true)), *[None] * len(clusters)]
    together = Counter(zip(true, pred, strict=True))
    best = max(
        sum(together[given, cluster] for given, cluster in zip(chosen, clusters, strict=True))
        for chosen in permutations(classes, len(clusters))
    )
    return best / len(true)


def nmi(true: Sequence[int], pred: Sequence[int]) -> float:
    """Mutual information over the arithmetic mean of the entropies."""
    n = len(true)

    def entropy(labels: Sequence[object]) -> float:
        return -sum(count / n * math.log(count / n) for count in Counter(labels).values())

    total = entropy(true) + entropy(pred)
    return 1.0 if total == 0 else 2 * (total - entropy(list(zip(true, pred, strict=True)))) / total


def ari(true: Sequence[int], pred: Sequence[int]) -> float:
    """Pairs of rows, counted one by one, against their expectation."""
    n = len(true)
    pairs = [(i, j) for i in range(n) for j in range(i)]
    same_true = sum(true[i] == true[j] for i, j in pairs)
    same_pred = sum(pred[i] == pred[j] for i, j in pairs)
    same_both = sum(true[i] == true[j] and pred[i] == pred[j] for i, j in pairs)
    expected = same_true * same_pred / len(pairs)
    most = (same_true + same_pred) / 2
    return 1.0 if most == expected else (same_both - expected) / (most - expected)


MEASURES = {"accuracy": accuracy, "nmi": nmi, "ari": ari}


def compare(
    first: Sequence[Sequence[int]],
    second: Sequence[Sequence[int]],
    true: Sequence[int],
    measure: str,
    draws: Sequence[Draw],
) -> tuple[float, list[float], float]:
    """Difference of the means, the centred differences, and the two-sided p-value."""
    score = MEASURES[measure]

    def mean(runs: Sequence[Sequence[int]], places: Sequence[int], rows: Sequence[int]) -> float:
        scores = [score([true[row] for row in rows], [runs[place][row] for row in rows]) for place in places]
        return sum(scores) / len(scores)

    everything = range(len(true))
    difference = mean(first, range(len(first)), everything) - mean(second, range(len(second)), everything)
    drawn = [mean(first, ours, rows) - mean(second, theirs, rows) for rows, ours, theirs in draws]
    shift = difference - sum(drawn) / len(drawn)
    below = above = 0
    for each in drawn:
        tie = abs(each) <= 1e-12
        below += tie or each + shift <= 1e-12
        above += tie or each + shift >= -1e-12
    p_value = min(1.0, 2 * (1 + min(below, above)) / (len(draws) + 1))
    return difference, [each + shift for each in drawn], p_value


def holm(p_values: Sequence[float]) -> list[float]:
    """By the definition: an adjusted value is the largest of (how many are not smaller) x p over those up to it."""
    order = sorted(range(len(p_values)), key=lambda place: p_values[place])
    adjusted = [0.0] * len(p_values)
    for rank, place in enumerate(order):
        steps = [(len(order) - earlier) * p_values[order[earlier]] for earlier in range(rank + 1)]
        adjusted[place] = min(1.0, max(steps))
    return adjusted
