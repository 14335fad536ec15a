"""``coterie fit --sample``, and the file of answers in more than one piece."""

from __future__ import annotations

import csv
import io
from pathlib import Path

import numpy as np
import pytest
from command_line import column, done, read_json, refusal, write_csv
from conftest import topic_texts

from coterie import Corpus
from coterie.metrics.external.run_evaluation import read_snapshots
from coterie.runs import assignments_file
from coterie.runs.assignments_file import AssignmentWriter

TEXTS = topic_texts(60)[0]


@pytest.fixture
def texts_csv(tmp_path: Path) -> Path:
    return write_csv(tmp_path / "texts.csv", {"text": [*TEXTS, *TEXTS[:5], ""]})


def test_learned_on_a_sample_and_assigned_to_all(texts_csv: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    outcome = done("fit", texts_csv, "-k", 3, "-m", "tfidf", "--sample", 20, "-o", run)
    assert "learned on a sample of 20 of 60 distinct texts" in outcome.out
    record = read_json(run / "run.json")
    assert record["sample"] == 20
    assert record["seconds"].keys() >= {"reading", "fitting", "describing", "writing", "saving", "assigning_others"}
    clusters = column(run / "assignments.csv", "cluster")
    assert len(clusters) == 66 and clusters.count("-1") == 1
    sizes = [cluster["size"] for cluster in read_json(run / "clusters.json")["clusters"]]
    assert sum(sizes) == 65 and sizes == sorted(sizes, reverse=True)
    done("predict", run, texts_csv, "-q", "-o", tmp_path / "again.csv")
    assert column(tmp_path / "again.csv", "cluster") == clusters


def test_the_sample_is_part_of_the_settings_that_can_be_repeated(texts_csv: Path, tmp_path: Path) -> None:
    done("fit", texts_csv, "-k", 3, "-m", "tfidf", "--sample", 20, "-q", "-o", tmp_path / "one")
    config = tmp_path / "one" / "run.json"
    done("fit", texts_csv, "--config", config, "-q", "-o", tmp_path / "two")
    assert read_json(tmp_path / "two" / "run.json")["sample"] == 20
    assert (tmp_path / "one" / "assignments.csv").read_bytes() == (tmp_path / "two" / "assignments.csv").read_bytes()
    done("fit", texts_csv, "--config", config, "--sample", 25, "-q", "-o", tmp_path / "three")
    assert read_json(tmp_path / "three" / "run.json")["sample"] == 25
    (tmp_path / "c.yaml").write_text("sample: many\n")
    assert "sample='many'" in refusal("fit", texts_csv, "-k", 3, "--config", tmp_path / "c.yaml", "-o", tmp_path / "x")


def test_a_sample_too_small_is_refused_at_once(texts_csv: Path, tmp_path: Path) -> None:
    message = refusal("fit", texts_csv, "-k", 3, "-m", "tfidf", "--sample", 2, "-o", tmp_path / "run")
    assert "sample=2" in message
    assert not (tmp_path / "run").exists()


def test_snapshots_know_which_rows_were_learned_on(texts_csv: Path, tiny_encoder: Path, tmp_path: Path) -> None:
    options = ("-m", "sccl", "--encoder", tiny_encoder, "--set", "training.max_steps=2", "--snapshots", 1, "-q")
    done("fit", texts_csv, "-k", 3, *options, "--sample", 20, "-o", tmp_path / "run")
    snapshots, rows = read_snapshots(tmp_path / "run")
    assert len(snapshots[0].embeddings) == 20
    assert len(rows) == 66 and rows[-1] == -1
    assert sorted(set(rows.tolist())) == list(range(-1, 20))
    # Each text stands where it is first met, and its repeats with it.
    inside = [row for row in rows[:60].tolist() if row >= 0]
    assert inside == list(range(20))
    assert rows[60:65].tolist() == rows[:5].tolist()
    done("fit", texts_csv, "-k", 3, *options, "-o", tmp_path / "all")
    np.testing.assert_array_equal(read_snapshots(tmp_path / "all")[1], [*range(60), *range(5), -1])


def test_pieces_of_the_file_do_not_show(monkeypatch: pytest.MonkeyPatch) -> None:
    texts = ("plain", "a\rb", "a\r\nb", 'say "yes"', "one, two", "two\nlines", "", " spaced ", "\r\n")
    n = len(texts)
    corpus = Corpus(texts, tuple(f"i,{i}" for i in range(n)), {"k": (None, 1.5, *texts[2:])}, "text", "id")

    def written(at_a_time: int) -> str:
        monkeypatch.setattr(assignments_file, "WRITTEN_AT_A_TIME", at_a_time)
        stream = io.StringIO(newline="")
        writer = AssignmentWriter(stream)
        writer.write(corpus, np.arange(n), np.linspace(0, 1, n))
        writer.write(corpus, np.arange(n), np.linspace(0, 1, n))
        return stream.getvalue()

    whole = written(100)
    assert [written(size) for size in (1, 4, n)] == [whole] * 3
    rows = list(csv.reader(io.StringIO(whole, newline="")))
    assert rows[0] == ["row", "id", "cluster", "confidence", "status", "text", "k"]
    assert [row[0] for row in rows[1:]] == [str(i + 1) for i in range(2 * n)]
    assert [row[5] for row in rows[1:]] == [*texts, *texts]
    assert rows[2] == ["2", "i,1", "1", "0.1250", "assigned", "a\rb", "1.5"]
    assert rows[1][-1] == "" and rows[7][4] == "empty"
    assert whole.startswith("row,id,cluster,confidence,status,text,k\n1,")
