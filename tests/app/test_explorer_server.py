"""The explorer's server, asked over HTTP as its page asks it."""

from __future__ import annotations

import csv
import io
import json
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
from made_run import NASTY
from served import Served

from coterie.app.server import MAX_REQUEST_BYTES
from coterie.cli.predict import predict
from coterie.runs.edits.kinds import Edit
from coterie.runs.edits.log import EditLog


@pytest.fixture
def run(run_folder: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(run_folder, tmp_path / "run"))


@pytest.fixture
def served(run: Path) -> Iterator[Served]:
    with Served(run) as server:
        yield server


def _predicted(run: Path, texts: list[str]) -> list[int]:
    with (run.parent / "new.csv").open("w", encoding="utf-8", newline="") as stream:
        csv.writer(stream).writerows([["text"], *([text] for text in texts)])
    predict(run, run.parent / "new.csv", run.parent / "out.csv", text_column="text", overwrite=True, device="cpu")
    with (run.parent / "out.csv").open(encoding="utf-8", newline="") as stream:
        return [int(row["cluster"]) for row in csv.DictReader(stream)]


def _texts(served: Served, cluster: int) -> list[dict[str, Any]]:
    return list(served.ask(f"/api/texts?cluster={cluster}&most=500")["texts"])


def test_the_run_is_told_with_its_clusters_and_points(served: Served) -> None:
    content = served.ask("/api/run")
    assert content["rows"] == 65 and content["distinct"] == 63 and content["points"]["count"] == 63
    assert sum(each["size"] for each in content["clusters"]) == 64
    assert len({each["name"] for each in content["clusters"]}) == 4
    assert not content["can_undo"] and not content["can_redo"]


def test_texts_are_searched_sorted_and_paged(served: Served) -> None:
    found = served.ask("/api/texts?query=%3CSCRIPT%3E")
    assert found["total"] == 1 and found["texts"][0]["text"] == NASTY
    sure = [each["confidence"] for each in served.ask("/api/texts?most=500")["texts"]]
    weak = [each["confidence"] for each in served.ask("/api/texts?most=500&lowest_first=true")["texts"]]
    assert sure == sorted(sure, reverse=True) and weak == sorted(weak) and len(sure) == 63
    second = served.ask("/api/texts?begin=10&most=5")["texts"]
    assert [each["confidence"] for each in second] == sure[10:15]
    assert served.ask("/api/texts?query=no-such-words")["total"] == 0


def test_a_name_is_changed_kept_and_taken_back(served: Served, run: Path) -> None:
    content = served.edit(kind="rename", clusters=[1], name="  Where is\nmy parcel ")
    assert {each["id"]: each["name"] for each in content["clusters"]}[1] == "Where is my parcel"
    assert json.loads((run / "edits.jsonl").read_text().splitlines()[0])["name"] == "Where is my parcel"
    again = Served(run).session.clusters()
    assert {each["id"]: each["name"] for each in again["clusters"]}[1] == "Where is my parcel"
    back = served.edit(kind="undo")
    assert {each["id"]: each["name"] for each in back["clusters"]}[1] != "Where is my parcel"
    assert served.edit(kind="redo")["can_undo"]


def test_a_merger_holds_for_predict(served: Served, run: Path) -> None:
    one, other = _texts(served, 0)[0]["text"], _texts(served, 1)[0]["text"]
    assert _predicted(run, [one, other]) == [0, 1]
    content = served.edit(kind="merge", clusters=[0], to=1)
    assert [each["id"] for each in content["clusters"] if each["id"] == 0] == []
    assert _predicted(run, [one, other]) == [1, 1]
    served.edit(kind="undo")
    assert _predicted(run, [one, other]) == [0, 1]


