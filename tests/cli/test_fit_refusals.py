"""Bad input: exit code 1, one line on standard error, and nothing written."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from pathlib import Path

import pytest
from command_line import coterie_process, done, refusal, refusal_line, tree, write_csv, write_jsonl, write_parquet
from conftest import topic_texts

TEXTS = topic_texts(30)[0]
LATE = 12_345  # beyond the first piece of a file that is read in pieces


def raw(content: bytes) -> Callable[[Path], object]:
    return lambda path: path.write_bytes(content)


def many_rows_then(last: bytes) -> Callable[[Path], object]:
    rows = "".join(f"{i},{TEXTS[i % 30]}\n" for i in range(LATE))
    return raw(b"id,text\n" + rows.encode() + last)


def cells(values: list[object]) -> dict[str, list[object]]:
    return {"text": values}


# Name of the file; how it is written (or not at all); words the message must hold.
BAD_FILES: dict[str, tuple[str, Callable[[Path], object] | None, tuple[str, ...]]] = {
    "missing file": ("none.csv", None, ("no such file",)),
    "unknown ending": ("texts.docx", raw(b"text\n"), (".docx", ".csv")),
    "a folder": ("folder.csv", lambda path: path.mkdir(), ("is a directory",)),
    "not UTF-8": ("in.csv", raw("text\nrefund paid\ngrüße\n".encode("latin-1")), ("line 3", "byte", "UTF-8")),
    "UTF-16": ("in.csv", raw("text\nrefund\n".encode("utf-16")), ("UTF-16",)),
    "NUL byte": ("in.csv", raw(b"text\na\0b\n"), ("line 2", "NUL")),
    "ragged CSV": ("in.csv", raw(b"id,text\n1,a\n2,b,c\n"), ("row 2", "line 3", "expected 2 cells, found 3")),
    "short CSV row": ("in.csv", raw(b"id,text\n1,a\n2\n"), ("row 2", "expected 2 cells, found 1")),
    "open quote": ("in.csv", raw(b'id,text\n1,a\n2,"b\n'), ("row 2", "quote")),
    "ragged late": ("in.csv", many_rows_then(b"1,2,3\n"), (f"row {LATE + 1}", "expected 2 cells, found 3")),
    "not UTF-8 late": ("in.csv", many_rows_then(b"1,\xff\n"), (f"line {LATE + 2}", "UTF-8")),
    "empty file": ("in.csv", raw(b""), ("empty",)),
    "header only": ("in.csv", raw(b"text\n"), ("no rows",)),
    "header only, TSV": ("in.tsv", raw(b"id\ttext\n"), ("no rows",)),
    "blank texts only": ("in.csv", raw(b'text\n" "\n""\n"\t"\n'), ("all 3 texts", "empty")),
    "not gzip": ("in.csv.gz", raw(b"text\na\n"), ("gzip",)),
    "cut gzip": ("in.csv.gz", raw(gzip.compress(b"text\n" + b"refund paid\n" * 99)[:-9]), ("gzip",)),
    "number in JSONL": (
        "in.jsonl",
        lambda path: write_jsonl(path, cells(["a", "b", 3])),
        ("row 3", "'text'", "int 3"),
    ),
    "list in JSONL": ("in.jsonl", lambda path: write_jsonl(path, cells(["a", ["b"]])), ("row 2", "list")),
    "broken JSONL": ("in.jsonl", raw(b'{"text": "a"}\n{"text": \n'), ("row 2", "line 2", "broken JSON")),
    "JSONL of texts": ("in.jsonl", raw(b'"a"\n'), ("row 1", "object")),
    "JSONL without the key": ("in.jsonl", raw(b'{"text": "a"}\n{"body": "b"}\n'), ("row 2", "'text'")),
    "no JSONL rows": ("in.jsonl", raw(b"\n\n"), ("no rows",)),
    "numbers in Parquet": ("in.parquet", lambda path: write_parquet(path, cells([1, 2])), ("row 1", "int 1")),
    "no Parquet": ("in.parquet", raw(b"text\na\n"), ("in.parquet",)),
    "no Parquet rows": ("in.parquet", lambda path: write_parquet(path, {"text": [""][:0]}), ("in.parquet",)),
}


@pytest.mark.parametrize("case", BAD_FILES)
def test_a_bad_file_is_refused_and_nothing_is_written(case: str, tmp_path: Path) -> None:
    name, write, words = BAD_FILES[case]
    path = tmp_path / name
    if write is not None:
        write(path)
    before = tree(tmp_path)
    message = refusal("fit", path, "-k", 2, "-m", "tfidf", "-o", tmp_path / "run")
    assert str(path) in message
    for word in words:
        assert word in message
    assert tree(tmp_path) == before


@pytest.mark.parametrize("case", BAD_FILES)
def test_predict_refuses_the_same_files(case: str, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    if case == "blank texts only":
        pytest.skip("predict answers -1 for blank texts")
    run = tmp_path_factory.mktemp("fitted") / "run"
    done("fit", write_csv(run.with_name("in.csv"), {"text": TEXTS}), "-k", 3, "-m", "bow", "-q", "-o", run)
    name, write, words = BAD_FILES[case]
    path = tmp_path / name
    if write is not None:
        write(path)
    before = tree(tmp_path)
    message = refusal("predict", run, path, "-o", tmp_path / "out.csv")
    for word in words:
        assert word in message
    assert tree(tmp_path) == before


@pytest.mark.parametrize("quiet", [(), ("--quiet",)])
@pytest.mark.parametrize(
    ("k", "words"), [(1, ("n_clusters=1", "at least 2")), (0, ("n_clusters=0",)), (-3, ("n_clusters=-3",))]
)
def test_too_few_clusters(k: int, words: tuple[str, ...], quiet: tuple[str, ...], tmp_path: Path) -> None:
    path = write_csv(tmp_path / "in.csv", {"text": TEXTS})
    message = refusal("fit", path, "-k", k, "-m", "tfidf", "-o", tmp_path / "run", *quiet)
    for word in words:
        assert word in message
    assert {entry.name for entry in tmp_path.iterdir()} == {"in.csv"}


@pytest.mark.parametrize("method", ["tfidf", "bow", "frozen", "sccl"])
def test_fewer_texts_than_clusters(method: str, tmp_path: Path, tiny_encoder: Path) -> None:
    # Five rows, of which three are distinct and not empty.
    path = write_csv(tmp_path / "in.csv", {"text": ["refund", "parcel", "refund", "", "login"]})
    encoder = ("--encoder", tiny_encoder) if method in {"frozen", "sccl"} else ()
    message = refusal("fit", path, "-k", 4, "-m", method, *encoder, "-o", tmp_path / "run")
    assert "n_clusters=4" in message and "3 distinct" in message and "5 rows" in message
    assert {entry.name for entry in tmp_path.iterdir()} == {"in.csv"}


def test_a_refusal_looks_the_same_from_outside(tmp_path: Path) -> None:
    (tmp_path / "in.csv").write_bytes(b"id,text\n1,a\n2,b,c\n")
    outcome = coterie_process("fit", "in.csv", "-k", 2, "-m", "tfidf", cwd=tmp_path)
    assert outcome.out == ""
    assert outcome.err == refusal_line(outcome) + "\n"
    assert refusal_line(outcome).startswith("coterie: in.csv: row 2 (line 3): expected 2 cells, found 3")
    assert {entry.name for entry in tmp_path.iterdir()} == {"in.csv"}
