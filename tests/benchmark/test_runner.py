"""Runs without labels: files, resuming, time budget, failures."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from worker_thread import WorkerThread

import coterie.benchmark.runner as runner
from coterie.benchmark.rows import PROTOCOL, Row
from coterie.benchmark.runner import Outcome, expected_seconds, run_jobs
from coterie.benchmark.scoring import scores_of
from coterie.benchmark.sets import SETS, BenchmarkSet, Loaded, find_set, load_set
from coterie.benchmark.store import Job, Store, changed_parameters
from coterie.errors import InputError, SettingError

SUPPORT = find_set("support")
QUICK = Row("quick", "Quick", "tfidf", {"max_features": 200})
BROKEN = Row("broken", "Broken", "bow", {"max_features": -1})


def _run(folder: Path, *jobs: Job, **options: Any) -> tuple[Store, list[Outcome], list[Job]]:
    outcomes: list[Outcome] = []
    store = Store(folder)
    left = run_jobs(jobs, store, device="cpu", on_outcome=outcomes.append, **options)
    return store, outcomes, left


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Store:
    """Return the runs of two real processes at once, on a machine of two cores."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(runner, "usable_cores", lambda: 2)
        patch.setenv("OMP_NUM_THREADS", "5")
        return _run(tmp_path_factory.mktemp("results"), Job(QUICK, SUPPORT, 0), Job(QUICK, SUPPORT, 1), at_once=2)[0]


def test_a_record_tells_all_about_its_run(finished: Store) -> None:
    name = Job(QUICK, SUPPORT, 1).name
    record = finished.records()[name]
    data = load_set(SUPPORT)
    assert record["method"] == "tfidf" and record["row"] == "quick"
    assert (record["dataset"], record["seed"], record["protocol"]) == ("support", 1, PROTOCOL)
    assert record["settings"] == {"max_features": 200}
    assert record["parameters"]["random_state"] == 1
    assert record["data_sha256"] == data.sha256 and record["texts"] == len(data.texts)
    assert record["n_clusters"] == len(set(data.labels))
    assert {"code_version", "machine", "source_digest", "date"} <= set(record)
    assert record["seconds"]["fit"] > 0
    assert 10 < record["scores"]["final"]["accuracy"] < 100
    # Nothing was trained.
    assert all(record["scores"][answer] is None for answer in ("frozen", "head", "kmeans", "oracle"))
    assert len(finished.assignments(name)["final"]) == len(data.texts)


def test_seeds_have_files_of_their_own(finished: Store) -> None:
    first, second = (Job(QUICK, SUPPORT, seed).name for seed in (0, 1))
    assert finished.names() == [first, second]
    assert not np.array_equal(finished.assignments(first)["final"], finished.assignments(second)["final"])


def test_other_settings_have_another_file() -> None:
    other = replace(QUICK, settings={"max_features": 300})
    assert Job(QUICK, SUPPORT, 0).name != Job(other, SUPPORT, 0).name
    assert Job(QUICK, SUPPORT, 0).name.startswith(f"quick.support.s0.p{PROTOCOL}.")


