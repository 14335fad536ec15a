"""The targets of the default method: combined votes, their agreement, transport, and sampled neighbours."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import optimize, sparse

from coterie.methods.auto.targets import cohen_kappa, combine_votes, sample_neighbours, transport_targets
from coterie.selection.graph import normalise_rows, with_self_loops

Array = NDArray[np.float64]
Labels = NDArray[np.int64]


# --- Kappa ---


def _kappa(first: Labels, second: Labels, n_clusters: int) -> float:
    n = len(first)
    seen = sum(int(a == b) for a, b in zip(first, second, strict=True)) / n
    chance = sum((first == k).sum() / n * ((second == k).sum() / n) for k in range(n_clusters))
    return float((seen - chance) / (1 - chance))


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10**6), st.integers(2, 6), st.integers(2, 40))
def test_kappa_is_agreement_beyond_chance(seed: int, k: int, n: int) -> None:
    random = np.random.default_rng(seed)
    first, second = random.integers(k, size=n), random.integers(k, size=n)
    second = np.where(random.random(n) < random.random(), first, second)
    first[0], first[1] = 0, 1  # otherwise nothing is left to chance
    assert cohen_kappa(first, second, k) == pytest.approx(_kappa(first, second, k), abs=1e-9)


def test_kappa_by_hand() -> None:
    # Cohen's own kind of table: 20 and 15 on the diagonal, 5 and 10 beside it.
    first = np.repeat([0, 0, 1, 1], [20, 5, 10, 15])
    second = np.repeat([0, 1, 0, 1], [20, 5, 10, 15])
    assert cohen_kappa(first, second, 2) == pytest.approx(0.4)
    assert cohen_kappa(first, first, 2) == pytest.approx(1)
    assert cohen_kappa(np.array([0, 1] * 10), np.array([1, 0] * 10), 2) == pytest.approx(-1)


def test_kappa_of_nothing_is_nothing() -> None:
    none = np.zeros(0, dtype=np.int64)
    assert cohen_kappa(none, none, 3) == 0


def test_kappa_is_a_number_where_all_is_one_cluster() -> None:
    same = np.full(9, 2)
    assert -1 <= cohen_kappa(same, same, 4) <= 1


# --- Combined votes ---


def _graph(n: int, degree: int, random: np.random.Generator) -> Array:
    """Rows that add up to one, nobody being a neighbour of oneself."""
    dense = np.zeros((n, n))
    for i in range(n):
        others = random.permutation([j for j in range(n) if j != i])[:degree]
        dense[i, others] = random.dirichlet(np.ones(degree))
    return dense


def _combined_votes(shares: Array, semantic: Array, lexical: Array | None) -> tuple[Array, Array, float]:
    n, k = shares.shape

    def voted(graph: Array, i: int) -> list[float]:
        return [float(sum(graph[i, m] * shares[m, j] for m in range(n))) for j in range(k)]

    def floored(row: list[float]) -> list[float]:
        return [float(np.log((each + 0.01) / sum(other + 0.01 for other in row))) for each in row]

    by_meaning = [voted(semantic, i) for i in range(n)]
    logs = np.array([floored(row) for row in by_meaning])
    trust = np.ones(n)
    if lexical is None:
        return logs, trust, 0.0
    by_words = [voted(lexical, i) for i in range(n)]
    known = [i for i in range(n) if sum(by_words[i]) > 0]
    if not known:
        return logs, trust, 0.0
    first, second = (np.array([int(np.argmax(rows[i])) for i in known]) for rows in (by_meaning, by_words))
    agreement = max(0.0, _kappa(first, second, k))
    for i, a, b in zip(known, first, second, strict=True):
        logs[i] += agreement * np.array(floored(by_words[i]))
        trust[i] = 1 - agreement if a != b else 1.0
    return logs, trust, agreement


@pytest.mark.parametrize("seed", range(6))
def test_combined_votes_are_those_of_the_loops(seed: int) -> None:
    random = np.random.default_rng(seed)
    n, k = 40, 2 + seed % 3
    shares = random.dirichlet(np.full(k, 0.3), size=n)
    semantic = _graph(n, 5, random)
    lexical = _graph(n, 3, random) * 0.4 + semantic * 0.6
    lexical[random.random(n) < 0.3] = 0
    expected = _combined_votes(shares, semantic, lexical)
    logs, trust, agreement = combine_votes(shares, sparse.csr_matrix(semantic), sparse.csr_matrix(lexical))
    assert 0.05 < expected[2] < 0.95
    assert agreement == pytest.approx(expected[2], abs=1e-6)
    np.testing.assert_allclose(logs, expected[0], rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(trust, expected[1], rtol=1e-5, atol=1e-6)
    assert len(set(trust.round(6).tolist())) == 2


@pytest.mark.parametrize("lexical", [None, sparse.csr_matrix((20, 20))], ids=["none", "empty"])
def test_without_words_the_semantic_votes_decide(lexical: Any) -> None:
    random = np.random.default_rng(0)
    shares, semantic = random.dirichlet(np.ones(3), size=20), _graph(20, 4, random)
    logs, trust, agreement = combine_votes(shares, sparse.csr_matrix(semantic), lexical)
    np.testing.assert_allclose(logs, _combined_votes(shares, semantic, None)[0], rtol=1e-6, atol=1e-7)
    np.testing.assert_allclose(np.exp(logs).sum(axis=1), 1, rtol=1e-6)
    assert agreement == 0 and (trust == 1).all()


def _clustered(n: int, k: int, random: np.random.Generator) -> tuple[Labels, Array, Any]:
    """Sure shares, and neighbours of the same cluster."""
    labels = random.permutation(np.arange(n) % k)
    rows = np.repeat(np.arange(n), 4)
    columns = np.array([random.choice(np.flatnonzero(labels == labels[i])) for i in rows])
    return labels, np.eye(k)[labels], sparse.csr_matrix((np.full(len(rows), 0.25), (rows, columns)), shape=(n, n))


def test_unrelated_words_have_no_vote() -> None:
    random = np.random.default_rng(1)
    _, shares, semantic = _clustered(800, 4, random)
    lexical = sparse.csr_matrix((np.ones(800), (np.arange(800), random.integers(800, size=800))), shape=(800, 800))
    logs, trust, agreement = combine_votes(shares, semantic, lexical)
    assert 0 <= agreement < 0.1
    assert trust.min() > 0.9
    assert np.array_equal(logs.argmax(axis=1), (semantic @ shares).argmax(axis=1))


def test_words_that_contradict_count_for_nothing() -> None:
    random = np.random.default_rng(2)
    labels, shares, semantic = _clustered(60, 2, random)
    columns = np.array([random.choice(np.flatnonzero(labels != label)) for label in labels])
    lexical = sparse.csr_matrix((np.ones(60), (np.arange(60), columns)), shape=(60, 60))
    logs, trust, agreement = combine_votes(shares, semantic, lexical)
    assert agreement == 0 and (trust == 1).all()
    np.testing.assert_allclose(logs, combine_votes(shares, semantic, None)[0])


def test_words_that_agree_vote_with_full_weight() -> None:
    random = np.random.default_rng(3)
    _, shares, semantic = _clustered(60, 3, random)
    _, trust, agreement = combine_votes(shares, semantic, semantic)
    assert agreement == pytest.approx(1) and (trust == 1).all()
    logs = combine_votes(shares, semantic, semantic)[0]
    np.testing.assert_allclose(logs, 2 * combine_votes(shares, semantic, None)[0])


# --- Transport ---


def _wanted(n: int, k: int, seed: int, sharpness: float = 1.0) -> tuple[Array, Array]:
    """Logarithms of shares, more of them for the first clusters, and counts."""
    random = np.random.default_rng(seed)
    logs = np.log(random.dirichlet(np.linspace(2, 0.5, k), size=n) + 0.02) * sharpness
    return logs, random.integers(1, 6, size=n).astype(np.float64)


def _left_over(plan: Array, logs: Array, epsilon: float, slopes: Array | None) -> Array:
    """What is not constant over the columns of a row; without slopes, what no choice of them explains."""
    rest = epsilon * np.log(plan) - logs
    if slopes is not None:
        rest = rest - slopes
    rest = rest - rest.mean(axis=1, keepdims=True)
    return np.asarray(rest if slopes is not None else rest - rest.mean(axis=0))


def _solved(logs: Array, masses: Array, epsilon: float, size_penalty: float) -> Array:
    """The best plan by a general minimiser, over what each column is worth: the form of every entropic plan."""
    n, k = logs.shape

    def plan(worth: Array) -> Array:
        scores = (logs + np.append(worth, 0)) / epsilon
        scores = np.exp(scores - scores.max(axis=1, keepdims=True))
        return np.asarray(scores / scores.sum(axis=1, keepdims=True))

    def cost(worth: Array) -> float:
        total = 0.0
        p = plan(worth)
        for i in range(n):
            for j in range(k):
                if p[i, j] > 0:
                    total += masses[i] * p[i, j] * (epsilon * np.log(p[i, j]) - logs[i, j])
        for b in masses @ p:
            total += size_penalty / k * (-np.log(b) - np.log(1 - b))
        return float(total)

    options = {"xatol": 1e-8, "fatol": 1e-12, "maxiter": 2000}
    return plan(optimize.minimize(cost, np.zeros(k - 1), method="Nelder-Mead", options=options).x)


SETTINGS = [(0.5, 0.1), (0.2, 0.5), (1.0, 0.02), (0.1, 0.1)]


@pytest.mark.parametrize("sizes", ["free", "equal", "found"])
@pytest.mark.parametrize(("n", "k"), [(12, 2), (50, 5)])
def test_rows_of_the_transport_add_up_to_one(sizes: str, n: int, k: int) -> None:
    logs, counts = _wanted(n, k, seed=n)
    plan = transport_targets(logs, counts, sizes=sizes, epsilon=0.3, size_penalty=0.1)
    assert plan.shape == (n, k) and plan.dtype == np.float32
    assert plan.min() >= 0
    np.testing.assert_allclose(plan.sum(axis=1), 1, atol=1e-5)


@pytest.mark.parametrize("epsilon", [0.05, 0.3, 2.0])
def test_free_sizes_are_a_softmax(epsilon: float) -> None:
    logs, counts = _wanted(30, 4, seed=1)
    expected = np.array([[np.exp(x / epsilon) / sum(np.exp(y / epsilon) for y in row) for x in row] for row in logs])
    plan = transport_targets(logs, counts, sizes="free", epsilon=epsilon, size_penalty=0.1)
    np.testing.assert_allclose(plan, expected, atol=1e-6)


@pytest.mark.parametrize("epsilon", [0.1, 0.3, 1.0])
@pytest.mark.parametrize("k", [2, 5])
def test_equal_sizes_are_equal_by_counts(k: int, epsilon: float) -> None:
    logs, counts = _wanted(60, k, seed=2)
    plan = transport_targets(logs, counts, sizes="equal", epsilon=epsilon, size_penalty=0.1).astype(np.float64)
    np.testing.assert_allclose(counts / counts.sum() @ plan, 1 / k, atol=1e-3)
    assert np.abs(_left_over(plan, logs, epsilon, None)).max() < 1e-3


@pytest.mark.parametrize(("epsilon", "size_penalty"), SETTINGS)
@pytest.mark.parametrize("k", [2, 4])
def test_found_sizes_leave_nothing_to_gain(k: int, epsilon: float, size_penalty: float) -> None:
    logs, counts = _wanted(60, k, seed=3)
    plan = transport_targets(logs, counts, sizes="found", epsilon=epsilon, size_penalty=size_penalty).astype(np.float64)
    b = counts / counts.sum() @ plan
    slopes = size_penalty / k * (1 / b - 1 / (1 - b))
    assert np.abs(_left_over(plan, logs, epsilon, slopes)).max() < 5e-3


@pytest.mark.parametrize(("epsilon", "size_penalty"), SETTINGS[:2])
def test_found_sizes_are_those_of_a_general_minimiser(epsilon: float, size_penalty: float) -> None:
    logs, counts = _wanted(24, 3, seed=4)
    plan = transport_targets(logs, counts, sizes="found", epsilon=epsilon, size_penalty=size_penalty)
    np.testing.assert_allclose(plan, _solved(logs, counts / counts.sum(), epsilon, size_penalty), atol=2e-3)


def _skewed() -> tuple[Labels, Array, Array]:
    """A cluster 50 times another, one between, and one that nobody wants."""
    labels = np.repeat([0, 1, 2], [500, 10, 100])
    shares = np.eye(4)[labels] + 0.01
    noise = 0.1 * np.random.default_rng(0).normal(size=(610, 4))
    return labels, np.log(shares / shares.sum(axis=1, keepdims=True)) + noise, np.ones(610)


def test_found_sizes_stay_skewed_and_leave_no_cluster_empty() -> None:
    labels, logs, counts = _skewed()
    plan = transport_targets(logs, counts, sizes="found", epsilon=0.1, size_penalty=0.1)
    shares = plan.mean(axis=0)
    assert shares.min() > 1e-3
    assert shares[0] > 10 * shares[1] and 0.7 < shares[0] < 0.85
    assert (plan.argmax(axis=1) == labels).mean() > 0.95


@pytest.mark.parametrize("size_penalty", [100.0, 1e4])
def test_sizes_are_even_where_others_cost_too_much(size_penalty: float) -> None:
    _, logs, counts = _skewed()
    plan = transport_targets(logs, counts, sizes="found", epsilon=0.1, size_penalty=size_penalty)
    np.testing.assert_allclose(plan.mean(axis=0), 0.25, atol=0.02)


@pytest.mark.parametrize("sizes", ["free", "equal", "found"])
def test_a_text_that_occurs_three_times_is_three_texts_to_the_transport(sizes: str) -> None:
    logs, _ = _wanted(20, 3, seed=5)
    counts = np.ones(20)
    counts[4] = 3
    rows = [*range(20), 4, 4]
    once = transport_targets(logs, counts, sizes=sizes, epsilon=0.3, size_penalty=0.1)
    again = transport_targets(logs[rows], np.ones(22), sizes=sizes, epsilon=0.3, size_penalty=0.1)
    np.testing.assert_allclose(once, again[:20], atol=2e-3)
    whole = transport_targets(logs, counts.astype(np.int64), sizes=sizes, epsilon=0.3, size_penalty=0.1)
    np.testing.assert_allclose(whole, once, atol=1e-6)


# --- Neighbours ---


def _some_graphs(random: np.random.Generator, n: int, how_many: int) -> list[Any]:
    graphs = []
    for _ in range(how_many):
        dense = (random.random((n, n)) < 0.15) * random.random((n, n))
        graphs.append(sparse.csr_matrix(dense))
    return graphs


@pytest.mark.parametrize("how_many", [1, 2])
def test_every_allowed_neighbour_is_sampled_and_no_other(how_many: int) -> None:
    random = np.random.default_rng(how_many)
    n = 24
    labels = random.integers(3, size=n)
    graphs = _some_graphs(random, n, how_many)
    joined = [each.toarray() for each in graphs]
    allowed = []
    for i in range(n):
        own = {j for j in range(n) if j != i and labels[i] == labels[j] and any(each[i, j] != 0 for each in joined)}
        allowed.append(own or {i})
    assert max(map(len, allowed)) > 2 and any(each == {i} for i, each in enumerate(allowed))
    seen: list[set[int]] = [set() for _ in range(n)]
    for _ in range(300):
        drawn = sample_neighbours(graphs, labels, random)
        assert drawn.shape == (n,)
        for i, j in enumerate(drawn.tolist()):
            seen[i].add(j)
    assert seen == allowed


def test_a_zero_that_is_written_down_and_oneself_are_no_neighbours() -> None:
    graph = sparse.csr_matrix(([0.0, 1.0, 1.0, 0.0], ([0, 0, 1, 2], [1, 0, 2, 1])), shape=(3, 3))
    assert graph.nnz == 4
    random, labels = np.random.default_rng(0), np.zeros(3, dtype=np.int64)
    for _ in range(20):
        assert sample_neighbours([graph], labels, random).tolist() == [0, 2, 2]


def test_one_generator_one_sample() -> None:
    graphs = _some_graphs(np.random.default_rng(5), 40, 2)
    labels = np.arange(40) % 2
    first, second = (sample_neighbours(graphs, labels, np.random.default_rng(7)) for _ in range(2))
    assert np.array_equal(first, second)


def test_graphs_are_left_as_they_are() -> None:
    graphs = _some_graphs(np.random.default_rng(6), 20, 2)
    before = [each.toarray() for each in graphs]
    sample_neighbours(graphs, np.arange(20) % 2, np.random.default_rng(0))
    with_self_loops(graphs[0])
    assert all(np.array_equal(each.toarray(), old) for each, old in zip(graphs, before, strict=True))


# --- Graphs ---


@settings(max_examples=30, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 7), st.integers(0, 7)), min_size=1, max_size=30))
def test_rows_of_a_graph_add_up_to_one_or_are_empty(pairs: list[tuple[int, int]]) -> None:
    first, second = (np.array([pair[side] for pair in pairs], dtype=np.int64) for side in (0, 1))
    graph = normalise_rows(sparse.csr_matrix((np.full(len(first), 0.4), (first, second)), shape=(8, 8)))
    sums = np.asarray(graph.sum(axis=1)).ravel()
    named = np.isin(np.arange(8), first)
    np.testing.assert_allclose(sums[named], 1)
    assert (sums[~named] == 0).all()


def test_a_text_is_its_own_neighbour_too() -> None:
    dense = np.array([[0.0, 0.5, 0.5], [0.25, 0.75, 0.0], [0.0, 0.0, 0.0]])
    expected = dense.copy()
    for i in range(3):
        expected[i, i] += 1
        expected[i] /= expected[i].sum()
    np.testing.assert_allclose(with_self_loops(sparse.csr_matrix(dense)).toarray(), expected)
