"""Several starts and the choice among them: the graph by hand, smoothing, linkage of a part, the signs, odd input."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import sparse

from coterie.clustering.nearest import nearest
from coterie.errors import InputError, SettingError
from coterie.selection import candidates, choose_start
from coterie.selection.candidates import WAYS, Start, linked, make_starts
from coterie.selection.choose_start import (
    ASKED,
    SIGNS,
    choose_among,
    drawn_to_one_size,
    judge,
    may_be_even,
    relative,
    stability_of,
)
from coterie.selection.graph import neighbour_graph, smoothed, spectral
from coterie.selection.neighbour_graphs import Words, see

K = 4


def _bundles(n: int = 40, spread: float = 0.05, dimensions: int = 12) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
    """Bundles in as many directions, and noise in all others."""
    truth = np.repeat(np.arange(K), n)
    noise = np.random.default_rng(0).normal(scale=spread, size=(K * n, dimensions))
    vectors = np.eye(K, dimensions)[truth] + noise
    return truth, np.asarray(vectors / np.linalg.norm(vectors, axis=1, keepdims=True), dtype=np.float32)


def _right(truth: NDArray[np.int64], labels: NDArray[np.int64]) -> float:
    """The share of texts in a cluster most of which is of their bundle."""
    return sum(np.bincount(truth[labels == each]).max() for each in np.unique(labels)) / len(truth)


def test_nearest_rows_come_in_their_order() -> None:
    _, units = _bundles(5)
    rows, cosines = nearest(units, 6)
    alike = units.astype(np.float64) @ units.T.astype(np.float64)
    np.fill_diagonal(alike, -np.inf)
    assert rows.tolist() == np.argsort(-alike, axis=1)[:, :6].tolist()
    assert cosines == pytest.approx(np.sort(alike, axis=1)[:, ::-1][:, :6], abs=1e-5)


def test_the_graph_by_hand() -> None:
    _, units = _bundles(10, spread=0.3)
    rows, cosines = nearest(units, 8)
    graph = neighbour_graph(rows, cosines)
    assert sparse.issparse(graph) and abs(graph - graph.T).max() < 1e-12
    dense = graph.toarray()
    assert dense.min() >= 0 and dense.max() <= 1 + 1e-12 and not dense.diagonal().any()

    def named(i: int) -> dict[int, float]:
        """What a row alone gives its neighbours: the width by bisection, as in the paper."""
        distances = 1 - cosines[i]
        low, high = 1e-6, 10.0
        for _ in range(200):
            width = (low + high) / 2
            total = sum(np.exp(-max(0.0, each - distances[0]) / width) for each in distances)
            low, high = (low, width) if total > np.log2(8) else (width, high)
        return {int(j): float(np.exp(-(d - distances[0]) / width)) for j, d in zip(rows[i], distances, strict=True)}

    for i, j in ((0, int(rows[0, 0])), (7, int(rows[7, 5])), (13, int(rows[13, 7]))):
        one, other = named(i).get(j, 0.0), named(j).get(i, 0.0)
        assert dense[i, j] == pytest.approx(one + other - one * other, abs=1e-4)


def test_equal_texts_have_a_graph_too() -> None:
    rows, cosines = nearest(np.ones((6, 3), dtype=np.float32) / 3**0.5, 4)
    assert np.isfinite(neighbour_graph(rows, cosines).toarray()).all()


def test_smoothing_draws_bundles_together_and_not_to_one_another() -> None:
    truth, units = _bundles(spread=0.35)
    rows, cosines = nearest(units, 10)
    smooth = smoothed(units, neighbour_graph(rows, cosines), 3)
    assert np.linalg.norm(smooth, axis=1) == pytest.approx(np.ones(len(smooth)))

    def inside_less_between(vectors: NDArray[np.float64]) -> float:
        alike, same = vectors @ vectors.T, truth[:, None] == truth
        return float(alike[same].mean() - alike[~same].mean())

    assert inside_less_between(smooth) > inside_less_between(units.astype(np.float64)) + 0.2
    assert smoothed(units, neighbour_graph(rows, cosines), 0) == pytest.approx(units)


def test_waves_tell_parts_of_a_graph_apart_and_are_the_same_again() -> None:
    truth, units = _bundles(spread=0.02)
    graph = neighbour_graph(*nearest(units, 5))
    waves = spectral(graph, K, seed=1)
    alike = waves @ waves.T
    assert alike[truth[:, None] == truth].min() > 0.99 and alike[truth[:, None] != truth].max() < 0.5
    assert np.array_equal(waves, spectral(graph, K, seed=1))


def test_every_start_finds_clear_bundles() -> None:
    truth, units = _bundles()
    starts = make_starts(see(units), K, np.ones(len(units), dtype=np.int64), 0)
    assert tuple(each.name for each in starts) == WAYS
    for each in starts:
        assert sorted(set(each.labels.tolist())) == list(range(K)), each.name
        assert _right(truth, each.labels) == 1, each.name


@pytest.mark.parametrize("way", ["ward", "average"])
def test_of_many_texts_a_part_is_linked(way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    truth, units = _bundles()
    whole = linked(units.astype(np.float64), K, way, 0)
    monkeypatch.setattr(candidates, "LINKED", 50)
    monkeypatch.setattr(candidates, "AT_A_TIME", 30)
    part = linked(units.astype(np.float64), K, way, 0)
    assert _right(truth, whole) == _right(truth, part) == 1
    assert len(np.unique(part)) == K


def test_the_better_start_is_chosen_by_every_sign() -> None:
    truth, units = _bundles(spread=0.2)
    words = ["parcel late delivery", "refund money card", "password login account", "coupon price offer"]
    texts = [f"{words[label]} {i}" for i, label in enumerate(truth)]
    generator = np.random.default_rng(0)
    starts = [
        Start("one cluster, nearly", np.where(np.arange(len(truth)) < K - 1, np.arange(len(truth)) + 1, 0)),
        Start(
            "half dealt out",
            np.where(generator.random(len(truth)) < 0.5, generator.integers(K, size=len(truth)), truth),
        ),
        Start("right", truth),
    ]
    judged = judge(starts, see(units, Words.of(texts), K), stability=[0.1, 0.2, 0.9])
    assert judged[0].name == "right"
    for sign in SIGNS:
        assert getattr(judged[0], sign) == max(getattr(each, sign) for each in judged)
    assert judged[0].score > 0 > judged[-1].score


def test_scores_by_hand() -> None:
    truth, units = _bundles()
    starts = [Start("a", truth), Start("b", truth.copy()), Start("c", np.arange(len(truth)) % K)]
    judged = judge(starts, see(units))
    told = {each.name: each for each in judged}
    # Two of three are alike: the third is twice as far from the mean, in silhouette and likelihood; no other is known.
    assert told["a"].score == told["b"].score == pytest.approx(0.5**0.5)
    assert told["c"].score == pytest.approx(-(2**0.5))
    assert np.isnan(told["c"].words) and np.isnan(told["c"].stability)
    assert judged[0].name == "a"


def test_stability_is_agreement_of_parts_with_the_whole() -> None:
    truth, units = _bundles()
    seen, once = see(units), np.ones(len(truth), dtype=np.int64)
    starts = make_starts(seen, K, once, 0)
    assert stability_of(starts, seen, K, once, 0) == pytest.approx([1] * len(starts))
    shuffled = [Start(each.name, np.random.default_rng(0).permutation(each.labels)) for each in starts]
    stability = stability_of(shuffled, seen, K, once, 0)
    assert stability is not None and max(stability) < 0.2
    few = see(units[:7])
    assert stability_of(make_starts(few, K, once[:7], 0), few, K, once[:7], 0) is None


def _one_line(sizes: list[int]) -> tuple[NDArray[np.int64], NDArray[np.float64], list[str]]:
    """Classes of these sizes that touch each other, each with a word of its own."""
    truth = np.repeat(np.arange(len(sizes)), sizes)
    generator = np.random.default_rng(1)
    vectors = np.eye(len(sizes), 16)[truth] + generator.normal(scale=0.25, size=(len(truth), 16))
    return truth, vectors, [f"about{label} thing{generator.integers(20)}" for label in truth]


def test_clusters_are_drawn_to_one_size_where_neighbours_do_not_mind() -> None:
    truth, vectors, texts = _one_line([60, 60, 60, 60])
    seen, once = see(vectors, Words.of(texts), K), np.ones(len(truth), dtype=np.int64)
    found = choose_among(seen, K, once, 0)
    assert found.even and np.bincount(found.best.labels).min() >= 55
    assert found.best.name in {each.name for each in found.judged}
    lopsided = np.where(np.arange(len(truth)) % 4 == 0, 0, truth)
    drawn = np.bincount(drawn_to_one_size(seen, lopsided, once))
    assert drawn.max() - drawn.min() < np.ptp(np.bincount(lopsided))
    truth, vectors, texts = _one_line([190, 30, 14, 6])
    seen, once = see(vectors, Words.of(texts), K), np.ones(len(truth), dtype=np.int64)
    as_they_are = [Start(ASKED, truth)]
    assert not may_be_even(as_they_are, seen, K, once)
    assert not choose_among(seen, K, once, 0).even
    truth, vectors, texts = _one_line([60, 60, 60, 60])
    assert not may_be_even([Start(ASKED, truth)], see(vectors), K, np.ones(len(truth), dtype=np.int64))


def test_signs_rise_as_shares_of_what_they_were() -> None:
    assert relative(0.8, 0.84) == pytest.approx(0.05)
    assert relative(0.1, 0.15) == pytest.approx(0.1)
    assert relative(-0.8, -0.4) == pytest.approx(0.5)


def test_the_same_seed_gives_the_same_start() -> None:
    _, units = _bundles(spread=0.4)
    one, other = (choose_start(None, K, vectors=units, seed=3) for _ in range(2))
    assert one.best.name == other.best.name and np.array_equal(one.best.labels, other.best.labels)


def test_of_very_many_texts_a_part_is_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    from coterie.selection import choose_start as choice

    truth, units = _bundles()
    monkeypatch.setattr(choice, "LOOKED_AT", 60)
    found = choose_start([f"word{label}" for label in truth], K, vectors=units)
    assert all(len(each.labels) == len(truth) for each in found.judged)
    assert _right(truth, found.best.labels) == 1


def test_texts_without_words_and_odd_numbers() -> None:
    _, units = _bundles(10)
    found = choose_start(["?"] * len(units), K, vectors=units)
    assert np.isnan(found.best.words) and np.isfinite(found.best.score)
    with pytest.raises(SettingError, match="n_clusters"):
        choose_start(None, 1, vectors=units)
    with pytest.raises(InputError, match="nothing to choose"):
        choose_start(None, K, vectors=units[:5])


def test_word_salad_gets_an_answer() -> None:
    noise = np.random.default_rng(0).normal(size=(60, 20))
    found = choose_start(None, 5, vectors=noise)
    assert len(np.unique(found.best.labels)) == 5
