"""Cluster cards: what they say of a cluster beside its summary."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from conftest import topic_texts

from coterie import describe_clusters
from coterie.cli.fit import fit
from coterie.describe.cards import Borderline, ClusterCard, build_cards
from coterie.describe.geometry import find_runner_ups
from coterie.errors import InputError
from coterie.report.report_model import ReportModel
from coterie.runs.saved_run import SavedRun
from coterie.types import Topic

TEXTS = ["late parcel", "parcel lost", "late parcel", "login trouble", "password login", "refund please", "hi"]
LABELS = np.array([0, 0, 0, 1, 1, 2, -1])
VECTORS = np.array([[1, 0], [1, 0.2], [1, 0], [0, 1], [0.2, 1], [-1, 0], [5, 5]], dtype=np.float32)


def _cards(labels: np.ndarray = LABELS, vectors: np.ndarray | None = VECTORS, **given: object) -> list[ClusterCard]:
    return build_cards(describe_clusters(TEXTS, labels), TEXTS, labels, vectors=vectors, **given)  # type: ignore[arg-type]


def _cosine(first: np.ndarray, second: np.ndarray) -> float:
    return float(first @ second / np.linalg.norm(first) / np.linalg.norm(second))


def test_a_card_holds_its_summary_and_a_name() -> None:
    summaries = describe_clusters(TEXTS, LABELS)
    cards = build_cards(summaries, TEXTS, LABELS, vectors=None)
    assert [card.summary for card in cards] == summaries
    assert [card.name for card in cards] == ["Parcel, late", "Login, password", "Refund"]


def test_cohesion_and_separation() -> None:
    cards = _cards()
    members = [VECTORS[np.flatnonzero(np.equal(LABELS, k))] for k in range(3)]
    centers = [vectors.mean(axis=0) for vectors in members]
    for k, card in enumerate(cards):
        assert card.cohesion == pytest.approx(np.mean([_cosine(v, centers[k]) for v in members[k]]), abs=1e-6)
        others = [_cosine(centers[k], centers[j]) for j in range(3) if j != k]
        assert card.separation == pytest.approx(1 - max(others), abs=1e-6)
    assert cards[2].cohesion == pytest.approx(1)
    assert [card.nearest for card in cards] == [(1, 2), (0, 2), (1, 0)]


def test_rows_in_no_cluster_do_not_count() -> None:
    moved = VECTORS.copy()
    moved[-1] = -100
    assert _cards(vectors=moved) == _cards()


def test_three_nearest_clusters_at_most() -> None:
    angles = np.array([0.0, 0.1, 0.3, 0.6, 1.0, 1.5, 2.1])
    vectors = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    cards = _cards(np.arange(7), vectors)
    assert cards[0].nearest == (1, 2, 3)
    assert cards[6].nearest == (5, 4, 3)


def test_without_vectors_no_geometry() -> None:
    for card in _cards(vectors=None):
        assert (card.cohesion, card.separation, card.nearest) == (None, None, ())


def test_one_cluster_has_no_neighbour() -> None:
    (card,) = _cards(np.zeros(7, np.int64))
    assert card.cohesion is not None
    assert (card.separation, card.nearest) == (None, ())


def test_an_empty_cluster() -> None:
    labels = np.array([0, 0, 0, 2, 2, 2, -1])
    cards = _cards(labels, confidence=np.ones(7))
    empty = cards[1]
    assert empty.name == "Cluster 1"
    assert (empty.cohesion, empty.separation, empty.nearest, empty.borderline, empty.duplicates) == (
        None,
        None,
        (),
        (),
        0,
    )
    assert cards[0].nearest == (2,) and cards[2].nearest == (0,)


def test_vectors_of_zeros_and_half_precision() -> None:
    assert all(card.cohesion == 0 and card.separation == 1 for card in _cards(vectors=np.zeros((7, 2))))
    halves = _cards(vectors=VECTORS.astype(np.float16))
    assert [card.cohesion for card in halves] == pytest.approx([card.cohesion for card in _cards()], abs=1e-3)


def test_borderline_texts_are_the_least_sure_ones_with_their_runner_up() -> None:
    confidence = np.array([0.2, 0.1, 0.05, 0.9, 0.8, 0.5, 0.0])
    cards = _cards(confidence=confidence, runner_up=np.array([1, 2, 1, 0, -1, 1, 0]))
    assert cards[0].borderline == (Borderline("late parcel", 0.05, 1), Borderline("parcel lost", 0.1, 2))
    assert cards[1].borderline == (Borderline("password login", 0.8, None), Borderline("login trouble", 0.9, 0))
    assert cards[2].borderline == (Borderline("refund please", 0.5, 1),)
    assert len(_cards(confidence=confidence, n_borderline=1)[0].borderline) == 1


def test_without_confidence_nothing_is_borderline() -> None:
    assert all(card.borderline == () for card in _cards())
    assert all(card.borderline == () for card in _cards(confidence=np.full(7, np.nan)))


def test_duplicates_are_rows_that_repeat_an_earlier_one() -> None:
    assert [card.duplicates for card in _cards()] == pytest.approx([1 / 3, 0, 0])
    same = ["👍"] * 5 + ["أين طردي", "x" * 100_000]
    cards = build_cards(describe_clusters(same, [0] * 7), same, [0] * 7, vectors=None)
    assert cards[0].duplicates == pytest.approx(4 / 7)


def test_stability_is_given_for_each_cluster() -> None:
    assert [card.stability for card in _cards(stability=[0.5, None, np.nan])] == [0.5, None, None]
    assert [card.stability for card in _cards()] == [None] * 3


def test_a_card_is_flat_and_ready_for_json() -> None:
    runner_ups = find_runner_ups(VECTORS, VECTORS[[0, 3, 5]], LABELS)
    card = _cards(confidence=np.linspace(0.1, 0.7, 7), runner_up=runner_ups)[0]
    content = json.loads(json.dumps(card.to_dict(), allow_nan=False))
    assert list(content) == [
        "id",
        "name",
        "size",
        "share",
        "confidence",
        "keywords",
        "representatives",
        "borderline",
        "cohesion",
        "separation",
        "nearest",
        "duplicates",
        "stability",
    ]
    assert content["id"] == 0 and content["name"] == "Parcel, late" and content["nearest"] == [1, 2]
    assert content["borderline"][0] == {"text": "late parcel", "confidence": pytest.approx(0.1), "runner_up": 1}


def test_topics_are_told_where_there_are_some() -> None:
    topics = [[Topic(("parcel",), (1.0,), 1.0)]] * 3
    cards = build_cards(describe_clusters(TEXTS, LABELS, topics=topics), TEXTS, LABELS, vectors=None)
    content = json.loads(json.dumps(cards[0].to_dict()))
    assert content["topics"] == [{"words": ["parcel"], "probabilities": [1.0], "share": 1.0}]


def test_cards_of_some_clusters_only() -> None:
    cards = build_cards(describe_clusters(TEXTS, LABELS)[1:], TEXTS, LABELS, vectors=VECTORS, stability=[0.1, 0.2])
    assert [(card.summary.id, card.stability) for card in cards] == [(1, 0.1), (2, 0.2)]
    assert cards[0].nearest == (0, 2)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"labels": LABELS[:5]}, "5 rows of labels"),
        ({"vectors": VECTORS[:5]}, "5 rows of vectors"),
        ({"confidence": np.ones(5)}, "5 rows of confidence"),
        ({"runner_up": np.ones(5)}, "5 rows of runner_up"),
        ({"stability": [1.0]}, "3 clusters but 1 values of stability"),
    ],
)
def test_an_entry_a_row_is_needed(given: dict[str, object], message: str) -> None:
    arguments = {"labels": LABELS, "vectors": VECTORS, **given}
    with pytest.raises(InputError, match=message):
        build_cards(describe_clusters(TEXTS, LABELS), TEXTS, **arguments)  # type: ignore[arg-type]


def test_nothing_at_all() -> None:
    assert build_cards([], [], [], vectors=np.empty((0, 4))) == []
    assert build_cards([], ["a"], [-1], vectors=np.ones((1, 4))) == []


@pytest.mark.parametrize("method", ["tfidf", "frozen"])
def test_texts_that_are_not_on_the_map_can_be_borderline(method: str, tiny_encoder: Path, tmp_path: Path) -> None:
    texts = topic_texts(300)[0]
    (tmp_path / "texts.txt").write_text("\n".join([*texts, texts[0]]), encoding="utf-8")
    encoder = {} if method == "tfidf" else {"encoder": str(tiny_encoder)}
    made = tmp_path / "run"
    fit(tmp_path / "texts.txt", clusters="4", method=method, output=made, quiet=True, report=False, **encoder)
    run = SavedRun.open(made, device="cpu")
    some, everything = ReportModel(run, kind="pca", points=100), ReportModel(run, kind="pca")
    assert len(some.rows) == 100 and len(everything.rows) == 300
    for card, whole in zip(some.cards, everything.cards, strict=True):
        assert [each.text for each in card.borderline] == [each.text for each in whole.borderline]
        assert all(each.runner_up is not None and each.runner_up != card.summary.id for each in card.borderline)
