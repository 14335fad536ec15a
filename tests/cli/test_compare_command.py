"""``coterie compare``."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from command_line import column, done, refusal, write_csv
from conftest import topic_texts

from coterie.describe.partition_changes import compare_partitions

TEXTS, _ = topic_texts(30)
# Cluster 0 goes half and half to 0 and 3; 1 and 2 stay but for one row.
BEFORE = [i % 3 for i in range(30)]
AFTER = [3 if label == 0 and i >= 15 else label for i, label in enumerate(BEFORE)]
AFTER[1] = 2
WORDS = ("parcel, late, courier", "password, login, account", "refund, money, bank", "depot, tracking, shipped")


def _run(
    folder: Path,
    clusters: Sequence[int],
    texts: Sequence[str] | None = TEXTS,
    ids: Sequence[object] | None = None,
    names: bool = True,
) -> Path:
    folder.mkdir()
    columns: dict[str, Sequence[object]] = {"row": range(1, len(clusters) + 1)}
    if ids is not None:
        columns["id"] = ids
    columns |= {"cluster": clusters, "confidence": ["0.5000"] * len(clusters), "status": ["assigned"] * len(clusters)}
    if texts is not None:
        columns["text"] = texts
    write_csv(folder / "assignments.csv", columns)
    if names:
        content = {"clusters": [{"id": k, "keywords": words.split(", ")} for k, words in enumerate(WORDS)]}
        (folder / "clusters.json").write_text(json.dumps(content), encoding="utf-8")
    return folder


@pytest.fixture
def runs(tmp_path: Path) -> tuple[Path, Path]:
    return _run(tmp_path / "before", BEFORE), _run(tmp_path / "after", AFTER)


def _json(*arguments: object) -> dict[str, Any]:
    content: dict[str, Any] = json.loads(done("compare", *arguments, "--json").out)
    return content


def _expected(before: Sequence[int], after: Sequence[int], texts: Sequence[str] | None) -> Any:
    return json.loads(json.dumps(compare_partitions(before, after, texts).to_dict()))


def test_json_holds_what_the_library_computes(runs: tuple[Path, Path]) -> None:
    assert _json(*runs) == _expected(BEFORE, AFTER, TEXTS)
    # The files themselves will do.
    assert _json(*(run / "assignments.csv" for run in runs)) == _expected(BEFORE, AFTER, TEXTS)


def test_the_comparison_is_printed_in_words(runs: tuple[Path, Path]) -> None:
    words = done("compare", *runs).words
    assert f"{runs[0]} has 3 clusters, {runs[1]} 4." in words
    assert "30 rows compared." in words
    assert "rows that stayed in matching clusters 80.0 %" in words
    assert "2 clusters stayed, 1 split, 0 merged, 0 gone, 0 new" in words
    assert "0 (parcel, late, courier), 10 rows 5 (50 %) to 0 (parcel, late, courier)" in words
    assert "5 (50 %) to 3 (depot, tracking, shipped)" in words
    assert f"1 from 1 (password, login, account) to 2 (refund, money, bank) - {TEXTS[1]}" in words
    assert "Merged" not in words
    back = done("compare", *runs[::-1]).words
    assert "Merged" in back
    assert "0 (parcel, late, courier), 10 rows 5 (50 %) from 0 (parcel, late, courier)" in back


def test_equal_runs(runs: tuple[Path, Path]) -> None:
    outcome = done("compare", runs[0], runs[0])
    assert "rows that stayed in matching clusters 100.0 %" in outcome.words
    assert "Moved" not in outcome.words
    assert outcome.err == ""


def test_scattered_and_gathered_clusters_are_listed(tmp_path: Path) -> None:
    clusters = [k for k in range(7) for _ in range(50)]
    texts = [f"text {i}" for i in range(len(clusters) + 7)]
    scattered = _run(tmp_path / "scattered", [*clusters, *[7] * 7], texts, names=False)
    whole = _run(tmp_path / "whole", [*clusters, *range(7)], texts, names=False)
    assert "7, 7 rows most of them 1 (14 %) to 0" in done("compare", scattered, whole).words
    assert "7, 7 rows most of them 1 (14 %) from 0" in done("compare", whole, scattered).words


def test_rows_are_matched_by_id(tmp_path: Path) -> None:
    ids = [f"t{i}" for i in range(30)]
    first = _run(tmp_path / "first", BEFORE, ids=ids)
    turned = _run(tmp_path / "turned", AFTER[::-1], TEXTS[::-1], ids=ids[::-1])
    assert _json(first, turned) == _expected(BEFORE, AFTER, TEXTS)
    # Some rows are in one run alone; a name given to a cluster is shown.
    part = _run(tmp_path / "part", [*AFTER[5:], 0], [*TEXTS[5:], "another"], ids=[*ids[5:], "extra"])
    outcome = done("compare", first, part, "--json")
    assert json.loads(outcome.out) == _expected(BEFORE[5:], AFTER[5:], TEXTS[5:])
    assert f"5 rows are in {first} alone" in outcome.err
    assert f"1 rows are in {part} alone" in outcome.err


def test_other_texts_under_the_same_ids_are_mentioned(tmp_path: Path) -> None:
    ids = list(range(30))
    first = _run(tmp_path / "first", BEFORE, ids=ids)
    second = _run(tmp_path / "second", AFTER, [text.upper() for text in TEXTS], ids=ids)
    assert "30 rows with the same id have another text" in done("compare", first, second).err


def test_ids_that_repeat_serve_where_they_are_the_same_in_both(tmp_path: Path) -> None:
    ids = ["same"] * 30
    first, second = _run(tmp_path / "first", BEFORE, ids=ids), _run(tmp_path / "second", AFTER, ids=ids)
    assert _json(first, second) == _expected(BEFORE, AFTER, TEXTS)
    third = _run(tmp_path / "third", AFTER, ids=["same"] * 29 + ["other"])
    assert "holds an id twice" in refusal("compare", first, third)


def test_texts_may_be_missing(tmp_path: Path) -> None:
    plain = _run(tmp_path / "plain", BEFORE, texts=None, names=False)
    other = _run(tmp_path / "other", AFTER, texts=None, names=False)
    assert _json(plain, other) == _expected(BEFORE, AFTER, None)
    assert _json(plain, _run(tmp_path / "with", AFTER)) == _expected(BEFORE, AFTER, TEXTS)
    assert "1 from 1 to 2" in done("compare", plain, other).words


def test_rows_in_no_cluster_are_left_out(tmp_path: Path) -> None:
    first, second = _run(tmp_path / "first", [-1, *BEFORE[1:]]), _run(tmp_path / "second", [*AFTER[:-1], -1])
    assert "28 rows compared; 2 are in no cluster of one of the runs." in done("compare", first, second).words
    none = _run(tmp_path / "none", [-1] * 30)
    assert "nothing to compare" in refusal("compare", first, none)


def test_long_and_foreign_texts_stay_on_one_short_line(tmp_path: Path) -> None:
    texts = [*TEXTS[:1], "x" * 100_000, *TEXTS[2:]]
    before = [*BEFORE]
    before[4] = 0
    texts[4] = "طرد\nمتأخر\x1b[31m 👩‍👧"
    first, second = _run(tmp_path / "first", before, texts), _run(tmp_path / "second", AFTER, texts)
    out = done("compare", first, second).out
    assert "x" * 99 + "…" in out
    assert "x" * 100 not in out
    assert "- طرد متأخر [31m 👩‍👧\n" in out
    assert "\x1b" not in out


def test_names_are_shown_where_clusters_have_them(runs: tuple[Path, Path]) -> None:
    content = {"clusters": [{"id": 0, "name": "Late parcels", "keywords": ["parcel"]}]}
    (runs[0] / "clusters.json").write_text(json.dumps(content), encoding="utf-8")
    assert "0 (Late parcels), 10 rows" in done("compare", *runs).words


def test_what_is_no_run_is_refused(runs: tuple[Path, Path], tmp_path: Path) -> None:
    assert "no such run folder" in refusal("compare", runs[0], tmp_path / "nowhere")
    (tmp_path / "empty").mkdir()
    assert "without assignments.csv" in refusal("compare", tmp_path / "empty", runs[1])
    letters = tmp_path / "letters"
    letters.mkdir()
    write_csv(letters / "assignments.csv", {"cluster": ["a"], "text": ["b"]})
    assert "whole numbers" in refusal("compare", letters, runs[1])
    (runs[1] / "clusters.json").write_text('{"clusters": [1]}', encoding="utf-8")
    assert "clusters.json does not hold the clusters of a run" in refusal("compare", *runs)


def test_other_texts_are_refused(runs: tuple[Path, Path], tmp_path: Path) -> None:
    assert "30 rows and" in refusal("compare", runs[0], _run(tmp_path / "short", BEFORE[:9], TEXTS[:9]))
    changed = [*TEXTS]
    changed[6] = "something else"
    message = refusal("compare", runs[0], _run(tmp_path / "changed", BEFORE, changed))
    assert "not about the same texts: row 7 differs" in message
    ids = _run(tmp_path / "ids", BEFORE, ids=range(30)), _run(tmp_path / "others", BEFORE, ids=range(50, 80))
    assert "no id in common" in refusal("compare", *ids)


def test_two_real_runs(tmp_path: Path) -> None:
    data = write_csv(tmp_path / "data.csv", {"text": TEXTS})
    for k in (3, 2):
        done("fit", data, "-m", "tfidf", "-k", k, "-q", "-o", tmp_path / f"run{k}")
    three, two = (list(map(int, column(tmp_path / f"run{k}" / "assignments.csv", "cluster"))) for k in (3, 2))
    found = _json(tmp_path / "run3", tmp_path / "run2")
    assert found == _expected(three, two, TEXTS)
    assert (found["n_before"], found["n_after"], found["n_rows"]) == (3, 2, 30)
    words = done("compare", tmp_path / "run3", tmp_path / "run2").words
    name = json.loads((tmp_path / "run3" / "clusters.json").read_text(encoding="utf-8"))["clusters"][2]["name"]
    assert f"2 ({name})" in words
