"""``coterie.fit``: what the command does, from Python."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from command_line import done, read_json, write_csv
from conftest import topic_texts

import coterie
from coterie.encoders.transformer import TransformerEncoder
from coterie.errors import InputError, SettingError
from coterie.methods import cost_estimate
from coterie.methods.cost_estimate import Estimate
from coterie.runs import clusters_file, writing
from coterie.runs.saved_run import SavedRun

TEXTS, TOPICS = topic_texts(40)
TRAINING = {"training.max_steps": 4, "training.batch_size": 20}


@pytest.fixture
def texts_csv(tmp_path: Path) -> Path:
    columns = {"text": [*TEXTS, ""], "key": [*range(40), 40], "country": [*(["DE", "US"] * 20), "US"]}
    return write_csv(tmp_path / "texts.csv", columns)


def test_it_writes_what_the_command_writes(texts_csv: Path, tmp_path: Path) -> None:
    run = coterie.fit(
        texts_csv,
        4,
        "tfidf",
        output=tmp_path / "api",
        text_column="text",
        id_column="key",
        keep=["country"],
        by=["country"],
        seed=3,
        min_confidence=0.2,
        settings={"n_init": 3} if "n_init" in coterie.TfIdf(2).get_params() else {},
        device="cpu",
    )
    options = ("--text-column", "text", "--id-column", "key", "--by", "country", "--seed", 3, "--min-confidence", 0.2)
    settings = ("--set", "n_init=3") if "n_init" in run.model.get_params() else ()
    done("fit", texts_csv, "-k", 4, "-m", "tfidf", *options, *settings, "-o", tmp_path / "cli", "--report")
    for name in ("assignments.csv", "clusters.json"):
        assert (tmp_path / "api" / name).read_bytes() == (tmp_path / "cli" / name).read_bytes()
    names = sorted(path.name for path in (tmp_path / "api").iterdir())
    assert names == sorted(path.name for path in (tmp_path / "cli").iterdir())
    assert names == ["assignments.csv", "clusters.json", "map.safetensors", "model", "report.html", "run.json"]
    about, theirs = (read_json(tmp_path / name / "run.json") for name in ("api", "cli"))
    changing = {"seconds", "estimate"}
    assert {k: v for k, v in about.items() if k not in changing} == {
        k: v for k, v in theirs.items() if k not in changing
    }
    opened = coterie.Run.open(tmp_path / "api")
    assert opened.labels.tolist() == run.labels.tolist()
    np.testing.assert_array_equal(opened.confidence, run.confidence)
    assert [card.to_dict() for card in opened.clusters] == [card.to_dict() for card in run.clusters]
    assert opened.assignments == run.assignments


def test_one_column_is_given_by_its_name(texts_csv: Path, tmp_path: Path) -> None:
    """A name alone was once read as a sequence of letters."""
    given = {"text_column": "text", "report": False}
    run = coterie.fit(texts_csv, 4, "tfidf", output=tmp_path / "by", by="country", **given)
    assert (run.about["by"], run.about["input"]["kept"]) == (["country"], ["country"])
    both = coterie.fit(texts_csv, 4, "tfidf", output=tmp_path / "both", keep="key", by="country", **given)
    assert (both.about["by"], both.about["input"]["kept"]) == (["country"], ["key", "country"])
    assert "country" in run.report(by="country", map="pca").read_text(encoding="utf-8")


@pytest.mark.parametrize("kind", ["list", "pandas", "polars", "corpus", "path as text"])
def test_it_takes_what_holds_texts(kind: str, texts_csv: Path, tmp_path: Path) -> None:
    texts: Any = TEXTS
    if kind in ("pandas", "polars"):
        library = pytest.importorskip(kind)
        texts = library.DataFrame({"text": TEXTS, "number": list(range(40))})
    elif kind == "corpus":
        texts = coterie.Corpus.from_texts(TEXTS)
    elif kind == "path as text":
        texts = str(texts_csv)
    given = {"text_column": "text"} if kind in ("pandas", "polars", "path as text") else {}
    run = coterie.fit(texts, 4, "tfidf", output=tmp_path / "run", report=False, **given)
    assert run.labels[:40].tolist() == coterie.TfIdf(4, random_state=0).fit_predict(TEXTS).tolist()


def test_the_encoder_is_loaded_once(tiny_encoder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    loaded: list[str] = []
    load = TransformerEncoder.load.__func__  # type: ignore[attr-defined]

    def counting(cls: type[TransformerEncoder], name: Any, **given: Any) -> TransformerEncoder:
        loaded.append(str(name))
        return load(cls, name, **given)

    monkeypatch.setattr(TransformerEncoder, "load", classmethod(counting))
    run = coterie.fit(
        TEXTS, "auto", "sccl", k_range=(3, 4), encoder=str(tiny_encoder), settings=TRAINING, output=tmp_path / "run",
        device="cpu",
    )  # fmt: skip
    assert loaded == [str(tiny_encoder)], "chosen, trained, calibrated, judged and reported by one loading"
    # Nothing is kept beyond the fit, and what was copied is what would have been loaded.
    assert not any(
        isinstance(value, TransformerEncoder) for name, value in vars(run.model).items() if name != "encoder_"
    )
    opened = SavedRun.open(tmp_path / "run", device="cpu")
    from coterie.runs.calibration import calibrate_model

    assert calibrate_model(opened.model, opened.corpus) == opened.calibration
    assert len(loaded) > 1


def test_clusters_are_described_once(tiny_encoder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    written: list[Path] = []

    def counting(folder: Path, *given: Any, **named: Any) -> None:
        written.append(folder)
        clusters_file.write_cards(folder, *given, **named)

    monkeypatch.setattr(writing, "write_cards", counting)
    monkeypatch.setattr(clusters_file, "update_cards", lambda *given: pytest.fail("written again"))
    coterie.fit(TEXTS, 4, "tfidf", output=tmp_path / "run")
    assert len(written) == 1
    assert written[0].parent == tmp_path and written[0] != tmp_path / "run", "before the folder takes its place"
    assert read_json(tmp_path / "run" / "clusters.json")["clusters"][0]["stability"] is not None


@pytest.mark.parametrize("error", [RuntimeError("no page"), KeyboardInterrupt()])
def test_a_failing_report_loses_no_fit(error: BaseException, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*given: Any, **named: Any) -> None:
        raise error

    monkeypatch.setattr("coterie.api.reporting.write_report", fail)
    with pytest.raises(type(error)):
        coterie.fit(TEXTS, 4, "tfidf", output=tmp_path / "run")
    run = coterie.Run.open(tmp_path / "run")
    assert len(run.clusters) == 4 and not (tmp_path / "run" / "report.html").exists()
    assert list(tmp_path.iterdir()) == [tmp_path / "run"]


def test_a_failing_fit_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(coterie.TfIdf, "_learn", lambda *given: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        coterie.fit(TEXTS, 4, "tfidf", output=tmp_path / "run")
    assert list(tmp_path.iterdir()) == []


def test_the_verdict_is_stored_and_said_once(tiny_encoder: Path, tmp_path: Path) -> None:
    given = {"encoder": str(tiny_encoder), "settings": TRAINING, "device": "cpu"}
    run = coterie.fit(TEXTS, 4, "sccl", output=tmp_path / "run", **given)  # type: ignore[arg-type]
    stored = read_json(tmp_path / "run" / "run.json")["training_verdict"]
    assert run.training_verdict is not None and run.training_verdict.to_dict() == stored
    assert sum("label-free criteria" in note for note in run.notes) == 1
    headline = " ".join(json.loads(_data_of(tmp_path / "run" / "report.html"))["headline"])
    assert f"Fine-tuning {stored['outcome']}" in headline
    opened = SavedRun.open(tmp_path / "run", device="cpu")
    judged = opened.training_verdict
    del opened.about["training_verdict"], vars(opened)["training_verdict"]
    assert opened.training_verdict == judged, "a run that stored none is judged the same"
    untrained = coterie.fit(TEXTS, 4, "tfidf", output=tmp_path / "untrained", report=False)
    assert untrained.training_verdict is None


def _data_of(page: Path) -> str:
    return page.read_text(encoding="utf-8").split('<script type="application/json" id="data">')[1].split("</script>")[0]


def test_what_cannot_work_is_refused_before_a_text_is_read(tmp_path: Path) -> None:
    missing = tmp_path / "missing.csv"
    with pytest.raises(InputError, match="no such file"):
        coterie.fit(missing, 4, output=tmp_path / "run")
    for given, message in (
        ({"n_clusters": "many"}, "whole number or 'auto'"),
        ({"n_clusters": 4, "k_range": (2, 5)}, "--k-range 2-5"),
        ({"n_clusters": 4, "method": "tfidf", "snapshots": 1}, "needs a method that trains"),
        ({"n_clusters": 4, "method": "nothing"}, "nothing"),
    ):
        with pytest.raises(SettingError, match=message):
            coterie.fit(missing, output=tmp_path / "run", **given)  # type: ignore[arg-type]
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "mine.txt").write_text("mine", encoding="utf-8")
    for overwrite in (False, True):
        with pytest.raises(InputError):
            coterie.fit(TEXTS, 4, output=tmp_path / "run", overwrite=overwrite)


def test_progress_is_reported_in_sentences(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    said: list[str] = []
    coterie.fit(TEXTS, 4, "tfidf", output=tmp_path / "run", report=False, progress=said.append)
    assert said == ["40 rows from list; 4 clusters by tfidf"]
    captured = capsys.readouterr()
    assert (captured.out, captured.err) == ("", "")


def test_a_long_fit_is_estimated_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = Estimate(seconds=90.0, memory=2_000_000_000, device_memory=0, trial_seconds=3.0, parts={})
    monkeypatch.setattr(cost_estimate, "worth_estimating", lambda *given: True)
    for name, answer, expected in (("known", found, found.memory), ("unknown", None, None)):
        said: list[str] = []
        monkeypatch.setattr(cost_estimate, "estimate", lambda *given, answer=answer: answer)
        coterie.fit(TEXTS, 4, "tfidf", output=tmp_path / name, report=False, progress=said.append)
        assert "Trying it on a few texts first" in said[1]
        assert [line for line in said if "2.0 GB of memory (estimated by a trial of 3 s" in line] == said[2:]
        assert len(said) == (3 if answer else 2)
        stored = read_json(tmp_path / name / "run.json")["estimate"]
        assert (stored and stored["memory"]) == expected


def test_a_column_read_as_texts_cannot_be_counted_by(texts_csv: Path, tmp_path: Path) -> None:
    with pytest.raises(SettingError, match="--by key: this column is read as texts or ids"):
        coterie.fit(
            texts_csv, 4, "tfidf", output=tmp_path / "run", text_column="text", id_column="key", keep="all", by=["key"]
        )
