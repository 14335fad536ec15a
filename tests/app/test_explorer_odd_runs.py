"""The explorer on runs at the edge: one cluster, many, one text alone, very long and right-to-left texts."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest
from conftest import topic_texts

from coterie.app.assign_texts import assign_texts
from coterie.app.edit_requests import build_edit
from coterie.app.export import export
from coterie.app.session import ExplorerSession, TextFilter
from coterie.cli.fit import fit
from coterie.errors import InputError

TEXTS = topic_texts(30)[0]
LONG = "parcel late " * 9_000
ODD = ["الطرد متأخر جدا \u202e", "😡👨‍👩‍👧", "zebra quagga okapi", LONG]


def _explored(folder: Path, texts: list[str], k: int) -> ExplorerSession:
    with (folder / "texts.csv").open("w", encoding="utf-8", newline="") as stream:
        csv.writer(stream).writerows([["text"], *([text] for text in texts)])
    fit(folder / "texts.csv", clusters=str(k), method="tfidf", text_column="text", output=folder / "run", quiet=True)
    return ExplorerSession(folder / "run", device="cpu")


def test_one_cluster_is_left_and_split_again(tmp_path: Path) -> None:
    session = _explored(tmp_path, TEXTS, 2)
    session.edit(build_edit(session, {"kind": "merge", "clusters": [1], "to": 0}), log_lines=0)
    assert [each["size"] for each in session.overview()["clusters"]] == [30]
    assert assign_texts(session, ["my parcel is late"])[0]["runner_up"] is None
    with pytest.raises(InputError, match="two clusters"):
        session.edit(build_edit(session, {"kind": "merge", "clusters": [0], "to": 0}), log_lines=1)
    session.edit(build_edit(session, {"kind": "split", "clusters": [0], "into": 3}), log_lines=1)
    assert sorted(session.state.names) == [0, 2, 3]
    assert {each["cluster"] for each in session.texts(TextFilter())["texts"]} == {0, 2, 3}


def test_long_and_foreign_texts_are_shown_whole(tmp_path: Path) -> None:
    session = _explored(tmp_path, [*TEXTS, *ODD], 4)
    assert session.texts(TextFilter(query="الطرد"))["texts"][0]["text"].strip() == ODD[0].strip()
    assert session.texts(TextFilter(query="👨‍👩‍👧"))["total"] == 1
    found = session.texts(TextFilter(query="parcel late parcel late parcel"))["texts"]
    assert len(found) == 1 and found[0]["text"].strip() == LONG.strip()
    assert LONG.strip() in export(session, "csv").decode()
    assert len(assign_texts(session, [LONG])[0]["text"]) <= 20_000


def test_as_many_clusters_as_texts(tmp_path: Path) -> None:
    texts = [f"word{i} thing{i}" for i in range(300)]
    session = _explored(tmp_path, texts, 300)
    content = session.overview()
    assert len(content["clusters"]) == 300 and len({each["name"] for each in content["clusters"]}) == 300
    row = session.texts(TextFilter(7))["texts"][0]["row"]
    with pytest.raises(InputError, match="too few for 2 parts"):
        build_edit(session, {"kind": "split", "clusters": [7], "into": 2})
    with pytest.raises(InputError, match="all texts of the cluster"):
        build_edit(session, {"kind": "separate", "rows": [row]})
    session.edit(build_edit(session, {"kind": "move", "rows": [row], "to": -1}), log_lines=0)
    left = next(each for each in session.clusters()["clusters"] if each["id"] == 7)
    assert left["size"] == 0 and left["confidence"] == 0
    session.edit(build_edit(session, {"kind": "merge", "clusters": list(range(1, 300)), "to": 0}), log_lines=1)
    assert [each["size"] for each in session.clusters()["clusters"]] == [299]
