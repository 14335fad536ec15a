"""External measures against scikit-learn and brute-force versions."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Hashable, Sequence
from dataclasses import FrozenInstanceError
from itertools import permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import adjusted_rand_score, normalized_mutual_info_score

import coterie.metrics.external
from coterie.errors import InputError, SettingError
from coterie.metrics.external.scores import Scores, accuracy, ari, evaluate, n_nonempty, nmi, purity

MEASURES = (accuracy, nmi, ari, purity)

label_pairs = st.lists(st.tuples(st.integers(0, 3), st.integers(-1, 4)), min_size=1, max_size=30)


def accuracy_by_trying_all(true: Sequence[Hashable], pred: Sequence[Hashable]) -> float:
    """Give classes to clusters in every possible way and keep the best share of right rows."""
    clusters = sorted({label for label in pred if label != -1}, key=str)
    # None stands for "no class", so that any cluster may stay without one.
    classes: list[Hashable] = [*sorted(set(true), key=str), *[None] * len(clusters)]
    best = 0
    for given_classes in permutations(range(len(classes)), len(clusters)):
        class_of = {cluster: classes[i] for cluster, i in zip(clusters, given_classes, strict=True)}
        right = sum(label != -1 and class_of[label] == t for t, label in zip(true, pred, strict=True))
        best = max(best, right)
    return best / len(true)


def purity_by_loop(true: Sequence[Hashable], pred: Sequence[Hashable]) -> float:
    right = 0
    for cluster in set(pred) - {-1}:
        members = [t for t, label in zip(true, pred, strict=True) if label == cluster]
        right += Counter(members).most_common(1)[0][1]
    return right / len(true)


@pytest.mark.parametrize("measure", MEASURES)
def test_perfect_is_one_whatever_the_names(measure):
    true = ["sport", "sport", "law", "law", "music"]
    assert measure(true, [7, 7, 0, 0, 3]) == pytest.approx(1.0, abs=1e-12)
    assert measure([7, 7, 0, 0, 3], true) == pytest.approx(1.0, abs=1e-12)


def test_hand_made_case():
    true = ["a", "a", "a", "b", "b", "c"]
    pred = [0, 0, 1, 1, 1, 1]
    assert accuracy(true, pred) == pytest.approx(4 / 6)
    assert purity(true, pred) == pytest.approx(4 / 6)
    # Entropies by hand: H(true), H(pred) and I = H(pred) - H(pred | true).
    h_true = -(3 / 6 * math.log(3 / 6) + 2 / 6 * math.log(2 / 6) + 1 / 6 * math.log(1 / 6))
    h_pred = -(2 / 6 * math.log(2 / 6) + 4 / 6 * math.log(4 / 6))
    information = h_pred - 3 / 6 * -(2 / 3 * math.log(2 / 3) + 1 / 3 * math.log(1 / 3))
    assert nmi(true, pred) == pytest.approx(information / ((h_true + h_pred) / 2))
    assert nmi(true, pred, average="geometric") == pytest.approx(information / math.sqrt(h_true * h_pred))
    # Pairs: 2 together in both, 4 together in true, 7 together in pred, 15 in all.
    expected = 4 * 7 / 15
    assert ari(true, pred) == pytest.approx((2 - expected) / ((4 + 7) / 2 - expected))


def test_more_clusters_than_classes_leaves_clusters_without_class():
    assert accuracy([0, 0, 0, 0, 1, 1], [0, 0, 1, 2, 3, 3]) == pytest.approx(4 / 6)
    assert purity([0, 0, 0, 0, 1, 1], [0, 0, 1, 2, 3, 3]) == 1.0


def test_fewer_clusters_than_classes():
    assert accuracy(["a", "b", "c", "c"], [0, 0, 0, 0]) == 0.5
    assert purity(["a", "b", "c", "c"], [0, 0, 0, 0]) == 0.5


def test_matching_is_optimal_where_greedy_is_not():
    # Greedy gives cluster 0 to class a (5 rows) and is left with 0 of class b in cluster 1: 5 of 13.
    true = ["a"] * 5 + ["b"] * 4 + ["a"] * 4
    pred = [0] * 5 + [0] * 4 + [1] * 4
    assert accuracy(true, pred) == pytest.approx(8 / 13)


@settings(max_examples=60, deadline=None)
@given(label_pairs)
def test_against_brute_force_and_sklearn(pairs):
    true, pred = [t for t, _ in pairs], [p for _, p in pairs]
    assert accuracy(true, pred) == pytest.approx(accuracy_by_trying_all(true, pred))
    assert purity(true, pred) == pytest.approx(purity_by_loop(true, pred))
    assert ari(true, pred) == pytest.approx(adjusted_rand_score(true, pred), abs=1e-12)
    for average in ("arithmetic", "geometric"):
        reference = normalized_mutual_info_score(true, pred, average_method=average)
        assert nmi(true, pred, average=average) == pytest.approx(reference, abs=1e-12)


@settings(max_examples=50, deadline=None)
@given(label_pairs, st.permutations(range(5)), st.randoms(use_true_random=False))
def test_names_and_order_of_rows_do_not_matter(pairs, new_name, random):
    shuffled = list(pairs)
    random.shuffle(shuffled)
    renamed_true = [f"class {t}" for t, _ in shuffled]
    renamed_pred = [-1 if p == -1 else new_name[p] for _, p in shuffled]
    before = evaluate([t for t, _ in pairs], [p for _, p in pairs]).to_dict()
    assert evaluate(renamed_true, renamed_pred).to_dict() == pytest.approx(before, abs=1e-12)


@settings(max_examples=50, deadline=None)
@given(label_pairs)
def test_ranges_and_order_of_measures(pairs):
    scores = evaluate([t for t, _ in pairs], [p for _, p in pairs])
    assert 0.0 <= scores.accuracy <= scores.purity <= 1.0
    assert 0.0 <= scores.nmi <= scores.nmi_geometric + 1e-12 <= 1.0 + 1e-12
    assert -1.0 <= scores.ari <= 1.0


def test_larger_random_case():
    generator = np.random.default_rng(3)
    true = generator.integers(0, 20, 2000)
    pred = np.where(generator.random(2000) < 0.6, (true * 7 + 3) % 20, generator.integers(0, 31, 2000))
    scores = evaluate(true, pred)
    right = np.mean(pred == (true * 7 + 3) % 20)  # the planted matching is the best one by far
    assert scores.accuracy == pytest.approx(right)
    assert scores.ari == pytest.approx(adjusted_rand_score(true, pred))
    assert scores.n_clusters == 31


def test_unassigned_rows_are_wrong_and_form_one_cluster():
    true, pred = ["a", "a", "b", "b"], [0, -1, 1, -1]
    assert accuracy(true, pred) == 0.5
    assert purity(true, pred) == 0.5
    assert nmi(true, pred) == pytest.approx(normalized_mutual_info_score(true, [0, 9, 1, 9]))
    assert ari(true, pred) == pytest.approx(adjusted_rand_score(true, [0, 9, 1, 9]))
    # A class gathered in -1 gains nothing by it.
    assert accuracy(["a", "a", "b"], [-1, -1, 1]) == pytest.approx(1 / 3)


def test_all_unassigned():
    scores = evaluate(["a", "b", "b"], [-1, -1, -1])
    assert (scores.accuracy, scores.purity, scores.nmi, scores.ari) == (0.0, 0.0, 0.0, 0.0)
    assert (scores.n_clusters, scores.n_unassigned) == (0, 3)


def test_minus_one_is_a_class_among_true_labels():
    assert accuracy([-1, -1, 2], [0, 0, 1]) == 1.0


def test_n_nonempty():
    assert n_nonempty([3, 3, -1, 9]) == 2
    assert n_nonempty(np.array([-1, -1])) == 0
    assert n_nonempty([]) == 0
    assert n_nonempty(["x", "y", "x"]) == 2


def test_labels_in_many_containers():
    pred = [0, 0, 1, 1]
    pandas = pytest.importorskip("pandas")
    for true in (("a", "a", "b", "b"), np.array(list("aabb")), pandas.Series(list("aabb")), iter("aabb")):
        assert accuracy(true, pred) == 1.0
    assert accuracy(pandas.Series(list("aabb"), dtype="category"), np.array([1.0, 1.0, -1.0, 0.0])) == 0.75
    assert accuracy(range(4), dict.fromkeys("abcd").keys()) == 1.0


def test_tensors_are_compared_by_value():
    torch = pytest.importorskip("torch")
    assert accuracy(torch.tensor([0, 0, 1]), torch.tensor([2, 2, -1])) == pytest.approx(2 / 3)


def test_mixed_types_do_not_merge():
    assert accuracy(["1", 1, "1", 1], [0, 1, 0, 1]) == 1.0


def test_evaluate_counts_what_it_leaves_out():
    pandas = pytest.importorskip("pandas")
    true = ["a", None, "b", "", float("nan"), "b", pandas.NA, np.float32("nan")]
    scores = evaluate(true, [0, 5, 1, 6, -1, -1, 2, 2])
    assert (scores.n_rows, scores.n_without_label, scores.n_unassigned, scores.n_clusters) == (3, 5, 1, 2)
    assert scores.accuracy == pytest.approx(2 / 3)
    assert scores.nmi == pytest.approx(nmi(["a", "b", "b"], [0, 1, -1]))
    assert scores.nmi_geometric == pytest.approx(nmi(["a", "b", "b"], [0, 1, -1], average="geometric"))


def test_zero_and_false_are_labels():
    assert evaluate([0, 0, 1], [1, 1, 0]).n_without_label == 0
    assert evaluate([False, True], [1, 0]).accuracy == 1.0


def test_scores_are_plain_frozen_and_json_ready():
    scores = evaluate(np.array(["a", "b"]), np.array([0, 1]))
    assert Scores(**json.loads(json.dumps(scores.to_dict()))) == scores
    with pytest.raises(FrozenInstanceError):
        scores.accuracy = 0.0


@pytest.mark.parametrize("measure", [*MEASURES, evaluate])
def test_errors_name_what_came_and_the_way_out(measure):
    with pytest.raises(InputError, match="labels_true has 2 rows and labels_pred has 1"):
        measure(["a", "b"], [0])
    with pytest.raises(InputError, match="nothing to score"):
        measure([], [])
    with pytest.raises(InputError, match=r"labels_pred has no label in row 1 \(None\): use -1"):
        measure(["a", "b"], [0, None])
    with pytest.raises(InputError, match="labels_pred has shape"):
        measure(["a", "b"], np.zeros((2, 1)))
    with pytest.raises(InputError, match="labels_true is str"):
        measure("ab", [0, 1])
    with pytest.raises(InputError, match="labels_pred is int"):
        measure(["a"], 3)
    with pytest.raises(InputError, match="labels_true holds list in row 0"):
        measure([["a"]], [0])
    with pytest.raises(InputError, match="labels_pred holds ndarray in row 0"):
        measure(["a"], [np.array([0, 1])])


def test_missing_true_labels():
    with pytest.raises(InputError, match=r"row 1 .*evaluate\(\)"):
        accuracy(["a", ""], [0, 1])
    with pytest.raises(InputError, match="none of the 2 rows has a true label"):
        evaluate([None, ""], [0, 1])


def test_unknown_average():
    with pytest.raises(SettingError, match="average='max'"):
        nmi(["a"], [0], average="max")


def test_room_exports_lazily():
    assert coterie.metrics.external.evaluate is evaluate
    for name in coterie.metrics.external.__all__:
        assert name in dir(coterie.metrics.external)
        assert (
            getattr(coterie.metrics.external, name).__module__
            == f"coterie.metrics.external.{coterie.metrics.external._MODULE_OF[name]}"
        )
    assert set(coterie.metrics.external._MODULE_OF) == set(coterie.metrics.external.__all__)
    with pytest.raises(AttributeError, match="nothing_here"):
        _ = coterie.metrics.external.nothing_here
