"""The report of a run: what stands in it, that it is one file, and that no text becomes markup."""

from __future__ import annotations

import base64
import json
import re
import shutil
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from made_run import EMOJI, NASTY, RIGHT_TO_LEFT

from coterie.api.reporting import write_report
from coterie.errors import InputError
from coterie.report.html.content import build_report
from coterie.report.html.headline import build_headline
from coterie.report.html.rendering import render_page, script_json
from coterie.runs.saved_run import SavedRun
from coterie.selection.training_verdict import CriterionChange, TrainingVerdict


class _Elements(HTMLParser):
    """The elements of a page, and the text of its scripts."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.scripts: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += attrs

    def handle_data(self, data: str) -> None:
        if self.tags and self.tags[-1] == "script":
            self.scripts.append(data)


@pytest.fixture(scope="module")
def page(run_folder: Path) -> str:
    return (run_folder / "report.html").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def content(page: str) -> dict[str, Any]:
    found = re.search(r'<script type="application/json" id="data">(.*?)</script>', page, re.DOTALL)
    assert found is not None
    return dict(json.loads(found[1]))


def _unpacked(packed: str, kind: str) -> np.ndarray:
    return np.frombuffer(base64.b64decode(packed), dtype=kind)


def test_a_fit_leaves_a_page_that_needs_nothing_else(page: str) -> None:
    elements = _Elements()
    elements.feed(page)
    assert elements.tags.count("script") == 2
    assert not {"link", "img", "iframe", "base", "object"} & set(elements.tags)
    assert not [value for name, value in elements.attributes if name in {"src", "srcset", "action"}]
    assert "http" not in re.sub(r"http://www\.w3\.org/2000/svg|http-equiv", "", page)
    assert "default-src 'none'" in page


def test_texts_stand_in_it_as_they_are(page: str, content: dict[str, Any]) -> None:
    assert {NASTY, RIGHT_TO_LEFT, EMOJI} <= set(content["points"]["texts"])
    # One element of data and one script, whatever the texts say.
    assert page.count("</script>") == 2
    assert "<script>document" not in page


def test_the_points_are_the_distinct_texts_with_their_clusters(run_folder: Path, content: dict[str, Any]) -> None:
    run, points = SavedRun.open(run_folder, device="cpu"), content["points"]
    assert points["count"] == len(run.corpus.distinct) == len(points["texts"]) == 63
    answer = dict(zip(points["texts"], _unpacked(points["cluster"], "<i4").tolist(), strict=True))
    assert answer == {
        text: label for text, label in zip(run.corpus.texts, run.model.labels_.tolist(), strict=True) if text
    }
    places = np.abs([_unpacked(points[axis], "<i2") for axis in "xy"])
    assert places.shape == (2, 63)
    assert 31_000 < places.max() <= 32_000
    sure = _unpacked(points["confidence"], "u1") / 255
    first = [run.corpus.texts.index(text) for text in points["texts"]]
    np.testing.assert_allclose(sure, run.confidence[first], atol=0.003)
    assert (_unpacked(points["runner_up"], "<i4") != _unpacked(points["cluster"], "<i4")).all()


def test_it_shows_rows_clusters_and_duplicates(run_folder: Path, content: dict[str, Any]) -> None:
    about, cards = content["about"], content["clusters"]
    assert (about["rows"], about["distinct"], about["unassigned"]) == (65, 63, 1)
    assert sum(card["size"] for card in cards) == 64
    assert len({card["name"] for card in cards}) == len(cards) == 4
    run = SavedRun.open(run_folder, device="cpu")
    twice = run.model.labels_[0]
    for card in cards:
        assert card["duplicates"] == pytest.approx(1 / card["size"] if card["id"] == twice else 0)
    assert content["headline"][0].startswith("65 texts in ")
    assert "1 row is in no cluster" in content["headline"][1]


def test_it_tells_how_many_texts_were_left_unassigned(content: dict[str, Any]) -> None:
    assert not any("below the requested confidence" in sentence for sentence in content["headline"])
    answer = build_headline(content | {"about": content["about"] | {"abstained": 5, "min_confidence": 0.4}})
    assert any("5 texts are below the requested confidence of 0.4" in sentence for sentence in answer)


@pytest.mark.parametrize(
    ("stabilities", "answer"),
    [
        ((0.9, 0.8, 0.76, 0.6), "(stability of 75 % or more)."),
        ((0.9, 0.4, 0.6, None), "(stability of 75 % or more). 1 is unstable (below 50 %): check their texts first."),
    ],
)
def test_unstable_clusters_are_named_in_the_headline(
    content: dict[str, Any], stabilities: tuple[float | None, ...], answer: str
) -> None:
    cards = [card | {"stability": each} for card, each in zip(content["clusters"], stabilities, strict=True)]
    sentences = build_headline(content | {"clusters": cards})
    assert next(sentence for sentence in sentences if "reappear" in sentence).endswith(answer)


def test_training_is_shown(run_folder: Path, content: dict[str, Any]) -> None:
    history = json.loads((run_folder / "run.json").read_text(encoding="utf-8"))["history"]["steps"]
    terms = content["loss_curves"]["terms"]
    assert {"instance", "cluster"} < set(terms)
    assert [value for _, value in terms["instance"]] == pytest.approx([step["instance"] for step in history], rel=1e-5)
    assert [stage["step"] for stage in content["loss_curves"]["stages"]] == [1]
    trained = content["trained"]
    assert [panel["title"] for panel in trained["panels"]] == ["before", "after"]
    run = SavedRun.open(run_folder, device="cpu")
    assert run.initial_labels is not None
    rows = [run.corpus.texts.index(text) for text in content["points"]["texts"]]
    for panel, labels in zip(trained["panels"], (run.initial_labels, run.model.labels_), strict=True):
        chosen = _unpacked(panel["points"], "<i4")
        np.testing.assert_array_equal(_unpacked(panel["cluster"], "<i4"), labels[rows][chosen])
    assert trained["verdict"] in content["headline"]
    assert {"name", "before", "after"} == set(trained["criteria"][0])
    assert content["snapshots"][0]["title"] == "before training"
    assert len(content["snapshots"]) == len(list((run_folder / "snapshots").glob("[0-9]*.safetensors")))


def test_the_verdict_stored_in_the_run_is_shown(run_folder: Path) -> None:
    run = SavedRun.open(run_folder, device="cpu")
    given = TrainingVerdict("helped on balance", (CriterionChange("a criterion", 0.25, 0.5),), "It helped on balance.")
    run.about["training_verdict"] = given.to_dict()
    content = build_report(run).content
    assert given.sentence in content["headline"]
    assert content["trained"]["verdict"] == given.sentence
    assert content["trained"]["criteria"] == [{"name": "a criterion", "before": 0.25, "after": 0.5}]


def test_confidence_against_coverage(run_folder: Path, content: dict[str, Any]) -> None:
    run = SavedRun.open(run_folder, device="cpu")
    sure = run.confidence[run.model.labels_ >= 0]
    assert not np.allclose(sure, run.model.confidence_[run.model.labels_ >= 0]), "margins are not confidence"
    for point in content["coverage"]:
        assert point["share"] == pytest.approx((sure >= point["threshold"]).mean(), abs=0.02)
        assert "accuracy" not in point
    assert content["labels_table"] is None


def test_labels_bring_scores_and_a_table(run_folder: Path, tmp_path: Path) -> None:
    run = SavedRun.open(run_folder, device="cpu")
    labels = [None if cluster < 0 else f"label {cluster}" for cluster in run.model.labels_]
    content = build_report(run, labels=labels).content
    truth = content["labels_table"]
    assert truth["scores"]["accuracy"] == 1
    assert truth["labels"] == [f"label {cluster}" for cluster in truth["clusters"]]
    counts = np.array(truth["counts"])
    assert (counts == np.diag(np.bincount(run.model.labels_[run.model.labels_ >= 0])[truth["clusters"]])).all()
    assert {point.get("accuracy", 1.0) for point in content["coverage"]} == {1.0}
    # Half of the rows have one label in common: in most clusters these are wrong.
    half = [label if row % 2 else "other" for row, label in enumerate(labels)]
    assert build_report(run, labels=half).content["coverage"][0]["accuracy"] < 0.9


def test_without_texts_none_is_told(run_folder: Path, tmp_path: Path) -> None:
    write_report(SavedRun.open(run_folder, device="cpu"), tmp_path / "no.html", with_texts=False)
    page = (tmp_path / "no.html").read_text(encoding="utf-8")
    texts = [text for text in SavedRun.open(run_folder, device="cpu").corpus.texts if text]
    assert not [text for text in texts if json.dumps(text, ensure_ascii=False)[1:-1].replace("<", "\\u003c") in page]


def test_only_so_many_points(run_folder: Path) -> None:
    run = SavedRun.open(run_folder, device="cpu")
    content = build_report(run, points=20).content
    assert content["points"]["count"] == len(content["points"]["texts"]) == 20
    assert sum(card["size"] for card in content["clusters"]) == 64


def test_a_folder_that_is_no_run_or_no_longer_one(run_folder: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="not a run of Coterie"):
        SavedRun.open(tmp_path)
    changed = tmp_path / "changed"
    shutil.copytree(run_folder, changed)
    path = changed / "assignments.csv"
    rows = path.read_text(encoding="utf-8").splitlines(keepends=True)
    number, cluster, rest = rows[1].split(",", 2)
    path.write_text("".join([rows[0], f"{number},{(int(cluster) + 1) % 4},{rest}", *rows[2:]]), encoding="utf-8")
    with pytest.raises(InputError, match="not of one fit"):
        build_report(SavedRun.open(changed))


def test_data_cannot_leave_its_element() -> None:
    nasty = {"text": "</script><!-- \u2028 & \\u003c"}
    answer = script_json(nasty)
    assert "<" not in answer
    assert "\u2028" not in answer
    assert json.loads(answer) == nasty
    with pytest.raises(ValueError):
        script_json({"x": float("nan")})


def test_a_very_long_text_is_cut_everywhere(tmp_path: Path) -> None:
    from coterie.cli.fit import fit

    texts = tmp_path / "texts.csv"
    texts.write_text(
        "text\n" + "\n".join(f"{word} {'very ' * 20_000}{i}" for i in range(4) for word in ("parcel", "login"))
    )
    fit(texts, clusters=2, method="tfidf", output=tmp_path / "run", quiet=True)
    assert (tmp_path / "run" / "report.html").stat().st_size < 100_000
    content = build_report(SavedRun.open(tmp_path / "run")).content
    assert all(text.endswith("very…") or len(text) == 400 for text in content["points"]["texts"])
    assert all(len(text) <= 400 for card in content["clusters"] for text in card["representatives"])


def test_a_method_without_training_has_no_before_and_after(tmp_path: Path) -> None:
    from coterie.cli.fit import fit

    texts = tmp_path / "texts.csv"
    texts.write_text("text\n" + "\n".join(f"{word} number {i}" for i in range(12) for word in ("parcel", "login")))
    fit(texts, clusters=2, method="tfidf", output=tmp_path / "run", quiet=True)
    content = build_report(SavedRun.open(tmp_path / "run")).content
    assert (content["trained"], content["loss_curves"], content["snapshots"]) == (None, None, [])
    assert "Fine-tuning" not in " ".join(content["headline"])
    assert render_page(build_report(SavedRun.open(tmp_path / "run")).content).startswith("<!doctype html>")


def test_labels_name_the_cards_and_colour_the_points(run_folder: Path) -> None:
    run = SavedRun.open(run_folder, device="cpu")
    labels = [None if row % 5 == 0 else ("often" if row % 2 else "rare") for row in range(len(run.corpus))]
    labels[1] = labels[3] = "seldom"
    # Nothing is no label.
    labels[7], labels[9] = "", float("nan")
    content = build_report(run, labels=labels, kind="pca").content
    names = [each["name"] for each in content["labels"]]
    assert sorted(names) == ["often", "rare", "seldom"]
    rows = np.unique(run.corpus.distinct_index, return_index=True)[1]
    rows = np.sort(rows[run.model.labels_[rows] >= 0])
    codes = _unpacked(content["points"]["label"], "<i4")
    answer = [None if labels[row] in ("", None) or labels[row] != labels[row] else labels[row] for row in rows]
    assert [None if code < 0 else names[code] for code in codes] == answer
    assert [each["size"] for each in content["labels"]] == sorted(map(answer.count, names), reverse=True)
    for card in content["clusters"]:
        inside = [labels[row] for row in np.flatnonzero(run.model.labels_ == card["id"]) if labels[row] in names]
        most = max(inside.count(name) for name in names)
        assert inside.count(card["label"]["name"]) == most and card["label"]["share"] == most / len(inside)
    assert "labels" not in build_report(run, kind="pca").content
