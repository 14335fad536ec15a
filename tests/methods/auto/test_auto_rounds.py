"""Targets and candidates of single rounds, without an encoder."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from conftest import topic_texts
from numpy.typing import NDArray

from coterie import Coterie
from coterie.methods.auto import rounds
from coterie.methods.auto.rounds import Rounds, Teacher
from coterie.methods.trained import TrainingStart
from coterie.selection.guard import CRITERIA, Candidate
from coterie.selection.neighbour_graphs import LexicalGraph, build_graphs
from coterie.text.corpus import as_corpus

TEXTS, TOPICS = topic_texts(45)
CODES = np.array([sorted(set(TOPICS)).index(topic) for topic in TOPICS])
VECTORS = (np.eye(3, 8)[CODES] + np.random.default_rng(0).normal(scale=0.1, size=(45, 8))).astype(np.float32)


def _begin(**settings: Any) -> tuple[Rounds, Teacher]:
    """Return the rounds and the teacher of a fit on three topics, before the first round."""
    model = Coterie(3, **settings)
    model.seed_ = 0
    corpus = as_corpus(TEXTS)
    graphs = build_graphs(VECTORS, LexicalGraph.build(TEXTS), 3)
    made = Rounds(corpus, graphs, model)
    labels = made.start.labels
    means = torch.from_numpy(np.stack([VECTORS[labels == k].mean(axis=0) for k in range(3)]))
    nothing: Any = None
    start = TrainingStart(nothing, corpus, nothing, VECTORS, labels, means, torch.Generator(), 0)
    teacher = Teacher(start, made, model)
    teacher.set_partition(graphs, labels)
    return made, teacher


def _scores(monkeypatch: pytest.MonkeyPatch, *semantic: float) -> list[NDArray[np.int64]]:
    """Give the next candidates these semantic criteria, the others equal; return the labels that were scored."""
    left, scored = list(semantic), list[NDArray[np.int64]]()

    def score(name: str, labels: NDArray[np.int64], graphs: object) -> Candidate:
        scored.append(labels)
        return Candidate(name, labels, dict.fromkeys(CRITERIA, 0.5) | {CRITERIA[0]: left.pop(0)}, 1.0)

    monkeypatch.setattr(rounds, "score_candidate", score)
    return scored


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


@pytest.mark.parametrize(("after", "chosen"), [(0.512, 0), (0.52, 1)])
def test_a_new_clustering_replaces_the_heads_by_a_clear_lead(
    after: float, chosen: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Changes count against 0.5 at least: 0.012 more is a gain of 0.024, less than the lead that is asked for."""
    made, teacher = _begin()
    made.candidates = [Candidate("start", made.start.labels, dict.fromkeys(CRITERIA, 0.5), 1.0)]
    scored = _scores(monkeypatch, 0.5, after)
    made.finish_round(1, torch.from_numpy(VECTORS), teacher)
    assert [each.name for each in made.candidates] == ["start", "round 1"]
    assert made.candidates[1].labels is scored[chosen]


def test_sizes_are_balanced_after_each_round_where_they_are_equal(monkeypatch: pytest.MonkeyPatch) -> None:
    balanced = np.arange(45) % 3
    monkeypatch.setattr(rounds, "balance_sizes", lambda *given: balanced)
    made, teacher = _begin(sizes="equal", start="kmeans")
    assert made.equal_sizes and made.start.labels is balanced
    made.finish_round(1, torch.from_numpy(VECTORS), teacher)
    assert made.candidates[1].labels is balanced
    free, teacher = _begin(sizes="free")
    free.finish_round(1, torch.from_numpy(VECTORS), teacher)
    assert not free.equal_sizes and free.candidates[1].labels is not balanced


def test_the_next_targets_come_from_the_partition_of_the_round() -> None:
    made, teacher = _begin()
    with torch.no_grad():
        teacher.centers.copy_(torch.randn(3, 8, generator=torch.Generator().manual_seed(0)))
    made.finish_round(1, torch.from_numpy(VECTORS), teacher)
    teacher.update_targets(torch.from_numpy(VECTORS))
    assert np.array_equal(teacher.labels.numpy(), made.candidates[1].labels)
