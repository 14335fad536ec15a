"""Edits applied: to the rows of a run, and to new texts."""

from __future__ import annotations

import numpy as np
import pytest

from coterie.errors import InputError
from coterie.runs.edits.kinds import NOISE, Edit, Part
from coterie.runs.edits.replay import EditedClusters, apply_to_new, replay

LABELS = np.array([0, 0, 0, 1, 1, 2, 2, -1])
NAMES = ["Refunds", "Parcels", "Passwords"]
KEYWORDS = [["refund", "money"], ["parcel"], ["password"]]
SPLIT = Edit(
    "split",
    [0],
    parts=[Part(0, "Refunds", ["refund"], [0, 1], [0.0, 1.0]), Part(3, "Money", ["money"], [2], [1.0, 0.0])],
)


def _state(*edits: Edit) -> EditedClusters:
    return replay(edits, LABELS, NAMES, KEYWORDS)


def _vectors(texts: list[str]) -> np.ndarray:
    """Texts about money lie to the right, others above."""
    return np.array([[1.0, 0.1] if "money" in text else [0.1, 1.0] for text in texts])


def test_without_edits_all_is_as_it_was_fitted() -> None:
    state = _state()
    assert state.labels.tolist() == LABELS.tolist()
    assert state.names == dict(enumerate(NAMES))
    assert LABELS is not state.labels


def test_merged_clusters_are_one_and_their_ids_are_gone() -> None:
    state = _state(Edit("merge", [1, 2], 0))
    assert state.labels.tolist() == [0, 0, 0, 0, 0, 0, 0, -1]
    assert list(state.names) == [0]
    assert state.keywords[0] == ["refund", "parcel", "password", "money"]
    with pytest.raises(InputError, match="cluster 1 is gone: it was merged into 'Refunds'"):
        state.check(Edit("rename", [1], name="x"))


def test_a_split_makes_new_ids_that_are_never_used_again() -> None:
    state = _state(SPLIT)
    assert state.labels.tolist() == [0, 0, 3, 1, 1, 2, 2, -1]
    assert state.names[3] == "Money"
    assert state.next_id == 4
    merged = _state(SPLIT, Edit("merge", [3], 0))
    assert merged.next_id == 4 and 3 not in merged.names


def test_moved_rows_are_where_they_were_put() -> None:
    state = _state(Edit("move", to=1, rows=[0, 6], texts=["a", "b"]), Edit("move", to=NOISE, rows=[3], texts=["c"]))
    assert state.labels.tolist() == [1, 0, 0, NOISE, 1, 2, 1, -1]
    assert np.flatnonzero(state.moved).tolist() == [0, 3, 6]


@pytest.mark.parametrize(
    ("edit", "why"),
    [
        (Edit("rename", [9], name="x"), "no cluster 9"),
        (Edit("rename", [0], name="  "), "at least one letter"),
        (Edit("rename", [0], name="Parcels"), "another cluster is called 'Parcels'"),
        (Edit("rename", [0, 1], name="x"), "one cluster is renamed"),
        (Edit("merge", [0], 0), "two clusters"),
        (Edit("merge", [0], 8), "no cluster 8"),
        (Edit("split", [0], parts=SPLIT.parts[:1]), "two parts"),
        (Edit("move", to=1), "no texts to move"),
        (Edit("move", to=5, rows=[0]), "no cluster 5"),
        (Edit("move", to=1, rows=[99]), "no row 100"),
        (Edit("move", to=1, rows=[-1]), "no row 0"),
    ],
)
def test_what_cannot_be_done_is_told_and_changes_nothing(edit: Edit, why: str) -> None:
    state = _state()
    with pytest.raises(InputError, match=why):
        state.apply(edit)
    assert state.labels.tolist() == LABELS.tolist()
    replayed = _state(edit, Edit("rename", [1], name="Boxes"))
    assert replayed.names[1] == "Boxes"
    assert len(replayed.notes) == 1 and why in replayed.notes[0]


def test_new_texts_follow_merges_splits_and_moves_in_their_order() -> None:
    texts = ["my money", "my refund", "where is it", " log in ", ""]
    labels = np.array([0, 0, 1, 2, -1])
    edits = [SPLIT, Edit("merge", [1], 3), Edit("move", to=0, rows=[5], texts=["log in"])]
    found, placed = apply_to_new(edits, texts, labels, _vectors)
    assert found.tolist() == [3, 0, 3, 0, -1]
    assert placed.tolist() == [False, False, False, True, False]
    assert labels.tolist() == [0, 0, 1, 2, -1]
    # A cluster that is merged away afterwards takes what was moved into it along.
    found, _ = apply_to_new([*edits, Edit("merge", [0], 2)], texts, labels, _vectors)
    assert found.tolist() == [3, 2, 3, 2, -1]


def test_what_could_not_be_applied_to_the_run_is_not_applied_to_new_texts() -> None:
    # Cluster 1 is gone when the second merge comes: texts of cluster 0 stay where they are.
    state = _state(Edit("merge", [1], 2), Edit("merge", [0], 1), Edit("rename", [0], name="Money back"))
    assert [edit.kind for edit in state.applied] == ["merge", "rename"] and len(state.notes) == 1
    found, _ = apply_to_new(state.applied, ["a", "b", "c"], np.array([0, 1, 2]), _vectors)
    assert found.tolist() == [0, 2, 2]


def test_an_empty_text_stays_in_no_cluster() -> None:
    found, placed = apply_to_new([Edit("move", to=1, rows=[0], texts=[""])], [""], np.array([-1]), _vectors)
    assert found.tolist() == [-1] and not placed.any()


def test_a_near_tie_is_decided_by_the_text_alone() -> None:
    """The last digits of a vector depend on its company; the answer must not."""

    def wavering(texts: list[str]) -> np.ndarray:
        return np.array([[0.5, 0.5 + (1e-5 if len(texts) > 1 else -1e-5)] for _ in texts])

    alone, _ = apply_to_new([SPLIT], ["x"], np.array([0]), wavering)
    together, _ = apply_to_new([SPLIT], ["x", "y", "z"], np.array([0, 0, 0]), wavering)
    assert alone.tolist() == [3]
    assert together.tolist() == [3, 3, 3]


def test_a_cluster_whose_parts_are_all_new_is_gone() -> None:
    labels = np.array([0, 0, 1])
    parts = [Part(2, "Late", ["late"], [0], [0.0]), Part(3, "Lost", ["lost"], [1], [1.0])]
    edits = [Edit("split", [0], parts=parts), Edit("rename", [0], name="Again")]
    state = replay(edits, labels, ["Parcel", "Refund"], [["parcel"], ["refund"]])
    assert state.labels.tolist() == [2, 3, 1] and state.names == {1: "Refund", 2: "Late", 3: "Lost"}
    assert state.next_id == 4 and set(state.keywords) == {1, 2, 3}
    assert state.notes == ["an edit (rename) could not be applied: cluster 0 is gone: it was split"]
