"""Nothing of a user's is overwritten unasked, and a run is written whole or not at all."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path
from typing import NoReturn

import pytest
from command_line import RUN_FILES, column, coterie, done, read_json, refusal, refusal_line, tree, write_csv
from conftest import topic_texts

from coterie.files import atomic_file, atomic_folder
from coterie.methods.baselines.tfidf import TfIdf

FAST = ("-k", 3, "-m", "tfidf", "-q")


@pytest.fixture
def texts_csv(tmp_path: Path) -> Path:
    return write_csv(tmp_path / "texts.csv", {"text": topic_texts(30)[0]})


@pytest.fixture
def run(texts_csv: Path) -> Path:
    folder = texts_csv.with_name("run")
    done("fit", texts_csv, *FAST, "-o", folder)
    return folder


def test_an_existing_run_is_refused(run: Path, texts_csv: Path) -> None:
    before = tree(run.parent)
    message = refusal("fit", texts_csv, *FAST, "-o", run)
    assert str(run) in message and "--overwrite" in message
    assert tree(run.parent) == before


def test_the_refusal_comes_before_any_work(run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def work(*_: object, **__: object) -> NoReturn:
        raise AssertionError("work was begun")

    monkeypatch.setattr("coterie.text.reading.read_corpus", work)
    monkeypatch.setattr(TfIdf, "fit", work)
    message = refusal("fit", tmp_path / "no-such-file.csv", *FAST, "-o", run)
    assert "exists already" in message
    assert "exists already" in refusal("demo", "-o", run)


def test_overwrite_replaces_the_run_whole(run: Path, tmp_path: Path) -> None:
    (run / "leftover.txt").write_text("from the old run")
    other = write_csv(tmp_path / "other.csv", {"text": topic_texts(21, seed=5)[0]})
    done("fit", other, *FAST, "-o", run, "--overwrite")
    assert {path.name for path in run.iterdir()} == RUN_FILES
    assert read_json(run / "run.json")["rows"] == 21
    assert len(column(run / "assignments.csv", "row")) == 21
    assert {path.name for path in tmp_path.iterdir()} == {"run", "texts.csv", "other.csv"}


def test_overwrite_may_fill_an_empty_folder(texts_csv: Path) -> None:
    folder = texts_csv.with_name("empty")
    folder.mkdir()
    assert "exists already" in refusal("fit", texts_csv, *FAST, "-o", folder)
    done("fit", texts_csv, *FAST, "-o", folder, "--overwrite")
    assert {path.name for path in folder.iterdir()} == RUN_FILES


def test_a_folder_that_is_no_run_is_never_replaced(texts_csv: Path) -> None:
    folder = texts_csv.with_name("photos")
    folder.mkdir()
    (folder / "holiday.jpg").write_bytes(b"\xff\xd8")
    before = tree(texts_csv.parent)
    for options in ((), ("--overwrite",)):
        assert str(folder) in refusal("fit", texts_csv, *FAST, "-o", folder, *options)
        assert tree(texts_csv.parent) == before
    assert "run.json" in refusal("demo", "-o", folder, "--overwrite")
    assert tree(texts_csv.parent) == before


def test_the_folder_one_stands_in_is_never_replaced(texts_csv: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(texts_csv.parent)
    before = tree(texts_csv.parent)
    refusal("fit", texts_csv, *FAST, "-o", ".", "--overwrite")
    assert tree(texts_csv.parent) == before


def test_a_file_is_never_replaced_by_a_run(texts_csv: Path) -> None:
    """``--overwrite`` replaces a run folder; ``-o`` may have been meant for another command."""
    notes = texts_csv.with_name("notes.txt")
    notes.write_text("mine")
    before = tree(texts_csv.parent)
    for target in (notes, texts_csv):
        outcome = coterie("fit", texts_csv, *FAST, "-o", target, "--overwrite")
        assert tree(texts_csv.parent) == before
        assert str(target) in refusal_line(outcome)


def test_an_output_that_cannot_be_made_is_refused_before_any_work(
    texts_csv: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def work(*_: object, **__: object) -> NoReturn:
        raise AssertionError("work was begun")

    monkeypatch.setattr(TfIdf, "fit", work)
    outcome = coterie("fit", texts_csv, *FAST, "-o", texts_csv / "run")  # a folder in a file
    assert str(texts_csv) in refusal_line(outcome)


CRASHES = {
    "describing": "coterie.describe.clusters.describe_clusters",
    "saving": "coterie.methods.base.ClusteringMethod.save_pretrained",
    "writing JSON": "coterie.files.write_json",
    "putting in place": "coterie.files.os.replace",
}


@pytest.mark.parametrize("target", CRASHES.values(), ids=CRASHES)
@pytest.mark.parametrize("error", [RuntimeError, OSError, KeyboardInterrupt])
def test_a_crash_leaves_nothing(
    target: str, error: type[BaseException], texts_csv: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def crash(*_: object, **__: object) -> NoReturn:
        raise error("no space left")

    monkeypatch.setattr(target, crash)
    before = tree(texts_csv.parent)
    outcome = coterie("fit", texts_csv, *FAST, "-o", texts_csv.with_name("run"))
    assert outcome.code != 0
    assert tree(texts_csv.parent) == before


@pytest.mark.parametrize("target", [name for case, name in CRASHES.items() if case != "putting in place"])
def test_a_crash_leaves_the_old_run(target: str, run: Path, texts_csv: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def crash(*_: object, **__: object) -> NoReturn:
        raise RuntimeError("no space left")

    before = tree(run.parent)
    monkeypatch.setattr(target, crash)
    assert coterie("fit", texts_csv, *FAST, "-o", run, "--overwrite").code != 0
    assert tree(run.parent) == before


def test_a_failed_swap_keeps_the_old_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The old folder is moved aside first: when the second move fails it must be put back."""
    target = tmp_path / "run"
    target.mkdir()
    (target / "run.json").write_text("old")
    moves = []
    replace = os.replace

    def second_fails(source: Path, destination: Path) -> None:
        moves.append(source)
        if len(moves) == 2:
            raise OSError("disk trouble")
        replace(source, destination)

    monkeypatch.setattr("coterie.files.os.replace", second_fails)
    with pytest.raises(OSError, match="disk trouble"), atomic_folder(target) as folder:
        (folder / "run.json").write_text("new")
    assert tree(tmp_path) == {"run": None, "run/run.json": b"old"}


def test_whole_file_appears_at_the_end_only(tmp_path: Path) -> None:
    target = tmp_path / "out.csv"
    with atomic_file(target) as stream:
        stream.write("grüße\n")
        assert not target.exists()
    assert target.read_bytes() == "grüße\n".encode()
    with contextlib.suppress(RuntimeError), atomic_file(target) as stream:
        stream.write("half")
        raise RuntimeError
    assert tree(tmp_path) == {"out.csv": "grüße\n".encode()}


def test_others_may_read_what_is_written(run: Path, texts_csv: Path) -> None:
    done("predict", run, texts_csv, "-q", "-o", run.with_name("out.csv"))
    for path in (run, run / "model"):
        assert path.stat().st_mode & 0o555 == 0o555
    for path in (run.with_name("out.csv"), run / "assignments.csv", run / "run.json"):
        assert path.stat().st_mode & 0o444 == 0o444