def test_a_run_that_is_there_is_not_run_again(finished: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_process(at_once: int) -> Any:
        raise AssertionError("a process was started")

    monkeypatch.setattr(runner, "_new_process", no_process)
    _, outcomes, left = _run(finished.folder, Job(QUICK, SUPPORT, 0), Job(QUICK, SUPPORT, 1))
    assert outcomes == [] and left == []


def test_labels_cannot_reach_an_assignment(finished: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The labels are permuted: scores fall, and no text changes its cluster."""
    real = load_set

    def permuted(chosen: BenchmarkSet) -> Loaded:
        data = real(chosen)
        labels = list(data.labels)
        random.Random(0).shuffle(labels)
        return replace(data, labels=tuple(labels))

    monkeypatch.setattr(runner, "load_set", permuted)
    monkeypatch.setattr(runner, "_new_process", WorkerThread)
    job = Job(QUICK, SUPPORT, 0)
    store, _, _ = _run(tmp_path, job)
    assert store.assignment_file(job.name).read_bytes() == finished.assignment_file(job.name).read_bytes()
    lower, higher = (each.read(job.name)["scores"]["final"]["nmi"] for each in (store, finished))
    assert lower < higher / 2


def test_a_fitting_process_receives_texts_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COTERIE_DATA", str(tmp_path))
    requests: list[dict[str, Any]] = []
    environments: list[dict[str, str]] = []

    def started(*arguments: Any, **options: Any) -> Any:
        environments.append(options["env"])
        process: Any = WorkerThread(1)
        write = process.stdin.write

        def write_and_store(line: str) -> int:
            requests.append(json.loads(line))
            requests[-1]["content"] = json.loads(Path(requests[-1]["texts"]).read_text(encoding="utf-8"))
            return int(write(line))

        process.stdin.write = write_and_store
        return process

    monkeypatch.setattr(runner.subprocess, "Popen", started)
    _run(tmp_path / "out", Job(QUICK, SUPPORT, 0))
    assert "COTERIE_DATA" not in environments[0] and "PATH" in environments[0]
    assert set(requests[0]) - {"content"} == {
        "method", "settings", "n_clusters", "seed", "device", "texts", "assignments", "epochs", "reclustered", "trace",
        "ranks",
    }  # fmt: skip
    assert requests[0]["content"] == {"texts": list(load_set(SUPPORT).texts), "held_out": []}


def test_a_failure_is_reported_and_the_others_go_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("coterie.benchmark.runner._new_process", WorkerThread)
    store, outcomes, left = _run(tmp_path, Job(BROKEN, SUPPORT, 0), Job(QUICK, SUPPORT, 0))
    assert [outcome.record is None for outcome in outcomes] == [True, False]
    assert "max_features" in outcomes[0].error
    assert left == []
    assert store.names() == [Job(QUICK, SUPPORT, 0).name]


def test_a_process_that_dies_is_reported_and_replaced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real, dying = runner._new_process, [True]

    def process(at_once: int) -> Any:
        if not dying:
            return WorkerThread(at_once)
        dying.clear()
        started = real(at_once)
        started.kill()
        started.wait()
        return started

    monkeypatch.setattr(runner, "_new_process", process)
    store, outcomes, _ = _run(tmp_path, Job(QUICK, SUPPORT, 0), Job(QUICK, SUPPORT, 1))
    assert [outcome.record is None for outcome in outcomes] == [True, False]
    assert "without an answer" in outcomes[0].error
    assert store.names() == [Job(QUICK, SUPPORT, 1).name]


# A fitting process that lacks memory while another one is busy. They wait for each other by files, so that the first
# two runs are in progress at once however slow the machine is: seed 0 ends once the runner has ended the process whose
# run of seed 1 failed.
CROWDED = """
import json, os, sys, time
from pathlib import Path
import numpy as np
from coterie.benchmark.partitions import write_partitions
inside, texts = Path(sys.argv[1]), int(sys.argv[2])
failed = inside / "failed"
def wait_for(path):
    while not path.exists():
        time.sleep(0.01)
def is_alive(process):
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    return True
for line in sys.stdin:
    job = json.loads(line)
    mine = inside / f"seed-{job['seed']}"
    mine.touch()
    if job["seed"] == 0:
        wait_for(failed)
        while is_alive(int(failed.read_text())):
            time.sleep(0.01)
    elif not failed.exists():
        wait_for(inside / "seed-0")
    if job["seed"] > 0 and len(list(inside.glob("seed-*"))) > 1:
        (inside / "failing").write_text(str(os.getpid()))
        os.replace(inside / "failing", failed)
        answer = {"error": "OutOfMemoryError: CUDA out of memory. Tried"}
    else:
        write_partitions(Path(job["assignments"]), {"final": np.arange(texts) % job["n_clusters"]})
        answer = {"traced": [], "seconds": {"fit": 1.0}}
    mine.unlink()
    print(json.dumps(answer), flush=True)
"""


def test_a_run_that_lacked_memory_is_run_again_beside_fewer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    inside = tmp_path / "inside"
    inside.mkdir()
    started: list[int] = []

    def process(at_once: int) -> subprocess.Popen[str]:
        started.append(at_once)
        command = [sys.executable, "-c", CROWDED, str(inside), str(len(load_set(SUPPORT).texts))]
        return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    monkeypatch.setattr(runner, "_new_process", process)
    jobs = [Job(QUICK, SUPPORT, seed) for seed in (0, 1, 2)]
    store, outcomes, left = _run(tmp_path / "results", *jobs, at_once=2)
    assert not left and not [each.error for each in outcomes if each.record is None]
    assert all(store.has(job) for job in jobs)
    # The process that lacked memory is gone with what it held; those after it ran one at a time.
    assert started[:2] == [2, 2] and set(started[2:]) <= {1}


def test_a_run_that_lacks_memory_alone_has_failed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    answer = (
        'import json, sys\nfor line in sys.stdin:\n    print(json.dumps({"error": "CUDA out of memory"}), flush=True)'
    )

    def process(at_once: int) -> subprocess.Popen[str]:
        command = [sys.executable, "-c", answer]
        return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    monkeypatch.setattr(runner, "_new_process", process)
    _, outcomes, _ = _run(tmp_path, Job(QUICK, SUPPORT, 0), at_once=4)
    assert [each.error for each in outcomes] == ["CUDA out of memory"]


def test_no_run_is_started_that_would_not_end_in_time(finished: Store, tmp_path: Path) -> None:
    job = Job(QUICK, SUPPORT, 2)
    longest = max(finished.read(name)["seconds"]["fit"] for name in finished.names())
    assert expected_seconds(job, 770, finished) == longest
    # On another set: by the number of texts. Of another row nothing is known, whatever its name begins with.
    elsewhere = expected_seconds(Job(QUICK, find_set("banking77"), 0), 7700, finished)
    assert elsewhere == pytest.approx(longest * 7700 / len(load_set(SUPPORT).texts))
    assert expected_seconds(Job(replace(QUICK, name="qui"), SUPPORT, 0), 1000, finished) == 23.0
    _, outcomes, left = _run(tmp_path, Job(QUICK, SUPPORT, 0), time_budget=5)
    assert outcomes == [] and left == [Job(QUICK, SUPPORT, 0)]


def test_a_run_of_other_defaults_is_made_again(finished: Store, tmp_path: Path) -> None:
    job, store = Job(QUICK, SUPPORT, 0), Store(tmp_path)
    record = finished.read(job.name)
    store.write(job.name, record)
    assert store.has(job) and changed_parameters(record, job) == []
    # Something that the method has got since then is no matter, something else that it does is.
    was = {name: value for name, value in record["parameters"].items() if name != "stop_words"}
    store.write(job.name, {**record, "parameters": was})
    assert store.has(job)
    store.write(job.name, {**record, "parameters": {**was, "clusterer": "ward"}})
    assert not store.has(job) and changed_parameters(store.read(job.name), job) == ["clusterer"]


def test_runs_at_once_share_the_cores(finished: Store) -> None:
    assert [record["machine"]["cores"] for record in finished.records().values()] == [1, 1]


def test_a_trained_method_is_scored_at_its_start_and_its_end(
    tmp_path: Path, tiny_encoder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And at the best epoch by label, apart from the others."""
    monkeypatch.setattr("coterie.benchmark.runner._new_process", WorkerThread)
    settings = {"encoder": str(tiny_encoder), "training.max_steps": 6, "training.batch_size": 256}
    job = Job(Row("trained", "Trained", "sccl", settings), SUPPORT, 0)
    store, outcomes, _ = _run(tmp_path, job)
    assert outcomes[0].error == ""
    scores = store.read(job.name)["scores"]
    assert all(scores[answer] is not None for answer in ("frozen", "head", "kmeans", "final", "oracle"))
    assert scores["oracle"]["accuracy"] == max(each["accuracy"] for each in scores.values())
    partitions = store.assignments(job.name)
    assert partitions["epochs"].shape == (3, len(load_set(SUPPORT).texts))  # the start and two epochs
    assert scores == scores_of(load_set(SUPPORT), partitions)
    del partitions["epochs"]
    assert scores_of(load_set(SUPPORT), partitions)["oracle"] is None


def test_protocols_are_not_mixed(finished: Store, tmp_path: Path) -> None:
    store = Store(tmp_path)
    record = finished.read(Job(QUICK, SUPPORT, 0).name)
    store.write("one", record)
    assert list(store.records()) == ["one"]
    store.write("other", {**record, "protocol": PROTOCOL + 1})
    with pytest.raises(InputError, match=f"protocols {PROTOCOL}, {PROTOCOL + 1}"):
        store.records()


def test_every_set_has_a_name_of_its_own() -> None:
    names = [each.name for each in SETS]
    assert len(set(names)) == len(names)
    with pytest.raises(SettingError, match="no data set 'nowhere'"):
        find_set("nowhere")


@pytest.mark.skipif("COTERIE_DATA" not in os.environ, reason="COTERIE_DATA is not set")
@pytest.mark.parametrize(
    ("name", "rows"), [("trec6", 5452), ("dbpedia14", 10_000), ("bbc_sentences", 21_923), ("searchsnippets", 12_340)]
)
def test_the_rows_of_a_set(name: str, rows: int) -> None:
    assert len(load_set(find_set(name)).texts) == rows
