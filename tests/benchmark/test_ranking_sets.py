"""Sets of questions with candidates: what a fitting process sees of them, and how embeddings are scored."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import topic_texts
from worker_thread import WorkerThread

import coterie.benchmark.runner as runner
import coterie.datasets.loading as loading
from coterie.benchmark.rows import Row
from coterie.benchmark.runner import Outcome, run_jobs
from coterie.benchmark.sets import Loaded, Question, find_set, load_set
from coterie.benchmark.store import Job, Store
from coterie.benchmark.traces import at_stage, ranking_measures, save_trace, trace_of
from coterie.text.corpus import as_corpus
from coterie.training.history import Snapshot

RANKED = find_set("semeval2016_cqa")
COLUMNS = {
    "qid": ("a", "a", "b", "b"),
    "question": ("where", "where", "why", "why"),
    "candidate": ("here", "there", "so", "here"),
    "label": ("0", "1", "1", "0"),
}


def _made() -> Loaded:
    """Two texts of each group; the one of the same group is relevant."""
    texts, groups = topic_texts(90)
    questions = tuple(
        Question(at, (30 + at, 31 + at, 32 + at), tuple(groups[30 + at + i] == groups[at] for i in range(3)))
        for at in range(20)
    )
    return Loaded(tuple(texts), (), 3, "made", questions=questions)


def test_a_ranking_set_has_each_text_once_and_no_labels(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loading, "load_table", lambda _: COLUMNS)
    data = load_set(RANKED)
    assert data.texts == ("where", "why", "here", "there", "so") and data.labels == ()
    assert data.n_clusters == 20
    assert data.questions == (Question(0, (2, 3), (False, True)), Question(1, (4, 2), (True, False)))


def test_candidates_are_ranked_by_their_cosine() -> None:
    # Lengths must not matter: the second text is long and at a right angle.
    vectors = np.array([[1.0, 0.0], [0.0, 9.0], [0.5, 0.1], [-1.0, 0.0]])
    first, last = Question(0, (1, 2, 3), (False, True, False)), Question(0, (1, 2, 3), (False, False, True))
    assert ranking_measures(vectors, [first]) == {"map": 100.0, "mrr": 100.0}
    assert ranking_measures(vectors, [first, last]) == {"map": 66.667, "mrr": 66.667}


def test_a_trace_of_a_ranking_set_has_all_texts_and_its_own_measures(tmp_path: Path) -> None:
    texts = ["q", *(f"text {i}" for i in range(1500))]
    near, far = np.ones((1501, 2), np.float32), np.ones((1501, 2), np.float32)
    near[1:1500] = far[2:] = (1.0, -1.0)
    labels = np.zeros(1501, np.int64)
    snapshots = [Snapshot("start", 0, 0, far, labels), Snapshot("adaptation", 1, 5, near, labels)]
    saved = save_trace(tmp_path / "trace.safetensors", as_corpus(texts).distinct_index, snapshots, whole=True)
    question = Question(0, (1, 1500), (False, True))
    data = Loaded(tuple(texts), (), 2, "", questions=(question,))
    trace = trace_of(tmp_path / "trace.safetensors", saved, data)
    assert [(each["map"], each["mrr"]) for each in trace["snapshots"]] == [(50.0, 50.0), (100.0, 100.0)]
    assert at_stage(trace, "adaptation") == trace["snapshots"][1] and at_stage(trace, "hardening") is None


def _run(folder: Path, row: Row, data: Loaded, monkeypatch: pytest.MonkeyPatch) -> tuple[Store, list[Outcome], Job]:
    outcomes: list[Outcome] = []
    monkeypatch.setattr(runner, "load_set", lambda _: data)
    job = Job(row, RANKED, 0)
    run_jobs([job], Store(folder), device="cpu", on_outcome=outcomes.append)
    return Store(folder), outcomes, job


def test_relevance_cannot_reach_a_fit(tmp_path: Path, tiny_encoder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """All relevance turned round: other scores, and the same clusters byte for byte."""
    monkeypatch.setattr("coterie.benchmark.runner._new_process", WorkerThread)
    settings: dict[str, Any] = {"encoder": str(tiny_encoder), "training.batch_size": 45, "max_length": 32}
    row = Row("ranked", "Ranked", "clusterbert", settings)
    data = _made()
    turned = replace(
        data,
        questions=tuple(replace(each, relevant=tuple(not it for it in each.relevant)) for each in data.questions),
    )
    store, outcomes, job = _run(tmp_path / "one", row, data, monkeypatch)
    other, _, _ = _run(tmp_path / "other", row, turned, monkeypatch)
    assert outcomes[0].error == ""
    record, trace = store.read(job.name), store.read_trace(job.name)
    stages = [each["stage"] for each in trace["snapshots"]]
    assert list(dict.fromkeys(stages)) == ["start", "decoder", "adaptation", "clustering", "hardening"]
    ends = {"frozen": trace["snapshots"][0], "final": trace["snapshots"][-1]}
    for answer, moment in ends.items():
        assert record["scores"][answer] == {"map": moment["map"], "mrr": moment["mrr"]}
    assert "MAP" in outcomes[0].description and "MRR" in outcomes[0].description
    assert store.assignment_file(job.name).read_bytes() == other.assignment_file(job.name).read_bytes()
    assert other.read(job.name)["scores"]["final"] != record["scores"]["final"]


def test_a_method_without_training_says_that_it_has_nothing_to_rank(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("coterie.benchmark.runner._new_process", WorkerThread)
    _, outcomes, _ = _run(tmp_path, Row("still", "Still", "tfidf"), _made(), monkeypatch)
    assert "this method keeps none" in outcomes[0].error


@pytest.mark.skipif("COTERIE_DATA" not in os.environ, reason="COTERIE_DATA is not set")
def test_the_questions_of_semeval() -> None:
    data = load_set(RANKED)
    assert len(data.questions) == 571 and {len(each.candidates) for each in data.questions} == {10}
    assert sum(sum(each.relevant) for each in data.questions) == 2147
