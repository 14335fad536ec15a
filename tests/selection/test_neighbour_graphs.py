"""Neighbour graphs: the semantic and the lexical one by loops, the weight of the lexical one by hand, subsets."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import sparse

from coterie.selection.graph import neighbour_graph
from coterie.selection.neighbour_graphs import LexicalGraph, NeighbourGraphs, build_graphs

K = 4
Array = NDArray[np.float64]
Labels = NDArray[np.int64]
FILLERS = ["please", "still", "again", "today", "why"]


def _bundles(n: int = 30, spread: float = 0.1, seed: int = 0, above: float = 0.0) -> tuple[Labels, Array]:
    """Bundles in as many directions, of vectors of any length; all cosines in one more direction where asked."""
    random = np.random.default_rng([seed, 1])
    truth = random.permutation(np.repeat(np.arange(K), n))
    vectors = np.eye(K, 12)[truth] + random.normal(scale=spread, size=(len(truth), 12))
    vectors[:, -1] += above
    return truth, vectors * random.uniform(0.5, 3, size=(len(truth), 1))


def _texts(labels: Labels, seed: int = 0) -> list[str]:
    """Four of seven words of a cluster alone."""
    random = np.random.default_rng([seed, 2])
    return [" ".join(f"{'abcdefgh'[k]}word{w}" for w in random.permutation(7)[:4]) for k in labels]


def _cosines(vectors: Array) -> Array:
    wide = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    cosines = wide @ wide.T
    np.fill_diagonal(cosines, -np.inf)
    return np.asarray(cosines)


def _order(vectors: Array, count: int) -> list[list[int]]:
    """The nearest others of each row."""
    cosines = _cosines(vectors)
    return [sorted(range(len(vectors)), key=lambda j, i=i: -cosines[i, j])[:count] for i in range(len(vectors))]


def _semantic(vectors: Array, count: int) -> Array:
    """The graph by loops: widths by bisection, weights of the two sides put together."""
    cosines, order = _cosines(vectors), _order(vectors, count)
    named = np.zeros_like(cosines)
    for i, row in enumerate(order):
        distances = [1 - cosines[i, j] for j in row]
        low, high = 1e-9, 100.0
        for _ in range(200):
            width = (low + high) / 2
            total = sum(np.exp(-(each - distances[0]) / width) for each in distances)
            low, high = (low, width) if total > np.log2(count) else (width, high)
        for j, distance in zip(row, distances, strict=True):
            named[i, j] = np.exp(-(distance - distances[0]) / width)
    return np.asarray(named + named.T - named * named.T)


def _modularity(labels: Labels, first: Labels, second: Labels) -> float:
    """The share of pairs in one cluster, less what chance would give."""
    pairs = [(int(labels[i]), int(labels[j])) for i, j in zip(first, second, strict=True)]
    total = sum(a == b for a, b in pairs) / len(pairs)
    for k in set(labels.tolist()):
        total -= sum(a == k for a, _ in pairs) / len(pairs) * (sum(b == k for _, b in pairs) / len(pairs))
    return total


def _weight(labels: Labels, words: LexicalGraph, graphs: NeighbourGraphs) -> float:
    ratio = _modularity(labels, *words.pairs) / _modularity(labels, *graphs.semantic_pairs)
    return min(max(ratio, 0.0), 1.0)


def _words(text: str) -> set[str]:
    return set(re.findall(r"\b\w\w+\b", text.lower()))


def _dense(graph: Any) -> Array:
    assert sparse.issparse(graph)
    return np.asarray(graph.toarray())


def _made(texts: list[str]) -> LexicalGraph:
    words = LexicalGraph.build(texts)
    assert words is not None
    return words


def _lexical_neighbours(words: LexicalGraph) -> dict[int, set[int]]:
    found: dict[int, set[int]] = {}
    for i, j in zip(*words.pairs, strict=True):
        assert int(j) not in found.setdefault(int(i), set())
        found[int(i)].add(int(j))
    return found


# --- The graph ---


def test_texts_with_nothing_in_common_are_no_neighbours() -> None:
    rows = np.array([[1, 2, 3], [0, 2, 3], [0, 1, 3], [2, 1, 0]])
    cosines = np.array([[0.9, 0.2, 0.0], [0.9, 0.0, -0.5], [0.2, 0.0, -0.3], [-0.3, -0.5, -0.5]])
    graph = _dense(neighbour_graph(rows, cosines))
    assert np.isfinite(graph).all()
    assert np.array_equal(graph, graph.T)
    assert (graph > 0).tolist() == [
        [False, True, True, False],
        [True, False, False, False],
        [True, False, False, False],
        [False, False, False, False],
    ]


@pytest.mark.parametrize("seed", range(3))
def test_only_positive_cosines_make_neighbours(seed: int) -> None:
    vectors = np.random.default_rng(seed).normal(size=(20, 3))
    cosines, order = _cosines(vectors), _order(vectors, 15)
    graph = _dense(neighbour_graph(np.array(order), np.array([cosines[i, row] for i, row in enumerate(order)])))
    named = np.array([[j in row or i in order[j] for j in range(20)] for i, row in enumerate(order)])
    assert (named & (cosines <= 0)).any()
    assert np.array_equal(graph > 0, named & (cosines > 0))


def test_a_graph_of_texts_that_are_all_opposite_is_empty() -> None:
    graph = neighbour_graph(np.array([[1], [0]]), np.array([[-1.0], [-1.0]]))
    assert not _dense(graph).any()


# --- The semantic graph ---


def test_the_semantic_graph_is_that_of_the_loops() -> None:
    _, vectors = _bundles(12, spread=0.25, above=1.0)
    assert (np.sort(_cosines(vectors), axis=1)[:, -15:] > 0).all()
    graphs = build_graphs(vectors)
    np.testing.assert_allclose(_dense(graphs.semantic_graph), _semantic(vectors, 15), atol=1e-3)
    assert np.array_equal(graphs.nearest_rows, _order(vectors, 10))
    assert graphs.units.dtype == np.float32
    np.testing.assert_allclose(graphs.units, vectors / np.linalg.norm(vectors, axis=1, keepdims=True), atol=1e-6)


def test_without_words_the_combined_graph_is_the_semantic_one() -> None:
    _, vectors = _bundles(10)
    graphs = build_graphs(vectors)
    assert graphs.lexical is None
    assert np.array_equal(_dense(graphs.combined), _dense(graphs.semantic_graph))


def test_pairs_are_each_text_and_its_nearest() -> None:
    _, vectors = _bundles(6)
    first, second = build_graphs(vectors).semantic_pairs
    expected = [(i, j) for i, row in enumerate(_order(vectors, 10)) for j in row]
    assert sorted(zip(first.tolist(), second.tolist(), strict=True)) == sorted(expected)


@pytest.mark.parametrize("n", [2, 3, 8, 12])
def test_few_texts_are_all_neighbours(n: int) -> None:
    vectors = _bundles(10, above=2.0)[1][:n]
    graphs = build_graphs(vectors)
    assert graphs.nearest_rows.shape == (n, min(10, n - 1))
    assert np.array_equal(_dense(graphs.semantic_graph) > 0, ~np.eye(n, dtype=bool))


# --- The lexical graph ---


def test_lexical_neighbours_share_a_word() -> None:
    texts = ["late parcel", "parcel again", "Parcel, late!", "refund a", "a refund", "lonely a", "?"]
    assert _lexical_neighbours(_made(texts)) == {0: {1, 2}, 1: {0, 2}, 2: {0, 1}, 3: {4}, 4: {3}}


def test_lexical_neighbours_are_the_five_nearest() -> None:
    # The first shares two words with five others, and one word with all.
    texts = ["late parcel today"] + ["late parcel"] * 5 + [f"today number{i} other{i} more{i}" for i in range(10)]
    assert _lexical_neighbours(_made(texts))[0] == {1, 2, 3, 4, 5}


def test_a_rare_word_is_worth_more_than_a_common_one() -> None:
    texts = ["rare common"] + ["rare filler"] * 5 + ["common filler"] * 30
    assert _lexical_neighbours(_made(texts))[0] == {1, 2, 3, 4, 5}


def test_at_most_five_are_lexical_neighbours_and_all_share_a_word() -> None:
    random = np.random.default_rng(0)
    texts = [" ".join(f"word{w}" for w in random.integers(70, size=3)) for _ in range(60)]
    sharing = {i: {j for j in range(60) if j != i and _words(texts[i]) & _words(texts[j])} for i in range(60)}
    near = _lexical_neighbours(_made(texts))
    for i in range(60):
        assert near.get(i, set()) <= sharing[i]
        assert len(near.get(i, set())) == min(5, len(sharing[i]))
    assert min(map(len, sharing.values())) < 5 < max(map(len, sharing.values()))


def test_the_lexical_graph_joins_texts_that_share_a_word() -> None:
    random = np.random.default_rng(1)
    texts = [" ".join(f"word{w}" for w in random.integers(60, size=3)) for _ in range(40)] + ["?", "nobody else"]
    graph = _dense(_made(texts).graph)
    sharing = np.array([[bool(_words(a) & _words(b)) for b in texts] for a in texts]) & ~np.eye(42, dtype=bool)
    np.testing.assert_allclose(graph, graph.T, atol=1e-12)
    assert graph.min() >= 0 and not graph[~sharing].any()
    assert np.array_equal(graph.any(axis=1), sharing.any(axis=1))
    assert not graph[40:].any()


@pytest.mark.parametrize(
    "texts", [["one two", "three four"], ["one text"], ["?", "!"], ["a", "a"]], ids=["apart", "one", "none", "letters"]
)
def test_without_a_shared_word_there_is_no_lexical_graph(texts: list[str]) -> None:
    assert LexicalGraph.build(texts) is None


# --- The weight of the lexical graph ---


def _mixed(labels: Labels, share: float, seed: int) -> list[str]:
    """Words of the cluster for some, of any cluster for the others."""
    random = np.random.default_rng([seed, 3])
    return _texts(np.where(random.random(len(labels)) < share, labels, random.integers(K, size=len(labels))), seed)


@pytest.mark.parametrize("share", [0.3, 0.6, 0.9])
def test_the_lexical_weight_is_that_of_the_loops(share: float) -> None:
    truth, vectors = _bundles(25)
    words = _made(_mixed(truth, share, seed=1))
    graphs = build_graphs(vectors, words, K, labels=truth)
    assert 0.02 < graphs.lexical_weight < 0.98
    assert graphs.lexical_weight == pytest.approx(_weight(truth, words, graphs), abs=1e-9)
    expected = _dense(graphs.semantic_graph) + graphs.lexical_weight * _dense(words.graph)
    np.testing.assert_allclose(_dense(graphs.combined), expected, atol=1e-9)


def test_the_weight_comes_from_the_given_labels() -> None:
    truth, vectors = _bundles(25, spread=0.4)
    words = _made(_mixed(truth, 0.7, seed=2))
    others = np.where(np.arange(len(truth)) % 3, truth, 0)
    for labels in (truth, others, truth // 2):
        graphs = build_graphs(vectors, words, K, labels=labels)
        assert graphs.lexical_weight == pytest.approx(_weight(labels, words, graphs), abs=1e-9)


def test_the_lexical_weight_by_hand() -> None:
    # Two bundles of twelve; a text and the one twelve rows on share a word: never of one bundle.
    labels = np.repeat([0, 1], 12)
    vectors = np.eye(2, 3)[labels] + np.random.default_rng(0).normal(scale=0.01, size=(24, 3))
    against = _made([f"word{i % 12}" for i in range(24)])
    assert build_graphs(vectors, against, 2, labels=labels).lexical_weight == 0
    # Semantic pairs are all in one cluster, 1 - 1/2; of words 16 of 24, with both sides even: 2/3 - 1/2.
    partners = [
        (0, 1),
        (2, 3),
        (4, 5),
        (6, 7),
        (12, 13),
        (14, 15),
        (16, 17),
        (18, 19),
        *((i, i + 12) for i in range(8, 12)),
    ]
    texts = [""] * 24
    for number, (one, other) in enumerate(partners):
        texts[one] = texts[other] = f"word{number}"
    assert build_graphs(vectors, _made(texts), 2, labels=labels).lexical_weight == pytest.approx(1 / 3, abs=1e-9)


@pytest.mark.parametrize("given", [True, False], ids=["given labels", "labels of its own"])
def test_words_that_agree_with_the_clusters_have_the_full_weight(given: bool) -> None:
    truth, vectors = _bundles()
    graphs = build_graphs(vectors, _made(_texts(truth)), K, labels=truth if given else None)
    assert graphs.lexical_weight > 0.97


@pytest.mark.parametrize("given", [True, False], ids=["given labels", "labels of its own"])
@pytest.mark.parametrize("seed", [0, 1])
def test_unrelated_words_have_no_weight(seed: int, given: bool) -> None:
    truth, vectors = _bundles(60)
    words = _made(_texts(np.random.default_rng([seed, 4]).permutation(truth), seed))
    graphs = build_graphs(vectors, words, K, labels=truth if given else None)
    assert 0 <= graphs.lexical_weight < 0.12


def test_without_words_there_is_no_lexical_weight() -> None:
    truth, vectors = _bundles(10)
    graphs = build_graphs(vectors, None, K, labels=truth)
    assert graphs.lexical is None and np.array_equal(_dense(graphs.combined), _dense(graphs.semantic_graph))


def test_the_same_seed_gives_the_same_graphs() -> None:
    truth, vectors = _bundles(20, spread=0.5)
    words = _made(_mixed(truth, 0.6, seed=3))
    one, other = (build_graphs(vectors, words, K, seed=5) for _ in range(2))
    assert one.lexical_weight == other.lexical_weight
    assert np.array_equal(_dense(one.combined), _dense(other.combined))


def test_vectors_are_not_changed() -> None:
    _, vectors = _bundles(10)
    single = vectors.astype(np.float32)
    before = single.copy()
    build_graphs(single)
    assert np.array_equal(single, before)


# --- Subsets ---


def test_a_shared_direction_does_not_change_the_centred_graph() -> None:
    labels, vectors = _bundles(above=0.5)
    shared = 5 * np.eye(vectors.shape[1])[0]
    lexical = _made(_texts(labels))
    graphs, centred = (build_graphs(each, lexical) for each in (vectors + shared, vectors - vectors.mean(axis=0)))
    found = graphs.centre(2, seed=0)
    np.testing.assert_allclose(np.linalg.norm(found.units, axis=1), 1, atol=1e-6)
    assert found.lexical is lexical
    # Rows of length one were centred, so that neighbours are nearly those without the direction.
    same = np.mean([len(set(a) & set(b)) for a, b in zip(found.nearest_rows, centred.nearest_rows, strict=True)])
    assert same > 0.75 * centred.nearest_rows.shape[1]
    assert np.linalg.norm(graphs.units.mean(axis=0)) > 0.9 > 0.3 > np.linalg.norm(found.units.mean(axis=0))


def test_a_subset_is_the_graph_of_its_rows() -> None:
    truth, vectors = _bundles(20, spread=0.3)
    texts = _mixed(truth, 0.7, seed=4)
    graphs = build_graphs(vectors, _made(texts), K, labels=truth)
    rows = np.random.default_rng(0).permutation(len(truth))[:30]
    part, alone = graphs.subset(rows), build_graphs(vectors[rows])
    assert part.lexical_weight == graphs.lexical_weight
    assert np.array_equal(part.units, graphs.units[rows])
    assert np.array_equal(part.nearest_rows, _order(vectors[rows], 10))
    np.testing.assert_allclose(_dense(part.semantic_graph), _dense(alone.semantic_graph), atol=1e-5)
    assert part.lexical is not None
    expected = _dense(part.semantic_graph) + graphs.lexical_weight * _dense(part.lexical.graph)
    np.testing.assert_allclose(_dense(part.combined), expected, atol=1e-9)
    first, second = part.semantic_pairs
    assert sorted(zip(first.tolist(), second.tolist(), strict=True)) == sorted(
        (i, j) for i, row in enumerate(_order(vectors[rows], 10)) for j in row
    )


def test_a_subset_without_words_has_none() -> None:
    _, vectors = _bundles(10)
    part = build_graphs(vectors).subset(np.arange(15))
    assert part.lexical is None and np.array_equal(_dense(part.combined), _dense(part.semantic_graph))


def test_a_subset_of_all_rows_is_the_whole_in_their_order() -> None:
    truth, vectors = _bundles(10, spread=0.3)
    graphs = build_graphs(vectors, _made(_texts(truth)), K, labels=truth)
    order = np.random.default_rng(1).permutation(len(truth))
    part = graphs.subset(order)
    np.testing.assert_allclose(
        _dense(part.semantic_graph), _dense(graphs.semantic_graph)[np.ix_(order, order)], atol=1e-5
    )
    assert np.array_equal(order[part.nearest_rows], graphs.nearest_rows[order])


def test_lexical_neighbours_of_a_subset_are_in_it() -> None:
    random = np.random.default_rng(2)
    texts = [" ".join(f"word{w}" for w in random.integers(40, size=3)) for _ in range(60)]
    rows = random.permutation(60)[:25]
    part = _made(texts).subset(rows)
    assert part is not None
    own = [texts[i] for i in rows]
    sharing = {i: {j for j in range(25) if j != i and _words(own[i]) & _words(own[j])} for i in range(25)}
    near = _lexical_neighbours(part)
    for i in range(25):
        assert near.get(i, set()) <= sharing[i]
        assert len(near.get(i, set())) == min(5, len(sharing[i]))
    graph = _dense(part.graph)
    assert graph.shape == (25, 25) and np.array_equal(graph.any(axis=1), [bool(sharing[i]) for i in range(25)])


def test_a_subset_without_a_shared_word_has_no_lexical_graph() -> None:
    truth, vectors = _bundles(5)
    texts = [f"word{i // 2}" for i in range(20)]
    words = _made(texts)
    rows = np.arange(0, 20, 2)
    assert words.subset(rows) is None
    part = build_graphs(vectors, words, K, labels=truth).subset(rows)
    assert part.lexical is None and np.array_equal(_dense(part.combined), _dense(part.semantic_graph))


def test_lexical_tables_have_one_row_per_text() -> None:
    truth, _ = _bundles(10)
    words = _made([*_texts(truth), "?"])
    assert words.word_presence.shape[0] == words.tfidf.shape[0] == words.graph.shape[0] == 41
    part = words.subset(np.array([3, 1, 7, 40]))
    assert part is not None and part.word_presence.shape[0] == part.tfidf.shape[0] == part.graph.shape[0] == 4


def test_the_lexical_graph_never_weighs_more_than_the_semantic_one() -> None:
    """A partition that words support and vectors do not: its lexical modularity is many times the semantic one."""
    labels = np.arange(30) % 3
    vectors = np.random.default_rng(0).normal(size=(30, 8)).astype(np.float32)
    graphs = build_graphs(vectors, LexicalGraph.build(_texts(labels)), 3, labels=labels)
    assert graphs.lexical_weight == 1.0
