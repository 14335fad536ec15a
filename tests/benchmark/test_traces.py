"""How embeddings moved: what a fitting process saves, and what labels say about it afterwards."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from worker_thread import WorkerThread

import coterie.benchmark.runner as runner
from coterie.benchmark.rows import Row
from coterie.benchmark.runner import run_jobs
from coterie.benchmark.sets import Loaded, find_set, load_set
from coterie.benchmark.store import Job, Store
from coterie.benchmark.traces import FIRST_MAPS, MOST_SNAPSHOTS, SAMPLE, measures, sampled_rows, save_trace, trace_of
from coterie.text.corpus import as_corpus
from coterie.training.history import Snapshot

TEXTS = ["one", "two", "", "one", "three", "four", "five", "six"]
CLASSES = ("a", "b", "a", "a", "b", "a", "b", "a")


def _snapshots(stages: list[str]) -> tuple[Any, list[Snapshot]]:
    corpus = as_corpus(TEXTS)
    generator = np.random.default_rng(0)
    count = len(corpus.distinct)
    found = [
        Snapshot(stage, epoch, 10 * epoch, generator.normal(size=(count, 3)), generator.integers(2, size=count))
        for epoch, stage in enumerate(stages)
    ]
    return corpus, found


def test_what_is_saved_is_what_the_snapshots_hold(tmp_path: Path) -> None:
    corpus, snapshots = _snapshots(["start", "first", "second"])
    saved = save_trace(tmp_path / "t.safetensors", corpus.distinct_index, snapshots)
    data = Loaded(tuple(TEXTS), CLASSES, 2, "")
    trace = trace_of(tmp_path / "t.safetensors", saved, data)
    # The empty text has no embedding and is left out; repeated ones are rows like any other.
    assert trace["texts"] == 7
    assert [trace["class_names"][code] for code in trace["classes"]] == [
        label for text, label in zip(TEXTS, CLASSES, strict=True) if text
    ]
    assert [each["stage"] for each in trace["snapshots"]] == ["start", "first", "second"]
    rows = [row for row, text in enumerate(TEXTS) if text]
    places = corpus.distinct_index[rows]
    codes = np.array([("a", "b").index(CLASSES[row]) for row in rows])
    expected = measures(
        snapshots[1].embeddings[places].astype(np.float16).astype(float), snapshots[1].labels[places], codes
    )
    assert {name: trace["snapshots"][1][name] for name in expected} == expected
    assert all(len(each["map"]) == 7 for each in trace["snapshots"])


def test_ends_of_stages_are_always_saved_and_mapped(tmp_path: Path) -> None:
    corpus, snapshots = _snapshots(["start"] + ["first"] * 60 + ["second"] * 60)
    saved = save_trace(tmp_path / "t.safetensors", corpus.distinct_index, snapshots)
    assert len(saved) <= MOST_SNAPSHOTS + FIRST_MAPS + 3
    mapped = [each["epoch"] for each in saved if each["mapped"]]
    assert mapped == [*range(FIRST_MAPS + 1), 60, 120]


def test_the_sample_is_the_same_for_everybody() -> None:
    rows = sampled_rows(5_000)
    assert len(set(rows.tolist())) == SAMPLE and list(rows) == sorted(rows)
    assert np.array_equal(rows, sampled_rows(5_000))
    assert sampled_rows(5).tolist() == [0, 1, 2, 3, 4]


def test_measures_by_hand() -> None:
    vectors = np.array([[0.0, 1.0], [0.0, 3.0], [4.0, 0.0], [2.0, 0.0]])
    found = measures(vectors, np.array([0, 0, 1, 0]), np.array([0, 0, 1, 1]))
    assert found["accuracy"] == 75
    # Centres (0, 2) and (3, 0), each text one away from its own.
    assert found["within"] == pytest.approx(1.0)
    assert found["between"] == pytest.approx(np.sqrt(13), abs=1e-5)
    assert (found["cosine_same"], found["cosine_other"]) == (1.0, 0.0)
    # Clusters {0, 1, 3} and {2}: gap 2 between (2, 0) and (4, 0), widest sqrt(13) between (0, 3) and (2, 0).
    assert found["dunn"] == pytest.approx(2 / np.sqrt(13), abs=1e-5)


def test_one_cluster_has_no_silhouette() -> None:
    found = measures(np.eye(4), np.zeros(4, dtype=int), np.array([0, 0, 1, 1]))
    assert found["silhouette"] is None and found["dunn"] is None
    assert found["silhouette_classes"] is not None


def test_a_run_with_a_trace(tmp_path: Path, tiny_encoder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A run counts as stored only with its trace; the arrays it is computed from are removed."""
    monkeypatch.setattr("coterie.benchmark.runner._new_process", WorkerThread)
    whole = load_set(find_set("support"))
    # A map of more texts would take most of the time.
    data = replace(whole, texts=whole.texts[:200], labels=whole.labels[:200])
    monkeypatch.setattr(runner, "load_set", lambda _: data)
    settings = {"encoder": str(tiny_encoder), "training.max_steps": 6, "training.batch_size": 64}
    job = Job(Row("trained", "Trained", "sccl", settings), find_set("support"), 0, trace=True)
    store = Store(tmp_path)
    outcomes: list[Any] = []
    assert run_jobs([job], store, device="cpu", on_outcome=outcomes.append) == []
    assert outcomes[0].error == ""
    assert store.has(job)
    trace, record = store.read_trace(job.name), store.read(job.name)
    assert len(trace["snapshots"]) == len(record["snapshots"]) == 3  # the start and two epochs
    assert len(record["curve"]) == 3
    assert record["curve"][0]["accuracy"] == pytest.approx(record["scores"]["frozen"]["accuracy"], abs=0.001)
    assert len(data.texts) < SAMPLE  # so that the trace is of all texts
    assert trace["snapshots"][-1]["accuracy"] == pytest.approx(record["curve"][-1]["accuracy"], abs=0.001)
    assert not list(tmp_path.rglob("*.trace.safetensors"))
    store.trace_file(job.name).unlink()
    assert not store.has(job) and store.has(Job(job.row, job.dataset, 0))


def test_nothing_moves_where_nothing_is_trained(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("coterie.benchmark.runner._new_process", WorkerThread)
    job = Job(Row("words", "Words", "bow", {"max_features": 50}), find_set("support"), 0, trace=True)
    run_jobs([job], Store(tmp_path), device="cpu")
    assert Store(tmp_path).has(job) and not Store(tmp_path).trace_file(job.name).is_file()
