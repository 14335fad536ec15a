"""Tables: which runs a cell stands on, what stands beside it, and how it is written."""

from __future__ import annotations

import csv
import io
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import coterie.benchmark.significance_marks as marks
from coterie.benchmark.catalogue import find_row, find_rows, find_table, published_figures
from coterie.benchmark.paper_definitions import require_paper_definitions
from coterie.benchmark.partitions import write_partitions
from coterie.benchmark.rows import COMMON, PROTOCOL, ROWS, Row
from coterie.benchmark.sets import SETS, Loaded, find_set
from coterie.benchmark.significance_marks import p_values
from coterie.benchmark.source_digest import source_digest
from coterie.benchmark.specs import TableSpec
from coterie.benchmark.store import Job, Store
from coterie.benchmark.table_formats import as_csv, as_html, as_markdown
from coterie.benchmark.tables import build_table, found_table
from coterie.errors import InputError, SettingError
from coterie.methods.build_method import build_method
from coterie.methods.registry import METHODS

SPEC = TableSpec(
    "x", "A small one", ("tweet", "agnews"), ("accuracy", "nmi"), (("sccl", 1),), ("tfidf", "frozen-kmeans")
)


def _stored(folder: Path, row: str, seed: int, accuracy: float, digest: str = "a", date: str = "2026-11-01") -> str:
    job = Job(find_row(row), find_set("tweet"), seed)
    scores = {"accuracy": accuracy, "nmi": accuracy + 20}
    record = {
        "row": row,
        "dataset": "tweet",
        "protocol": PROTOCOL,
        "date": date,
        "source_digest": digest,
        "scores": {"final": scores, "frozen": None, "oracle": None},
    }
    Store(folder).write(job.name, record)
    return job.name


def test_a_cell_is_the_mean_of_its_seeds(tmp_path: Path) -> None:
    for seed, accuracy in enumerate((50.0, 52.0, 57.0)):
        _stored(tmp_path, "tfidf", seed, accuracy)
    _stored(tmp_path, "frozen-kmeans", 0, 60.0)
    table = build_table(SPEC, Store(tmp_path))
    cell = table.cells["tfidf", "tweet", "accuracy"]
    assert cell.values == (50.0, 52.0, 57.0)
    assert (cell.mean, cell.frozen, cell.gain) == (53.0, 60.0, -7.0)
    assert cell.deviation == pytest.approx(np.std([50, 52, 57], ddof=1))
    assert cell.reported is not None and (cell.reported.paper, cell.reported.table) == ("sccl", 1)
    assert cell.beyond_reported == pytest.approx(53 - cell.reported.value)
    assert table.cells["tfidf", "agnews", "accuracy"].mean is None
    assert table.cells["tfidf", "tweet", "nmi"].mean == 73.0


def test_runs_of_other_settings_are_not_counted(tmp_path: Path) -> None:
    name = _stored(tmp_path, "tfidf", 0, 50.0)
    store = Store(tmp_path)
    store.write(name[:-8] + "00000000", {**store.read(name), "scores": {"final": {"accuracy": 99.0, "nmi": 99.0}}})
    assert build_table(SPEC, store).cells["tfidf", "tweet", "accuracy"].values == (50.0,)


def test_runs_of_before_a_change_of_the_method_count_only_without_others(tmp_path: Path) -> None:
    row, before = find_row("auto"), "2026-11-18"
    assert before < row.changed
    spec = replace(SPEC, rows=("auto", "tfidf"))
    for seed in range(3):
        name = _stored(tmp_path, "auto", seed, 80.0, date=before)
        # A row that was never changed has no runs of before.
        _stored(tmp_path, "tfidf", seed, 30.0, date=before)
    store = Store(tmp_path)
    assert not store.has(Job(row, find_set("tweet"), 2)) and name in store.records()
    cells = build_table(spec, store).cells
    assert cells["auto", "tweet", "accuracy"].values == (80.0, 80.0, 80.0)
    assert cells["auto", "tweet", "accuracy"].outdated and not cells["tfidf", "tweet", "accuracy"].outdated
    assert "80.0 ± 0.0 ×3†" in as_markdown(build_table(spec, store))
    _stored(tmp_path, "auto", 1, 90.0, date=row.changed)
    cells = build_table(spec, Store(tmp_path)).cells
    assert cells["auto", "tweet", "accuracy"].values == (90.0,)
    assert not cells["auto", "tweet", "accuracy"].outdated


