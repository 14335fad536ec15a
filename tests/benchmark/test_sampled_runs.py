"""Runs of a method that learned on some of the texts: what is kept of its epochs, and on which rows it is scored."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import load_file

from coterie.benchmark import worker
from coterie.benchmark.partitions import read_partitions
from coterie.benchmark.scoring import epochs_of, score, scores_of
from coterie.benchmark.sets import Loaded, find_set, load_set
from coterie.text.corpus import as_corpus
from coterie.text.sampling import labels_by_row, sample_places

LEARNED = 200


@pytest.fixture(scope="module")
def sampled(tmp_path_factory: pytest.TempPathFactory, tiny_encoder: Path) -> dict[str, Any]:
    """SCCL learned on 200 texts of the bundled sample, as a worker does it."""
    folder, data = tmp_path_factory.mktemp("sampled"), load_set(find_set("support"))
    (folder / "texts.json").write_text(json.dumps({"texts": data.texts, "held_out": []}), encoding="utf-8")
    job = {
        "method": "sccl",
        "settings": {
            "encoder": str(tiny_encoder),
            "training.max_steps": 2,
            "training.batch_size": 128,
            "training.snapshot_every": 1,
        },
        "n_clusters": data.n_clusters,
        "seed": 0,
        "device": "cpu",
        "texts": str(folder / "texts.json"),
        "assignments": str(folder / "answers"),
        "epochs": str(folder / "epochs"),
        "reclustered": (),
        "trace": str(folder / "trace.safetensors"),
        "ranks": False,
    }
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(worker, "_most", lambda *_: LEARNED)
        answer = worker.fitted(job)
    found = read_partitions(folder / "answers") | read_partitions(folder / "epochs")
    return {"data": data, "answer": answer, "found": found, "trace": load_file(folder / "trace.safetensors")}


def test_places_of_the_texts_that_were_learned_on() -> None:
    corpus = as_corpus(["b", "a", "", "b", "c"])
    # "a" was not learned on; distinct texts stand in the order they are met.
    places = sample_places(corpus, np.array([3, -1, -1, 3, 0]))
    assert places.tolist() == [0, -1, -1, 0, 1]
    assert labels_by_row(np.array([7, 5]), places).tolist() == [7, -1, -1, 7, 5]


def test_epochs_are_of_the_rows_that_were_learned_on(sampled: dict[str, Any]) -> None:
    found, texts = sampled["found"], sampled["data"].texts
    learned = found["frozen"] >= 0
    assert len({text for text, known in zip(texts, learned, strict=True) if known}) == LEARNED
    assert found["epochs"].shape == (len(sampled["answer"]["snapshots"]), len(texts))
    assert ((found["epochs"] >= 0) == learned).all()
    assert ((found["final"] >= 0) == [bool(text.strip()) for text in texts]).all()
    # Rows with the same text are in the same cluster at every epoch, which an index into all texts would not give.
    for epoch in found["epochs"]:
        by_text = {text: label for text, label in zip(texts, epoch, strict=True) if label >= 0}
        assert [by_text.get(text, -1) for text in texts] == epoch.tolist()


def test_the_first_epoch_is_the_start(sampled: dict[str, Any]) -> None:
    """Up to the names of the clusters."""
    found = sampled["found"]
    pairs = set(zip(found["epochs"][0].tolist(), found["frozen"].tolist(), strict=True))
    assert len(pairs) == len(set(found["frozen"].tolist()))


def test_a_trace_follows_texts_that_were_learned_on(sampled: dict[str, Any]) -> None:
    trace, found = sampled["trace"], sampled["found"]
    assert (found["frozen"][trace["rows"]] >= 0).all()
    assert (trace["labels"][0] == found["epochs"][0][trace["rows"]]).all()


def test_a_start_is_scored_on_the_rows_it_knows_and_the_answer_on_all() -> None:
    data = Loaded(("a", "b", "c", "d", ""), ("x", "x", "y", "y", "y"), 2, "")
    answers = {
        "frozen": np.array([0, -1, 1, -1, -1]),
        "final": np.array([0, 0, 1, 0, -1]),
        "epochs": np.array([[0, -1, 0, -1, -1]]),
    }
    scores = scores_of(data, answers)
    # Of the three rows that are no matter of the sample two are right; the empty text is wrong everywhere.
    assert scores["frozen"] == score(("x", "y", "y"), np.array([0, 1, -1]))
    assert scores["frozen"]["accuracy"] == pytest.approx(200 / 3)
    assert scores["final"]["accuracy"] == pytest.approx(60)
    assert [each["accuracy"] for each in epochs_of(data, answers)] == [pytest.approx(100 / 3)]
