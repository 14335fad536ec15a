"""Snapshots of a run, read back and scored."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import numpy as np
import pytest
from conftest import grouped_texts

from coterie import SCCL, TrainingConfig
from coterie.errors import InputError
from coterie.evaluation.external import accuracy
from coterie.evaluation.snapshots import read_snapshots, score_snapshots
from coterie.validity.silhouette import silhouette


def test_scores_of_each_snapshot(tiny_encoder: Path) -> None:
    texts, groups = grouped_texts(60)
    training = TrainingConfig(max_epochs=2, batch_size=20, snapshot_every=1)
    model = SCCL(3, encoder=str(tiny_encoder), training=training).fit([*texts, "", texts[0]])
    rows = np.array([*range(60), -1, 0])
    truth = [*groups, None, groups[0]]
    scores = score_snapshots(model.snapshots_, rows, truth)
    assert [score["epoch"] for score in scores] == [0, 1, 2]
    first = model.snapshots_[0]
    expected = accuracy([*groups, groups[0]], [*first.labels, first.labels[0]])
    assert scores[0]["accuracy"] == pytest.approx(expected)
    assert scores[0]["silhouette"] == pytest.approx(silhouette(first.embeddings, first.labels))
    assert scores[0]["intra"] != scores[2]["intra"]
    assert "accuracy" not in score_snapshots(model.snapshots_, rows)[0]


def test_through_the_command_line(
    tiny_encoder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from coterie.cli.main import app

    texts, groups = grouped_texts(40)
    with (tmp_path / "in.csv").open("w", newline="") as stream:
        csv.writer(stream).writerows([["text", "label"], *zip(texts, groups, strict=True), ["", ""]])
    run = tmp_path / "run"
    app(
        f"fit {tmp_path}/in.csv -k 3 --encoder {tiny_encoder} -o {run} -q --snapshots 1 --text-column text "
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
    assert "silhouette" in capsys.readouterr().out


def test_a_run_without_snapshots_says_how_to_keep_them(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="--snapshots 1"):
        read_snapshots(tmp_path)