def test_code_that_changed_between_runs_is_marked(tmp_path: Path) -> None:
    _stored(tmp_path, "tfidf", 0, 50.0)
    _stored(tmp_path, "tfidf", 1, 50.0)
    assert not build_table(SPEC, Store(tmp_path)).cells["tfidf", "tweet", "accuracy"].mixed
    _stored(tmp_path, "tfidf", 1, 50.0, digest="b")
    assert build_table(SPEC, Store(tmp_path)).cells["tfidf", "tweet", "accuracy"].mixed
    assert "50.0 ± 0.0 ×2*" in as_markdown(build_table(SPEC, Store(tmp_path)))


def test_the_three_forms_tell_the_same(tmp_path: Path) -> None:
    _stored(tmp_path, "tfidf", 0, 50.0)
    _stored(tmp_path, "tfidf", 1, 54.0)
    table = build_table(SPEC, Store(tmp_path), {("tfidf", "tweet"): 0.01})
    printed = next(
        f.value
        for f in published_figures()
        if (f.paper, f.method, f.dataset, f.metric) == ("sccl", "tfidf", "tweet", "accuracy")
    )
    words = f"52.0 ± 2.8 ×2 ({printed:.1f}: {52 - printed:+.1f})"
    assert f"| {words} |" in as_markdown(table).replace(" ↑", "").replace(" ↓", "")
    assert words in as_html(table)
    assert "coterie benchmark run --methods tfidf --datasets tweet --seeds 0-4 --out again" in as_html(table)
    rows = list(csv.DictReader(io.StringIO(as_csv(table))))
    first = next(row for row in rows if row["measure"] == "accuracy")
    assert (first["row"], first["mean"], first["seeds"], first["reported_by"]) == (
        "tfidf",
        "52.00",
        "2",
        "sccl table 1",
    )
    assert first["command"] == "coterie benchmark run --methods tfidf --datasets tweet --seeds 0-4 --out again"


