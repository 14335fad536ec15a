"""Combine several partitions of the same texts into one, by a vote of their clusters."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

# Most rounds of matching and voting: two or three are usual.
STEPS = 20


@dataclass(frozen=True)
class Consensus:
    """The result of :func:`find_consensus`.

    Attributes
    ----------
    labels:
        Cluster of each text, from 0 to ``n_clusters - 1``.
    shares:
        ``N x K``, share of the weight that votes for each cluster.
    agreement:
        For each partition its adjusted Rand index with ``labels``.
    """

    labels: NDArray[np.int64]
    shares: NDArray[np.float64]
    agreement: tuple[float, ...]


def find_consensus(
    partitions: Sequence[NDArray[np.int64]],
    weights: Sequence[float],
    n_clusters: int,
    counts: NDArray[Any] | None = None,
) -> Consensus:
    """Return the partition that a weighted vote of several partitions gives.

    The vote starts from the partition with the largest weighted agreement with all partitions, itself included. The
    clusters of every partition are matched with the current ones, one to one, such that most texts agree (Hungarian
    algorithm); then every text moves to the cluster with most of the weight. This is repeated until no text moves. No
    cluster becomes empty.

    Parameters
    ----------
    partitions:
        Cluster of each text, from 0; at most ``n_clusters`` clusters each.
    weights:
        Weight of each partition; those with weight 0 do not vote.
    n_clusters:
        How many clusters.
    counts:
        How often each text occurs, by default once.

    Examples
    --------
    >>> import numpy as np
    >>> one, other = np.array([0, 0, 1, 1, 2, 2]), np.array([2, 2, 1, 1, 1, 0])
    >>> find_consensus([one, other, one], [1, 1, 1], 3).labels
    array([0, 0, 1, 1, 2, 2])
    """
    counts = np.ones(len(partitions[0])) if counts is None else np.asarray(counts, dtype=np.float64)
    voters = [(labels, float(weight)) for labels, weight in zip(partitions, weights, strict=True) if weight > 0]
    current = _most_central(voters, counts)
    shares = np.zeros((len(current), n_clusters))
    for _ in range(STEPS):
        shares[:] = 0
        for labels, weight in voters:
            shares[np.arange(len(labels)), match_clusters(labels, current, n_clusters, counts)] += weight
        # Of equal shares, that of the current cluster is the largest.
        favoured = shares.copy()
        favoured[np.arange(len(current)), current] += 1e-9
        updated = favoured.argmax(axis=1)
        vanishing = np.bincount(updated, minlength=n_clusters) == 0
        updated = np.where(vanishing[current], current, updated)
        if np.array_equal(updated, current):
            break
        current = updated
    agreement = tuple(adjusted_rand_index(labels, current, counts) for labels in partitions)
    return Consensus(current, shares / shares.sum(axis=1, keepdims=True), agreement)


def match_clusters(
    labels: NDArray[np.int64], reference: NDArray[np.int64], n_clusters: int, counts: NDArray[np.float64]
) -> NDArray[np.int64]:
    """Return ``labels`` with the clusters renumbered, one to one, such that most texts agree with ``reference``."""
    from scipy.optimize import linear_sum_assignment

    rows, columns = linear_sum_assignment(_overlap(labels, reference, n_clusters, counts), maximize=True)
    renamed = np.empty(n_clusters, dtype=np.int64)
    renamed[rows] = columns
    return renamed[labels]


def adjusted_rand_index(first: NDArray[np.int64], second: NDArray[np.int64], counts: NDArray[Any]) -> float:
    """Return the agreement of two partitions beyond chance (Hubert and Arabie, 1985); every text counts ``counts``."""
    size = int(max(first.max(), second.max())) + 1
    table = _overlap(first, second, size, np.asarray(counts, dtype=np.float64))
    together, in_first, in_second = (
        float((each * (each - 1)).sum()) for each in (table, table.sum(axis=1), table.sum(axis=0))
    )
    total = float(table.sum())
    by_chance = in_first * in_second / max(total * (total - 1), 1)
    most = (in_first + in_second) / 2
    return 1.0 if most == by_chance else (together - by_chance) / (most - by_chance)


def _overlap(
    first: NDArray[np.int64], second: NDArray[np.int64], size: int, counts: NDArray[np.float64]
) -> NDArray[np.float64]:
    cells = np.bincount(first * size + second, weights=counts, minlength=size * size)
    return cells.astype(np.float64).reshape(size, size)


def _most_central(voters: Sequence[tuple[NDArray[np.int64], float]], counts: NDArray[np.float64]) -> NDArray[np.int64]:
    """Return the partition with the largest weighted agreement with all, itself included; the first of equals."""
    between = np.eye(len(voters))
    for i, (first, _) in enumerate(voters):
        for j, (second, _) in enumerate(voters[:i]):
            between[i, j] = between[j, i] = adjusted_rand_index(first, second, counts)
    support = between @ np.array([weight for _, weight in voters])
    return voters[int(support.argmax())][0]
