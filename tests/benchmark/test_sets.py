"""Which rows of a data set are used."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest
from worker_thread import WorkerThread

from coterie.benchmark.rows import Row
from coterie.benchmark.runner import run_jobs
from coterie.benchmark.sets import SETS, BenchmarkSet, find_set, load_set
from coterie.benchmark.store import Job, Store

SUPPORT = find_set("support")


def test_a_set_is_all_rows_with_a_label() -> None:
    data = load_set(SUPPORT)
    assert len(data.texts) == len(data.labels) > 600
    assert data.n_clusters == len(set(data.labels)) == 12
    assert data.held_out == ()


def test_the_same_rows_are_sampled_every_time() -> None:
    some = replace(SUPPORT, sample_size=100)
    first, second = load_set(some), load_set(some)
    assert first == second
    assert len(first.texts) == 100
    assert first.sha256 != load_set(SUPPORT).sha256
    assert not Counter(first.texts) - Counter(load_set(SUPPORT).texts)


@pytest.mark.parametrize(("clusters", "expected"), [(0.5, 6), (0.75, 9), (1.25, 15), (1.5, 18), (0.01, 2)])
def test_a_wrong_number_of_clusters_changes_nothing_else(clusters: float, expected: int) -> None:
    data = load_set(replace(SUPPORT, clusters=clusters))
    assert data.n_clusters == expected
    assert data.texts == load_set(SUPPORT).texts


@pytest.mark.parametrize("ratio", [5, 20])
def test_classes_are_made_uneven(ratio: int) -> None:
    data = load_set(replace(SUPPORT, imbalance=ratio))
    before, after = Counter(load_set(SUPPORT).labels), Counter(data.labels)
    names = sorted(before)
    assert after[names[0]] == before[names[0]]
    # Shares fall evenly on a logarithmic scale, each class to the nearest whole text.
    for place, name in enumerate(names):
        share = ratio ** (-place / (len(names) - 1))
        assert after[name] == pytest.approx(share * before[name], abs=0.51)
    assert data.n_clusters == len(names)
    assert set(data.texts) < set(load_set(SUPPORT).texts)


def test_what_is_held_out_is_not_fitted_on() -> None:
    chosen = replace(SUPPORT, held_out=0.2)
    data, whole = load_set(chosen), load_set(SUPPORT)
    assert len(data.held_out) == len(data.held_out_labels) == round(0.2 * len(whole.texts))
    assert sorted([*data.texts, *data.held_out]) == sorted(whole.texts)


def test_what_is_held_out_is_assigned_and_scored_apart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("coterie.benchmark.runner._new_process", WorkerThread)
    chosen = BenchmarkSet("support-apart", dataset="support", held_out=0.2)
    job = Job(Row("quick", "Quick", "tfidf"), chosen, 0)
    store = Store(tmp_path)
    run_jobs([job], store, device="cpu")
    record, data = store.read(job.name), load_set(chosen)
    partitions = store.assignments(job.name)
    assert len(partitions["final"]) == len(data.texts) == record["texts"]
    assert len(partitions["held_out"]) == len(data.held_out)
    assert 10 < record["scores"]["held_out"]["accuracy"] < 100
    assert record["scores"]["oracle"] is None


def test_what_no_paper_shows_has_its_sets() -> None:
    names = {each.name for each in SETS}
    assert {"stackoverflow-k0.5", "stackoverflow-k1.25", "searchsnippets-k1.5", "stackoverflow-heldout"} <= names
    assert {"stackoverflow-i5", "stackoverflow-i100"} <= names
