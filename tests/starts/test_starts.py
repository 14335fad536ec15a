"""Several starts and the choice among them: the graph by hand, smoothing, linkage of a part, the signs, odd input."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import sparse

from coterie.clustering.nearest import nearest
from coterie.errors import InputError, SettingError
from coterie.starts import candidates, choose_start
from coterie.starts.candidates import Start, linked, make_starts
from coterie.starts.choice import SIGNS, judge, see
from coterie.starts.graph import neighbour_graph, smoothed, spectral
from coterie.validity.neighbourhoods import nearest_by_words

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
    graph = neighbour_graph(*nearest(units, 10))
    starts = make_starts(units, graph, K, np.ones(len(units), dtype=np.int64), 0)
    assert len({each.name for each in starts}) == len(starts) == 8
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
    found = judge(starts, see(units), nearest_by_words(texts))
    assert found.judged[0] is found.best and found.best.name == "right"
    for sign in SIGNS[:3]:
        assert getattr(found.best, sign) == max(getattr(each, sign) for each in found.judged)
    assert found.best.score > 0.8 and all(0 <= each.score <= 1 for each in found.judged)


def test_ranks_by_hand() -> None:
    truth, units = _bundles()
    starts = [Start("a", truth), Start("b", truth.copy()), Start("c", np.arange(len(truth)) % K)]
    found = judge(starts, see(units), None)
    told = {each.name: each for each in found.judged}
    # Two alike share the ranks 0.5 and 1 of three, in each of three signs; words are not known.
    assert told["a"].score == told["b"].score == pytest.approx(0.75)
    assert told["c"].score == 0 and np.isnan(told["c"].words)
    assert found.best.name == "a"
    # Of the other two one is the same, and both are as far from the third.
    assert told["a"].agreement == pytest.approx((1 + told["c"].agreement) / 2)


def test_the_same_seed_gives_the_same_start() -> None:
    _, units = _bundles(spread=0.4)
    one, other = (choose_start(None, K, vectors=units, seed=3) for _ in range(2))
    assert one.best.name == other.best.name and np.array_equal(one.best.labels, other.best.labels)


def test_of_very_many_texts_a_part_is_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    from coterie.starts import choice

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
