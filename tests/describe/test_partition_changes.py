"""Two partitions of the same rows: what stayed, split, merged, moved."""

from __future__ import annotations

import json

import numpy as np
import pytest
from call_count import calls_of

from coterie.describe.partition_changes import ClusterChange, Move, compare_partitions
from coterie.errors import InputError
from coterie.metrics.external.scores import accuracy, ari, nmi


def _rows(*parts: tuple[int, int, int]) -> tuple[list[int], list[int]]:
    """Labels before and after, from (before, after, how many rows)."""
    before = [first for first, _, n in parts for _ in range(n)]
    after = [second for _, second, n in parts for _ in range(n)]
    return before, after


def test_the_same_clusters_under_other_names_stayed() -> None:
    before, after = _rows((0, 2, 5), (1, 0, 3), (2, 1, 1))
    changes = compare_partitions(before, after)
    assert (changes.agreement, changes.ari, changes.nmi) == pytest.approx((1, 1, 1))
    assert changes.counts == {"stayed": 3, "split": 0, "merged": 0, "new": 0, "gone": 0}
    assert [(change.before, change.after, change.rows) for change in changes.changes] == [
        ((0,), (2,), (5,)),
        ((1,), (0,), (3,)),
        ((2,), (1,), (1,)),
    ]
    assert changes.moves == ()


def test_a_split_is_told() -> None:
    # Of ten rows six and three went to large parts, one strayed.
    before, after = _rows((0, 0, 6), (0, 3, 3), (0, 1, 1), (1, 1, 20))
    changes = compare_partitions(before, after)
    assert changes.of_kind("split") == [ClusterChange("split", (0,), (0, 3), (6, 3), (10,), (6, 3))]
    assert changes.of_kind("stayed") == [ClusterChange("stayed", (1,), (1,), (20,), (20,), (21,))]
    assert changes.counts == {"stayed": 1, "split": 1, "merged": 0, "new": 0, "gone": 0}
    assert changes.agreement == pytest.approx(26 / 30)


def test_a_merger_is_told() -> None:
    before, after = _rows((0, 5, 4), (1, 5, 8), (2, 7, 30), (2, 5, 1))
    changes = compare_partitions(before, after)
    assert changes.of_kind("merged") == [ClusterChange("merged", (1, 0), (5,), (8, 4), (8, 4), (13,))]
    assert [change.before for change in changes.of_kind("stayed")] == [(2,)]
    assert changes.counts["gone"] == 0
    assert changes.moves == (Move(0, 5, 4, ()), Move(2, 5, 1, ()))


@pytest.mark.parametrize(("strays", "is_split"), [(19, False), (20, True)])
def test_a_fifth_is_a_large_part(strays: int, is_split: bool) -> None:
    before, after = _rows((0, 0, 100 - strays), (0, 1, strays), (1, 1, 500))
    assert bool(compare_partitions(before, after).of_kind("split")) == is_split
    assert bool(compare_partitions(after, before).of_kind("merged")) == is_split


def test_half_of_a_split_cluster_may_be_merged() -> None:
    before, after = _rows((0, 0, 10), (0, 1, 10), (1, 1, 10))
    changes = compare_partitions(before, after)
    assert [change.after for change in changes.of_kind("split")] == [(0, 1)]
    assert [change.before for change in changes.of_kind("merged")] == [(0, 1)]
    assert changes.counts["stayed"] == changes.counts["gone"] == changes.counts["new"] == 0


def test_what_was_scattered_is_gone_and_what_was_gathered_is_new() -> None:
    # Cluster 9 goes in sevenths to seven large clusters; the other way round it is put together from them.
    before, after = _rows(*[(k, k, 100) for k in range(7)], *[(9, k, 10 + (k == 3)) for k in range(7)])
    changes = compare_partitions(before, after)
    assert changes.of_kind("gone") == [ClusterChange("gone", (9,), (3,), (11,), (71,), (111,))]
    assert changes.counts == {"stayed": 7, "split": 0, "merged": 0, "new": 0, "gone": 1}
    back = compare_partitions(after, before)
    assert back.of_kind("new") == [ClusterChange("new", (3,), (9,), (11,), (111,), (71,))]
    assert back.counts["gone"] == 0


def test_every_cluster_is_spoken_of() -> None:
    generator = np.random.default_rng(0)
    for n_clusters in (2, 5, 30):
        before, after = generator.integers(0, n_clusters, 200), generator.integers(0, n_clusters + 3, 200)
        changes = compare_partitions(before, after).changes
        assert {k for change in changes for k in change.before} >= set(before.tolist())
        assert {k for change in changes for k in change.after} >= set(after.tolist())


