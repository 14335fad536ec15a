"""Targets and candidates of single rounds, and the consensus of before and after training, without an encoder."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from conftest import topic_texts
from numpy.typing import NDArray
from sklearn.metrics import adjusted_rand_score

from coterie import Coterie
from coterie.clustering.kmeans import kmeans
from coterie.methods.auto import rounds
from coterie.methods.auto.rounds import WEIGHT_WITHOUT_WORDS, Rounds, Teacher
from coterie.methods.lexical.ensemble import LexicalEnsemble
from coterie.methods.trained import TrainingStart
from coterie.selection.candidates import AVERAGE_LINKAGE
from coterie.selection.cluster_sizes import PENALTIES, SizeEstimate
from coterie.selection.guard import score_candidate
from coterie.selection.joined_vectors import FULL_AGREEMENT, SMALLEST_AGREEMENT
from coterie.selection.neighbour_graphs import LexicalGraph, build_graphs
from coterie.text.corpus import as_corpus

TEXTS, TOPICS = topic_texts(45)
CODES = np.array([sorted(set(TOPICS)).index(topic) for topic in TOPICS])
VECTORS = (np.eye(3, 8)[CODES] + np.random.default_rng(0).normal(scale=0.1, size=(45, 8))).astype(np.float32)


def _begin(lexical: LexicalEnsemble | None = None, vectors: Any = VECTORS, **settings: Any) -> tuple[Rounds, Teacher]:
    """Return the rounds and the teacher of a fit on three topics, before the first round."""
    model = Coterie(3, **settings)
    model.seed_ = 0
    corpus = as_corpus(TEXTS)
    graphs = build_graphs(vectors, LexicalGraph.build(TEXTS) if model.words else None, 3)
    made = Rounds(corpus, graphs, model, lexical)
    labels = made.start.labels
    means = torch.from_numpy(np.stack([vectors[labels == k].mean(axis=0) for k in range(3)]))
    nothing: Any = None
    start = TrainingStart(nothing, corpus, nothing, vectors, labels, means, torch.Generator(), 0)
    teacher = Teacher(start, made, model)
    teacher.set_partition(graphs.units, made.graphs, labels)
    return made, teacher


def _same(first: NDArray[np.int64], second: NDArray[np.int64]) -> bool:
    """Return whether two partitions have the same clusters, however they are numbered."""
    return bool(adjusted_rand_score(first, second) == 1)


@pytest.fixture(scope="module")
def lexical(quick_lexical_views: None) -> LexicalEnsemble:
    """Return a lexical view of the texts; tests only read it."""
    return LexicalEnsemble.fit(TEXTS, np.ones(len(TEXTS), dtype=np.int64), build_graphs(VECTORS).nearest_rows)


def test_targets_come_from_the_partition_and_then_from_the_head() -> None:
    made, teacher = _begin()
    embeddings = torch.from_numpy(VECTORS)
    teacher.update_targets(embeddings)
    assert np.array_equal(teacher.labels.numpy(), made.start.labels)
    # The head's clusters in another order: the targets follow it from now on.
    with torch.no_grad():
        teacher.centers.copy_(teacher.centers[[1, 2, 0]])
    teacher.update_targets(embeddings)
    assert np.array_equal(teacher.labels.numpy(), (made.start.labels + 2) % 3)
    assert len(teacher.lexical_trust) == 2 and all(0 <= trust <= 1 for trust in teacher.lexical_trust)
    assert torch.allclose(teacher.targets.sum(dim=1), torch.ones(45))


def test_each_text_is_trusted_as_its_votes_agree(monkeypatch: pytest.MonkeyPatch) -> None:
    _, teacher = _begin()
    trust = np.linspace(0, 1, 45)
    real = rounds.combine_votes
    monkeypatch.setattr(rounds, "combine_votes", lambda *given: (real(*given)[0], trust, 0.5))
    teacher.update_targets(torch.from_numpy(VECTORS))
    np.testing.assert_allclose(teacher.trust.numpy(), trust, atol=1e-6)
    assert teacher.lexical_trust == [0.5]


def test_the_centres_are_the_means_of_the_encoders_vectors(lexical: LexicalEnsemble) -> None:
    """The graph that votes is of joined vectors, which are longer."""
    made, teacher = _begin(lexical)
    assert made.graphs.units.shape[1] > VECTORS.shape[1]
    units = made.frozen.units
    means = np.stack([units[made.start.labels == k].mean(axis=0) for k in range(3)])
    means /= np.linalg.norm(means, axis=1, keepdims=True)
    np.testing.assert_allclose(teacher.centers.detach().numpy(), means, atol=1e-6)


def test_the_next_targets_come_from_the_partition_of_the_round() -> None:
    made, teacher = _begin()
    with torch.no_grad():
        teacher.centers.copy_(torch.randn(3, 8, generator=torch.Generator().manual_seed(0)))
    made.finish_round(1, torch.from_numpy(VECTORS), teacher)
    teacher.update_targets(torch.from_numpy(VECTORS))
    assert np.array_equal(teacher.labels.numpy(), made.candidates[1].labels)


@pytest.mark.parametrize(("sizes", "penalty"), [("equal", PENALTIES["equal"]), ("free", 0.02)])
def test_the_penalty_on_target_sizes_follows_the_sizes_that_count(sizes: str, penalty: float) -> None:
    made, _ = _begin(sizes=sizes, size_penalty=0.02)
    assert made.size_penalty == pytest.approx(penalty)


def test_the_penalty_on_target_sizes_rises_with_the_weight_of_equal_sizes() -> None:
    made, _ = _begin(size_penalty=0.02)
    found = []
    for cost in (0.2, 0.15, 0.1):
        made.start = replace(made.start, sizes=SizeEstimate(cost))
        found.append(made.size_penalty)
    assert found == pytest.approx([0.02, np.sqrt(0.02 * PENALTIES["equal"]), PENALTIES["equal"]])


def test_a_round_clusters_both_views_and_trains_the_lexical_one(
    lexical: LexicalEnsemble, monkeypatch: pytest.MonkeyPatch
) -> None:
    made, teacher = _begin(lexical)
    assert made.lexical is made.first_lexical is lexical and made.start.lexical_share > 0
    embeddings = torch.from_numpy(VECTORS)
    teacher.update_targets(embeddings)
    targets, trust = teacher.targets.numpy().copy(), teacher.trust.numpy().copy()
    calls = []
    train_on = LexicalEnsemble.train_on

    def record(self: LexicalEnsemble, *given: Any, **named: Any) -> LexicalEnsemble:
        calls.append((self, given, named))
        return train_on(self, *given, **named)

    monkeypatch.setattr(LexicalEnsemble, "train_on", record)
    made.finish_round(1, embeddings, teacher)
    ((view, (texts, counts, neighbours, labels), named),) = calls
    # It learns the targets of the encoder's head, and the encoder's neighbours as they are now.
    assert view is lexical and list(texts) == TEXTS and counts.tolist() == [1] * 45 and named == {"seed": 1}
    np.testing.assert_array_equal(labels.targets, targets)
    np.testing.assert_array_equal(labels.trust, trust)
    np.testing.assert_array_equal(neighbours, build_graphs(VECTORS).nearest_rows)
    assert made.first_lexical is lexical and made.lexical is not lexical
    assert {each.view for each in made._trained} == {"semantic", "joined"}
    assert sum(each.algorithm == "head" for each in made._trained) == 1
    assert [each.name for each in made.candidates] == ["start", "round 1"]
    assert made.graphs.units.shape[1] > VECTORS.shape[1]
    # The next round goes on from the view of this one.
    after_one = made.lexical
    made.finish_round(2, embeddings, teacher)
    assert calls[1][0] is after_one and calls[1][2] == {"seed": 2}
    assert [each.name for each in made.candidates] == ["start", "round 1", "round 2"]


@pytest.mark.parametrize("kind", ["equal", "free"])
def test_only_one_kind_of_sizes_counts(kind: str) -> None:
    made, teacher = _begin(sizes=kind)
    made.finish_round(1, torch.from_numpy(VECTORS), teacher)
    voters = [each.clustering for each in made.start.candidates if each.weight > 0]
    after = [each for each in made._trained if made.start.sizes.weight(each.size_kind)]
    assert {each.sizes for each in (*voters, *after)} == {kind}
    # Average linkage with free sizes counts as uneven.
    assert (AVERAGE_LINKAGE in {each.algorithm for each in voters}) == (kind == "equal")


def test_sizes_are_made_equal_or_left_as_they_are() -> None:
    groups = np.repeat(np.arange(3), [33, 6, 6])
    vectors = (np.eye(3, 8)[groups] + np.random.default_rng(0).normal(scale=0.3, size=(45, 8))).astype(np.float32)
    equal, free = (_begin(sizes=kind, words=False, vectors=vectors)[0].start.labels for kind in ("equal", "free"))
    assert _same(free, groups)
    # More even sizes, though not equal ones: neighbours count too.
    assert np.bincount(equal, minlength=3).max() < 30
    one = _begin(sizes="equal", start="kmeans", words=False, vectors=vectors)[0].start.labels
    assert np.bincount(one, minlength=3).max() < 30


def test_k_means_as_the_start() -> None:
    made, _ = _begin(start="kmeans")
    (voter,) = made.start.candidates
    assert (voter.clustering.algorithm, voter.clustering.sizes) == ("k-means", "free")
    expected = kmeans(made.frozen.units, 3, weights=np.ones(45), seed=0).labels
    assert _same(made.start.labels, expected)
    assert made.start.view_agreement is None and made.lexical is None
    assert _begin(start="kmeans", sizes="equal")[0].start.candidates[0].clustering.sizes == "equal"


# --- The weight of training, and the consensus of before and after ---


@pytest.mark.parametrize(
    ("agreement", "weight"),
    [(0.0, 0), (SMALLEST_AGREEMENT, 0), (0.8, 0.5), (FULL_AGREEMENT, 1), (1.0, 1), (None, WEIGHT_WITHOUT_WORDS)],
)
def test_the_weight_of_training_is_the_agreement_of_the_views(agreement: float | None, weight: float) -> None:
    made, _ = _begin(start="kmeans")
    made.start = replace(made.start, view_agreement=agreement)
    assert made.trained_weight == pytest.approx(weight)


def test_without_a_lexical_view_the_weight_is_that_without_words(lexical: LexicalEnsemble) -> None:
    for settings in ({"words": False}, {"start": "kmeans"}, {}):
        assert _begin(**settings)[0].trained_weight == WEIGHT_WITHOUT_WORDS, settings
    assert _begin(lexical)[0].trained_weight == 1


def test_unrelated_views_disagree(lexical: LexicalEnsemble) -> None:
    unrelated = VECTORS[np.random.default_rng(1).permutation(45)]
    made, teacher = _begin(lexical, unrelated)
    assert made.start.view_agreement is not None and made.start.view_agreement < SMALLEST_AGREEMENT
    assert made.start.lexical_share == made.trained_weight == 0
    assert made.lexical is made.first_lexical is None
    assert {each.clustering.view for each in made.start.candidates} == {"semantic", "centred semantic"}
    made.finish_round(1, torch.from_numpy(unrelated), teacher)
    assert {each.view for each in made._trained} == {"semantic"} and made.lexical is None


def test_a_single_clustering_does_not_outvote_training() -> None:
    made, teacher = _begin(start="kmeans")
    # Training that finds other clusters altogether.
    others = VECTORS[np.random.default_rng(1).permutation(45)]
    made.finish_round(1, torch.from_numpy(others), teacher)
    assert not _same(made.start.labels, made.candidates[-1].labels)
    assert _same(made.unite().labels, made.candidates[-1].labels)


@pytest.mark.parametrize("agreement", [0.3, 0.8, 0.84, 1.0, None])
def test_clusterings_after_training_count_by_the_weight_of_training(
    agreement: float | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    made, teacher = _begin()
    made.finish_round(1, torch.from_numpy(VECTORS), teacher)
    made.start = replace(made.start, view_agreement=agreement)
    calls = []
    real = rounds.find_consensus

    def record(labels: Any, weights: Any, *given: Any) -> Any:
        calls.append((labels, np.array(weights)))
        return real(labels, weights, *given)

    monkeypatch.setattr(rounds, "find_consensus", record)
    united = made.unite()
    ((labels, weights),) = calls
    count = len(made.start.candidates)
    assert len(labels) == count + len(made._trained)
    assert weights[:count].sum() == pytest.approx(1)
    assert weights[count:].sum() == pytest.approx(made.trained_weight)
    # Within each part clusterings count as they do in the start.
    by_size = np.array([each.weight for each in made.start.candidates])
    np.testing.assert_allclose(weights[:count], by_size / by_size.sum())
    by_size = np.array([each.share * made.start.sizes.weight(each.size_kind) for each in made._trained])
    np.testing.assert_allclose(weights[count:], made.trained_weight * by_size / by_size.sum())
    assert united.name == "before and after training"
    expected = score_candidate("", united.labels, made.frozen)
    assert united.criteria == expected.criteria and united.lexical_weight == expected.lexical_weight


def test_without_weight_the_consensus_is_the_start_and_with_it_training_counts() -> None:
    made, teacher = _begin()
    made.finish_round(1, torch.from_numpy(VECTORS), teacher)
    # After training ten texts of one topic are in the cluster of another.
    other = made.start.labels.copy()
    some = np.flatnonzero(CODES == 0)[:10]
    other[some] = made.start.labels[CODES == 1][0]
    made._trained = [replace(each, labels=other) for each in made._trained]
    for agreement in (0.5, 0.8):
        made.start = replace(made.start, view_agreement=agreement)
        assert _same(made.unite().labels, made.start.labels)
    # Where half of those before are with them, those after training decide.
    mixed = tuple(
        replace(each, clustering=replace(each.clustering, labels=other)) if i % 2 else each
        for i, each in enumerate(made.start.candidates)
    )
    made.start = replace(made.start, candidates=mixed, view_agreement=1.0)
    assert _same(made.unite().labels, other)
    # The candidates are as they were: the consensus is returned, not stored.
    assert [each.name for each in made.candidates] == ["start", "round 1"]
