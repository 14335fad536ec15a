"""What was changed in the explorer reaches every command that shows, compares or applies the run."""

from __future__ import annotations

import base64
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from chat_server import ChatServer, says
from command_line import column, done, read_json, read_rows, tree, write_csv
from conftest import topic_texts

from coterie.app.edit_requests import build_edit
from coterie.app.session import ExplorerSession
from coterie.report.html.rendering import read_content
from coterie.report.plots.plot_data import BarPlot, TablePlot, build_plot
from coterie.report.report_model import ReportModel
from coterie.runs.saved_run import SavedRun

TEXTS, TOPICS = topic_texts(60)
FITTED = ("assignments.csv", "clusters.json", "run.json")


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("edited")
    path = write_csv(folder / "in.csv", {"text": [*TEXTS, TEXTS[0]], "group": [*TOPICS, TOPICS[0]]})
    options = ("--text-column", "text", "--by", "group", "--report", "-q")
    done("fit", path, "-k", 4, "-m", "tfidf", *options, "-o", folder / "run")
    return folder / "run"


@pytest.fixture
def run(made: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(made, tmp_path / "run"))


def _edit(run: Path, **asked: Any) -> None:
    session = ExplorerSession(run, device="cpu")
    session.edit(build_edit(session, asked), session.edits.lines)


def _labels(run: Path) -> np.ndarray:
    return np.array([int(cell) for cell in column(run / "assignments.csv", "cluster")])


def _content(path: Path) -> dict[str, Any]:
    content = read_content(path.read_text(encoding="utf-8"))
    assert content is not None
    return content


def _clusters_of_points(content: dict[str, Any]) -> np.ndarray:
    return np.frombuffer(base64.b64decode(content["points"]["cluster"]), dtype="<i4")


def _change_all(run: Path) -> tuple[np.ndarray, int]:
    """Rename, merge, split, move and mark as noise; the clusters that should be, and the row that was moved."""
    labels = _labels(run)
    moved = int(np.flatnonzero(labels == 3)[0])
    _edit(run, kind="rename", clusters=[0], name="Where is my <b>parcel</b>?")
    _edit(run, kind="merge", clusters=[1], to=0)
    _edit(run, kind="split", clusters=[2], into=2)
    _edit(run, kind="move", rows=[moved], to=0)
    _edit(run, kind="noise", clusters=[3])
    split = ExplorerSession(run, device="cpu").state.labels == 4
    assert (labels[split] == 2).all() and split.any()
    labels[labels == 1] = 0
    labels[labels == 3] = -1
    labels[split], labels[moved] = 4, 0
    return labels, moved


def test_the_report_shows_the_clusters_as_people_left_them(run: Path) -> None:
    before, changed = {name: (run / name).read_bytes() for name in FITTED}, _change_all(run)[0]
    outcome = done("report", run, "-o", run / "now.html")
    assert f"As corrected by 5 edits in {run / 'edits.jsonl'}." in outcome.out
    content = _content(run / "now.html")
    cards = {card["id"]: card for card in content["clusters"]}
    assert sorted(cards) == [0, 2, 4]
    sizes = [card["size"] for card in content["clusters"]]
    assert sizes == sorted(sizes, reverse=True)
    assert {k: card["size"] for k, card in cards.items()} == {k: int((changed == k).sum()) for k in cards}
    assert cards[0]["name"] == "Where is my <b>parcel</b>?" and cards[0]["keyword_name"]
    written = {each["id"]: each for each in read_json(run / "clusters.json")["clusters"]}
    assert cards[2]["name"] == written[2]["name"]
    # Keywords, typical texts and counts by columns are of what is in them now.
    assert set(cards[0]["keywords"]) & set(written[0]["keywords"]) and set(cards[0]["keywords"]) & set(
        written[1]["keywords"]
    )
    for k, card in cards.items():
        inside = {TEXTS[row % len(TEXTS)] for row in np.flatnonzero(changed == k)}
        assert {*card["representatives"], *(each["text"] for each in card["borderline"])} <= inside
        assert {each["runner_up"] for each in card["borderline"]} <= set(cards) - {k}
        assert sum(each["count"] for each in card["by"]["group"]["values"]) == card["size"]
        assert set(card["nearest"]) == set(cards) - {k}
    assert np.array_equal(_clusters_of_points(content), changed[:60])
    assert content["about"]["clusters"] == 3 and content["about"]["noise"] == int((changed == -1).sum())
    applied = "5 edits made in the explorer (edits.jsonl) are applied"
    assert any(sentence.startswith(applied) for sentence in content["headline"])
    assert "“Where is my <b>parcel</b>?”" in content["headline"][0]
    # What the fit wrote stays, so that all can be undone.
    assert {name: (run / name).read_bytes() for name in FITTED} == before


