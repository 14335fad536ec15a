"""The one verdict on fine-tuning: every outcome, and the same in the notes of a fit and in its report."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
from conftest import topic_texts
from numpy.typing import NDArray

from coterie import Coterie
from coterie.errors import InputError
from coterie.methods.auto.method import LARGEST_LOSS
from coterie.selection import training_verdict
from coterie.selection.guard import Candidate, score_candidate
from coterie.selection.neighbour_graphs import LexicalGraph, build_graphs
from coterie.selection.training_verdict import TrainingVerdict, compare_candidates, judge_training

Labels = NDArray[np.int64]
OUTCOMES = ("helped on balance", "helped", "changed little", "did not help", "unknown")


def _texts(n: int, seed: int = 0) -> tuple[list[str], Labels, NDArray[np.float32]]:
    """Return texts on three topics, the topic of each, and vectors near their topics."""
    texts, names = topic_texts(n, seed)
    topics = np.unique(names, return_inverse=True)[1]
    noise = np.random.default_rng(seed).normal(scale=0.4, size=(n, 5))
    return texts, topics, (np.eye(3, 5)[topics] + noise).astype(np.float32)


def _candidate(semantic: float, lexical: float = np.nan, gain: float = np.nan, weight: float = 1.0) -> Candidate:
    labels = np.random.default_rng(int(1000 * semantic)).integers(3, size=50)
    criteria = {"semantic_modularity": semantic, "lexical_modularity": lexical, "word_likelihood_gain": gain}
    return Candidate("a partition", labels, criteria, weight)


def _perturbed(labels: Labels, share: float, random: np.random.Generator) -> Labels:
    moved = random.random(len(labels)) < share
    return np.where(moved, random.integers(3, size=len(labels)), labels)


def _outcome_in(sentence: str) -> str:
    return next(each for each in OUTCOMES if each in sentence)


def _note(start: Candidate, trained: Candidate) -> str:
    """Return what the default method notes when these are the partitions of its start and its only round."""
    model = Coterie(3)
    model.notes_ = ()
    model._select(start, trained, replace(trained, name="before and after training"))
    (note,) = model.notes_
    return note


def test_the_notes_of_a_fit_and_its_report_say_the_same_of_many_pairs_of_partitions() -> None:
    outcomes, n_lost = [], 0
    for seed in range(60):
        random = np.random.default_rng(seed)
        texts, topics, vectors = _texts(45, seed)
        before = _perturbed(topics, random.choice([0.1, 0.3, 1.0]), random)
        source = random.choice(3)
        after = (
            _perturbed(before, random.choice([0.02, 0.2]), random)
            if source == 0
            else _perturbed(topics, random.choice([0.05, 0.3]), random)
            if source == 1
            else random.permutation(before)
        )
        graphs = build_graphs(vectors, LexicalGraph.build(texts), len(np.unique(before)), seed=0)
        start, trained = score_candidate("start", before, graphs), score_candidate("round 1", after, graphs)
        note = _note(start, trained)
        verdict = judge_training(texts, vectors, before, after)
        assert _outcome_in(note) == _outcome_in(verdict.sentence) == verdict.outcome
        # The start is returned only where training did harm, and clearly.
        lost = trained.gain_over(start) < -LARGEST_LOSS
        assert ("the start is returned" in note) == lost
        assert ("before and after training is returned" in note) != lost
        assert not (lost and verdict.outcome.startswith("helped"))
        n_lost += lost
        outcomes.append(verdict.outcome)
    assert {"helped", "helped on balance", "did not help"} <= set(outcomes)
    assert 0 < n_lost < outcomes.count("did not help")


@pytest.mark.parametrize(
    ("start", "trained", "outcome"),
    [
        (_candidate(0.8, 0.6, 0.5), _candidate(0.801, 0.66, 0.52), "helped"),
        (_candidate(0.8, 0.6, 0.5), _candidate(0.76, 0.66, 0.52), "helped on balance"),
        (_candidate(0.8, 0.6, 0.5), _candidate(0.9, 0.59, 0.6), "helped on balance"),
        (_candidate(0.8, 0.6, 0.5), _candidate(0.9, 0.6, 0.4), "did not help"),
        (_candidate(0.8, 0.6, 0.5), _candidate(0.798, 0.599, 0.497), "changed little"),
        # One noticeable fall is enough.
        (_candidate(0.8, 0.6, 0.5), _candidate(0.798, 0.59, 0.5), "did not help"),
        # Gains of the lexical criteria count as much as their weight.
        (_candidate(0.8, 0.6, 0.5, 0.1), _candidate(0.76, 0.66, 0.52, 0.1), "did not help"),
        (_candidate(0.5), _candidate(0.6), "helped"),
        (_candidate(0.5), _candidate(0.4), "did not help"),
        (_candidate(0.5), _candidate(0.499), "changed little"),
        # A small gain is a gain.
        (_candidate(0.5), _candidate(0.501), "helped"),
    ],
)
def test_every_outcome(start: Candidate, trained: Candidate, outcome: str) -> None:
    verdict = compare_candidates(start, trained)
    assert verdict.outcome == outcome
    assert verdict.sentence.startswith(f"Fine-tuning {outcome} by the label-free criteria (")
    assert len(verdict.criteria) == (1 if np.isnan(start.criteria["lexical_modularity"]) else 3)
    assert "nan" not in verdict.sentence
    for each in verdict.criteria:
        assert f"{each.name}: {each.before:.3f} before, {each.after:.3f} after" in verdict.sentence


def test_an_unchanged_partition_did_not_help_however_it_is_numbered() -> None:
    """A run of an earlier version, whose guard returned the start, has the same partition before and after."""
    texts, topics, vectors = _texts(45)
    for after in (topics, (topics + 1) % 3):
        assert judge_training(texts, vectors, topics, after).outcome == "did not help"


def test_a_verdict_is_stored_as_json() -> None:
    verdict = compare_candidates(_candidate(0.8, 0.6, 0.5), _candidate(0.76, 0.66, 0.52))
    assert TrainingVerdict.from_dict(json.loads(json.dumps(verdict.to_dict()))) == verdict
    unknown = TrainingVerdict.unknown("There is nothing to judge.")
    assert TrainingVerdict.from_dict(unknown.to_dict()) == unknown
    with pytest.raises(InputError, match="not the outcome"):
        TrainingVerdict.from_dict(verdict.to_dict() | {"outcome": "splendid"})


def test_rows_in_no_cluster_and_repeated_texts_are_left_out() -> None:
    texts, topics, vectors = _texts(60)
    before = np.random.default_rng(1).permutation(topics)
    expected = judge_training(texts[:45], vectors[:45], before[:45], topics[:45])
    after = topics.copy()
    after[45:] = -1
    assert judge_training(texts, vectors, before, after) == expected
    again = [*range(45), 3, 3, 7]
    repeated = judge_training([texts[i] for i in again], vectors[again], before[again], topics[again])
    assert repeated == expected


def test_texts_without_common_words_are_judged_by_the_encoder_alone() -> None:
    _, topics, vectors = _texts(45)
    verdict = judge_training([f"word{i}" for i in range(45)], vectors, np.roll(topics, 1), topics)
    assert [each.name.split()[0] for each in verdict.criteria] == ["semantic"]


def test_too_few_texts_or_no_vectors_are_unknown() -> None:
    texts, topics, vectors = _texts(6)
    assert "too few texts" in judge_training(texts[:2], vectors[:2], topics[:2], topics[:2]).sentence
    missing = judge_training(texts, None, topics, topics)
    assert missing.outcome == "unknown" and "could not be loaded" in missing.sentence
    assert missing.criteria == ()
    with pytest.raises(InputError, match="one of each per text"):
        judge_training(texts, vectors, topics, topics[:3])


def test_many_texts_are_sampled_by_the_seed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(training_verdict, "SAMPLE_SIZE", 40)
    texts, topics, vectors = _texts(90)
    before = np.random.default_rng(1).permutation(topics)
    first, again, other = (judge_training(texts, vectors, before, topics, seed=seed) for seed in (0, 0, 1))
    assert first == again != other
    assert first.outcome == other.outcome == "helped"
