"""Which group is next to a text, also for texts that are not on the map; and texts like a new one, for words too."""

from __future__ import annotations

import csv
import io
from pathlib import Path

import numpy as np
import pytest
from conftest import topic_texts
from served import Served
from synthetic_run import write_run

from coterie.app import exporting
from coterie.app.assign_texts import place
from coterie.app.edit_requests import edit_of
from coterie.app.exporting import export
from coterie.app.runner_ups import next_of_rows
from coterie.app.session import Explored, Wanted
from coterie.cli.fit import fit
from coterie.clustering.kmeans import centroids


class _Model:
    """Knows the vectors of texts."""

    def __init__(self, known: dict[str, np.ndarray]) -> None:
        self.known = known

    def transform(self, texts: list[str]) -> np.ndarray:
        return np.array([self.known[text] for text in texts])


@pytest.fixture
def explored(tmp_path: Path) -> Explored:
    """Four groups on a line, of which every third text is on the map."""
    labels = np.arange(600) % 4
    vectors = (labels[:, None] * np.array([10.0, 0.0]) + np.random.default_rng(0).normal(size=(600, 2))).astype("f4")
    run = write_run(tmp_path / "run", labels, vectors, mapped=np.arange(0, 600, 3))
    made = Explored(run, device="cpu")
    made.__dict__["model"] = _Model(dict(zip(made.corpus.texts, vectors, strict=True)))
    return made


def _expected(explored: Explored) -> np.ndarray:
    """By a plain loop over all vectors of all texts; middles are those of the texts on the map."""
    vectors, labels = explored.model.transform(list(explored.corpus.texts)), explored.state.labels
    there = sorted(explored.state.names)
    mapped = explored.map.rows
    means = centroids(vectors[mapped], labels[mapped], explored.state.next_id)
    found = []
    for vector, label in zip(vectors, labels, strict=True):
        others = [k for k in there if k != label]
        found.append(others[int(np.argmin([((vector - means[k]) ** 2).sum() for k in others]))])
    return np.array(found)


def test_every_text_has_a_runner_up_of_the_groups_of_now(explored: Explored) -> None:
    rows = np.arange(600)
    assert np.array_equal(next_of_rows(explored, explored.state, rows), _expected(explored))
    explored.edit(edit_of(explored, {"kind": "merge", "clusters": [1], "to": 0}), seen=0)
    assert np.array_equal(next_of_rows(explored, explored.state, rows), _expected(explored))


def test_lists_do_not_wait_for_texts_that_must_be_embedded(explored: Explored) -> None:
    with Served(explored.folder) as served:
        served.explored.__dict__["model"] = explored.model
        listed = served.ask("/api/texts?cluster=0&most=500")["texts"]
        assert {each["runner_up"] for each in listed if each["mapped"]} == {"Group 1"}
        off = [each["row"] for each in listed if not each["mapped"]]
        assert {each["runner_up"] for each in listed if not each["mapped"]} == {None} and len(off) == 100
        told = served.ask(f"/api/next?rows={','.join(map(str, off))}")["next"]
        assert told == {str(row): "Group 1" for row in off}
        assert served.ask("/api/next?rows=1;2")["status"] == 400
        assert served.ask("/api/next?rows=99999")["status"] == 400


def test_exports_hold_runner_ups_of_all_texts_where_that_is_quick(
    explored: Explored, monkeypatch: pytest.MonkeyPatch
) -> None:
    def exported() -> list[str]:
        return [row["runner_up"] for row in csv.DictReader(io.StringIO(export(explored, "csv").decode()))]

    expected = [f"Group {k}" for k in _expected(explored)]
    some = exported()
    assert [name for name in some if name] == expected[::3] and some[::3] == expected[::3]
    monkeypatch.setattr(exporting, "is_cheap", lambda _: True)
    assert exported() == expected


@pytest.mark.parametrize("method", ["tfidf", "bow"])
def test_new_texts_are_shown_with_texts_like_them_where_words_are_counted(method: str, tmp_path: Path) -> None:
    texts = topic_texts(30)[0]
    with (tmp_path / "texts.csv").open("w", encoding="utf-8", newline="") as stream:
        csv.writer(stream).writerows([["text"], *([text] for text in texts)])
    fit(tmp_path / "texts.csv", clusters="3", method=method, text_column="text", output=tmp_path / "run", quiet=True)
    explored = Explored(tmp_path / "run", device="cpu")
    known, strange = place(explored, [texts[4], "zzz qqq"])
    assert known["examples"][0]["text"] == texts[4] and known["examples"][0]["cosine"] == 1
    assert len(known["examples"]) == 3 and known["examples"][0]["name"] == known["name"]
    assert strange["examples"] == []
    # Runner-ups too come without the map's own vectors, which are reduced.
    everything = csv.DictReader(io.StringIO(export(explored, "csv").decode()))
    assert all(row["runner_up"] and row["runner_up"] != row["cluster_name"] for row in everything)
    assert explored.texts(Wanted())["texts"][0]["runner_up"]
