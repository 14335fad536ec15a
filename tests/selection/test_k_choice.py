"""The number of clusters chosen without labels: on clouds of known number, and what is refused."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest
from conftest import topic_texts
from numpy.typing import NDArray
from sklearn.metrics import silhouette_score

from coterie import selection
from coterie.errors import InputError, SettingError
from coterie.metrics.internal.modularity import lexical_pairs, modularity, neighbour_information
from coterie.metrics.internal.silhouette import cosine_silhouette
from coterie.selection import ChosenK, choose_k, k_choice
from coterie.selection.k_choice import PENALTY
from coterie.selection.k_criteria import TreeCriteria
from coterie.selection.k_grid import geometric_grid, parse_range, refine_grid, resolve_range


def clouds(k: int, seed: int = 0, each: int = 50) -> NDArray[np.float64]:
    generator = np.random.default_rng(seed)
    return np.repeat(generator.normal(size=(k, 16)), each, axis=0) + generator.normal(scale=0.3, size=(k * each, 16))


def test_no_name_of_the_room_is_that_of_a_module() -> None:
    """Importing a module sets a name of its package, which would hide a function of the same name."""
    modules = {path.stem for path in Path(selection.__file__).parent.glob("*.py")}
    assert not modules & set(selection.__all__)


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("k", [3, 8, 20])
def test_clouds_are_counted(k: int, seed: int) -> None:
    found = choose_k(vectors=clouds(k, seed))
    assert abs(found.k - k) <= 1
    best = max(found.candidates, key=lambda each: each.score)
    assert best.k == found.k
    assert best.stability > 0.9
    assert not any("no clear clusters" in sentence for sentence in found.why)


def test_many_small_clouds_are_counted() -> None:
    """Modularity alone is nearly the same for 60 clusters and for half as many."""
    found = choose_k(vectors=clouds(60, each=12))
    assert 55 <= found.k <= 65
    by_k = {each.k: each for each in found.candidates}
    half = min(by_k, key=lambda k: abs(k - 30))
    assert by_k[found.k].neighbours - by_k[half].neighbours < 0.05
    assert by_k[found.k].information - by_k[half].information > 0.3


def test_one_cloud_is_noticed() -> None:
    found = choose_k(vectors=np.random.default_rng(0).normal(size=(300, 10)))
    assert any("no clear clusters" in sentence for sentence in found.why)
    assert abs(next(each.gap for each in found.candidates if each.k == found.k)) < 0.05


def test_the_same_seed_gives_the_same_choice() -> None:
    vectors = clouds(6, each=20) + np.random.default_rng(5).normal(scale=0.6, size=(120, 16))
    assert _as_json(choose_k(vectors=vectors, seed=3)) == _as_json(choose_k(vectors=vectors, seed=3))
    assert _as_json(choose_k(vectors=vectors, seed=3)) != _as_json(choose_k(vectors=vectors, seed=4))


def test_without_a_sample_the_seed_does_not_matter() -> None:
    texts, _ = topic_texts(90)
    vectors = np.random.default_rng(1).normal(size=(90, 6))
    scores = [
        [(each.k, each.score) for each in choose_k(texts, vectors=vectors, seed=seed).candidates] for seed in (0, 7)
    ]
    assert scores[0] == scores[1]


def _as_json(found: ChosenK) -> str:
    return json.dumps(found.to_dict(), allow_nan=False)


def test_candidates_stay_in_the_range_given() -> None:
    found = choose_k(vectors=clouds(8), k_range=(2, 5))
    assert [each.k for each in found.candidates] == [2, 3, 4, 5]
    assert found.k == 5
    assert any("end of the range" in sentence for sentence in found.why)
    assert choose_k(vectors=clouds(8), k_range=(6, 40)).k == 8


def test_words_count_where_there_are_texts() -> None:
    texts, names = topic_texts(90)
    points = {"parcel": (1, 0, 0), "password": (0, 1, 0), "refund": (0, 0, 1)}
    vectors = np.array([points[name] for name in names], dtype=float)
    vectors += np.random.default_rng(0).normal(scale=0.05, size=vectors.shape)
    with_texts, without = choose_k(texts, vectors=vectors), choose_k(vectors=vectors)
    assert with_texts.k == without.k == 3
    (best,) = [each for each in with_texts.candidates if each.k == 3]
    assert best.words > 0.2
    assert best.score == pytest.approx(best.information + best.neighbours - PENALTY * math.log(3))
    assert with_texts.to_dict()["weights"] == {"information": 1.0, "neighbours": 1.0}
    assert all(math.isnan(each.words) for each in without.candidates)
    assert without.to_dict()["candidates"][0]["words"] is None


def test_repeated_and_empty_texts_change_nothing() -> None:
    texts, _ = topic_texts(60)
    vectors = clouds(3, each=20)[:60]
    once = choose_k(texts, vectors=vectors)
    again = choose_k([*texts, "", texts[0]], vectors=np.vstack([vectors, vectors[:1], vectors[:1]]))
    assert (again.k, again.candidates, again.n_texts) == (once.k, once.candidates, 60)


def test_the_encoder_is_used_where_no_vectors_are_given(tiny_encoder: object) -> None:
    found = choose_k(topic_texts(40)[0], encoder=str(tiny_encoder), device="cpu")
    assert found.looked_at == found.n_texts == 40
    assert 2 <= found.k <= found.highest == 19


@pytest.mark.parametrize(
    ("vectors", "k_range", "error", "words"),
    [
        (np.eye(3), None, InputError, "3 distinct texts"),
        (np.ones((50, 4)), None, InputError, "1 distinct texts"),
        (clouds(3), (5, 80), SettingError, "at most 75 clusters"),
        (clouds(3), (9, 4), SettingError, "must be below"),
        (clouds(3), (4, 4), SettingError, "must be below"),
        (clouds(3), (1, 4), SettingError, "lowest number of clusters is 2"),
        (np.full((20, 3), np.nan), None, InputError, "finite"),
        ([["a", "b"]] * 20, None, InputError, "table of numbers"),
        (np.zeros(20), None, InputError, "one row per text"),
        (None, None, InputError, "give texts"),
    ],
)
def test_what_cannot_be_chosen_from(
    vectors: object, k_range: tuple[int, int] | None, error: type[Exception], words: str
) -> None:
    with pytest.raises(error, match=words) as caught:
        choose_k(vectors=vectors, k_range=k_range)
    assert "\n" not in str(caught.value)


def test_texts_of_one_vector_and_equal_texts() -> None:
    texts, _ = topic_texts(40)
    with pytest.raises(InputError, match="the same vector"):
        choose_k(texts, vectors=np.ones((40, 5)))
    with pytest.raises(InputError, match="from 1 distinct texts"):
        choose_k(["the same"] * 40)


@pytest.mark.parametrize("given", ["5", "a-b", "5-", "5-60-70", "-5-60", ""])
def test_a_range_that_cannot_be_read(given: str) -> None:
    with pytest.raises(SettingError, match="A-B"):
        parse_range(given)


def test_ranges() -> None:
    assert parse_range(" 5 - 60 ") == (5, 60)
    assert resolve_range(None, 10, 10) == (2, 5)
    assert resolve_range(None, 900, 900) == (2, 90)
    assert resolve_range(None, 1_000_000, 4_000) == (2, 200)
    tried = geometric_grid(2, 200)
    assert tried[0] == 2 and tried[-1] == 200 and tried == sorted(set(tried))
    more = refine_grid(tried[-3], tried)
    assert len(more) == 8 and not set(more) & set(tried)
    assert tried[-4] < min(more) and max(more) < tried[-2]
    assert refine_grid(2, tried) == []


# --- The criteria themselves ---


def test_the_silhouette_is_scikit_learns() -> None:
    vectors = np.random.default_rng(0).normal(size=(80, 6)).astype(np.float32)
    units = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    labels = np.random.default_rng(1).integers(0, 5, 80)
    labels[0] = 5  # alone in its cluster
    assert cosine_silhouette(units, labels) == pytest.approx(silhouette_score(units, labels, metric="cosine"), abs=1e-5)


def test_modularity_by_hand() -> None:
    labels = np.array([0, 0, 1, 1])
    first, second = np.array([0, 1, 2, 3]), np.array([1, 0, 3, 0])
    # Three of four together; starts are half and half, ends three quarters and one.
    assert modularity(labels, first, second) == pytest.approx(3 / 4 - (0.5 * 0.75 + 0.5 * 0.25))
    assert modularity(np.zeros(4, dtype=np.int64), first, second) == 0
    assert math.isnan(modularity(labels, first[:0], second[:0]))


def test_neighbour_information_by_hand() -> None:
    near = np.array([[1], [0], [3], [0]])
    # Three of four neighbours in one cluster, where half are expected by chance.
    expected = 0.75 * math.log(0.75 / 0.5) + 0.25 * math.log(0.25 / 0.5)
    assert neighbour_information(np.array([0, 0, 1, 1]), near) == pytest.approx(expected)
    assert neighbour_information(np.zeros(4, dtype=np.int64), near) == 0
    assert neighbour_information(np.array([0, 1, 0, 1]), near) == 0  # fewer together than by chance
    # Of clusters found exactly, the information is the logarithm of their number.
    labels = np.repeat(np.arange(5), 20)
    inside = np.array(
        [[other for other in range(100) if labels[other] == labels[row] and other != row][:10] for row in range(100)]
    )
    assert neighbour_information(labels, inside) == pytest.approx(math.log(5))
    assert neighbour_information(labels // 2, inside) < math.log(5)


def test_only_as_many_neighbours_count_as_a_small_cluster_has() -> None:
    labels = np.repeat(np.arange(2), [4, 36])
    # The first three of ten neighbours are in the cluster; of a cluster of four texts, only three count.
    near = np.array([[other for other in range(4) if other != row] + [*range(4, 11)] for row in range(4)])
    near = np.vstack([near, [[other for other in range(4, 40) if other != row][:10] for row in range(4, 40)]])
    chance = (4 / 40) ** 2 + (36 / 40) ** 2
    assert neighbour_information(labels, near) == pytest.approx(-math.log(chance))


def test_texts_without_a_common_word_are_no_neighbours() -> None:
    first, second = lexical_pairs(["late parcel", "parcel lost", "reset password", "nothing shared here"])
    assert set(zip(first.tolist(), second.tolist(), strict=True)) == {(0, 1), (1, 0)}
    assert len(lexical_pairs(["?", "!", "a"])[0]) == 0


def test_stability_falls_where_there_is_nothing_to_find() -> None:
    criteria = TreeCriteria(clouds(4), None, 0)
    assert criteria.compute(4)["stability"] > 0.99
    assert criteria.compute(30)["stability"] < 0.7
    assert criteria.compute(4)["gap"] > criteria.compute(2)["gap"]
    assert len(np.unique(criteria.labels(4))) == 4


def test_many_given_vectors_are_sampled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(k_choice, "SAMPLE_SIZE", 20)
    vectors = np.random.default_rng(0).normal(size=(50, 4)).astype(np.float32)
    rows, n_texts = k_choice._sample_vectors(np.concatenate([vectors, vectors]), seed=0)
    assert rows.shape == (20, 4) and n_texts == 50
    assert len(np.unique(rows, axis=0)) == 20
    again, _ = k_choice._sample_vectors(vectors, seed=0)
    other, _ = k_choice._sample_vectors(vectors, seed=1)
    assert np.array_equal(rows, again) and not np.array_equal(rows, other)
