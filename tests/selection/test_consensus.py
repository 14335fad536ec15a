"""The vote of several partitions: agreement and matching by independent computations, and how the vote behaves."""

from __future__ import annotations

from math import comb

import numpy as np
import pytest
from numpy.typing import NDArray
from sklearn.metrics import adjusted_rand_score

from coterie.selection.consensus import SAMPLE_SIZE, adjusted_rand_index, find_consensus

Labels = NDArray[np.int64]
K = 4


def _ones(n: int) -> NDArray[np.float64]:
    return np.ones(n)


def _noisy(truth: Labels, wrong: float, seed: int) -> Labels:
    """Return a partition in which some texts are in a random cluster."""
    random = np.random.default_rng(seed)
    return np.where(random.random(len(truth)) < wrong, random.integers(truth.max() + 1, size=len(truth)), truth)


def _voters(n: int = 20, wrong: float = 0.3, count: int = 5) -> tuple[Labels, list[Labels]]:
    truth = np.repeat(np.arange(K), n)
    return truth, [_noisy(truth, wrong, seed) for seed in range(count)]


# --- Agreement ---


@pytest.mark.parametrize("seed", range(4))
def test_the_agreement_is_that_of_scikit_learn(seed: int) -> None:
    random = np.random.default_rng(seed)
    truth = random.integers(5, size=60)
    for other in (random.integers(3, size=60), _noisy(truth, 0.2, seed), truth):
        expected = adjusted_rand_score(truth, other)
        assert adjusted_rand_index(truth, other, _ones(60)) == pytest.approx(expected, abs=1e-12)
        assert adjusted_rand_index(other, truth, _ones(60)) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("seed", range(4))
def test_counts_in_the_agreement_are_repeated_texts(seed: int) -> None:
    random = np.random.default_rng(seed)
    first, counts = random.integers(4, size=40), random.integers(1, 9, size=40)
    second = _noisy(first, 0.4, seed)
    expected = adjusted_rand_score(np.repeat(first, counts), np.repeat(second, counts))
    assert adjusted_rand_index(first, second, counts) == pytest.approx(expected, abs=1e-12)
    assert abs(adjusted_rand_index(first, second, _ones(40)) - expected) > 1e-3


def test_the_agreement_by_pairs() -> None:
    """Of 15 pairs, 3 are together in one partition and 4 in the other, 2 of them in both."""
    first, second = np.array([0, 0, 1, 1, 2, 2]), np.array([0, 0, 1, 1, 1, 2])
    by_chance = 3 * 4 / comb(6, 2)
    assert adjusted_rand_index(first, second, _ones(6)) == pytest.approx((2 - by_chance) / (3.5 - by_chance))


def test_the_agreement_of_partitions_without_a_choice() -> None:
    one, alone = np.zeros(6, dtype=np.int64), np.arange(6)
    assert adjusted_rand_index(one, one, _ones(6)) == adjusted_rand_index(alone, alone, _ones(6)) == 1
    assert adjusted_rand_index(one, alone, _ones(6)) == 0
    assert adjusted_rand_index(one, np.array([0, 0, 0, 1, 1, 2]), _ones(6)) == pytest.approx(0)
    assert adjusted_rand_index(np.array([0]), np.array([0]), _ones(1)) == 1


# --- The vote ---


