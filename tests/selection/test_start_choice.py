"""The start: which candidates there are, how they are weighted, and what their consensus finds in made-up classes."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray
from sklearn.metrics import adjusted_rand_score

from coterie.errors import InputError, SettingError
from coterie.selection import ChosenStart, choose_start, start_choice
from coterie.selection.candidates import ALGORITHMS, AVERAGE_LINKAGE, AVERAGE_SMOOTHING, Clustering, follow_nearest
from coterie.selection.cluster_sizes import UNEVEN_WEIGHT, SizeEstimate
from coterie.selection.consensus import find_consensus
from coterie.selection.neighbour_graphs import LexicalGraph, build_graphs
from coterie.selection.start_choice import KMEANS_RUNS, choose_among, combine

Labels = NDArray[np.int64]
Array = NDArray[np.float64]
K = 4
EVEN = (50, 50, 50, 50)
# Sizes that fall as 1 / rank^2.
UNEVEN = (160, 40, 18, 10)
# Candidates of a view by kind of sizes. Three algorithms of six are k-means; equal sizes have all but Ward's linkage of
# the plain vectors, penalised ones a k-means and two others.
AVERAGES = len(AVERAGE_SMOOTHING)
CANDIDATES = {
    "free": 3 * KMEANS_RUNS + 2 + AVERAGES,
    "equal": 3 * KMEANS_RUNS + 1 + AVERAGES,
    "penalised": KMEANS_RUNS + 1 + AVERAGES,
}


def _classes(sizes: tuple[int, ...], spread: float, seed: int = 0, dimensions: int = 12) -> tuple[Labels, Array]:
    """Classes in as many directions, and noise in all."""
    truth = np.repeat(np.arange(len(sizes)), sizes)
    noise = np.random.default_rng(seed).normal(scale=spread, size=(len(truth), dimensions))
    return truth, np.eye(len(sizes), dimensions)[truth] + noise


def _runs(algorithm: str) -> int:
    """Return how many candidates of one kind an algorithm makes in a view."""
    return AVERAGES if algorithm == AVERAGE_LINKAGE else KMEANS_RUNS if algorithm.endswith("k-means") else 1


def _counted(found: ChosenStart, *, weighted: bool = False) -> Counter[tuple[str, str]]:
    """Return how many candidates have each view and kind of sizes."""
    voters = (each for each in found.candidates if each.weight or not weighted)
    return Counter((each.clustering.view, each.clustering.sizes) for each in voters)


@pytest.fixture(scope="module")
def even() -> tuple[Labels, ChosenStart]:
    truth, vectors = _classes(EVEN, 0.3)
    return truth, choose_start(None, K, vectors=vectors)


@pytest.fixture(scope="module")
def uneven() -> tuple[Labels, ChosenStart]:
    truth, vectors = _classes(UNEVEN, 0.15)
    return truth, choose_start(None, K, vectors=vectors)


@pytest.fixture(scope="module")
def joined() -> tuple[Labels, ChosenStart]:
    """Two views that agree, and counts of repeated texts."""
    truth, vectors = _classes(EVEN, 0.35)
    _, lexical = _classes(EVEN, 0.2, seed=7, dimensions=10)
    counts = np.random.default_rng(0).integers(1, 5, size=len(truth))
    return truth, choose_start(None, K, vectors=vectors, lexical_vectors=lexical, weights=counts)


# --- The candidates ---


def test_every_algorithm_and_every_kind_of_sizes_is_a_candidate(even: tuple[Labels, ChosenStart]) -> None:
    _, found = even
    clusterings = [each.clustering for each in found.candidates]
    free = Counter(each.algorithm for each in clusterings if (each.view, each.sizes) == ("semantic", "free"))
    assert free == {name: _runs(name) for name in ALGORITHMS}
    views = ("semantic", "centred semantic")
    assert _counted(found) == {(view, sizes): number for view in views for sizes, number in CANDIDATES.items()}
    assert found.candidates[0].name == found.candidates[0].clustering.name


def test_candidates_of_the_joined_view_are_as_many(joined: tuple[Labels, ChosenStart]) -> None:
    counted = _counted(joined[1])
    for view in ("semantic", "joined", "centred semantic", "centred joined"):
        assert {sizes: counted[view, sizes] for _, sizes in counted} == CANDIDATES


def test_the_start_is_the_consensus_of_the_candidates(
    even: tuple[Labels, ChosenStart], uneven: tuple[Labels, ChosenStart]
) -> None:
    for _, found in (even, uneven):
        labels = [each.labels for each in found.candidates]
        again = find_consensus(labels, [each.weight for each in found.candidates], K)
        assert adjusted_rand_score(again.labels, found.labels) > 0.97
        agreement = [each.agreement for each in found.candidates]
        assert agreement == sorted(agreement, reverse=True)
        assert agreement == pytest.approx([adjusted_rand_score(each, found.labels) for each in labels])


def test_the_agreement_counts_repeated_texts(joined: tuple[Labels, ChosenStart]) -> None:
    counts = np.random.default_rng(0).integers(1, 5, size=len(joined[0]))
    rows = np.repeat(np.arange(len(counts)), counts)
    for each in joined[1].candidates:
        expected = adjusted_rand_score(each.labels[rows], joined[1].labels[rows])
        assert each.agreement == pytest.approx(expected, abs=1e-9)


def test_a_candidate_weighs_as_its_sizes_and_its_share(uneven: tuple[Labels, ChosenStart]) -> None:
    for each in uneven[1].candidates:
        clustering = each.clustering
        kind = "uneven" if (clustering.algorithm, clustering.sizes) == (AVERAGE_LINKAGE, "free") else clustering.sizes
        assert each.weight == pytest.approx(uneven[1].sizes.weight(kind) / _runs(clustering.algorithm))


def test_combined_candidates_by_hand() -> None:
    """Of even classes average linkage has no weight; a run of k-means has its share."""
    truth = np.repeat(np.arange(3), 6)
    other = np.random.default_rng(0).permutation(truth)
    clusterings = [
        Clustering("Ward", truth),
        Clustering("k-means", other, share=0.5),
        Clustering(AVERAGE_LINKAGE, other),
    ]
    found = combine(clusterings, SizeEstimate(0.15, 0.0), 3, np.ones(18), 0.8)
    assert {each.clustering.algorithm: each.weight for each in found.candidates} == {
        "Ward": 1,
        "k-means": 0.5,
        AVERAGE_LINKAGE: 0,
    }
    assert adjusted_rand_score(found.labels, truth) == 1
    assert found.candidates[0].name == "semantic, Ward, free sizes"
    assert found.view_agreement == 0.8 and found.lexical_share == pytest.approx(0.125)
    uneven = combine(clusterings, SizeEstimate(0.15, 0.5), 3, np.ones(18))
    assert adjusted_rand_score(uneven.labels, other) == 1
    assert uneven.view_agreement is None


# --- Sizes ---


def test_of_even_classes_equal_sizes_count(even: tuple[Labels, ChosenStart]) -> None:
    truth, found = even
    assert [found.sizes.weight(kind) for kind in ("free", "penalised", "equal")] == pytest.approx([1, 1, 1], abs=0.05)
    assert found.sizes.weight("uneven") == 0
    assert adjusted_rand_score(truth, found.labels) > 0.85
    assert np.ptp(np.bincount(found.labels)) < 12


def test_of_uneven_classes_average_linkage_counts_most(uneven: tuple[Labels, ChosenStart]) -> None:
    truth, found = uneven
    assert found.sizes.cost > 0.4 and found.sizes.evidence > 0.5
    assert [found.sizes.weight(kind) for kind in ("free", "equal", "uneven")] == pytest.approx([0.2, 0, UNEVEN_WEIGHT])
    assert adjusted_rand_score(truth, found.labels) > 0.97
    # Equal sizes have no weight: those that are made are needed for the estimate.
    free = {(view, "free"): CANDIDATES["free"] for view in ("semantic", "centred semantic")}
    assert _counted(found) == {**free, ("semantic", "equal"): 3 * KMEANS_RUNS}


def test_one_kind_of_sizes_alone() -> None:
    truth, vectors = _classes(UNEVEN, 0.3)
    graphs, once = build_graphs(vectors), np.ones(len(truth), dtype=np.int64)
    spread = {}
    for only in ("equal", "penalised", "uneven", "free"):
        found = choose_among(graphs, K, once, 0, only_sizes=only)
        voters = [each.clustering for each in found.candidates if each.weight]
        assert {each.size_kind for each in voters} == {only}
        assert found.sizes.only == only
        spread[only] = np.ptp(np.bincount(found.labels))
    assert spread["equal"] < 25 < 60 < spread["penalised"] < 120 < min(spread["free"], spread["uneven"])


def test_lexical_neighbours_count_for_the_cost_of_equal_sizes() -> None:
    """Words tell uneven classes apart more clearly than vectors do, so equal sizes cost more of them."""
    truth, vectors = _classes((90, 60, 40, 30), 0.35)
    random = np.random.default_rng(0)
    texts = [
        f"{'abcd'[k]}word{random.integers(4)} {'abcd'[k]}thing{random.integers(4)} {i}" for i, k in enumerate(truth)
    ]
    with_words, without = (choose_start(each, K, vectors=vectors).sizes for each in (texts, None))
    assert with_words.cost > without.cost + 0.05
    assert with_words.weight("equal") < without.weight("equal")


# --- Views ---


def test_without_lexical_vectors_there_is_one_view(even: tuple[Labels, ChosenStart]) -> None:
    assert even[1].view_agreement is None and even[1].lexical_share == 0


def test_views_that_agree_are_joined_and_find_more(joined: tuple[Labels, ChosenStart]) -> None:
    truth, found = joined
    alone = choose_start(None, K, vectors=_classes(EVEN, 0.35)[1])
    assert found.view_agreement is not None and found.view_agreement > 0.83
    assert found.lexical_share == pytest.approx(min(0.25, 2.5 * (found.view_agreement - 0.75)))
    assert adjusted_rand_score(truth, alone.labels) + 0.05 < adjusted_rand_score(truth, found.labels)
    assert adjusted_rand_score(truth, found.labels) > 0.95


def test_random_lexical_vectors_are_left_out(even: tuple[Labels, ChosenStart]) -> None:
    truth, vectors = _classes(EVEN, 0.3)
    noise = np.random.default_rng(3).normal(size=(len(truth), 10))
    found = choose_start(None, K, vectors=vectors, lexical_vectors=noise)
    assert found.view_agreement is not None and found.view_agreement < 0.3
    assert found.lexical_share == 0
    assert np.array_equal(found.labels, even[1].labels)
    assert _counted(found) == _counted(even[1])


def test_texts_without_known_words_are_clustered_by_meaning() -> None:
    truth, vectors = _classes(EVEN, 0.25)
    _, lexical = _classes(EVEN, 0.15, seed=7, dimensions=10)
    unknown = np.random.default_rng(0).random(len(truth)) < 0.1
    lexical[unknown] = 0
    found = choose_start(None, K, vectors=vectors, lexical_vectors=lexical)
    assert found.lexical_share > 0
    assert adjusted_rand_score(truth[unknown], found.labels[unknown]) > 0.8
    assert adjusted_rand_score(truth, found.labels) > 0.9


@pytest.mark.filterwarnings("ignore:Number of distinct clusters")
def test_lexical_vectors_of_zeros_are_left_out(even: tuple[Labels, ChosenStart]) -> None:
    vectors = _classes(EVEN, 0.3)[1]
    found = choose_start(None, K, vectors=vectors, lexical_vectors=np.zeros((len(vectors), 5)))
    assert found.lexical_share == 0
    assert np.array_equal(found.labels, even[1].labels)


# --- Samples and seeds ---


@pytest.mark.parametrize("lexical", [False, True])
def test_of_many_texts_a_sample_votes(lexical: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    truth, vectors = _classes(EVEN, 0.15)
    by_words = _classes(EVEN, 0.15, seed=7, dimensions=10)[1] if lexical else None
    texts = [f"{'abcd'[label]}word {i}" for i, label in enumerate(truth)]
    counts = np.random.default_rng(0).integers(1, 5, size=len(truth))
    whole = choose_start(texts, K, vectors=vectors, lexical_vectors=by_words, weights=counts)
    monkeypatch.setattr(start_choice, "MOST_TEXTS", 80)
    clustered = []

    def record(*given: object, **named: object) -> ChosenStart:
        found = choose_among(*given, **named)  # type: ignore[arg-type]
        clustered.append(found)
        return found

    monkeypatch.setattr(start_choice, "choose_among", record)
    found = choose_start(texts, K, vectors=vectors, lexical_vectors=by_words, weights=counts)
    assert [len(each.labels) for each in clustered] == [80]
    assert len(found.labels) == len(truth)
    assert adjusted_rand_score(found.labels, whole.labels) == adjusted_rand_score(found.labels, truth) == 1
    assert found.lexical_share == whole.lexical_share == (0.25 if lexical else 0)
    for each, of_sample in zip(found.candidates, clustered[0].candidates, strict=True):
        assert len(each.labels) == len(truth)
        assert replace(each.clustering, labels=of_sample.labels).name == of_sample.name
        assert each.weight == of_sample.weight


def test_texts_outside_the_sample_follow_the_nearest_in_it(monkeypatch: pytest.MonkeyPatch) -> None:
    _, vectors = _classes(EVEN, 0.5)
    monkeypatch.setattr(start_choice, "MOST_TEXTS", 80)
    found = choose_start(None, K, vectors=vectors, seed=5)
    sampled = np.sort(np.random.default_rng(5).permutation(len(vectors))[:80])
    assert np.array_equal(found.labels, follow_nearest(vectors, sampled, found.labels[sampled]))
    alone = choose_among(build_graphs(vectors[sampled], None, K), K, np.ones(80), 5)
    assert np.array_equal(found.labels[sampled], alone.labels)


@pytest.mark.parametrize(("sizes", "spread"), [(EVEN, 0.25), (UNEVEN, 0.2)])
def test_of_clear_classes_every_seed_finds_the_same(sizes: tuple[int, ...], spread: float) -> None:
    truth, vectors = _classes(sizes, spread)
    first, *others = (choose_start(None, K, vectors=vectors, seed=seed).labels for seed in range(4))
    assert adjusted_rand_score(truth, first) > 0.9
    assert [adjusted_rand_score(first, each) for each in others] == [1, 1, 1]


def test_the_same_seed_gives_the_same_start() -> None:
    _, vectors = _classes(EVEN, 0.6)
    one, other = (choose_start(None, K, vectors=vectors, seed=3) for _ in range(2))
    assert [each.name for each in one.candidates] == [each.name for each in other.candidates]
    assert np.array_equal(one.labels, other.labels)


def test_the_order_of_the_texts_does_not_matter(uneven: tuple[Labels, ChosenStart]) -> None:
    _, vectors = _classes(UNEVEN, 0.15)
    order = np.random.default_rng(0).permutation(len(vectors))
    assert adjusted_rand_score(uneven[1].labels[order], choose_start(None, K, vectors=vectors[order]).labels) == 1


# --- Odd input ---


def test_texts_without_words_and_odd_numbers() -> None:
    truth, vectors = _classes((10, 10, 10, 10), 0.1)
    assert LexicalGraph.build(["?"] * len(truth)) is None
    assert adjusted_rand_score(truth, choose_start(["?"] * len(truth), K, vectors=vectors).labels) == 1
    with pytest.raises(SettingError, match="n_clusters"):
        choose_start(None, 1, vectors=vectors)
    with pytest.raises(InputError, match="nothing to choose"):
        choose_start(None, K, vectors=vectors[:5])


@pytest.mark.parametrize(("n", "k"), [(60, 5), (10, 8)])
def test_noise_gets_as_many_clusters(n: int, k: int) -> None:
    noise = np.random.default_rng(0).normal(size=(n, 20))
    assert sorted(set(choose_start(None, k, vectors=noise).labels.tolist())) == list(range(k))


def test_the_vectors_stay_as_they_are() -> None:
    _, vectors = _classes((10, 10, 10, 10), 0.3)
    _, lexical = _classes((10, 10, 10, 10), 0.3, seed=7)
    before = vectors.copy(), lexical.copy()
    choose_start(None, K, vectors=vectors, lexical_vectors=lexical)
    assert np.array_equal(vectors, before[0]) and np.array_equal(lexical, before[1])
