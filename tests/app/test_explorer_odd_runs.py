"""The explorer on runs at the edge: one cluster, many, one text alone, very long and right-to-left texts."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest
from conftest import topic_texts

from coterie.app.assign_texts import place
from coterie.app.edit_requests import edit_of
from coterie.app.exporting import export
from coterie.app.session import Explored, Wanted
from coterie.cli.fit import fit
from coterie.errors import InputError

TEXTS = topic_texts(30)[0]
LONG = "parcel late " * 9_000
ODD = ["الطرد متأخر جدا \u202e", "😡👨‍👩‍👧", "zebra quagga okapi", LONG]


def _explored(folder: Path, texts: list[str], k: int) -> Explored:
    with (folder / "texts.csv").open("w", encoding="utf-8", newline="") as stream:
        csv.writer(stream).writerows([["text"], *([text] for text in texts)])
    fit(folder / "texts.csv", clusters=str(k), method="tfidf", text_column="text", output=folder / "run", quiet=True)
    return Explored(folder / "run", device="cpu")


def test_one_cluster_is_left_and_split_again(tmp_path: Path) -> None:
    explored = _explored(tmp_path, TEXTS, 2)
    explored.edit(edit_of(explored, {"kind": "merge", "clusters": [1], "to": 0}), seen=0)
    assert [each["size"] for each in explored.overview()["clusters"]] == [30]
    assert place(explored, ["my parcel is late"])[0]["runner_up"] is None
    with pytest.raises(InputError, match="two clusters"):
        explored.edit(edit_of(explored, {"kind": "merge", "clusters": [0], "to": 0}), seen=1)
    explored.edit(edit_of(explored, {"kind": "split", "clusters": [0], "into": 3}), seen=1)
    assert sorted(explored.state.names) == [0, 2, 3]
    assert {each["cluster"] for each in explored.texts(Wanted())["texts"]} == {0, 2, 3}


def test_long_and_foreign_texts_are_shown_whole(tmp_path: Path) -> None:
    explored = _explored(tmp_path, [*TEXTS, *ODD], 4)
    assert explored.texts(Wanted(query="الطرد"))["texts"][0]["text"].strip() == ODD[0].strip()
    assert explored.texts(Wanted(query="👨‍👩‍👧"))["total"] == 1
    found = explored.texts(Wanted(query="parcel late parcel late parcel"))["texts"]
    assert len(found) == 1 and found[0]["text"].strip() == LONG.strip()
    assert LONG.strip() in export(explored, "csv").decode()
    assert len(place(explored, [LONG])[0]["text"]) <= 20_000


def test_as_many_clusters_as_texts(tmp_path: Path) -> None:
    texts = [f"word{i} thing{i}" for i in range(300)]
    explored = _explored(tmp_path, texts, 300)
    told = explored.overview()
    assert len(told["clusters"]) == 300 and len({each["name"] for each in told["clusters"]}) == 300
    row = explored.texts(Wanted(7))["texts"][0]["row"]
    with pytest.raises(InputError, match="too few for 2 parts"):
        edit_of(explored, {"kind": "split", "clusters": [7], "into": 2})
    with pytest.raises(InputError, match="all texts of the cluster"):
        edit_of(explored, {"kind": "separate", "rows": [row]})
    explored.edit(edit_of(explored, {"kind": "move", "rows": [row], "to": -1}), seen=0)
    left = next(each for each in explored.clusters()["clusters"] if each["id"] == 7)
    assert left["size"] == 0 and left["confidence"] == 0
    explored.edit(edit_of(explored, {"kind": "merge", "clusters": list(range(1, 300)), "to": 0}), seen=1)
    assert [each["size"] for each in explored.clusters()["clusters"]] == [299]