def test_scores_are_those_of_the_evaluation() -> None:
    generator = np.random.default_rng(1)
    before = generator.integers(0, 6, 300)
    after = np.where(generator.random(300) < 0.7, (before + 2) % 6, generator.integers(0, 8, 300))
    changes = compare_partitions(before, after)
    assert changes.agreement == pytest.approx(accuracy(before, after))
    assert changes.ari == pytest.approx(ari(before, after))
    assert changes.nmi == pytest.approx(nmi(before, after))
    assert changes.agreement > 0.6


def test_rows_in_no_cluster_are_left_out() -> None:
    changes = compare_partitions([0, 0, 1, 1, -1, 2, 0], [4, 4, 5, 5, 4, -1, -1])
    assert (changes.n_rows, changes.n_left_out) == (4, 3)
    assert (changes.n_before, changes.n_after) == (2, 2)
    assert changes.agreement == 1
    with pytest.raises(InputError, match="nothing to compare"):
        compare_partitions([0, -1], [-1, 0])
    with pytest.raises(InputError, match="nothing to compare"):
        compare_partitions([], [])


def test_moves_are_the_largest_with_texts_that_differ() -> None:
    before, after = _rows((0, 0, 50), (1, 1, 50), (0, 1, 6), (1, 0, 4))
    texts = [f"text {i}" for i in range(100)]
    long = "x" * 100_000
    texts += ["طرد متأخر", "طرد متأخر", "👩‍👧 parcel", long, "fourth", "fifth", "a", "a", "a", "a"]
    changes = compare_partitions(before, after, texts)
    assert changes.moves == (Move(0, 1, 6, ("طرد متأخر", "👩‍👧 parcel", long)), Move(1, 0, 4, ("a",)))
    assert [len(move.examples) for move in compare_partitions(before, after, texts, max_examples=1).moves] == [1, 1]
    assert compare_partitions(before, after, texts, max_examples=0).moves[0].examples == ()


def test_examples_are_of_their_own_rows_where_others_are_left_out() -> None:
    before, after = [-1, 0, 0, 0, 1, 1], [0, 0, 0, 1, 1, 1]
    assert compare_partitions(before, after, list("abcdef")).moves == (Move(0, 1, 1, ("d",)),)


def test_at_most_twenty_moves() -> None:
    generator = np.random.default_rng(0)
    moves = compare_partitions(generator.integers(0, 9, 900), generator.integers(0, 9, 900)).moves
    assert len(moves) == 20
    assert [move.rows for move in moves] == sorted((move.rows for move in moves), reverse=True)


def test_one_row_and_one_cluster() -> None:
    changes = compare_partitions([3], [8])
    assert changes.changes == (ClusterChange("stayed", (3,), (8,), (1,), (1,), (1,)),)
    assert (changes.agreement, changes.ari, changes.nmi) == (1, 1, 1)


def test_it_is_ready_for_json() -> None:
    before, after = _rows((0, 0, 6), (0, 1, 4), (1, 2, 5))
    content = json.loads(json.dumps(compare_partitions(np.array(before), np.array(after, dtype=np.int32)).to_dict()))
    assert content["counts"]["split"] == 1
    assert content["changes"][0] == {
        "kind": "split",
        "before": [0],
        "after": [0, 1],
        "rows": [6, 4],
        "size_before": [10],
        "size_after": [6, 4],
    }
    assert content["moves"] == [{"before": 0, "after": 1, "rows": 4, "examples": []}]


def test_a_row_each_is_needed() -> None:
    with pytest.raises(InputError, match="before has 3 rows, but after has 2"):
        compare_partitions([0, 1, 2], [0, 1])
    with pytest.raises(InputError, match="before has 2 rows, but texts has 1"):
        compare_partitions([0, 1], [0, 1], ["a"])


def test_calls_grow_with_the_clusters() -> None:
    def compared(n: int) -> int:
        generator = np.random.default_rng(0)
        before = generator.integers(0, n, 100 * n)
        renamed = generator.permutation(n)
        after = np.where(generator.random(100 * n) < 0.8, renamed[before], generator.integers(0, n, 100 * n))
        changes = compare_partitions(before, after, ["some text"] * (100 * n))
        assert changes.counts["stayed"] == n
        assert all(renamed[change.before[0]] == change.after[0] for change in changes.of_kind("stayed"))
        return calls_of(lambda: compare_partitions(before, after, ["some text"] * (100 * n)))

    assert compared(1_000) < 4.4 * compared(250)