def test_predict_leaves_out_what_the_explorer_leaves_out(
    served: Served, run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    texts = [_texts(served, cluster)[0]["text"] for cluster in (0, 1)]
    log = EditLog(run)
    log.append(Edit("merge", [1], 2), seen=0)
    # Written by somebody who did not know that cluster 1 is gone.
    log.append(Edit("merge", [0], 1), seen=1)
    assert _predicted(run, texts) == [0, 2]
    content = capsys.readouterr().out
    assert "As corrected by 1 edit in" in content and "cluster 1 is gone" in content


def test_a_split_holds_for_predict(served: Served, run: Path) -> None:
    before = _texts(served, 0)
    content = served.edit(kind="split", clusters=[0], into=2)
    ids = {each["id"]: each for each in content["clusters"]}
    assert set(ids) == {0, 1, 2, 3, 4}
    assert ids[0]["size"] + ids[4]["size"] == sum(each["times"] for each in before)
    assert ids[0]["size"] >= ids[4]["size"] > 0
    now = {each["text"]: cluster for cluster in (0, 4) for each in _texts(served, cluster)}
    texts = list(now)
    assert _predicted(run, texts) == list(now.values())
    assert _predicted(run, texts[:1]) == [now[texts[0]]]


def test_moved_texts_stay_where_they_were_put(served: Served, run: Path) -> None:
    moved = _texts(served, 2)[:3]
    content = served.edit(kind="move", rows=[each["row"] for each in moved], to=0)
    assert content["status"] == 200
    assert {each["text"] for each in _texts(served, 0)} >= {each["text"] for each in moved}
    assert _predicted(run, [each["text"] for each in moved]) == [0, 0, 0]
    served.edit(kind="move", rows=[moved[0]["row"]], to=-1)
    assert _predicted(run, [moved[0]["text"]]) == [-1]
    assert [each["text"] for each in _texts(served, -1)] == [moved[0]["text"]]


def test_all_rows_of_a_text_move_together(served: Served) -> None:
    twice = next(each for each in served.ask("/api/texts?most=500")["texts"] if each["times"] == 2)
    to = next(cluster for cluster in range(4) if cluster != twice["cluster"])
    before = {each["id"]: each["size"] for each in served.ask("/api/run")["clusters"]}
    after = {each["id"]: each["size"] for each in served.edit(kind="move", rows=[twice["row"]], to=to)["clusters"]}
    assert after[to] == before[to] + 2


def test_selected_texts_become_a_cluster_that_new_texts_join(served: Served, run: Path) -> None:
    inside = _texts(served, 0)
    chosen = inside[: len(inside) // 3]
    content = served.edit(kind="separate", rows=[each["row"] for each in chosen], name="Apart")
    made = next(each for each in content["clusters"] if each["name"] == "Apart")
    assert made["size"] == sum(each["times"] for each in chosen)
    last = served.session.edits.active[-1]
    assert {part.cluster for part in last.parts} == {0, made["id"]}
    assert served.edit(kind="separate", rows=[chosen[0]["row"], _texts(served, 1)[0]["row"]])["status"] == 400


def test_marking_as_noise_and_what_cannot_be_done(served: Served) -> None:
    assert served.edit(kind="noise", clusters=[3])["status"] == 200
    gone = served.edit(kind="rename", clusters=[3], name="x")
    assert gone["status"] == 400 and "gone: it was marked as noise" in gone["error"]
    wrong: list[dict[str, Any]] = [
        {"kind": "explode"},
        {"kind": "merge", "clusters": ["a"], "to": 0},
        {"kind": "split", "clusters": [0], "into": 1},
        {"kind": "split", "clusters": [0], "into": 21},
        {"kind": "split", "clusters": [99], "into": 2},
        {"kind": "move", "rows": [10_000], "to": 0},
        {"kind": "move", "rows": [], "to": 0},
        {"kind": "undo", "log_lines": "x"},
    ]
    for asked in wrong:
        answer = served.edit(**asked)
        assert answer["status"] in (400, 409) and answer["error"], asked
    assert served.session.edits.lines == 1


def test_two_explorers_on_one_run_lose_nothing(served: Served, run: Path) -> None:
    with Served(run) as other:
        assert served.edit(kind="rename", clusters=[0], name="First")["status"] == 200
        late = other.ask("/api/edits", {"kind": "rename", "clusters": [1], "name": "Second", "log_lines": 0})
        assert late["status"] == 409 and "edited elsewhere" in late["error"]
        fresh = other.ask("/api/run")
        assert {each["id"]: each["name"] for each in fresh["clusters"]}[0] == "First"
        assert other.edit(kind="rename", clusters=[1], name="Second")["status"] == 200
    assert len((run / "edits.jsonl").read_text().splitlines()) == 2


def test_new_texts_are_placed_with_reasons(served: Served, run: Path) -> None:
    known = _texts(served, 2)[0]["text"]
    placed = served.ask("/api/assign", {"texts": [known, "  "]})["assigned"]
    assert len(placed) == 1
    assert placed[0]["cluster"] == 2 == _predicted(run, [known])[0]
    assert placed[0]["examples"][0]["text"] == known and placed[0]["examples"][0]["cosine"] > 0.999
    assert [each["word"] for each in placed[0]["words"]] == known.split()
    served.edit(kind="merge", clusters=[2], to=0)
    assert served.ask("/api/assign", {"texts": [known]})["assigned"][0]["cluster"] == 0
    assert served.ask("/api/assign", {"texts": []})["status"] == 400
    # Of a long text the first words are weighted, and all are shown.
    long = " ".join(f"word{i}" for i in range(60))
    answer = served.ask("/api/assign", {"texts": [long]})["assigned"][0]
    assert " ".join([*(each["word"] for each in answer["words"]), answer["rest"]]) == long
    assert served.ask("/api/assign", {"texts": "one"})["status"] == 400
    assert served.ask("/api/assign", {"texts": ["x"] * 101})["status"] == 400


def test_exports_hold_all_rows_as_they_are_now(served: Served) -> None:
    moved = _texts(served, 2)[0]
    served.edit(kind="move", rows=[moved["row"]], to=0)
    served.edit(kind="rename", clusters=[0], name="Mine, all “mine”")
    rows = list(csv.DictReader(io.StringIO(served.raw("/api/export/csv")[1].decode())))
    lines = [json.loads(line) for line in served.raw("/api/export/jsonl")[1].decode().splitlines()]
    table = pq.read_table(io.BytesIO(served.raw("/api/export/parquet")[1]))
    assert len(rows) == len(lines) == table.num_rows == 65
    assert {"x", "y", "cluster", "cluster_name", "text"} <= set(table.column_names)
    assert rows[moved["row"]]["cluster"] == "0" and rows[moved["row"]]["corrected"] == "True"
    assert lines[moved["row"]]["cluster_name"] == "Mine, all “mine”"
    labels = np.array(table.column("cluster"))
    assert labels.tolist() == [int(row["cluster"]) for row in rows] == [line["cluster"] for line in lines]
    assert any(row["text"] == NASTY for row in rows)
    assert served.raw("/api/export/exe")[0] == 400


def test_other_hosts_and_other_sites_are_refused(served: Served) -> None:
    body = json.dumps({"kind": "rename", "clusters": [0], "name": "x", "log_lines": 0}).encode()
    assert served.raw("/api/run", Host="evil.example")[0] == 403
    assert served.raw("/", Host="evil.example:80")[0] == 403
    json_kind = {"Content-Type": "application/json"}
    assert served.raw("/api/edits", body, Origin="http://evil.example", **json_kind)[0] == 403
    assert served.raw("/api/edits", body, Origin="http://127.0.0.1:1", **json_kind)[0] == 403
    assert served.raw("/api/edits", body, **{"Content-Type": "text/plain"})[0] == 400
    assert served.raw("/api/edits", b"{", **json_kind)[0] == 400
    assert served.raw("/api/edits", b"[]", **json_kind)[0] == 400
    assert served.session.edits.lines == 0
    assert served.raw("/api/edits", body, Origin=served.address, **json_kind)[0] == 200


@pytest.mark.parametrize(
    "path",
    [
        "/../run.json",
        "/%2e%2e/run.json",
        "/run.json",
        "/edits.jsonl",
        "/page/explorer.js",
        "/api/export/../../etc/passwd",
        "/api/export/%2e%2e%2frun.json",
        "/docs",
        "/openapi.json",
    ],
)
def test_no_other_file_can_be_read(served: Served, path: str) -> None:
    assert served.raw(path)[0] in (400, 404)


def test_a_run_without_a_map_gets_one(run: Path) -> None:
    from coterie.app.session import ExplorerSession

    (run / "map.safetensors").unlink()
    session = ExplorerSession(run, device="cpu")
    assert not session.has_map
    assert session.overview()["points"]["count"] == 63
    assert session.has_map
    (run / "map.safetensors").write_bytes(b"not a map")
    assert not ExplorerSession(run, device="cpu").has_map


def test_the_stored_verdict_on_the_training_is_shown(run: Path) -> None:
    from coterie.app.session import ExplorerSession

    about = json.loads((run / "run.json").read_text(encoding="utf-8"))
    stored = about["training_verdict"]
    shown = ExplorerSession(run, device="cpu").overview()["verdict"]
    assert shown["details"] == stored["sentence"]
    assert stored["sentence"].startswith(shown["sentence"].removesuffix("."))
    # A run of an earlier version has none, and is not judged when it is opened.
    del about["training_verdict"]
    (run / "run.json").write_text(json.dumps(about), encoding="utf-8")
    assert ExplorerSession(run, device="cpu").overview()["verdict"] is None


def test_opening_a_run_imports_nothing_heavy(run_folder: Path) -> None:
    code = (
        "import sys; from pathlib import Path; import coterie.app.server\n"
        "from coterie.app.session import ExplorerSession, TextFilter\n"
        f"session = ExplorerSession(Path({str(run_folder)!r}), device='cpu')\n"
        "session.overview(); session.texts(TextFilter(query='parcel'))\n"
        "heavy = {'torch', 'sklearn', 'scipy.optimize', 'transformers', 'pandas'}\n"
        "print(sorted(heavy & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_one_text_is_asked_for_by_its_row(served: Served) -> None:
    listed = _texts(served, 0)[0]
    found = served.ask(f"/api/text/{listed['row']}")
    assert {name: found[name] for name in ("row", "text", "cluster")} == {
        name: listed[name] for name in ("row", "text", "cluster")
    }
    assert served.ask("/api/text/65")["status"] == 400


def test_requests_without_an_answer_are_refused_or_empty(served: Served) -> None:
    assert served.raw("/favicon.ico") == (204, b"")
    large = b'{"texts": ["' + b"a" * MAX_REQUEST_BYTES + b'"]}'
    status, answer = served.raw("/api/assign", large, **{"Content-Type": "application/json"})
    assert status == 400 and b"must be smaller than" in answer
    assert served.raw("/api/run", Origin="http://[broken")[0] == 403


def test_one_cluster_is_split_at_a_time_and_names_stay_unique(served: Served) -> None:
    assert "only one can be split" in served.edit(kind="split", clusters=[0, 1], into=2)["error"]
    assert "select at least one" in served.edit(kind="separate", rows=[], name="Mine")["error"]
    names = {each["id"]: each["name"] for each in served.ask("/api/run")["clusters"]}
    row = _texts(served, 0)[0]["row"]
    content = served.edit(kind="separate", rows=[row], name=names[1])
    assert f"{names[1]} (2)" in {each["name"] for each in content["clusters"]}


def test_a_single_word_has_no_words_to_leave_out(served: Served) -> None:
    (found,) = served.ask("/api/assign", {"texts": ["parcel"]})["assigned"]
    assert found["words"] == []
