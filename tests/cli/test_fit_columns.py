"""``coterie fit``: which columns are read, and which are carried along."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest
from command_line import (
    OWN_COLUMNS,
    column,
    coterie,
    done,
    read_header,
    read_json,
    read_rows,
    refusal,
    refusal_line,
    write_csv,
    write_jsonl,
    write_parquet,
)
from conftest import topic_texts

TEXTS, TOPICS = topic_texts(24)
N = len(TEXTS)
AGES = [str(20 + i) for i in range(N)]
CODES = [f"ticket-{i:03d}" for i in reversed(range(N))]
FAST = ("-k", 3, "-m", "tfidf", "-q")


def fitted(path: Path, *options: object) -> Path:
    run = path.with_name("run")
    done("fit", path, *FAST, "-o", run, *options)
    return run / "assignments.csv"


def test_an_id_column_stands_after_the_row(tmp_path: Path) -> None:
    path = write_csv(tmp_path / "in.csv", {"code": CODES, "text": TEXTS, "age": AGES})
    assignments = fitted(path, "--id-column", "code")
    assert read_header(assignments) == ["row", "id", *OWN_COLUMNS[1:]]
    assert column(assignments, "id") == CODES
    assert column(assignments, "text") == TEXTS
    assert read_json(tmp_path / "run" / "run.json")["input"]["id_column"] == "code"


@pytest.mark.parametrize("options", [("--keep", "age,group"), ("--keep", "age", "--keep", "group")])
def test_kept_columns_come_last(options: tuple[str, ...], tmp_path: Path) -> None:
    path = write_csv(tmp_path / "in.csv", {"code": CODES, "group": TOPICS, "text": TEXTS, "age": AGES})
    assignments = fitted(path, *options)
    assert read_header(assignments) == [*OWN_COLUMNS, "age", "group"]
    assert column(assignments, "age") == AGES
    assert column(assignments, "group") == TOPICS


def test_keep_all_keeps_all_others_in_their_order(tmp_path: Path) -> None:
    path = write_csv(tmp_path / "in.csv", {"group": TOPICS, "code": CODES, "body": TEXTS, "age": AGES})
    assignments = fitted(path, "--keep", "all", "--text-column", "body", "--id-column", "code")
    assert read_header(assignments) == ["row", "id", *OWN_COLUMNS[1:], "group", "age"]
    assert column(assignments, "text") == TEXTS
    assert column(assignments, "id") == CODES
    assert column(assignments, "group") == TOPICS
    assert column(assignments, "age") == AGES


def test_kept_columns_with_our_names_get_a_suffix(tmp_path: Path) -> None:
    columns = {"body": TEXTS, "cluster": TOPICS, "text": AGES, "row": CODES, "id": CODES, "other": AGES}
    path = write_csv(tmp_path / "in.csv", columns)
    assignments = fitted(path, "--text-column", "body", "--keep", "all")
    renamed = ["cluster_input", "text_input", "row_input", "id_input", "other"]
    assert read_header(assignments) == [*OWN_COLUMNS, *renamed]
    assert column(assignments, "text") == TEXTS
    assert column(assignments, "text_input") == AGES
    assert column(assignments, "cluster_input") == TOPICS
    assert set(column(assignments, "cluster")) == {"0", "1", "2"}


def test_a_renamed_column_takes_no_other_columns_name(tmp_path: Path) -> None:
    path = write_csv(tmp_path / "in.csv", {"text": TEXTS, "cluster": TOPICS, "cluster_input": AGES})
    header = read_header(fitted(path, "--keep", "all"))
    assert len(header) == len(set(header)) == len(OWN_COLUMNS) + 2


def test_the_text_column_is_text_or_the_only_one(tmp_path: Path) -> None:
    both = write_csv(tmp_path / "both.csv", {"other": AGES, "text": TEXTS})
    assert column(fitted(both), "text") == TEXTS
    only = write_csv(tmp_path / "only.csv", {"whatever": TEXTS})
    assert column(fitted(only, "--overwrite"), "text") == TEXTS
    unclear = write_csv(tmp_path / "unclear.csv", {"subject": AGES, "body": TEXTS})
    message = refusal("fit", unclear, *FAST, "-o", tmp_path / "none")
    assert "--text-column" in message and "'subject'" in message and "'body'" in message


def test_values_of_typed_formats_are_carried_along(tmp_path: Path) -> None:
    columns = {"text": TEXTS, "n": list(range(N)), "share": [i / 4 for i in range(N)], "gap": [None] * N}
    for path in (write_jsonl(tmp_path / "in.jsonl", columns), write_parquet(tmp_path / "in.parquet", columns)):
        rows = read_rows(fitted(path, "--id-column", "n", "--keep", "share,gap", "--overwrite"))
        assert [int(row["id"]) for row in rows] == list(range(N))
        assert [float(row["share"]) for row in rows] == columns["share"]
        assert {row["gap"] for row in rows} == {""}


AWKWARD = ["a\rb refund", "a\r\nb refund", 'say "refund"', "refund, paid", "refund\n\npaid", "=refund()", " refund "]


@pytest.mark.parametrize("awkward", AWKWARD)
def test_every_text_comes_back_from_the_csv_as_it_went_in(awkward: str, tmp_path: Path) -> None:
    texts = [*TEXTS, awkward]
    path = write_jsonl(tmp_path / "in.jsonl", {"text": texts, "note": texts, "key": texts})
    assignments = fitted(path, "--keep", "note", "--id-column", "key")
    for name in ("text", "note", "id"):
        assert column(assignments, name) == texts
    # Coterie must be able to read what it wrote.
    done("predict", tmp_path / "run", assignments, "-q", "-o", tmp_path / "again.csv")
    assert column(tmp_path / "again.csv", "text") == texts
    assert column(tmp_path / "again.csv", "cluster") == column(assignments, "cluster")


def test_the_csv_has_one_record_a_row_for_strict_readers_too(tmp_path: Path) -> None:
    path = write_jsonl(tmp_path / "in.jsonl", {"text": [*TEXTS, *AWKWARD]})
    with fitted(path).open(encoding="utf-8", newline="") as stream:
        records = list(csv.reader(stream, strict=True))
    assert {len(record) for record in records} == {len(OWN_COLUMNS)}
    assert len(records) == 1 + N + len(AWKWARD)


@pytest.mark.parametrize("option", ["--keep", "--id-column"])
def test_a_cell_that_cannot_be_written_is_refused_in_one_line(option: str, tmp_path: Path) -> None:
    path = write_jsonl(tmp_path / "in.jsonl", {"text": TEXTS, "note": [*AGES[1:], "half a pair \ud83d"]})
    outcome = coterie("fit", path, *FAST, "-o", tmp_path / "run", option, "note")
    assert "note" in refusal_line(outcome)
    assert {entry.name for entry in tmp_path.iterdir()} == {"in.jsonl"}


@pytest.mark.parametrize(
    ("option", "parameter"), [("--text-column", "text_column"), ("--id-column", "id_column"), ("--keep", "keep")]
)
def test_an_unknown_column_is_named_with_those_there_are(option: str, parameter: str, tmp_path: Path) -> None:
    path = write_csv(tmp_path / "in.csv", {"text": TEXTS, "age": AGES})
    message = refusal("fit", path, *FAST, "-o", tmp_path / "run", option, "agee")
    assert "'agee'" in message and parameter in message
    assert "did you mean 'age'?" in message and "'text', 'age'" in message
    assert not (tmp_path / "run").exists()
