"""Other clusterings of a method's embeddings."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from coterie.benchmark.reclustering import TITLES, recluster
from coterie.benchmark.rows import Row
from coterie.benchmark.runner import run_jobs
from coterie.benchmark.sets import find_set
from coterie.benchmark.store import Job, Store
from coterie.benchmark.tables import TableSpec, build_table
from coterie.evaluation.external import accuracy
from coterie.text.corpus import as_corpus


@pytest.mark.parametrize("name", [name for name in TITLES if "umap" not in name])
def test_every_clustering_finds_plain_groups(name: str) -> None:
    generator = np.random.default_rng(0)
    truth = np.repeat([0, 1, 2], 30)
    vectors = (10 * np.eye(3, 8)[truth] + generator.normal(size=(90, 8))).astype(np.float32)
    labels = recluster(name, as_corpus([f"text {row}" for row in range(90)]), vectors, 3, 0, "cpu")
    assert accuracy(truth.tolist(), labels) > 0.95


def test_a_run_is_scored_by_each(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    row = Row("words", "Words", "bow", {"max_features": 200}, reclustered=("kmeans", "ward"))
    monkeypatch.setattr("coterie.benchmark.rows.ROWS", (row,))
    job = Job(row, find_set("support"), 0)
    told: list[Any] = []
    run_jobs([job], Store(tmp_path), device="cpu", tell=told.append)
    assert told[0].error == ""
    scores = Store(tmp_path).read(job.name)["scores"]
    assert scores["on_ward"]["accuracy"] != scores["on_kmeans"]["accuracy"]
    monkeypatch.setattr("coterie.benchmark.tables.FROZEN", "words")
    spec = TableSpec("x", "x", ("support",), ("accuracy",), rows=("words",), answers=("final", "on_ward"))
    table = build_table(spec, Store(tmp_path))
    assert [line.title for line in table.lines] == ["Words", "Words: Ward"]
    assert table.cells["words:on_ward", "support", "accuracy"].values == (scores["on_ward"]["accuracy"],)