def test_a_row_that_cannot_be_run_says_why(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    absent = Row("absent", "Absent", "frozen", missing="no weights")
    monkeypatch.setattr("coterie.benchmark.catalogue.ROWS", (*ROWS, absent))
    spec = TableSpec("x", "x", ("tweet",), ("accuracy",), (), ("absent", "tfidf", "bow"))
    assert "No run of this table yet" in as_markdown(build_table(spec, Store(tmp_path)))
    _stored(tmp_path, "tfidf", 0, 50.0)
    lines = as_markdown(build_table(spec, Store(tmp_path)))
    assert "| Absent | not run: no weights |" in lines and "--methods absent --datasets tweet" in lines
    assert "Not run yet: BoW + k-means." in lines


# --- Marks ---


def test_marks_say_what_is_more_than_chance(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    generator = np.random.default_rng(0)
    truth = generator.integers(4, size=600)
    monkeypatch.setattr(marks, "load_set", lambda _: Loaded(("",) * 600, tuple(map(str, truth)), 4, ""))
    store = Store(tmp_path)
    for row, wrong in (("frozen-kmeans", 0.4), ("tfidf", 0.2)):
        for seed in range(5):
            name = _stored(tmp_path, row, seed, 100 - 75 * wrong)
            found = np.where(generator.random(600) < wrong, generator.integers(4, size=600), truth)
            write_partitions(store.assignment_file(name), {"final": found})
    lines: list[str] = []
    found_values = p_values(SPEC, store, lines.append)
    assert list(found_values) == [("tfidf", "tweet")]
    assert found_values["tfidf", "tweet"] < 0.05
    assert lines == ["comparing tfidf with frozen-kmeans on tweet"]
    assert " ↑ " in as_markdown(build_table(SPEC, store, found_values))
    lines.clear()
    assert p_values(SPEC, store, lines.append) == found_values and lines == []  # kept
    write_partitions(store.assignment_file(name), {"final": truth})
    p_values(SPEC, store, lines.append)
    assert len(lines) == 1  # a run has changed


def test_some_comparisons_are_not_enough(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With rows left out, the correction for many would be too small; a run without assignments does not count."""
    truth = np.arange(600) % 4
    monkeypatch.setattr(marks, "load_set", lambda _: Loaded(("",) * 600, tuple(map(str, truth)), 4, ""))
    store, spec = Store(tmp_path), replace(SPEC, rows=("tfidf", "bow", "frozen-kmeans"))
    names = [_stored(tmp_path, row, seed, 50.0) for row in spec.rows for seed in range(5)]
    for name in names:
        write_partitions(store.assignment_file(name), {"final": truth if "frozen" in name else np.roll(truth, 1) // 2})
    found = p_values(replace(SPEC, rows=("tfidf", "frozen-kmeans")), store)
    assert list(found) == [("tfidf", "tweet")]
    assert p_values(spec, store, compute=False) == {}
    store.assignment_file(next(name for name in names if name.startswith("bow"))).unlink()
    assert list(p_values(spec, store, compute=False)) == [("tfidf", "tweet")]


def test_without_all_seeds_there_is_no_mark(tmp_path: Path) -> None:
    _stored(tmp_path, "tfidf", 0, 50.0)
    assert p_values(SPEC, Store(tmp_path)) == {}


# --- What there is to run ---


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_every_row_can_be_built(row: Row) -> None:
    if row.missing:
        pytest.skip(row.missing)
    settings = row.settings_for(find_set("trec6"))
    model: Any = build_method(row.method, 3, 0, settings, {})
    parameters = model.get_params()
    assert parameters.get("max_length", 128) == 128
    for name, value in row.settings.items():
        assert parameters[name.replace(".", "__")] == value
    if "augmentation" in parameters:
        assert parameters["augmentation"] == COMMON["augmentation"]


def test_every_method_has_a_row_and_every_table_its_sets() -> None:
    assert {row.method for row in ROWS} == {info.name for info in METHODS}
    names = [row.name for row in ROWS]
    assert len(set(names)) == len(names)
    for spec in require_paper_definitions().package.main.TABLES:
        assert set(spec.sets) <= {each.name for each in SETS if not each.tuning}
        assert set(spec.rows) <= set(names)
    with pytest.raises(SettingError, match="no table '9'"):
        find_table("9")


def test_rows_are_found_by_name() -> None:
    assert [row.name for row in find_rows(["sccl", "tfidf", "sccl"])] == ["sccl", "tfidf"]
    assert find_rows(["all"]) == list(ROWS)
    with pytest.raises(SettingError, match="no row 'nothing'"):
        find_rows(["nothing"])


def test_the_digest_follows_the_code_a_method_imports(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import coterie.benchmark.source_digest as source

    (tmp_path / "own.py").write_text("def f():\n    from coterie.deep import x\n", encoding="utf-8")
    (tmp_path / "deep.py").write_text("x = 1\n", encoding="utf-8")
    (tmp_path / "other.py").write_text("y = 1\n", encoding="utf-8")
    monkeypatch.setattr(source, "PACKAGE", tmp_path)
    before = source_digest("coterie.own")
    (tmp_path / "other.py").write_text("y = 2\n", encoding="utf-8")
    assert source_digest("coterie.own") == before
    (tmp_path / "deep.py").write_text("x = 2\n", encoding="utf-8")
    assert source_digest("coterie.own") != before


def test_a_table_of_whatever_was_run(tmp_path: Path) -> None:
    _stored(tmp_path, "tfidf", 0, 30.0)
    _stored(tmp_path, "sccl", 0, 70.0)
    _stored(tmp_path, "sccl", 1, 72.0)
    store = Store(tmp_path)
    spec = found_table(store)
    assert (spec.rows, spec.sets) == (("tfidf", "sccl"), ("tweet",))
    text = as_markdown(build_table(spec, store, None), legend=False)
    assert "| SCCL | 71.0 ± 1.4" in text and "| TF-IDF (1,500) + k-means | 30.0" in text
    assert "--table found" not in text and "The first cell again" in text


def test_a_folder_that_is_not_there_is_no_empty_table(tmp_path: Path) -> None:
    from coterie.cli.benchmark import table

    with pytest.raises(InputError, match=r"there is no folder .*nowhere"):
        table("1", "md", False, tmp_path / "nowhere")
