"""``coterie fit -k auto``: the number chosen, printed, written down and plotted."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from command_line import column, coterie, done, read_json, refusal, write_csv
from conftest import topic_texts


@pytest.fixture
def texts_csv(tmp_path: Path) -> Path:
    return write_csv(tmp_path / "texts.csv", {"text": [*topic_texts(60)[0], ""]})


def test_the_choice_is_told_and_written_down(texts_csv: Path, tiny_encoder: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    given = ("fit", texts_csv, "-k", "auto", "-m", "frozen", "--encoder", tiny_encoder, "--device", "cpu")
    outcome = done(*given, "-o", run)
    about = read_json(run / "run.json")
    choice = about["choice_of_k"]
    assert (
        about["settings"]["n_clusters"] == choice["k"] == len(set(column(run / "assignments.csv", "cluster")) - {"-1"})
    )
    assert about["seconds"]["choosing"] > 0
    assert (choice["lowest"], choice["highest"], choice["looked_at"]) == (2, 23, 60)
    best = max(choice["candidates"], key=lambda each: each["score"])
    assert best["k"] == choice["k"]
    assert {"information", "stability", "silhouette", "gap", "neighbours", "words"} < set(best)
    for sentence in choice["why"]:
        assert f"k: {sentence}." in outcome.out
    assert (run / "k.svg").read_text(encoding="utf-8").count("information (weight 1)") == 1
    for ending in ("png", "svg", "html"):
        done("plot", run, "k", "-o", tmp_path / f"k.{ending}", "--device", "cpu")
    assert (tmp_path / "k.svg").read_bytes() == (run / "k.svg").read_bytes()
    # The same again gives the same; the run's own settings fit the number that was chosen.
    done(*given, "-q", "-o", tmp_path / "again")
    assert read_json(tmp_path / "again" / "run.json")["choice_of_k"] == choice
    done("fit", texts_csv, "--config", run / "run.json", "-q", "-o", tmp_path / "given")
    assert read_json(tmp_path / "given" / "run.json")["settings"]["n_clusters"] == choice["k"]
    assert not (tmp_path / "given" / "k.svg").exists()
    assert "-k auto" in refusal("plot", tmp_path / "given", "k", "-o", tmp_path / "x.png", "--device", "cpu")


def test_a_range_and_no_matplotlib(
    texts_csv: Path, tiny_encoder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    config = tmp_path / "c.yaml"
    config.write_text(f"method: frozen\nn_clusters: 9\nsettings:\n  encoder: {tiny_encoder}\n", encoding="utf-8")
    outcome = done("fit", texts_csv, "--config", config, "-k", "AUTO", "--k-range", "3-6", "-q", "-o", tmp_path / "run")
    assert outcome.out == ""
    choice = read_json(tmp_path / "run" / "run.json")["choice_of_k"]
    assert [each["k"] for each in choice["candidates"]] == [3, 4, 5, 6]
    assert not (tmp_path / "run" / "k.svg").exists()


def test_what_is_refused(texts_csv: Path, tiny_encoder: Path, tmp_path: Path) -> None:
    given = ("fit", texts_csv, "-m", "frozen", "--encoder", tiny_encoder, "-q", "-o", tmp_path / "run")
    assert "at most 30 clusters" in refusal(*given, "-k", "auto", "--k-range", "5-60")
    assert "must be below" in refusal(*given, "-k", "auto", "--k-range", "60-5")
    assert "A-B" in refusal(*given, "-k", "auto", "--k-range", "many")
    assert "-k auto" in refusal(*given, "-k", 4, "--k-range", "5-60")
    for texts in (["one", "two", "three"], ["the same"] * 30):
        write_csv(texts_csv, {"text": texts})
        assert "distinct texts (at least 10 are needed)" in refusal(*given, "-k", "auto")
    outcome = coterie(*given, "-k", "lots")
    assert outcome.code == 2
    assert "'auto'" in outcome.err
    assert "no setting" in refusal(*given, "-k", "auto", "--set", "colour=3")
    assert {entry.name for entry in tmp_path.iterdir()} == {"texts.csv"}


def test_the_report_shows_why(texts_csv: Path, tmp_path: Path) -> None:
    from coterie.report.html.rendering import read_content

    given = ("fit", texts_csv, "-m", "tfidf", "-q", "--report", "-o")
    done(*given, tmp_path / "run", "-k", "auto", "--k-range", "3-6")
    content = read_content((tmp_path / "run" / "report.html").read_text(encoding="utf-8"))
    assert content is not None
    assert content["choice"] == read_json(tmp_path / "run" / "run.json")["choice_of_k"]
    done(*given, tmp_path / "given", "-k", 3)
    content = read_content((tmp_path / "given" / "report.html").read_text(encoding="utf-8"))
    assert content is not None and content["choice"] is None
