"""``coterie evaluate``: assignments against known labels."""

from __future__ import annotations

import json
import math
import random
from collections.abc import Sequence
from pathlib import Path

import pytest
from command_line import coterie, done, refusal, refusal_line, tree, write_csv, write_jsonl, write_parquet
from conftest import grouped_texts

from coterie.evaluation.external import evaluate

TEXTS, GROUPS = grouped_texts(30)
# Mostly the groups, with mistakes and two rows in no cluster.
NUMBER = {"parcel": 0, "password": 1, "refund": 2}
CLUSTERS = [NUMBER[group] if i % 7 else (NUMBER[group] + 1) % 3 for i, group in enumerate(GROUPS)]
CLUSTERS[4] = CLUSTERS[20] = -1
IDS = [f"t{i}" for i in range(30)]


@pytest.fixture
def assignments(tmp_path: Path) -> Path:
    columns = {
        "row": list(range(1, 31)),
        "id": IDS,
        "cluster": CLUSTERS,
        "confidence": ["0.5000"] * 30,
        "status": ["assigned"] * 30,
        "text": TEXTS,
    }
    return write_csv(tmp_path / "assignments.csv", columns)


def scores(*arguments: object) -> dict[str, float]:
    outcome = done("evaluate", *arguments, "--json")
    assert outcome.err == ""
    content: dict[str, float] = json.loads(outcome.out)
    return content


def expected(labels: Sequence[object]) -> dict[str, float]:
    return evaluate(labels, CLUSTERS).to_dict()  # type: ignore[arg-type]


def test_json_holds_what_the_library_computes(assignments: Path, tmp_path: Path) -> None:
    labels = write_csv(tmp_path / "gold.csv", {"label": GROUPS})
    found = scores(assignments, "--labels", labels)
    assert found == expected(GROUPS)
    assert 0.7 < found["accuracy"] < 0.95
    assert (found["n_rows"], found["n_unassigned"], found["n_without_label"], found["n_clusters"]) == (30, 2, 0, 3)


def test_the_table_shows_the_same_in_percent(assignments: Path, tmp_path: Path) -> None:
    blanks = [*GROUPS[:-3], "", "", ""]
    labels = write_csv(tmp_path / "gold.csv", {"topic": blanks})
    outcome = done("evaluate", assignments, "--labels", labels, "--label-column", "topic")
    wanted = expected(blanks)
    for name, key in (
        ("accuracy (best one-to-one match)", "accuracy"),
        ("normalised mutual information", "nmi"),
        ("with the geometric mean", "nmi_geometric"),
        ("adjusted Rand index", "ari"),
        ("purity", "purity"),
    ):
        assert f"{name} {100 * wanted[key]:.1f}" in outcome.words
    assert "rows scored 27" in outcome.words
    assert "in no cluster 2" in outcome.words
    assert "rows without a label, left out 3" in outcome.words
    assert "clusters with texts 3" in outcome.words


def test_rows_are_matched_by_id(assignments: Path, tmp_path: Path) -> None:
    order = list(range(30))
    random.Random(0).shuffle(order)
    # More labels than rows are no mistake when they are matched by id.
    columns = {"key": [IDS[i] for i in order] + ["extra"], "label": [GROUPS[i] for i in order] + ["parcel"]}
    labels = write_csv(tmp_path / "gold.csv", columns)
    assert scores(assignments, "--labels", labels, "--id-column", "key") == expected(GROUPS)
    same_length = write_csv(tmp_path / "rows.csv", {name: values[:30] for name, values in columns.items()})
    assert scores(assignments, "--labels", same_length) == expected([GROUPS[i] for i in order])


def test_numbers_serve_as_labels_and_ids(assignments: Path, tmp_path: Path) -> None:
    numbers = [NUMBER[group] + 10 for group in GROUPS]
    columns = {"label": numbers, "key": IDS}
    for labels in (write_jsonl(tmp_path / "gold.jsonl", columns), write_parquet(tmp_path / "gold.parquet", columns)):
        assert scores(assignments, "--labels", labels) == expected(numbers)
        assert scores(assignments, "--labels", labels, "--id-column", "key") == expected(numbers)
    ours = write_csv(tmp_path / "ours.csv", {"id": list(range(30)), "cluster": CLUSTERS})
    theirs = write_parquet(tmp_path / "theirs.parquet", {"n": list(range(29, -1, -1)), "label": numbers[::-1]})
    assert scores(ours, "--labels", theirs, "--id-column", "n") == expected(numbers)


@pytest.mark.parametrize("write", [write_csv, write_jsonl, write_parquet])
def test_rows_without_a_label_are_left_out_and_counted(write: object, assignments: Path, tmp_path: Path) -> None:
    ending = {write_csv: "csv", write_jsonl: "jsonl", write_parquet: "parquet"}[write]  # type: ignore[index]
    blank = "" if ending == "csv" else None
    blanks = [blank if i in (0, 4, 9) else group for i, group in enumerate(GROUPS)]
    labels = write(tmp_path / f"gold.{ending}", {"label": blanks})  # type: ignore[operator]
    found = scores(assignments, "--labels", labels)
    assert found == expected(blanks)
    assert (found["n_rows"], found["n_without_label"], found["n_unassigned"]) == (27, 3, 1)


