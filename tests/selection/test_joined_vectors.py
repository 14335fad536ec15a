"""Joined vectors and their lexical share: cosines and the agreement of two views, by their definitions in float64."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from coterie.clustering.kmeans import kmeans
from coterie.selection.joined_vectors import (
    FULL_AGREEMENT,
    LARGEST_SHARE,
    SMALLEST_AGREEMENT,
    join_vectors,
    lexical_share,
    view_agreement,
)
from coterie.selection.neighbour_graphs import NeighbourGraphs, build_graphs

Labels = NDArray[np.int64]
Array = NDArray[np.float64]
K = 4


def _rows(n: int, dimensions: int, seed: int) -> NDArray[np.float32]:
    """Random rows of different lengths."""
    random = np.random.default_rng(seed)
    return (random.normal(size=(n, dimensions)) * random.uniform(0.2, 5, size=(n, 1))).astype(np.float32)


def _cosines(rows: NDArray[np.float32]) -> Array:
    wide = rows.astype(np.float64)
    lengths = np.sqrt((wide**2).sum(axis=1))
    return np.asarray(wide @ wide.T / np.outer(lengths, lengths))


# --- Vectors ---


@pytest.mark.parametrize("share", [0.0, 0.1, 0.25, 0.6, 1.0])
def test_the_cosine_of_joined_vectors_is_the_weighted_mean(share: float) -> None:
    semantic, lexical = _rows(20, 7, 0), _rows(20, 5, 1)
    joined = join_vectors(semantic, lexical, share)
    assert joined.dtype == np.float32
    expected = (1 - share) * _cosines(semantic) + share * _cosines(lexical)
    assert joined.astype(np.float64) @ joined.T.astype(np.float64) == pytest.approx(expected, abs=1e-6)


def test_a_text_without_words_is_joined_by_its_meaning_alone() -> None:
    semantic, lexical = _rows(12, 6, 0), _rows(12, 4, 1)
    lexical[:3] = 0
    joined = join_vectors(semantic, lexical, 0.25)
    assert np.linalg.norm(joined, axis=1) == pytest.approx(np.ones(12), abs=1e-6)
    found, by_meaning = _cosines(joined), _cosines(semantic)
    assert found[:3, :3] == pytest.approx(by_meaning[:3, :3], abs=1e-6)
    # Of a text with words, only the semantic part has something in common with it.
    assert found[:3, 3:] == pytest.approx(np.sqrt(0.75) * by_meaning[:3, 3:], abs=1e-6)


# --- The share ---


def test_the_share_rises_with_the_agreement_without_jumps() -> None:
    agreements = np.linspace(0, 1, 2001)
    shares = np.array([lexical_share(each) for each in agreements])
    steps = np.diff(shares)
    assert steps.min() >= 0
    # Nowhere steeper than the line between the two ends.
    assert steps.max() <= 1.001 * LARGEST_SHARE / (FULL_AGREEMENT - SMALLEST_AGREEMENT) * (1 / 2000)
    assert not shares[agreements <= 0.75].any()
    assert shares[agreements >= 0.85] == pytest.approx(0.25)
    assert lexical_share(0.8) == pytest.approx(0.125)
    assert lexical_share(0.775) == pytest.approx(0.0625)


# --- Agreement of the views ---


def _modularity(labels: Labels, near: Labels) -> float:
    """The share of neighbours in one cluster, less what chance would give."""
    pairs = [(int(labels[i]), int(labels[j])) for i, row in enumerate(near) for j in row]
    total = sum(a == b for a, b in pairs) / len(pairs)
    for k in set(labels.tolist()):
        total -= sum(a == k for a, _ in pairs) / len(pairs) * (sum(b == k for _, b in pairs) / len(pairs))
    return total


def _view(truth: Labels, spread: float, seed: int, dimensions: int = 10) -> tuple[NeighbourGraphs, list[Labels]]:
    """Return the graphs of bundles, and their clusters by k-means."""
    noise = np.random.default_rng(seed).normal(scale=spread, size=(len(truth), dimensions))
    graphs = build_graphs(np.eye(K, dimensions)[truth] + noise)
    return graphs, [kmeans(graphs.units, K, n_init=1, seed=run).labels for run in range(2)]


@pytest.fixture(scope="module")
def truth() -> Labels:
    return np.repeat(np.arange(K), 40)


def test_the_agreement_is_that_of_the_loops(truth: Labels) -> None:
    semantic, by_meaning = _view(truth, 0.4, 0)
    lexical, by_words = _view(truth, 0.5, 1)
    ratios = [
        np.mean([_modularity(each, graphs.nearest_rows) for each in others])
        / np.mean([_modularity(each, graphs.nearest_rows) for each in own])
        for graphs, own, others in ((semantic, by_meaning, by_words), (lexical, by_words, by_meaning))
    ]
    assert 0.2 < np.mean(ratios) < 0.9
    assert abs(ratios[0] - ratios[1]) > 0.01
    found = view_agreement(semantic, lexical, by_meaning, by_words)
    assert found == pytest.approx(np.mean(ratios), abs=1e-9)
    assert view_agreement(lexical, semantic, by_words, by_meaning) == pytest.approx(found)


def test_views_agree_with_themselves(truth: Labels) -> None:
    graphs, partitions = _view(truth, 0.4, 0)
    assert view_agreement(graphs, graphs, partitions, partitions) == pytest.approx(1)


def test_clusters_that_preserve_more_than_the_own_ones_count_as_agreement(truth: Labels) -> None:
    """The agreement has no value above 1, nor below 0."""
    graphs, _ = _view(truth, 0.1, 0)
    mixed = [np.where(np.arange(len(truth)) % 3 == 0, 0, truth)]
    assert view_agreement(graphs, graphs, mixed, [truth]) <= 1
    worst = np.arange(len(truth)) % K
    between = _modularity(worst, graphs.nearest_rows)
    assert view_agreement(graphs, graphs, [worst], [worst]) == pytest.approx(float(between > 0))


def test_good_views_agree_and_noise_does_not(truth: Labels) -> None:
    semantic, by_meaning = _view(truth, 0.15, 0)
    words, by_words = _view(truth, 0.15, 1)
    noise, by_noise = _view(truth, 50.0, 2)
    assert view_agreement(semantic, words, by_meaning, by_words) > 0.95
    assert view_agreement(semantic, noise, by_meaning, by_noise) < 0.1


def test_two_good_views_of_different_things_do_not_agree(truth: Labels) -> None:
    other = np.random.default_rng(0).permutation(truth)
    semantic, by_meaning = _view(truth, 0.1, 0)
    lexical, by_words = _view(other, 0.1, 1)
    assert lexical_share(view_agreement(semantic, lexical, by_meaning, by_words)) == 0
