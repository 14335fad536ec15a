"""Splitting a large cluster: quick, and nobody waits for it."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from call_count import calls_of
from served import Served
from synthetic_run import write_run

from coterie.app import edit_requests
from coterie.app.edit_requests import build_edit, split_vectors
from coterie.app.session import EMBEDDED_AT_A_TIME, ExplorerSession
from coterie.clustering.assignment import squared_distances
from coterie.clustering.kmeans import kmeans
from coterie.errors import InputError

N_ROWS, WIDTH = 30_000, 384


def _vectors(n: int = N_ROWS, width: int = WIDTH) -> tuple[np.ndarray, np.ndarray]:
    """Three clouds that overlap a little, and the cloud of each row."""
    generator = np.random.default_rng(3)
    clouds = generator.choice(3, n, p=[0.5, 0.3, 0.2])
    return (generator.normal(size=(n, width)) + 6 * np.eye(3, width)[clouds]).astype(np.float32), clouds


def test_a_split_of_a_large_cluster_takes_few_calls_per_row(tmp_path: Path) -> None:
    vectors, clouds = _vectors()
    session = ExplorerSession(write_run(tmp_path / "run", np.zeros(N_ROWS, dtype=np.int64), vectors), device="cpu")
    _ = session.map
    edits = []
    asked = {"kind": "split", "clusters": [0], "into": 3}
    calls = calls_of(lambda: edits.append(build_edit(session, asked)))
    edit = edits[-1]
    session.edit(edit, log_lines=0)
    found = session.state.labels
    # The clouds are found again, the largest under the old id, and each text is with the nearest centre that is kept.
    pairs = np.unique(found * 3 + clouds, return_counts=True)[1]
    assert np.sort(pairs)[-3:].sum() > 0.95 * N_ROWS
    assert np.bincount(found).argmax() == 0
    centers = np.array([part.center for part in edit.parts], dtype=np.float32)
    ids = np.array([part.cluster for part in edit.parts])
    assert (ids[squared_distances(vectors, centers).argmin(axis=1)] == found).mean() > 0.999
    assert calls < 5 * N_ROWS, calls


def test_centres_of_a_sample_move_only_a_few_steps_over_all_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    vectors, _ = _vectors()
    steps = []

    def spy(rows: Any, *given: Any, **settings: Any) -> Any:
        steps.append((len(rows), settings.get("max_iter")))
        return kmeans(rows, *given, **settings)

    monkeypatch.setattr(edit_requests, "kmeans", spy)
    split_vectors(vectors, 3, np.ones(N_ROWS, dtype=np.int64))
    assert steps == [(edit_requests.MAX_FITTED_TEXTS, None), (N_ROWS, edit_requests.FINAL_STEPS)]


def test_few_rows_are_all_looked_at() -> None:
    vectors, clouds = _vectors(300, 5)
    found = split_vectors(vectors, 3, np.ones(300, dtype=np.int64))
    pairs = np.unique(found.labels * 3 + clouds, return_counts=True)[1]
    assert np.sort(pairs)[-3:].sum() > 290


def test_only_texts_that_are_not_on_the_map_are_embedded_some_at_a_time(tmp_path: Path) -> None:
    vectors, _ = _vectors(2_000, 6)
    run = write_run(tmp_path / "run", np.zeros(2_000, dtype=np.int64), vectors, mapped=np.arange(0, 2_000, 2))
    session = ExplorerSession(run, device="cpu")
    model = _Model(dict(zip(session.corpus.texts, vectors, strict=True)))
    vars(session.run)["model"] = model
    rows = np.arange(2_000)[::-1]
    assert np.array_equal(session.vectors_of(rows), vectors[rows])
    assert sum(model.asked) == 1_000 and max(model.asked) == EMBEDDED_AT_A_TIME


class _Model:
    """Knows the vectors of texts, and how many it was asked for at a time."""

    def __init__(self, known: dict[str, np.ndarray]) -> None:
        self.known = known
        self.asked: list[int] = []

    def transform(self, texts: list[str]) -> np.ndarray:
        self.asked.append(len(texts))
        return np.array([self.known[text] for text in texts])


def test_texts_that_are_all_alike_cannot_be_split(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", np.zeros(20, dtype=np.int64), np.ones((20, 4)))
    with pytest.raises(InputError, match="same embedding"):
        build_edit(ExplorerSession(run, device="cpu"), {"kind": "split", "clusters": [0], "into": 2})


def test_others_are_served_while_a_cluster_is_split(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    vectors, _ = _vectors(400, 6)
    run = write_run(tmp_path / "run", np.arange(400) % 2, vectors)
    began, go_on = threading.Event(), threading.Event()

    def slowly(*given: object, **more: object) -> object:
        began.set()
        assert go_on.wait(60)
        return split_vectors(*given, **more)  # type: ignore[arg-type]

    monkeypatch.setattr(edit_requests, "split_vectors", slowly)
    answers: list[dict[str, object]] = []
    with Served(run) as served:
        splitting = threading.Thread(
            target=lambda: answers.append(served.edit(kind="split", clusters=[0], into=2)), daemon=True
        )
        splitting.start()
        assert began.wait(60)
        assert served.ask("/api/texts?cluster=1")["total"] == 200
        renamed = served.ask("/api/edits", {"kind": "rename", "clusters": [1], "name": "Meanwhile", "log_lines": 0})
        assert renamed["status"] == 200
        go_on.set()
        splitting.join(60)
        # What was split was not what the run is by now: the person looks again, and nothing is lost.
        assert answers[0]["status"] == 409
        assert served.edit(kind="split", clusters=[0], into=2)["status"] == 200
        assert len(served.session.state.names) == 3