def test_a_run_is_scored_from_its_own_files(tmp_path: Path) -> None:
    path = write_csv(tmp_path / "in.csv", {"text": TEXTS, "key": IDS, "group": GROUPS})
    done("fit", path, "-k", 3, "-m", "tfidf", "-q", "--id-column", "key", "-o", tmp_path / "run")
    done("predict", tmp_path / "run", path, "-q", "--id-column", "key", "-o", tmp_path / "out.csv")
    options = ("--labels", path, "--label-column", "group")
    by_row = scores(tmp_path / "run" / "assignments.csv", *options)
    assert by_row["n_rows"] == 30
    assert not math.isnan(by_row["ari"])
    for file in (tmp_path / "run" / "assignments.csv", tmp_path / "out.csv"):
        assert scores(file, *options, "--id-column", "key") == by_row


def test_different_lengths_are_refused(assignments: Path, tmp_path: Path) -> None:
    labels = write_csv(tmp_path / "gold.csv", {"label": GROUPS[:29]})
    message = refusal("evaluate", assignments, "--labels", labels)
    assert "29" in message and "30" in message and "--id-column" in message


def test_missing_columns_are_named(assignments: Path, tmp_path: Path) -> None:
    labels = write_csv(tmp_path / "gold.csv", {"topic": GROUPS, "key": IDS})
    message = refusal("evaluate", assignments, "--labels", labels)
    assert str(labels) in message and "'label'" in message and "'topic', 'key'" in message
    message = refusal("evaluate", assignments, "--labels", labels, "--label-column", "topic", "--id-column", "idd")
    assert "'idd'" in message
    message = refusal("evaluate", labels, "--labels", labels, "--label-column", "topic")
    assert "'cluster'" in message
    no_ids = write_csv(tmp_path / "no-ids.csv", {"cluster": CLUSTERS})
    message = refusal("evaluate", no_ids, "--labels", labels, "--label-column", "topic", "--id-column", "key")
    assert str(no_ids) in message and "'id'" in message


def test_rows_whose_id_has_no_label_are_left_out_and_counted(assignments: Path, tmp_path: Path) -> None:
    labels = write_csv(tmp_path / "gold.csv", {"label": GROUPS[2:], "key": IDS[2:]})
    scores = json.loads(done("evaluate", assignments, "--labels", labels, "--id-column", "key", "--json").out)
    assert scores["n_without_label"] == 2
    assert scores["n_rows"] == len(GROUPS) - 2


def test_ids_of_another_file_are_refused(assignments: Path, tmp_path: Path) -> None:
    labels = write_csv(tmp_path / "gold.csv", {"label": GROUPS, "key": [f"other-{i}" for i in range(len(GROUPS))]})
    assert "'key'" in refusal("evaluate", assignments, "--labels", labels, "--id-column", "key")


def test_a_run_folder_stands_for_its_assignments(assignments: Path, tmp_path: Path) -> None:
    labels = write_csv(tmp_path / "gold.csv", {"label": GROUPS})
    run = tmp_path / "as-run"
    run.mkdir()
    (run / "assignments.csv").write_bytes(assignments.read_bytes())
    assert done("evaluate", run, "--labels", labels).out == done("evaluate", assignments, "--labels", labels).out


def test_two_labels_for_one_id_are_refused(assignments: Path, tmp_path: Path) -> None:
    labels = write_csv(tmp_path / "gold.csv", {"label": [*GROUPS, "other"], "key": [*IDS, "t3"]})
    outcome = coterie("evaluate", assignments, "--labels", labels, "--id-column", "key")
    assert str(labels) in refusal_line(outcome) and "'key'" in refusal_line(outcome)


def test_bad_values_are_refused(assignments: Path, tmp_path: Path) -> None:
    labels = write_csv(tmp_path / "gold.csv", {"label": GROUPS})
    words = write_csv(tmp_path / "words.csv", {"cluster": GROUPS})
    assert "whole numbers" in refusal("evaluate", words, "--labels", labels)
    lists = write_jsonl(tmp_path / "lists.jsonl", {"label": [[group] for group in GROUPS]})
    assert "list" in refusal("evaluate", assignments, "--labels", lists)
    blank = write_csv(tmp_path / "blank.csv", {"label": [""] * 30})
    assert "none of the 30 rows has a true label" in refusal("evaluate", assignments, "--labels", blank)


def test_missing_files_are_refused_and_nothing_is_written(assignments: Path, tmp_path: Path) -> None:
    labels = write_csv(tmp_path / "gold.csv", {"label": GROUPS})
    before = tree(tmp_path)
    assert "no such file" in refusal("evaluate", tmp_path / "none.csv", "--labels", labels)
    assert "no such file" in refusal("evaluate", assignments, "--labels", tmp_path / "none.csv")
    done("evaluate", assignments, "--labels", labels)
    assert tree(tmp_path) == before
