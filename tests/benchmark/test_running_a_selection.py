"""Runs that a command asks for, and stored runs that are scored again."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner, Result
from worker_thread import WorkerThread

from coterie.benchmark import job_selection, scoring
from coterie.benchmark.job_selection import JobSelection, parse_seeds
from coterie.benchmark.partitions import write_partitions
from coterie.benchmark.rows import PROTOCOL, Row
from coterie.benchmark.runner import Outcome
from coterie.benchmark.scoring import scores_of
from coterie.benchmark.sets import Question, find_set, load_set
from coterie.benchmark.store import Job, Store
from coterie.cli.main import app
from coterie.errors import InputError, SettingError

SUPPORT = load_set(find_set("support"))


def _call(*arguments: object) -> Result:
    return CliRunner().invoke(app, ["benchmark", *map(str, arguments)])


def _run(folder: Path, *more: object) -> Result:
    return _call("run", "-m", "tfidf", "-d", "support", "-s", 0, "-o", folder, *more)


def test_what_is_missing_is_run_and_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("coterie.benchmark.runner._new_process", WorkerThread)
    late = _run(tmp_path, "--time-budget", 5)
    assert late.exit_code == 0 and "1 runs were not started: they would not end within 5 s" in late.output
    first = _run(tmp_path)
    assert first.exit_code == 0 and "1 runs wanted, 0 there already, 1 to do" in first.output
    assert "[1/1] tfidf" in first.output and "FAILED" not in first.output
    assert "1 runs wanted, 1 there already, 0 to do" in _run(tmp_path).output
    (record,) = Store(tmp_path).records().values()
    assert f"{record['scores']['final']['accuracy']:5.1f}" in first.output


def test_a_failed_run_fails_the_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(jobs: list[Job], store: Store, *, on_outcome: Any, **options: Any) -> list[Job]:
        on_outcome(Outcome(jobs[0], None, "no memory"))
        return []

    monkeypatch.setattr(job_selection, "run_jobs", fail)
    failed = _run(tmp_path)
    assert failed.exit_code == 1 and "FAILED: no memory" in failed.output


def test_seeds_are_listed_or_a_range() -> None:
    assert parse_seeds("0") == [0] and parse_seeds("3,0-2,1") == [3, 0, 1, 2]
    for wrong in ("x", "1-", "0,y"):
        with pytest.raises(SettingError, match="not of the form"):
            parse_seeds(wrong)


def test_rows_that_cannot_be_run_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    warnings: list[str] = []
    jobs = JobSelection("all", "support", "0").jobs(warnings.append)
    assert "vascl" not in {job.row.name for job in jobs}
    assert "vascl: no weights; to try it all the same: --methods vascl" in warnings
    assert [job.row.name for job in JobSelection("vascl", "support", "0").jobs(warnings.append)] == ["vascl"]
    monkeypatch.setattr(Row, "installed", property(lambda row: row.name != "tfidf"))
    with pytest.raises(SettingError, match="nothing to run"):
        JobSelection("tfidf", "support", "0").jobs(warnings.append)
    assert warnings[-1].startswith("tfidf: ") and warnings[-1].endswith("is not installed")


def _stored(folder: Path, **changes: Any) -> tuple[Store, str]:
    """Return a store with one run of the bundled sample."""
    store, name = Store(folder), "a.support.s0"
    partitions = {"final": np.arange(len(SUPPORT.texts)) % SUPPORT.n_clusters}
    write_partitions(store.assignment_file(name), partitions)
    record = {
        "row": "a", "dataset": "support", "seed": 0, "protocol": PROTOCOL, "data_sha256": SUPPORT.sha256,
        "scores": scores_of(SUPPORT, partitions),
    }  # fmt: skip
    store.write(name, {**record, **changes})
    return store, name


def test_scores_are_computed_again_from_assignments(tmp_path: Path) -> None:
    store, name = _stored(tmp_path)
    right = store.read(name)
    assert _call("score", "-o", tmp_path).output == "0 of 1 runs changed\n"
    # The best epoch is kept: the partitions of epochs are seldom stored.
    oracle = {"accuracy": 99.0}
    store.write(name, {**right, "scores": {**right["scores"], "final": {"accuracy": 1.0}, "oracle": oracle}})
    assert _call("score", "-o", tmp_path).output == "1 of 1 runs changed\n"
    assert Store(tmp_path).read(name) == {**right, "scores": {**right["scores"], "oracle": oracle}}


def test_scores_stay_where_nothing_can_be_computed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store, name = _stored(tmp_path, scores={"final": None})
    lines: list[str] = []
    ranking = replace(SUPPORT, questions=(Question(0, (1,), (True,)),))
    monkeypatch.setattr(scoring, "load_set", lambda dataset: ranking)
    scoring.score_again(store, lines.append)
    monkeypatch.setattr(scoring, "load_set", lambda dataset: SUPPORT)
    store.assignment_file(name).unlink()
    scoring.score_again(store, lines.append)
    assert [line.partition(":")[2] for line in lines[::2]] == [
        " ranked by embeddings, which are not stored; its scores stay",
        " no assignments; its scores stay",
    ]
    assert lines[1::2] == ["0 of 1 runs changed"] * 2 and store.read(name)["scores"] == {"final": None}


def test_scores_of_other_texts_are_refused(tmp_path: Path) -> None:
    store, _ = _stored(tmp_path, data_sha256="0")
    with pytest.raises(InputError, match="the texts of 'support' here are not those of the run"):
        scoring.score_again(store, print)
