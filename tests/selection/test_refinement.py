"""Refinement of an assignment, checked against loops in float64 and on small sets made by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from coterie.selection.neighbour_graphs import build_graphs
from coterie.selection.refinement import assignment_logits, one_hot, refine_assignment

Labels = NDArray[np.int64]


def _clouds(sizes: list[int], spread: float, seed: int = 0) -> tuple[Labels, NDArray[np.float64]]:
    random = np.random.default_rng(seed)
    truth = np.repeat(np.arange(len(sizes)), sizes)
    return truth, np.eye(len(sizes), 8)[truth] + random.normal(scale=spread, size=(len(truth), 8))


def test_assignment_logits_are_those_of_the_loops() -> None:
    random = np.random.default_rng(0)
    n, k, d = 7, 3, 4
    units = random.normal(size=(n, d))
    units /= np.linalg.norm(units, axis=1, keepdims=True)
    shares = random.dirichlet(np.ones(k), size=n)
    votes = random.random((n, n)) * (random.random((n, n)) < 0.5) + np.eye(n)
    votes /= votes.sum(axis=1, keepdims=True)
    weights = random.integers(1, 5, size=n).astype(float)
    found = assignment_logits(*(torch.from_numpy(each) for each in (units, votes, shares, weights))).numpy()

    for i in range(n):
        cosines, lifted = [], []
        for c in range(k):
            mean = [sum(weights[j] * shares[j, c] * units[j, x] for j in range(n)) for x in range(d)]
            length = math.sqrt(sum(x * x for x in mean))
            cosines.append(sum(units[i, x] * mean[x] / length for x in range(d)))
            lifted.append(sum(votes[i, j] * shares[j, c] for j in range(n)) + 0.01)
        of_vectors = sum(math.exp(each / 0.2) for each in cosines)
        for c in range(k):
            expected = cosines[c] / 0.2 - math.log(of_vectors) + math.log(lifted[c] / sum(lifted))
            assert found[i, c] == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("seed", range(3))
def test_texts_that_began_in_a_wrong_cluster_find_theirs(seed: int) -> None:
    truth, vectors = _clouds([40, 40, 40], 0.15, seed)
    wrong = truth.copy()
    moved = np.random.default_rng(seed).permutation(len(truth))[:24]
    wrong[moved] = (wrong[moved] + 1) % 3
    found = refine_assignment(build_graphs(vectors), wrong, 3, np.ones(len(truth)))
    assert (found == truth).mean() > 0.97


def test_a_cluster_that_would_lose_all_its_texts_keeps_them() -> None:
    _, vectors = _clouds([60, 60], 0.1)
    start = np.repeat([0, 1], 60)
    start[[3, 70]] = 2  # of two clusters at once: no place of its own
    found = refine_assignment(build_graphs(vectors), start, 3, np.ones(120))
    assert set(found.tolist()) == {0, 1, 2}


def test_clusters_stay_uneven_unless_size_costs() -> None:
    _, vectors = _clouds([150, 10], 0.45)
    start = np.repeat([0, 1], [150, 10])
    graphs = build_graphs(vectors)
    free = np.bincount(refine_assignment(graphs, start, 2, np.ones(160)), minlength=2)
    even = np.bincount(refine_assignment(graphs, start, 2, np.ones(160), size_penalty=5.0), minlength=2)
    assert free.min() < 30
    assert even.min() > free.min() + 20


def test_a_frequent_text_moves_the_mean() -> None:
    """Halfway between two clusters, a text goes with the one whose weight draws its mean over."""
    units = np.array([[1.0, 0.0], [0.0, 1.0], [0.8, 0.6], [0.72, 0.694]])
    units /= np.linalg.norm(units, axis=1, keepdims=True)
    alone = torch.eye(4, dtype=torch.float64)
    shares = torch.tensor([[1.0, 0.0], [0.0, 1.0], [0.0, 1.0], [0.5, 0.5]], dtype=torch.float64)

    def nearest_cluster(weight: float) -> int:
        weights = torch.tensor([1.0, 1.0, weight, 1e-9], dtype=torch.float64)
        return int(assignment_logits(torch.from_numpy(units), alone, shares, weights)[3].argmax())

    assert nearest_cluster(1e-9) == 0
    assert nearest_cluster(50.0) == 1


def test_the_same_twice() -> None:
    truth, vectors = _clouds([30, 30, 30], 0.4)
    graphs, weights = build_graphs(vectors), np.ones(90)
    assert np.array_equal(refine_assignment(graphs, truth, 3, weights), refine_assignment(graphs, truth, 3, weights))


def test_one_hot_rows() -> None:
    assert one_hot(torch.tensor([1, 0]), 3).tolist() == [[0.0, 1.0, 0.0], [1.0, 0.0, 0.0]]


def test_the_neighbours_of_a_text_outvote_its_vector() -> None:
    """A vector a little nearer to another cluster than to that of all its neighbours stays with them."""
    truth, vectors = _clouds([20, 20], 0.05)
    graphs = build_graphs(vectors)
    units = torch.from_numpy(graphs.units).double()
    units[0] = torch.nn.functional.normalize(torch.tensor([0.68, 0.73] + [0.0] * 6, dtype=torch.float64), dim=0)
    votes = csr_matrix((np.full(19, 1 / 19), (np.zeros(19, int), np.arange(1, 20))), shape=(40, 40)).toarray()
    votes[1:] = np.eye(40)[1:]
    shares = one_hot(torch.from_numpy(truth), 2).double()
    logits = assignment_logits(units, torch.from_numpy(votes), shares, torch.ones(40, dtype=torch.float64))
    assert int(logits[0].argmax()) == 0


def test_all_in_one_cluster_stay_there() -> None:
    _, vectors = _clouds([20, 20], 0.1)
    assert not refine_assignment(
        build_graphs(vectors), np.zeros(40, dtype=np.int64), 1, np.ones(40), size_penalty=5.0
    ).any()