def _shares_by_loops(
    partitions: list[Labels], weights: list[float], current: Labels, n_clusters: int, counts: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return the shares of the vote, text by text, from the description."""
    shares = np.zeros((len(current), n_clusters))
    for labels, weight in zip(partitions, weights, strict=True):
        for text, cluster in enumerate(labels):
            mates = [other for other in range(len(labels)) if labels[other] == cluster]
            for mate in mates:
                shares[text, current[mate]] += weight / sum(weights) * counts[mate] / counts[mates].sum()
    return shares


def test_a_vote_by_hand() -> None:
    """Cluster 1 of the other partition has two texts of cluster 1 and one of cluster 2."""
    one, other = np.array([0, 0, 1, 1, 2, 2]), np.array([2, 2, 1, 1, 1, 0])
    found = find_consensus([one, other, one], [1, 1, 2], 3)
    assert found.labels.tolist() == one.tolist()
    split = [0, 3 / 4 + 1 / 4 * 2 / 3, 1 / 4 * 1 / 3]
    expected = [[1, 0, 0], [1, 0, 0], split, split, [0, 1 / 4 * 2 / 3, 3 / 4 + 1 / 4 * 1 / 3], [0, 0, 1]]
    assert found.shares == pytest.approx(np.array(expected))
    assert found.agreement == pytest.approx([1, adjusted_rand_score(one, other), 1])
    moved = find_consensus([one, other, one], [1, 3, 1], 3)
    assert adjusted_rand_score(other, moved.labels) == 1


def test_every_text_is_where_most_of_the_vote_is() -> None:
    truth, partitions = _voters()
    weights = [1.0, 0.7, 1.3, 0.5, 2.1]
    counts = np.random.default_rng(0).integers(1, 4, size=len(truth)).astype(float)
    found = find_consensus(partitions, weights, K, counts)
    shares = _shares_by_loops(partitions, weights, found.labels, K, counts)
    assert found.shares == pytest.approx(shares)
    assert found.labels.tolist() == shares.argmax(axis=1).tolist()
    assert found.shares.sum(axis=1) == pytest.approx(1)
    assert found.agreement == pytest.approx(
        [
            adjusted_rand_score(np.repeat(each, counts.astype(int)), np.repeat(found.labels, counts.astype(int)))
            for each in partitions
        ]
    )


def test_the_result_that_agrees_most_with_all_is_returned() -> None:
    """The vote has a fixed point near each of two groups of partitions; the larger group decides, not the order."""
    truth = np.repeat(np.arange(K), 15)
    merged = np.where(truth == 1, 0, np.where((truth == 2) & (np.arange(60) % 2 == 0), 1, truth))
    for many, few in ((truth, merged), (merged, truth)):
        partitions = [
            *(_noisy(few, 0.1, seed) for seed in range(3)),
            *(_noisy(many, 0.1, seed) for seed in range(3, 8)),
        ]
        found = find_consensus(partitions, [1.0] * 8, K)
        assert adjusted_rand_score(many, found.labels) > 0.95


def test_more_texts_than_the_starts_are_compared_on() -> None:
    n = 3 * SAMPLE_SIZE // K
    truth, partitions = _voters(n=n, wrong=0.3, count=5)
    found = find_consensus(partitions, [1.0] * 5, K)
    assert len(found.labels) == K * n > SAMPLE_SIZE
    assert adjusted_rand_score(truth, found.labels) > 0.85
    assert found.shares.shape == (K * n, K)


def test_errors_that_partitions_do_not_share_vanish() -> None:
    truth, partitions = _voters(wrong=0.3, count=9)
    found = find_consensus(partitions, [1] * 9, K)
    assert max(adjusted_rand_score(truth, each) for each in partitions) < 0.7
    assert adjusted_rand_score(truth, found.labels) > 0.9


@pytest.mark.parametrize("seed", range(3))
def test_the_numbers_of_the_clusters_do_not_matter(seed: int) -> None:
    _, partitions = _voters()
    weights = [1.0, 0.7, 1.3, 0.5, 2.1]
    random = np.random.default_rng(seed)
    renumbered = [random.permutation(K)[each] for each in partitions]
    before, after = find_consensus(partitions, weights, K), find_consensus(renumbered, weights, K)
    assert adjusted_rand_score(before.labels, after.labels) == 1
    assert after.agreement == pytest.approx(before.agreement)
    assert np.sort(after.shares, axis=1) == pytest.approx(np.sort(before.shares, axis=1))


def test_one_dissenting_partition_is_outvoted() -> None:
    truth = np.repeat(np.arange(K), 10)
    dissent = np.random.default_rng(0).permutation(truth)
    for partitions in ([truth, dissent, truth], [dissent, truth, (truth + 1) % K]):
        found = find_consensus(partitions, [1, 1, 1], K)
        assert adjusted_rand_score(truth, found.labels) == 1
    assert adjusted_rand_score(truth, find_consensus([truth, dissent, truth], [1, 3, 1], K).labels) < 0.5


def test_weights_count_as_repeated_partitions() -> None:
    _, partitions = _voters(count=4)
    found = find_consensus(partitions, [2, 1, 3, 1], K)
    repeated = find_consensus([partitions[i] for i in (0, 0, 1, 2, 2, 2, 3)], [1] * 7, K)
    assert found.shares == pytest.approx(repeated.shares)
    # Where two clusters have equal shares, the partition at the beginning decides.
    largest = np.sort(found.shares, axis=1)
    clear = largest[:, -1] - largest[:, -2] > 1e-6
    assert clear.sum() > 60
    assert np.array_equal(found.labels[clear], repeated.labels[clear])
    assert not np.array_equal(found.labels[clear], find_consensus(partitions, [1, 3, 1, 2], K).labels[clear])


def test_only_the_ratio_of_the_weights_counts() -> None:
    _, partitions = _voters()
    weights = np.array([1, 0.7, 1.3, 0.5, 2.1])
    one, other = (find_consensus(partitions, (scale * weights).tolist(), K) for scale in (1, 0.01))
    assert np.array_equal(one.labels, other.labels)
    assert one.shares == pytest.approx(other.shares)


def test_partitions_with_weight_0_do_not_vote_and_have_an_agreement() -> None:
    truth, partitions = _voters(count=3)
    dissent = np.random.default_rng(0).permutation(truth)
    without = find_consensus(partitions, [1, 1, 1], K)
    found = find_consensus([*[dissent] * 6, *partitions], [*[0.0] * 6, 1, 1, 1], K)
    assert np.array_equal(found.labels, without.labels)
    assert found.shares == pytest.approx(without.shares)
    assert found.agreement[6:] == pytest.approx(without.agreement)
    assert found.agreement[:6] == pytest.approx([adjusted_rand_score(dissent, found.labels)] * 6)


def test_of_two_equal_votes_the_first_counts() -> None:
    one, other = np.array([0, 0, 0, 1, 1, 1]), np.array([0, 0, 1, 1, 1, 1])
    assert find_consensus([one, other], [1, 1], 2).labels.tolist() == one.tolist()
    assert find_consensus([other, one], [1, 1], 2).labels.tolist() == other.tolist()


@pytest.mark.parametrize("seed", [0, 1, 3, 6])
def test_counts_in_the_vote_are_repeated_texts(seed: int) -> None:
    random = np.random.default_rng(seed)
    partitions = [random.integers(3, size=24) for _ in range(4)]
    counts = random.integers(1, 6, size=24)
    weights = [1.0, 0.9, 1.2, 1.1]
    found = find_consensus(partitions, weights, 3, counts)
    rows = np.repeat(np.arange(24), counts)
    repeated = find_consensus([each[rows] for each in partitions], weights, 3)
    assert np.array_equal(found.labels[rows], repeated.labels)
    assert found.shares[rows] == pytest.approx(repeated.shares)
    assert found.agreement == pytest.approx(repeated.agreement)
    # Counts decide where the texts of a cluster are, and so the vote.
    assert adjusted_rand_score(found.labels, find_consensus(partitions, weights, 3).labels) < 0.8


def test_no_cluster_becomes_empty() -> None:
    """The last text is alone in its cluster; all partitions but the first have it in another one."""
    central = np.array([0, 0, 0, 0, 1, 1, 1, 1, 2])
    partitions = [
        central,
        np.array([2, 0, 0, 0, 1, 1, 1, 1, 0]),
        np.array([0, 2, 0, 0, 1, 1, 1, 1, 0]),
        np.array([0, 0, 2, 0, 1, 1, 1, 1, 0]),
    ]
    found = find_consensus(partitions, [1.0, 1, 1, 1], 3)
    # Three of four partitions have it in a cluster whose other texts are in cluster 0.
    assert found.shares[8] == pytest.approx([3 / 4 * 3 / 4, 0, 1 / 4 + 3 / 4 * 1 / 4])
    assert sorted(set(found.labels.tolist())) == [0, 1, 2]
    for seed in range(300):
        random = np.random.default_rng(seed)
        drawn = [random.permutation([0, 0, 0, 1, 1, 2, 3]) for _ in range(5)]
        assert len(set(find_consensus(drawn, [1] * 5, 4).labels.tolist())) == 4, seed


def test_partitions_may_have_fewer_clusters() -> None:
    one = np.array([0, 0, 1, 1, 1, 1])
    found = find_consensus([one, 1 - one, one], [1, 1, 1], 5)
    assert found.labels.tolist() == one.tolist()
    assert found.shares == pytest.approx(np.eye(5)[one])


def test_the_partitions_stay_as_they_are() -> None:
    _, partitions = _voters()
    before = [each.copy() for each in partitions]
    find_consensus(partitions, [1] * 5, K)
    assert all(np.array_equal(a, b) for a, b in zip(before, partitions, strict=True))
