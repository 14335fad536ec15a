"""Snapshots of a run, read back and scored."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import numpy as np
import pytest
from conftest import topic_texts

from coterie import SCCL, TrainingConfig
from coterie.errors import InputError
from coterie.metrics.external import snapshots as module
from coterie.metrics.external.run_evaluation import read_snapshots
from coterie.metrics.external.scores import accuracy
from coterie.metrics.external.snapshots import sample_rows, score_snapshots
from coterie.metrics.internal.dunn import dunn
from coterie.metrics.internal.silhouette import silhouette
from coterie.training.history import Snapshot


def test_scores_of_each_snapshot(tiny_encoder: Path) -> None:
    texts, topics = topic_texts(60)
    training = TrainingConfig(max_epochs=2, batch_size=20, snapshot_every=1)
    model = SCCL(3, encoder=str(tiny_encoder), training=training).fit([*texts, "", texts[0]])
    rows = np.array([*range(60), -1, 0])
    truth = [*topics, None, topics[0]]
    scores = score_snapshots(model.snapshots_, rows, truth)
    assert [score["epoch"] for score in scores] == [0, 1, 2]
    first = model.snapshots_[0]
    expected = accuracy([*topics, topics[0]], [*first.labels, first.labels[0]])
    assert scores[0]["accuracy"] == pytest.approx(expected)
    assert scores[0]["silhouette"] == pytest.approx(silhouette(first.embeddings, first.labels))
    assert scores[0]["dunn"] == pytest.approx(dunn(first.embeddings, first.labels))
    assert scores[0]["intra"] != scores[2]["intra"]
    assert "accuracy" not in score_snapshots(model.snapshots_, rows)[0]


def _snapshot(embeddings: list[list[float]], labels: list[int]) -> Snapshot:
    return Snapshot("s", 0, 0, np.array(embeddings, dtype=np.float32), np.array(labels))


def test_dunn_by_hand_and_on_the_same_sample_of_texts(monkeypatch: pytest.MonkeyPatch) -> None:
    # Clusters {0, 1} and {4, 6} on a line: the gap is 3, the widest cluster 2.
    snapshot = _snapshot([[0], [1], [4], [6]], [0, 0, 1, 1])
    assert score_snapshots([snapshot], np.arange(4))[0]["dunn"] == pytest.approx(1.5)
    monkeypatch.setattr(module, "SAMPLE_SIZE", 12)
    embeddings = np.random.default_rng(0).normal(size=(30, 3)).astype(np.float32)
    sampled = sample_rows(30, 12)
    assert len(set(sampled.tolist())) == 12 and sampled.tolist() == sorted(sampled.tolist())
    for labels in (np.arange(30) % 2, np.arange(30) % 3):
        score = score_snapshots([Snapshot("s", 0, 0, embeddings, labels)], np.arange(30))[0]
        assert score["dunn"] == pytest.approx(dunn(embeddings[sampled], labels[sampled]))
        assert score["dunn"] != pytest.approx(dunn(embeddings, labels))


def test_a_collapsed_or_degenerate_snapshot_is_scored_as_far_as_it_goes() -> None:
    collapsed = _snapshot([[0.0], [1.0], [2.0]], [0, 0, 0])
    score = score_snapshots([collapsed], np.arange(3), ["a", "b", "b"])[0]
    assert (score["silhouette"], score["dunn"], score["inter"]) == (None, None, None)
    assert score["intra"] > 0 and score["accuracy"] == pytest.approx(2 / 3)
    # Clusters of single points have no diameter, so the index is infinite: nothing that JSON could hold.
    points = _snapshot([[0.0], [1.0]], [0, 1])
    score = score_snapshots([points], np.arange(2))[0]
    assert score["dunn"] is None and score["inter"] == 1
    json.dumps([score], allow_nan=False)


def test_through_the_command_line(
    tiny_encoder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from coterie.cli.main import app

    texts, topics = topic_texts(40)
    with (tmp_path / "in.csv").open("w", newline="") as stream:
        csv.writer(stream).writerows([["text", "label"], *zip(texts, topics, strict=True), ["", ""]])
    run = tmp_path / "run"
    app(
        f"fit {tmp_path}/in.csv -k 3 -m sccl --encoder {tiny_encoder} -o {run} -q --snapshots 1 --text-column text "
        "--set training.max_epochs=1".split(),
        standalone_mode=False,
    )
    kept, rows = read_snapshots(run)
    assert [snapshot.epoch for snapshot in kept] == [0, 1]
    np.testing.assert_array_equal(rows, [*range(40), -1])
    capsys.readouterr()
    arguments = ["evaluate", str(run / "assignments.csv"), "--labels", str(tmp_path / "in.csv"), "--snapshots"]
    app([*arguments, "--json"], standalone_mode=False)
    assert json.loads(capsys.readouterr().out)[0]["step"] == 0
    app(arguments, standalone_mode=False)
    with_labels = capsys.readouterr().out
    assert all(name in with_labels for name in ("ACC %", "silhouette", "Dunn"))
    app(["evaluate", str(run), "--snapshots"], standalone_mode=False)
    without = capsys.readouterr().out
    assert "ACC" not in without and "silhouette" in without and "Dunn" in without
    app(["evaluate", str(run), "--snapshots", "--json"], standalone_mode=False)
    scores = json.loads(capsys.readouterr().out)
    assert scores == score_snapshots(kept, rows)
    assert f"{scores[1]['dunn']:.3f}" in without


def test_a_run_without_snapshots_says_how_to_keep_them(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="--snapshots 1"):
        read_snapshots(tmp_path)
