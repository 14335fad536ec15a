"""``coterie predict``: new texts to the clusters of a run, piece by piece."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tracemalloc
from pathlib import Path

import pytest
from command_line import (
    OWN_COLUMNS,
    column,
    coterie,
    done,
    read_header,
    read_json,
    read_rows,
    refusal,
    refusal_line,
    tree,
    write_csv,
    write_jsonl,
    write_parquet,
)
from conftest import topic_texts

TEXTS = [*topic_texts(30)[0], ""]
NEW = topic_texts(12, seed=9)[0]
CHUNK = 1_000
METHODS = ("tfidf", "bow", "frozen", "sccl")
CLUSTERS = "clusters.json"
NAMED_COLUMNS = [*OWN_COLUMNS[:2], "cluster_name", *OWN_COLUMNS[2:]]


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory, tiny_encoder: Path) -> dict[str, Path]:
    """A run of every method on TEXTS."""
    folder = tmp_path_factory.mktemp("runs")
    path = write_csv(folder / "texts.csv", {"text": TEXTS})
    for method in METHODS:
        options: list[object] = ["-m", method]
        options += ["--encoder", tiny_encoder] if method in {"frozen", "sccl"} else []
        options += ["--set", "training.max_steps=2"] if method == "sccl" else []
        done("fit", path, "-k", 3, "-q", "-o", folder / method, *options)
    return {method: folder / method for method in METHODS}


@pytest.fixture(autouse=True)
def _small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    """Files of a few thousand rows are then several pieces."""
    monkeypatch.setattr("coterie.runs.prediction.CHUNK_ROWS", CHUNK)


@pytest.fixture
def run(runs: dict[str, Path]) -> Path:
    return runs["tfidf"]


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("part", ["", "model"])
def test_the_training_texts_get_their_own_clusters(
    method: str, part: str, runs: dict[str, Path], tmp_path: Path
) -> None:
    texts = write_csv(tmp_path / "texts.csv", {"text": TEXTS})
    outcome = done("predict", runs[method] / part, texts, "-o", tmp_path / "out.csv")
    assert outcome.out == f"Wrote 31 rows to {tmp_path / 'out.csv'}, 1 of them empty (cluster -1).\n"
    # A model alone has no names.
    names = {} if part else {str(each["id"]): each["name"] for each in read_json(runs[method] / CLUSTERS)["clusters"]}
    assert read_header(tmp_path / "out.csv") == (OWN_COLUMNS if part else NAMED_COLUMNS)
    predicted, fitted = read_rows(tmp_path / "out.csv"), read_rows(runs[method] / "assignments.csv")
    for ours, theirs in zip(predicted, fitted, strict=True):
        assert float(ours.pop("confidence")) == pytest.approx(float(theirs.pop("confidence")), abs=2e-4)
        assert ours.pop("cluster_name", "") == names.get(ours["cluster"], "")
        assert ours == theirs


@pytest.mark.parametrize("method", METHODS)
def test_a_text_gets_the_same_cluster_in_any_company(method: str, runs: dict[str, Path], tmp_path: Path) -> None:
    def predicted(texts: list[str]) -> list[str]:
        path = write_csv(tmp_path / "some.csv", {"text": texts})
        done("predict", runs[method], path, "-q", "--overwrite", "-o", tmp_path / "out.csv")
        return column(tmp_path / "out.csv", "cluster")

    together = predicted(NEW)
    assert predicted(NEW[::-1]) == together[::-1]
    assert [predicted([text])[0] for text in NEW[:4]] == together[:4]


@pytest.mark.parametrize("ending", ["csv", "jsonl", "parquet"])
def test_ids_and_kept_columns_are_carried_along(ending: str, run: Path, tmp_path: Path) -> None:
    columns = {"code": [f"c{i}" for i in range(12)], "body": NEW, "cluster": list("abcdefghijkl"), "age": NEW}
    write = {"csv": write_csv, "jsonl": write_jsonl, "parquet": write_parquet}[ending]
    path = write(tmp_path / f"new.{ending}", columns)
    options = ("--text-column", "body", "--id-column", "code")
    done("predict", run, path, "-q", "-o", tmp_path / "out.csv", *options, "--keep", "cluster,age")
    assert read_header(tmp_path / "out.csv") == ["row", "id", *NAMED_COLUMNS[1:], "cluster_input", "age"]
    rows = read_rows(tmp_path / "out.csv")
    assert [row["row"] for row in rows] == [str(i) for i in range(1, 13)]
    for name, ours in (("code", "id"), ("body", "text"), ("cluster", "cluster_input"), ("age", "age")):
        assert [row[ours] for row in rows] == columns[name]
    done("predict", run, path, "-q", "-o", tmp_path / "all.csv", *options, "--keep", "all")
    assert (tmp_path / "all.csv").read_bytes() == (tmp_path / "out.csv").read_bytes()


def big_file(path: Path, rows: int) -> Path:
    with path.open("w", encoding="utf-8") as stream:
        stream.write("id,text\n")
        for i in range(rows):
            stream.write(f"{i},{TEXTS[i % 30]} number{i}\n")
    return path


def test_rows_run_on_over_the_pieces(run: Path, tmp_path: Path) -> None:
    n = 2 * CHUNK + 345
    path = big_file(tmp_path / "big.csv", n)
    outcome = done("predict", run, path, "--id-column", "id", "-o", tmp_path / "out.csv")
    assert f"Wrote 2,345 rows to {tmp_path / 'out.csv'}.\n" == outcome.out
    rows = read_rows(tmp_path / "out.csv")
    assert len(rows) == n
    assert all(row["row"] == str(i + 1) and row["id"] == str(i) for i, row in enumerate(rows))
    assert rows[CHUNK]["text"] == f"{TEXTS[CHUNK % 30]} number{CHUNK}"
    # Words the model has never met change nothing: each text is one of the 30 it was fitted on.
    fitted = column(run / "assignments.csv", "cluster")
    assert all(row["cluster"] == fitted[i % 30] for i, row in enumerate(rows))


def test_memory_does_not_grow_with_the_file(run: Path, tmp_path: Path) -> None:
    def peak(rows: int) -> int:
        path = big_file(tmp_path / f"{rows}.csv", rows)
        tracemalloc.start()
        try:
            done("predict", run, path, "-q", "--keep", "id", "-o", tmp_path / f"out-{rows}.csv")
            return tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()

    done("predict", run, big_file(tmp_path / "first.csv", 1), "-q", "-o", tmp_path / "first-out.csv")
    small, large = peak(5 * CHUNK), peak(25 * CHUNK)
    assert large < 1.1 * small
    assert (tmp_path / f"out-{25 * CHUNK}.csv").read_bytes().count(b"\n") == 25 * CHUNK + 1


def test_blank_texts_are_in_no_cluster(run: Path, tmp_path: Path) -> None:
    path = write_csv(tmp_path / "blank.csv", {"text": ["", " ", "\t\n"]})
    outcome = done("predict", run, path, "-o", tmp_path / "out.csv")
    assert "3 of them empty" in outcome.out
    rows = read_rows(tmp_path / "out.csv")
    assert [row["text"] for row in rows] == ["", " ", "\t\n"]
    assert {(row["cluster"], row["status"], float(row["confidence"])) for row in rows} == {("-1", "empty", 0.0)}


def test_texts_of_unknown_words_are_still_assigned(run: Path, tmp_path: Path) -> None:
    path = write_csv(tmp_path / "strange.csv", {"text": ["zzz qqq", "漢字"]})
    done("predict", run, path, "-q", "-o", tmp_path / "out.csv")
    rows = read_rows(tmp_path / "out.csv")
    assert {row["status"] for row in rows} == {"assigned"}
    assert all(row["cluster"] in {"0", "1", "2"} for row in rows)


def test_an_existing_output_is_refused(run: Path, tmp_path: Path) -> None:
    path = write_csv(tmp_path / "new.csv", {"text": NEW})
    target = tmp_path / "out.csv"
    target.write_text("mine")
    message = refusal("predict", run, path, "-o", target)
    assert str(target) in message and "--overwrite" in message
    assert target.read_text() == "mine"
    done("predict", run, path, "-q", "-o", target, "--overwrite")
    assert column(target, "text") == NEW
    assert {entry.name for entry in tmp_path.iterdir()} == {"new.csv", "out.csv"}


def test_a_folder_is_no_output(run: Path, tmp_path: Path) -> None:
    path = write_csv(tmp_path / "new.csv", {"text": NEW})
    folder = tmp_path / "folder"
    folder.mkdir()
    for options in ((), ("--overwrite",)):
        assert str(folder) in refusal("predict", run, path, "-o", folder, *options)
    assert tree(folder) == {}


def test_a_bad_row_leaves_the_old_output(run: Path, tmp_path: Path) -> None:
    path = big_file(tmp_path / "big.csv", CHUNK + 5)
    with path.open("a") as stream:
        stream.write("1,2,3\n")
    target = tmp_path / "out.csv"
    target.write_text("old")
    before = tree(tmp_path)
    outcome = coterie("predict", run, path, "-q", "--overwrite", "-o", target)
    assert "row 1006" in refusal_line(outcome)
    assert tree(tmp_path) == before


def test_quiet_says_nothing(run: Path, tmp_path: Path) -> None:
    path = write_csv(tmp_path / "new.csv", {"text": NEW})
    outcome = done("predict", run, path, "-q", "-o", tmp_path / "out.csv")
    assert (outcome.out, outcome.err) == ("", "")


def test_what_is_no_run_is_refused(run: Path, tiny_encoder: Path, tmp_path: Path) -> None:
    path = write_csv(tmp_path / "new.csv", {"text": NEW})
    folder = tmp_path / "folder"
    folder.mkdir()
    before = tree(tmp_path)
    for given, words in (
        (tmp_path / "none", "no such folder"),
        (path, "no such folder"),
        (folder, "not a folder written by Coterie"),
        (tiny_encoder, "no clusters"),
    ):
        message = refusal("predict", given, path, "-o", tmp_path / "out.csv")
        assert str(given) in message and words in message
    assert tree(tmp_path) == before


@pytest.mark.parametrize("name", ["coterie.json", "coterie.safetensors"])
@pytest.mark.parametrize("damage", [b"", b"{}", b"not at all"])
def test_a_damaged_model_is_refused(name: str, damage: bytes, run: Path, tmp_path: Path) -> None:
    path = write_csv(tmp_path / "new.csv", {"text": NEW})
    broken = tmp_path / "broken"
    shutil.copytree(run, broken)
    (broken / "model" / name).write_bytes(damage)
    outcome = coterie("predict", broken, path, "-o", tmp_path / "out.csv")
    assert str(broken) in refusal_line(outcome)
    assert not (tmp_path / "out.csv").exists()


def test_the_columns_are_checked_before_the_model_is_loaded(tmp_path: Path) -> None:
    path = write_csv(tmp_path / "new.csv", {"text": NEW})
    message = refusal("predict", tmp_path / "none", path, "-o", tmp_path / "out.csv", "--text-column", "body")
    assert "'body'" in message and "'text'" in message
    assert "no such file" in refusal("predict", tmp_path / "none", tmp_path / "x.csv", "-o", tmp_path / "out.csv")


def test_the_input_is_never_overwritten(run: Path, tmp_path: Path) -> None:
    path = write_csv(tmp_path / "new.csv", {"text": ["late parcel"], "extra": ["kept"]})
    before = path.read_bytes()
    assert "the input itself" in refusal("predict", run, path, "-o", path, "--overwrite")
    assert path.read_bytes() == before


def test_the_output_is_a_csv(run: Path, tmp_path: Path) -> None:
    path = write_csv(tmp_path / "new.csv", {"text": ["late parcel"]})
    assert ".csv" in refusal("predict", run, path, "-o", tmp_path / "out.parquet")


def test_the_text_column_of_the_run_is_taken_where_the_file_has_it(tmp_path: Path) -> None:
    texts, _ = topic_texts(12)
    path = write_csv(tmp_path / "in.csv", {"body": texts, "other": texts[::-1]})
    run = tmp_path / "run"
    done("fit", path, "-k", 2, "-m", "tfidf", "--text-column", "body", "-o", run, "-q")
    done("predict", run, path, "-o", tmp_path / "out.csv", "-q")
    assert column(tmp_path / "out.csv", "text") == texts
    alone = write_csv(tmp_path / "alone.csv", {"message": texts})
    done("predict", run, alone, "-o", tmp_path / "alone-out.csv", "-q")
    assert column(tmp_path / "alone-out.csv", "text") == texts


def test_assigning_needs_neither_pandas_nor_transformers(runs: dict[str, Path], tmp_path: Path) -> None:
    texts = write_csv(tmp_path / "texts.csv", {"text": TEXTS})
    commands = [
        ["predict", str(runs[method]), str(texts), "-q", "-o", str(tmp_path / f"{method}.csv")] for method in METHODS
    ]
    code = (
        f"import sys; from coterie.cli.main import app; [app(each, standalone_mode=False) for each in {commands!r}]; "
        "print(*[name for name in ('pandas', 'transformers') if name in sys.modules]); import pandas; pandas.Series()"
    )
    done_there = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done_there.stdout.strip() == ""
    assert all(len(read_rows(tmp_path / f"{method}.csv")) == len(TEXTS) for method in METHODS)


def test_texts_that_are_cut_are_counted(tiny_encoder: Path, tmp_path: Path) -> None:
    texts = write_csv(tmp_path / "texts.csv", {"text": ["late parcel", "password", "my parcel is still late today"]})
    options = ("--set", "max_length=5", "--encoder", tiny_encoder, "--device", "cpu")
    done("fit", texts, "-k", 2, "-m", "frozen", *options, "-o", tmp_path / "run")
    printed = done("predict", tmp_path / "run", texts, "-o", tmp_path / "out.csv", "--device", "cpu").words
    assert "Note: distinct texts cut at the model's length limit: 1." in printed
