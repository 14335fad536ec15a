"""``--min-confidence``: weak texts stay unassigned, with the best guess beside."""

from __future__ import annotations

from pathlib import Path

import pytest
from command_line import column, coterie, done, read_header, read_json, read_rows, write_csv
from conftest import topic_texts

TEXTS = [*topic_texts(40)[0], "", "hello"]


@pytest.fixture(scope="module")
def texts_csv(tmp_path_factory: pytest.TempPathFactory) -> Path:
    guesses = [f"g{i}" for i in range(len(TEXTS))]
    return write_csv(tmp_path_factory.mktemp("abstain") / "texts.csv", {"text": TEXTS, "best_guess": guesses})


def _fit(texts: Path, output: Path, *options: object) -> str:
    return done("fit", texts, "-k", 3, "-m", "tfidf", "--text-column", "text", "-o", output, *options).words


def test_weak_texts_stay_unassigned_and_the_rest_is_as_without(texts_csv: Path, tmp_path: Path) -> None:
    _fit(texts_csv, tmp_path / "all")
    whole = read_rows(tmp_path / "all" / "assignments.csv")
    # Four digits are written: half of the last one more lies above all that were rounded to this value.
    least = sorted(float(row["confidence"]) for row in whole if row["cluster"] != "-1")[len(whole) // 3] + 5.01e-5
    printed = _fit(texts_csv, tmp_path / "some", "--min-confidence", least)
    rows = read_rows(tmp_path / "some" / "assignments.csv")
    assert read_header(tmp_path / "some" / "assignments.csv")[1:3] == ["cluster", "best_guess"]
    abstained = [row for row in rows if row["status"] == "abstained"]
    assert 0 < len(abstained) < len(rows)
    for before, after in zip(whole, rows, strict=True):
        assert after["best_guess"] == before["cluster"]
        assert after["confidence"] == before["confidence"]
        weak = before["cluster"] != "-1" and float(before["confidence"]) < least
        assert after["cluster"] == ("-1" if weak else before["cluster"])
        assert after["status"] == ("abstained" if weak else before["status"])
    assert f"{len(abstained)} rows" in printed and "stay unassigned" in printed
    about = read_json(tmp_path / "some" / "run.json")
    assert about["abstained"] == len(abstained) and about["min_confidence"] == pytest.approx(least)
    assert read_json(tmp_path / "all" / "run.json")["abstained"] == 0
    assert "best_guess" not in read_header(tmp_path / "all" / "assignments.csv")


def test_it_is_told_where_no_text_is_weak(texts_csv: Path, tmp_path: Path) -> None:
    assert "No row is below a confidence of 1e-06: all are assigned." in _fit(
        texts_csv, tmp_path / "run", "--min-confidence", 0.000001
    )


def test_predict_abstains_too(texts_csv: Path, tmp_path: Path) -> None:
    _fit(texts_csv, tmp_path / "run")
    done("predict", tmp_path / "run", texts_csv, "-o", tmp_path / "out.csv", "--min-confidence", 1.0)
    rows = read_rows(tmp_path / "out.csv")
    assert {row["cluster"] for row in rows if float(row["confidence"]) < 0.99995} == {"-1"}
    assert [row["best_guess"] for row in rows] == column(tmp_path / "run" / "assignments.csv", "cluster")
    assert rows[TEXTS.index("")]["status"] != "abstained"


def test_a_run_with_unassigned_texts_can_be_shown_and_a_column_of_that_name_is_kept(
    texts_csv: Path, tmp_path: Path
) -> None:
    _fit(texts_csv, tmp_path / "run", "--min-confidence", 0.9, "--keep", "best_guess", "--report")
    header = read_header(tmp_path / "run" / "assignments.csv")
    assert header[-1] == "best_guess_input"
    assert column(tmp_path / "run" / "assignments.csv", "best_guess_input")[0] == "g0"
    done("report", tmp_path / "run", "--by", "best_guess")
    from coterie.app.session import ExplorerSession

    session = ExplorerSession(tmp_path / "run")
    guesses = column(tmp_path / "run" / "assignments.csv", "best_guess")
    assert session.state.labels.tolist() == [int(guess) for guess in guesses]


@pytest.mark.parametrize("value", ["-0.1", "1.5", "sure"])
def test_a_confidence_is_between_0_and_1(texts_csv: Path, tmp_path: Path, value: str) -> None:
    outcome = coterie("fit", texts_csv, "-k", 3, "-m", "tfidf", "-o", tmp_path / "run", "--min-confidence", value)
    assert outcome.code == 2 and not (tmp_path / "run").exists()


def test_a_model_saved_without_calibration_tells_margins_and_says_so(texts_csv: Path, tmp_path: Path) -> None:
    _fit(texts_csv, tmp_path / "run")
    with_it = done("predict", tmp_path / "run", texts_csv, "-o", tmp_path / "with.csv")
    (tmp_path / "run" / "model" / "calibration.json").unlink()
    without = done("predict", tmp_path / "run", texts_csv, "-o", tmp_path / "without.csv")
    assert "margin" in without.words and "margin" not in with_it.words
    sure, ahead = (
        [float(row["confidence"]) for row in read_rows(tmp_path / f"{name}.csv")] for name in ("with", "without")
    )
    assert sure != ahead
