"""The runner-up cluster of texts on and off the map, and texts similar to a new one."""

from __future__ import annotations

import csv
import io
from pathlib import Path

import numpy as np
import pytest
from conftest import topic_texts
from served import Served
from synthetic_run import write_run

from coterie.app import export as export_module
from coterie.app.assign_texts import assign_texts
from coterie.app.edit_requests import build_edit
from coterie.app.export import export
from coterie.app.runner_ups import runner_ups_of_rows
from coterie.app.session import ExplorerSession, TextFilter
from coterie.cli.fit import fit
from coterie.clustering.kmeans import centroids


class _Model:
    """Knows the vectors of texts."""

    def __init__(self, known: dict[str, np.ndarray]) -> None:
        self.known = known

    def transform(self, texts: list[str]) -> np.ndarray:
        return np.array([self.known[text] for text in texts])


@pytest.fixture
def session(tmp_path: Path) -> ExplorerSession:
    """Four clusters on a line; every third text is on the map."""
    labels = np.arange(600) % 4
    vectors = (labels[:, None] * np.array([10.0, 0.0]) + np.random.default_rng(0).normal(size=(600, 2))).astype("f4")
    run = write_run(tmp_path / "run", labels, vectors, mapped=np.arange(0, 600, 3))
    made = ExplorerSession(run, device="cpu")
    vars(made.run)["model"] = _Model(dict(zip(made.corpus.texts, vectors, strict=True)))
    return made


def _expected(session: ExplorerSession) -> np.ndarray:
    """By a plain loop over all vectors of all texts; middles are those of the texts on the map."""
    vectors, labels = session.model.transform(list(session.corpus.texts)), session.state.labels
    there = sorted(session.state.names)
    mapped = session.map.rows
    means = centroids(vectors[mapped], labels[mapped], session.state.next_id)
    found = []
    for vector, label in zip(vectors, labels, strict=True):
        others = [k for k in there if k != label]
        found.append(others[int(np.argmin([((vector - means[k]) ** 2).sum() for k in others]))])
    return np.array(found)


def test_every_text_has_a_runner_up_among_the_current_clusters(session: ExplorerSession) -> None:
    rows = np.arange(600)
    assert np.array_equal(runner_ups_of_rows(session, session.state, rows), _expected(session))
    session.edit(build_edit(session, {"kind": "merge", "clusters": [1], "to": 0}), log_lines=0)
    assert np.array_equal(runner_ups_of_rows(session, session.state, rows), _expected(session))


def test_lists_do_not_wait_for_texts_that_must_be_embedded(session: ExplorerSession) -> None:
    with Served(session.run.folder) as served:
        vars(served.session.run)["model"] = session.model
        listed = served.ask("/api/texts?cluster=0&most=500")["texts"]
        assert {each["runner_up"] for each in listed if each["mapped"]} == {"Cluster 1"}
        off = [each["row"] for each in listed if not each["mapped"]]
        assert {each["runner_up"] for each in listed if not each["mapped"]} == {None} and len(off) == 100
        content = served.ask(f"/api/runner-ups?rows={','.join(map(str, off))}")["runner_ups"]
        assert content == {str(row): "Cluster 1" for row in off}
        assert served.ask("/api/runner-ups?rows=1;2")["status"] == 400
        assert served.ask("/api/runner-ups?rows=99999")["status"] == 400


def test_exports_hold_runner_ups_of_all_texts_where_that_is_quick(
    session: ExplorerSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    def exported() -> list[str]:
        return [row["runner_up"] for row in csv.DictReader(io.StringIO(export(session, "csv").decode()))]

    expected = [f"Cluster {k}" for k in _expected(session)]
    some = exported()
    assert [name for name in some if name] == expected[::3] and some[::3] == expected[::3]
    monkeypatch.setattr(export_module, "embeds_quickly", lambda _: True)
    assert exported() == expected


@pytest.mark.parametrize("method", ["tfidf", "bow"])
def test_new_texts_are_shown_with_texts_like_them_where_words_are_counted(method: str, tmp_path: Path) -> None:
    texts = topic_texts(30)[0]
    with (tmp_path / "texts.csv").open("w", encoding="utf-8", newline="") as stream:
        csv.writer(stream).writerows([["text"], *([text] for text in texts)])
    fit(tmp_path / "texts.csv", clusters="3", method=method, text_column="text", output=tmp_path / "run", quiet=True)
    session = ExplorerSession(tmp_path / "run", device="cpu")
    known, strange = assign_texts(session, [texts[4], "zzz qqq"])
    assert known["examples"][0]["text"] == texts[4] and known["examples"][0]["cosine"] == 1
    assert len(known["examples"]) == 3 and known["examples"][0]["name"] == known["name"]
    assert strange["examples"] == []
    # Runner-ups too come without the map's own vectors, which are reduced.
    everything = csv.DictReader(io.StringIO(export(session, "csv").decode()))
    assert all(row["runner_up"] and row["runner_up"] != row["cluster_name"] for row in everything)
    assert session.texts(TextFilter())["texts"][0]["runner_up"]