def test_labels_are_compared_with_the_clusters_of_now(run: Path, made: Path) -> None:
    _edit(run, kind="merge", clusters=[1, 2, 3], to=0)
    gold = write_csv(run.parent / "gold.csv", {"label": [*TOPICS, TOPICS[0]]})
    done("report", run, "--labels", gold, "-o", run / "now.html")
    truth = _content(run / "now.html")["labels_table"]
    assert truth["clusters"] == [0] and truth["scores"]["ari"] == 0
    assert sorted(sum(row) for row in truth["counts"]) == [20, 20, 21]


def test_without_edits_or_with_all_undone_nothing_is_said_of_them(run: Path) -> None:
    _edit(run, kind="rename", clusters=[0], name="Mine")
    session = ExplorerSession(run, device="cpu")
    session.undo(session.edits.lines)
    outcome = done("report", run, "-o", run / "now.html")
    assert "As corrected" not in outcome.out
    content = _content(run / "now.html")
    assert not any("edit" in sentence for sentence in content["headline"])
    assert content["clusters"] == _content(run / "report.html")["clusters"]


def test_the_map_that_a_later_report_leaves_still_holds_what_was_marked_as_noise(run: Path) -> None:
    _edit(run, kind="noise", clusters=[0])
    done("report", run)
    session = ExplorerSession(run, device="cpu")
    assert len(session.map.rows) == 60
    session.undo(session.edits.lines)
    assert session.clusters()["noise"] == 0


def test_pictures_are_of_the_clusters_of_now(run: Path) -> None:
    changed, _ = _change_all(run)
    shown = ReportModel(SavedRun.open(run, device="cpu"))
    sizes = build_plot([shown], "sizes")
    assert isinstance(sizes, BarPlot)
    assert sorted(sizes.categories) == [0, 2, 4] and sizes.names[0] == "Where is my <b>parcel</b>?"
    assert list(sizes.values) == sorted(sizes.values, reverse=True)
    assert sizes.values == tuple(float((changed == k).sum()) for k in sizes.categories)
    similar = build_plot([shown], "similarity")
    assert isinstance(similar, TablePlot) and similar.values.shape == (3, 3) and np.isfinite(similar.values).all()
    for ending in ("png", "html"):
        done("plot", run, "map", "-o", run / f"map.{ending}")
    assert "no cluster" in (run / "map.html").read_text(encoding="utf-8")


def test_compare_takes_runs_as_they_are_now_and_files_as_they_are(run: Path, made: Path) -> None:
    changed, _ = _change_all(run)
    outcome = done("compare", made, run).out
    assert f"{made} has 4 clusters, {run} 3." in outcome
    assert f"{run} is read with 5 edits." in outcome
    assert "Where is my <b>parcel</b>?" in outcome and "1 merged" in outcome
    compared = done("compare", run / "assignments.csv", run, "--json").out
    assert '"n_before": 4' in compared
    assert f'"n_left_out": {(changed == -1).sum()}' in compared


def test_predict_tells_the_names_of_now(run: Path, tmp_path: Path) -> None:
    changed, moved = _change_all(run)
    path = write_csv(tmp_path / "new.csv", {"text": [*TEXTS, "", TEXTS[moved]]})
    done("predict", run, path, "-q", "-o", tmp_path / "out.csv")
    rows = read_rows(tmp_path / "out.csv")
    assert list(rows[0])[:3] == ["row", "cluster", "cluster_name"]
    assert [int(row["cluster"]) for row in rows[:60]] == changed[:60].tolist()
    names = ExplorerSession(run, device="cpu").state.names | {-1: ""}
    assert [row["cluster_name"] for row in rows] == [names[int(row["cluster"])] for row in rows]
    assert rows[-1]["cluster_name"] == "Where is my <b>parcel</b>?" and rows[-2]["cluster_name"] == ""


def test_a_language_model_names_the_clusters_of_now_but_none_that_a_person_named(run: Path) -> None:
    _change_all(run)
    kept = tree(run)
    with ChatServer([says("Passwords"), says("Accounts")]) as server:
        outcome = done("report", run, "--name-with", server.url, "--model", "tiny", "--yes")
        assert "1 clusters keep the names that people gave them." in outcome.err
        assert len(server.requests) == 2
    names = {card["id"]: card["name"] for card in _content(run / "report.html")["clusters"]}
    assert names == {0: "Where is my <b>parcel</b>?", 2: "Passwords", 4: "Accounts"}
    assert ExplorerSession(run, device="cpu").state.names == names
    written = read_json(run / "clusters.json")["clusters"]
    assert [each["id"] for each in written] == [0, 1, 2, 3] and written[2]["name"] == "Passwords"
    assert tree(run)["edits.jsonl"] == kept["edits.jsonl"]
