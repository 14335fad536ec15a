"""Combine several partitions of the same texts into one, by a vote of their clusters."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

# Most rounds of voting: two to six are usual.
STEPS = 20
# Partitions from which the vote is started, the most central ones. A vote has several fixed points; from one partition
# alone, a small change of the partitions led to another one.
VOTE_STARTS = 12
# Texts on which these starts are compared, which bounds the time.
SAMPLE_SIZE = 3_000


@dataclass(frozen=True)
class Consensus:
    """The result of :func:`find_consensus`.

    Attributes
    ----------
    labels:
        Cluster of each text, from 0 to ``n_clusters - 1``.
    shares:
        ``N x K``, share of the vote for each cluster.
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
    *,
    vote_starts: int = VOTE_STARTS,
) -> Consensus:
    """Return the partition that a weighted vote of several partitions gives.

    The vote starts from one of the partitions. The texts of a cluster, in any of the partitions, vote for the current
    clusters by the shares of these texts that are in each: a cluster that divides two current ones, or contains two,
    does not have to take the side of one. Every text moves to the cluster with the largest share of the votes of its
    clusters, weighted by partition; this is repeated until no text moves. No cluster becomes empty. Of the results from
    the most central partitions, the one with the largest weighted agreement with all partitions is returned.

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
    vote_starts:
        From how many partitions the vote is started.

    Examples
    --------
    >>> import numpy as np
    >>> one, other = np.array([0, 0, 1, 1, 2, 2]), np.array([2, 2, 1, 1, 1, 0])
    >>> find_consensus([one, other, one], [1, 1, 1], 3).labels
    array([0, 0, 1, 1, 2, 2])
    """
    counts = np.ones(len(partitions[0])) if counts is None else np.asarray(counts, dtype=np.float64)
    voters = np.flatnonzero(np.asarray(weights) > 0)
    labels = np.stack([partitions[i] for i in voters.tolist()])
    voter_weights = np.asarray(weights, dtype=np.float64)[voters]
    voter_weights = voter_weights / voter_weights.sum()
    n_texts = labels.shape[1]
    # The sample depends on the number of texts alone.
    sampled = np.sort(np.random.default_rng(n_texts).permutation(n_texts)[:SAMPLE_SIZE])
    start = _best_start(_Vote(labels[:, sampled], voter_weights, n_clusters, counts[sampled]), vote_starts)
    vote = _Vote(labels, voter_weights, n_clusters, counts)
    current = vote.iterate(labels[start])
    agreement = tuple(adjusted_rand_index(each, current, counts) for each in partitions)
    return Consensus(current, vote.shares(current), agreement)


def adjusted_rand_index(first: NDArray[np.int64], second: NDArray[np.int64], counts: NDArray[Any]) -> float:
    """Return the agreement of two partitions beyond chance (Hubert and Arabie, 1985); every text counts ``counts``."""
    size = int(max(first.max(), second.max())) + 1
    cells = np.bincount(first * size + second, weights=np.asarray(counts, dtype=np.float64), minlength=size * size)
    table = cells.reshape(size, size)
    together, in_first, in_second = (
        float((each * (each - 1)).sum()) for each in (table, table.sum(axis=1), table.sum(axis=0))
    )
    total = float(table.sum())
    by_chance = in_first * in_second / max(total * (total - 1), 1)
    most = (in_first + in_second) / 2
    return 1.0 if most == by_chance else (together - by_chance) / (most - by_chance)


class _Vote:
    """The vote of partitions of the same texts.

    Parameters
    ----------
    labels:
        ``P x N``, one partition per row.
    weights:
        Weight of each partition; their sum is 1.
    n_clusters:
        Clusters of a partition, at most.
    counts:
        How often each text occurs.
    """

    def __init__(
        self, labels: NDArray[np.int64], weights: NDArray[np.float64], n_clusters: int, counts: NDArray[np.float64]
    ) -> None:
        self.labels = labels
        self.weights = weights
        self.counts = counts
        self.n_clusters = n_clusters
        count, n_texts = labels.shape
        columns = labels + n_clusters * np.arange(count)[:, None]
        # Texts x clusters of all partitions: one entry per text and partition.
        self._members = sparse.csr_matrix(
            (np.ones(count * n_texts), columns.T.ravel(), count * np.arange(n_texts + 1)),
            shape=(n_texts, count * n_clusters),
        )
        self._weight_of_cluster = np.repeat(weights, n_clusters)

    def shares(self, current: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return the share of the vote that each text gives to each current cluster, ``N x K``."""
        n_texts = len(current)
        now = sparse.csr_matrix((self.counts, (np.arange(n_texts), current)), shape=(n_texts, self.n_clusters))
        overlap = np.asarray((self._members.T @ now).todense())
        overlap *= (self._weight_of_cluster / np.maximum(overlap.sum(axis=1), 1e-12))[:, None]
        return np.asarray(self._members @ overlap)

    def iterate(self, current: NDArray[np.int64]) -> NDArray[np.int64]:
        """Move texts by their votes until none moves, for at most ``STEPS`` rounds, and return the partition."""
        for _ in range(STEPS):
            shares = self.shares(current)
            # Of equal shares, that of the current cluster is the largest.
            shares[np.arange(len(current)), current] += 1e-9
            updated = shares.argmax(axis=1)
            vanishing = np.bincount(updated, minlength=self.n_clusters) == 0
            updated = np.where(vanishing[current], current, updated)
            if np.array_equal(updated, current):
                break
            current = updated
        return current

    def agreement(self, current: NDArray[np.int64]) -> float:
        """Return the weighted mean agreement of the partitions with one partition."""
        found = [adjusted_rand_index(each, current, self.counts) for each in self.labels]
        return float(self.weights @ np.array(found))


def _best_start(vote: _Vote, vote_starts: int) -> int:
    """Return the partition from which the vote leads to the largest agreement with all; the first of equals."""
    support = np.array([vote.agreement(each) for each in vote.labels])
    central = np.argsort(-support, kind="stable")[:vote_starts]
    reached = [vote.agreement(vote.iterate(vote.labels[i])) for i in central]
    # Rounded, so that rounding errors do not decide between equal results.
    return int(central[int(np.argmax(np.round(reached, 9)))])
