"""``coterie.Run``: a run folder from Python."""

from __future__ import annotations

import csv
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from command_line import done, process_environment, read_rows, write_csv
from conftest import topic_texts

import coterie
from coterie.errors import InputError, ModelFolderError
from coterie.runs import prediction
from coterie.runs.edits.kinds import Edit
from coterie.runs.edits.log import EditLog

TEXTS, TOPICS = topic_texts(40)
NEW = [*TEXTS[:8], "my parcel is late", "", "zebra quark"]


@pytest.fixture(scope="module")
def fitted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of four clusters; tests only read it."""
    folder = tmp_path_factory.mktemp("api") / "run"
    coterie.fit(TEXTS, 4, "tfidf", output=folder)
    return folder


@pytest.fixture
def merged(tmp_path: Path) -> Path:
    """A run whose cluster 1 was merged into 0, with a text moved to cluster 2 and cluster 3 renamed."""
    folder = tmp_path / "run"
    run = coterie.fit(TEXTS, 4, "tfidf", output=folder, report=False)
    log = EditLog(folder)
    row = int(np.flatnonzero(run.labels == 0)[0])
    log.append(Edit("merge", [1], 0), seen=0)
    log.append(Edit("move", to=2, rows=[row], texts=[TEXTS[row]]), seen=1)
    log.append(Edit("rename", [3], name="By hand"), seen=2)
    return folder


def test_predict_and_the_command_agree_with_edits(merged: Path, tmp_path: Path) -> None:
    """``coterie.load(run)`` once answered without edits and calibration, other than ``coterie predict run``."""
    new = tmp_path / "new.csv"
    with new.open("w", encoding="utf-8", newline="") as stream:
        csv.writer(stream).writerows([["text"], *([text] for text in [*TEXTS, *NEW])])
    done("predict", merged, new, "-o", tmp_path / "out.csv")
    run = coterie.Run.open(merged)
    found = run.predict([*TEXTS, *NEW])
    rows = read_rows(tmp_path / "out.csv")
    assert list(found) == list(rows[0])
    for name, cells in found.items():
        written = [f"{cell:.4f}" for cell in cells] if name == "confidence" else [str(cell) for cell in cells]
        assert written == [row[name] for row in rows]
    assert 1 not in found["cluster"] and "By hand" in found["cluster_name"]
    assert found["cluster"][:40] == run.labels.tolist()
    moved = run.state.moved
    assert [found["confidence"][row] for row in np.flatnonzero(moved)] == [1.0]
    bare = coterie.load(run.model_folder).assign([*TEXTS, *NEW])
    assert (bare.labels == 1).any(), "the bare model knows nothing of the merge"
    assert not np.allclose(bare.confidence, found["confidence"])


def test_a_run_folder_is_no_model_folder(merged: Path) -> None:
    with pytest.raises(ModelFolderError) as refused:
        coterie.load(merged)
    assert f"coterie.Run.open({str(merged)!r})" in str(refused.value)
    assert str(merged / "model") in str(refused.value)


def test_a_text_gets_the_same_cluster_alone_and_in_a_batch(merged: Path) -> None:
    run = coterie.Run.open(merged)
    together = run.predict(NEW)
    for row, text in enumerate(NEW):
        alone = run.predict([text])
        assert alone["cluster"] == [together["cluster"][row]]
        assert alone["confidence"] == [together["confidence"][row]]


def test_edits_of_others_are_seen_after_a_refresh(fitted: Path, merged: Path) -> None:
    run = coterie.Run.open(merged)
    before = run.labels.tolist()
    EditLog(merged).undo(seen=3)
    assert run.names[3] == "By hand"
    run.refresh()
    assert run.names[3] != "By hand"
    EditLog(merged).undo(seen=4)
    EditLog(merged).undo(seen=5)
    run.refresh()
    assert run.edited is None and run.labels.tolist() != before
    assert run.labels.tolist() == coterie.Run.open(fitted).labels.tolist()


def test_columns_of_the_answer(fitted: Path) -> None:
    run = coterie.Run.open(fitted)
    found = run.predict(NEW)
    assert list(found) == ["row", "cluster", "cluster_name", "confidence", "status", "text"]
    assert found["status"] == ["assigned"] * 9 + ["empty", "assigned"]
    assert (found["cluster"][9], found["cluster_name"][9]) == (-1, "")
    weak = run.predict(NEW, min_confidence=0.99, with_texts=False)
    assert list(weak) == ["row", "cluster", "cluster_name", "best_guess", "confidence", "status"]
    assert weak["best_guess"] == found["cluster"]
    assert {weak["status"][row] for row, each in enumerate(weak["confidence"][:9]) if each < 0.99} == {"abstained"}


def test_an_answer_is_a_data_frame_for_whoever_has_one(fitted: Path) -> None:
    found = coterie.Run.open(fitted).predict(NEW)
    assert found.n_rows == len(NEW) and repr(found).startswith("Table(11 rows: row=[1, 2")
    assert found.to_arrow().column_names == list(found)
    pandas = pytest.importorskip("pandas")
    for frame in (found.to_pandas(), pandas.DataFrame(found)):
        assert frame["cluster"].tolist() == found["cluster"]
    polars = pytest.importorskip("polars")
    assert polars.DataFrame(found).columns == found.to_polars().columns == list(found)


def test_opening_loads_neither_heavy_libraries_nor_the_model(fitted: Path) -> None:
    code = (
        "import sys, coterie\n"
        f"run = coterie.Run.open({str(fitted)!r})\n"
        "run.labels, run.names, run.clusters, run.assignments\n"
        "assert not {'torch', 'sklearn', 'pandas'} & set(sys.modules)\n"
        "run.confidence\n"
        "assert 'model' not in vars(run)\n"
    )
    environment = process_environment()
    subprocess.run([sys.executable, "-c", code], check=True, env=environment, timeout=120)


def test_a_run_shows_what_it_is_and_reads_nothing_for_it(fitted: Path) -> None:
    run = coterie.Run.open(fitted)
    before = dict(vars(run))
    assert repr(run) == f"Run({str(fitted)!r}, method='tfidf', rows=40, n_clusters=4)"
    assert vars(run) == before
    assert repr(coterie.Run(fitted, {})) == f"Run({str(fitted)!r}, method=None, rows=None, n_clusters=None)"


def test_a_data_frame_of_new_texts(fitted: Path) -> None:
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"body": NEW[:3], "key": ["a", "b", "c"], "cluster": [7, 8, 9]})
    found = coterie.Run.open(fitted).predict(frame, text_column="body", id_column="key", keep=["cluster"])
    names = ["row", "id", "cluster", "cluster_name", "confidence", "status", "text", "cluster_input"]
    assert list(found) == names
    assert (found["id"], found["cluster_input"]) == (["a", "b", "c"], [7, 8, 9])


def test_assignments_are_those_of_now(merged: Path) -> None:
    run = coterie.Run.open(merged)
    table = run.assignments
    assert list(table) == ["row", "cluster", "cluster_name", "confidence", "status", "text"]
    assert table["cluster"] == run.labels.tolist()
    assert table["cluster_name"] == [run.names[label] for label in run.labels.tolist()]
    np.testing.assert_allclose(table["confidence"], run.confidence, atol=5e-5)
    assert {card.summary.id: card.name for card in run.clusters} == run.names
    assert sum(card.summary.size for card in run.clusters) == 40


def test_unassigned_rows_stay_so_unless_they_are_moved(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    run = coterie.fit(TEXTS, 4, "tfidf", output=folder, report=False, min_confidence=0.7)
    weak = [row for row, status in enumerate(run.assignments["status"]) if status == "abstained"]
    assert weak
    EditLog(folder).append(Edit("move", to=2, rows=[weak[0]], texts=[TEXTS[weak[0]]]), seen=0)
    run.refresh()
    table = run.assignments
    assert (table["cluster"][weak[0]], table["status"][weak[0]], table["confidence"][weak[0]]) == (2, "assigned", 1.0)
    assert {table["cluster"][row] for row in weak[1:]} == {-1}
    assert table["best_guess"] == run.labels.tolist()


def test_report_and_plot_show_the_run_as_it_is_now(merged: Path, tmp_path: Path) -> None:
    run = coterie.Run.open(merged)
    assert run.report() == merged / "report.html"
    assert "By hand" in (merged / "report.html").read_text(encoding="utf-8")
    elsewhere = run.report(tmp_path / "labelled.html", labels=TOPICS, map="pca")
    assert json.dumps(TOPICS[0]) in elsewhere.read_text(encoding="utf-8")
    with pytest.raises(InputError, match="3 labels"):
        run.report(tmp_path / "x.html", labels=["a", "b", "c"])
    pytest.importorskip("matplotlib")
    assert run.plot("sizes", tmp_path / "sizes.svg").read_text(encoding="utf-8").count("By hand") == 1
    assert coterie.plot([run, merged], "map", tmp_path / "maps.png").is_file()


def test_exploring_without_its_extra_names_it(fitted: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("coterie.app.serving", "coterie.app.server"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    with pytest.raises(InputError, match=r"coterie\[app\]"):
        coterie.Run.open(fitted).explore()


def test_what_is_no_run(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="is not a run of Coterie"):
        coterie.Run.open(tmp_path)


def test_labels_to_compare_with_are_one_per_row(fitted: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"3 labels, but .* has 40 rows"):
        coterie.Run.open(fitted).report(tmp_path / "page.html", labels=TOPICS[:3])
    assert not (tmp_path / "page.html").exists()


def test_a_data_frame_library_that_is_missing_is_named(fitted: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = coterie.Run.open(fitted).predict(NEW[:1])
    monkeypatch.setitem(sys.modules, "polars", None)
    with pytest.raises(InputError, match="this needs polars: pip install polars"):
        found.to_polars()


def test_rows_are_numbered_over_the_pieces_of_a_file(
    fitted: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(prediction, "CHUNK_ROWS", 7)
    path = write_csv(tmp_path / "new.csv", {"text": TEXTS})
    run = coterie.Run.open(fitted)
    found = run.predict(path)
    assert found["row"] == list(range(1, 41)) and found["cluster"] == run.labels.tolist()
