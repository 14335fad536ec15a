"""Reading files: every format, every refusal, and chunks that add up to the whole."""

from __future__ import annotations

import csv
import gzip
import json
import tracemalloc
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from coterie.errors import InputError, SettingError
from coterie.text import line_sources
from coterie.text.reading import iter_corpus, read_corpus

TEXTS = ("plain", 'a "quoted", text', "two\nlines", "", "NA", "grüße 🎉", "plain")
IDS = ("r1", "r2", "r3", "r4", "r5", "r6", "r7")
LABELS = ("x", "y", "x", "y", "x", "y", "x")


def write(path: Path, content: str | bytes) -> Path:
    data = content.encode() if isinstance(content, str) else content
    path.write_bytes(gzip.compress(data) if path.suffix == ".gz" else data)
    return path


def write_rows(path: Path) -> Path:
    """TEXTS, IDS and LABELS in the format that the ending names."""
    rows = list(zip(IDS, TEXTS, LABELS, strict=True))
    if ".parquet" in path.name:
        pq.write_table(pa.table({"id": IDS, "text": TEXTS, "label": LABELS}), path, row_group_size=3)
        return path
    if "json" in path.name:
        return write(path, "".join(json.dumps({"id": i, "text": t, "label": k}) + "\n" for i, t, k in rows))
    plain = path.with_name("rows.tmp")
    with plain.open("w", newline="", encoding="utf-8") as stream:
        writer = csv.writer(stream, delimiter="\t" if ".tsv" in path.name else ",")
        writer.writerows([("id", "text", "label"), *rows])
    return write(path, plain.read_bytes())


def refusal(path: object, **options: Any) -> str:
    """The one-line message of reading in full; streaming must refuse as well, in the same words."""
    with pytest.raises(InputError) as caught:
        read_corpus(path, **options)
    message = str(caught.value)
    assert "\n" not in message
    if isinstance(path, Path):
        with pytest.raises(InputError) as streamed:
            list(iter_corpus(path, chunk_rows=2, **options))
        assert str(streamed.value) == message
        assert str(path) in message
    return message


ENDINGS = [
    ".csv",
    ".tsv",
    ".csv.gz",
    ".tsv.gz",
    ".jsonl",
    ".jsonl.gz",
    ".ndjson",
    ".ndjson.gz",
    ".parquet",
    ".CSV",
]


@pytest.mark.parametrize("ending", ENDINGS)
def test_every_format_whole_and_in_chunks(tmp_path: Path, ending: str) -> None:
    path = write_rows(tmp_path / f"rows{ending}")
    whole = read_corpus(path, id_column="id", keep_columns=["label"])
    assert whole.texts == TEXTS
    assert whole.row_ids == IDS
    assert whole.columns == {"label": LABELS}
    assert (whole.text_column, whole.id_column) == ("text", "id")
    assert read_corpus(str(path), keep_columns="all").columns == {"id": IDS, "label": LABELS}
    for chunk_rows in (1, 2, 3, 100):
        chunks = list(iter_corpus(path, id_column="id", keep_columns=["label"], chunk_rows=chunk_rows))
        assert sum((chunk.texts for chunk in chunks), ()) == TEXTS
        assert sum((chunk.row_ids for chunk in chunks), ()) == IDS
        assert sum((chunk.columns["label"] for chunk in chunks), ()) == LABELS
        assert max(len(chunk) for chunk in chunks) <= chunk_rows


@pytest.mark.parametrize("ending", [".txt", ".txt.gz"])
def test_one_text_a_line(tmp_path: Path, ending: str) -> None:
    path = write(tmp_path / f"rows{ending}", 'one\r\n\n a, "b" \u2028c\nlast')
    assert read_corpus(path).texts == ("one", "", ' a, "b" \u2028c', "last")
    assert [chunk.texts for chunk in iter_corpus(path, chunk_rows=3)][1] == ("last",)


def test_row_numbers_run_on(tmp_path: Path) -> None:
    path = write_rows(tmp_path / "rows.csv")
    assert [chunk.row_ids for chunk in iter_corpus(path, chunk_rows=3)] == [(0, 1, 2), (3, 4, 5), (6,)]
    assert read_corpus(path).row_ids == tuple(range(7))


def test_chunks_of_empty_texts_are_fine(tmp_path: Path) -> None:
    path = write(tmp_path / "rows.txt", "\n \na\n")
    chunks = list(iter_corpus(path, chunk_rows=2))
    assert chunks[0].empty.all() and chunks[1].texts == ("a",)


def test_chunk_rows_must_be_positive(tmp_path: Path) -> None:
    with pytest.raises(SettingError, match="chunk_rows"):
        iter_corpus(write(tmp_path / "rows.txt", "a"), chunk_rows=0)


def test_problems_of_the_file_show_in_the_call_itself(tmp_path: Path) -> None:
    with pytest.raises(InputError):
        iter_corpus(tmp_path / "missing.csv")  # not yet iterated


def test_memory_does_not_grow_with_the_file(tmp_path: Path) -> None:
    def peak(rows: int) -> int:
        path = tmp_path / f"{rows}.csv"
        path.write_text("id,text\n" + "".join(f"{i},this is text number {i}\n" for i in range(rows)))
        tracemalloc.start()
        try:
            assert sum(len(chunk) for chunk in iter_corpus(path, chunk_rows=2_000)) == rows
            return tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()

    assert peak(100_000) < 1.5 * peak(10_000)


# CSV


def test_semicolons_and_byte_order_mark(tmp_path: Path) -> None:
    path = write(tmp_path / "rows.csv", b"\xef\xbb\xbf" + b"text;n\na, b;1\n")
    assert read_corpus(path, keep_columns="all").columns == {"n": ("1",)}
    assert read_corpus(path).texts == ("a, b",)


def test_commas_win_over_semicolons(tmp_path: Path) -> None:
    assert read_corpus(write(tmp_path / "rows.csv", "text,a;b\nx;y,1\n")).texts == ("x;y",)


def test_words_for_nothing_stay_texts(tmp_path: Path) -> None:
    path = write(tmp_path / "rows.csv", "text\nnull\nnan\nNA\n")
    assert read_corpus(path).texts == ("null", "nan", "NA")


def test_line_ends_inside_cells_are_kept(tmp_path: Path) -> None:
    path = write(tmp_path / "rows.csv", 'id,text\r\n1,"a\r\nb"\r\n2,c\r\n')
    assert read_corpus(path).texts == ("a\r\nb", "c")


def test_blank_lines(tmp_path: Path) -> None:
    one = write(tmp_path / "one.csv", "text\na\n\nb\n")
    assert read_corpus(one).texts == ("a", "", "b")
    two = write(tmp_path / "two.csv", "id,text\n1,a\n\n2,b\n\n")
    assert read_corpus(two).texts == ("a", "b")


@pytest.fixture
def usual_cell_limit() -> Iterator[int]:
    """The csv module's limit as a fresh process has it."""
    before = csv.field_size_limit(131_072)
    yield 131_072
    csv.field_size_limit(before)


def test_long_cells_leave_the_csv_limit_alone(tmp_path: Path, usual_cell_limit: int) -> None:
    path = write(tmp_path / "rows.csv", "text\n" + "x" * 10_000_000 + "\nshort\n")
    stream = iter_corpus(path, chunk_rows=1)
    assert len(next(stream).texts[0]) == 10_000_000
    assert csv.field_size_limit() == usual_cell_limit  # also while the reading pauses
    assert next(stream).texts == ("short",)
    assert csv.field_size_limit() == usual_cell_limit


def test_too_long_a_cell(tmp_path: Path, usual_cell_limit: int) -> None:
    path = write(tmp_path / "rows.csv", 'text\na\n"' + "x" * 17_000_000 + '"\n')
    assert "row 2 (line 3)" in refusal(path)
    assert csv.field_size_limit() == usual_cell_limit


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ('id,text\n1,"a\nb"\n2,b,c\n', ["row 2 (line 4)", "expected 2 cells, found 3"]),
        ("id,text\n1,a\n2\n", ["row 2 (line 3)", "expected 2 cells, found 1"]),
        ('id,text\n1,a\n2,"open\n3,c\n', ["row 2 (line 3)", "never closed"]),
        ('id,text\n1,"a" b\n', ["row 1 (line 2)", "closing quote"]),
        ('id,"text\n1,a\n', ["header (line 1)", "never closed"]),
        ("text\na\rb\n", ["row 1 (line 2)", "carriage return"]),
        ("text,id,text\na,1,b\n", ["'text'", "rename"]),
        ("", ["empty"]),
        ("\nid,text\n", ["line 1 is blank"]),
        ("id,text\n", ["no rows"]),
        (b"text\nfine\ncaf\xe9 noir\n", ["line 3", "byte 13", "UTF-8", "0xe9"]),
        (b"\xef\xbb\xbftext\n\xff\n", ["line 2", "byte 8"]),
        ("text\na\n".encode("utf-16"), ["UTF-16"]),
        (b"text\na\nb\0c\n", ["line 3", "byte 8", "NUL"]),
    ],
)
def test_bad_csv(tmp_path: Path, content: str | bytes, words: list[str]) -> None:
    message = refusal(write(tmp_path / "rows.csv", content))
    assert all(word in message for word in words), message


def test_only_empty_texts(tmp_path: Path) -> None:
    path = write(tmp_path / "rows.csv", 'id,text\n1,\n2," "\n')
    with pytest.raises(InputError, match="all 2 texts in column 'text'"):
        read_corpus(path)
    assert [len(chunk) for chunk in iter_corpus(path)] == [2]


# JSON lines


def test_json_nulls_ids_and_blank_lines(tmp_path: Path) -> None:
    path = write(tmp_path / "rows.jsonl", '{"text": "a", "id": 5}\n\n{"text": null, "id": [1]}\n')
    corpus = read_corpus(path, id_column="id")
    assert corpus.texts == ("a", "") and corpus.row_ids == (5, [1])


def test_json_kept_keys_may_be_missing(tmp_path: Path) -> None:
    path = write(tmp_path / "rows.jsonl", '{"text": "a"}\n{"text": "b", "tag": 1}\n')
    assert read_corpus(path, keep_columns=["tag"]).columns == {"tag": (None, 1)}
    assert read_corpus(path, keep_columns="all").columns == {"tag": (None, 1)}


def test_json_only_string_column(tmp_path: Path) -> None:
    path = write(tmp_path / "rows.jsonl", '{"n": 1, "body": null}\n{"n": "?", "body": "b"}\n{"n": 2, "body": "c"}')
    assert read_corpus(path).text_column == "body"


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ('{"text": "a"}\n\n{"text": \n', ["row 2 (line 3)", "broken JSON"]),
        ('{"text": "a"}\n["b"]\n', ["row 2 (line 2)", "list ['b']"]),
        ('{"text": "a"}\n\n{"text": "b"}\n{"text": 3}\n', ["row 3 (line 4)", "column 'text'", "int 3"]),
        ('{"text": "a"}\n{"txt": "b"}\n', ["row 2 (line 2)", "'text'", "'txt'"]),
        ('{"text": "a"}\n{"text": "\\ud83d"}\n', ["row 2 (line 2)", "U+D83D"]),
        ('{"text": "a\\u0000"}\n', ["row 1 (line 1)", "NUL"]),
        ('{"text": ' + "[" * 200_000 + "\n", ["row 1 (line 1)"]),
        ("\n\n", ["no rows"]),
        ("", ["no rows"]),
        (b'{"text": "\xe9"}\n', ["line 1", "byte 10"]),
    ],
)
def test_bad_json_lines(tmp_path: Path, content: str | bytes, words: list[str]) -> None:
    message = refusal(write(tmp_path / "rows.jsonl", content))
    assert all(word in message for word in words), message


# Choice of columns and files


def test_only_column(tmp_path: Path) -> None:
    assert read_corpus(write(tmp_path / "rows.csv", "question\na\n")).text_column == "question"
    assert read_corpus(write(tmp_path / "two.csv", "n,body\n1,a\n"), id_column="n").text_column == "body"


def test_which_column(tmp_path: Path) -> None:
    message = refusal(write(tmp_path / "rows.csv", "title,body\na,b\n"))
    assert all(word in message for word in ("text_column", "--text-column", "'title', 'body'"))
    table = pa.table({"title": ["a"], "body": ["b"]})
    assert "--text-column" in refusal(table)


@pytest.mark.parametrize("ending", [".csv", ".jsonl", ".parquet"])
def test_missing_columns(tmp_path: Path, ending: str) -> None:
    path = write_rows(tmp_path / f"rows{ending}")
    message = refusal(path, text_column="texts")
    assert "did you mean 'text'?" in message and "'id', 'text', 'label'" in message
    assert "did you mean 'id'?" in refusal(path, id_column="ID")
    message = refusal(path, keep_columns=["label", "zzz"])
    assert "'zzz' (keep_columns)" in message and "did you mean" not in message


def test_keep_columns_may_name_the_text_or_one_column(tmp_path: Path) -> None:
    path = write_rows(tmp_path / "rows.csv")
    assert read_corpus(path, keep_columns="label").columns == {"label": LABELS}
    assert read_corpus(path, keep_columns=["text", "text"]).columns == {"text": TEXTS}


def test_files_that_are_none(tmp_path: Path) -> None:
    assert "no such file" in refusal(tmp_path / "missing.csv")
    assert "directory" in refusal(tmp_path)
    for name in ("rows.xlsx", "rows", "rows.parquet.gz", "rows.gz"):
        message = refusal(write(tmp_path / name, "x"))
        assert "unknown file ending" in message and ".jsonl.gz" in message
    assert "cannot be read" in refusal("a text, not a path " * 100)
    assert "cannot be read" in refusal("a\0b.csv")


def test_broken_gzip(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv.gz"
    path.write_bytes(b"text\nplain\n")
    assert "gzip" in refusal(path)
    path.write_bytes(gzip.compress(b"text\n" + bytes(range(32, 127)) * 50)[:-20])
    assert "gzip" in refusal(path)


# Blocks: a file is decoded in pieces that end with a line


@pytest.mark.parametrize("size", [1, 2, 3, 7, 64])
@pytest.mark.parametrize("ending", ["txt", "csv", "jsonl"])
def test_blocks_do_not_show(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, size: int, ending: str) -> None:
    texts = ("grüße", "", "a\x0b\u2028b", "🎉" * 30, "last")
    if ending == "txt":
        content = "".join(f"{text}\r\n" for text in texts).removesuffix("\r\n")
    elif ending == "csv":
        content = "text\n" + "".join(f'"{text}"\n' for text in texts).removesuffix("\n")
    else:
        content = "".join(json.dumps({"text": text}, ensure_ascii=False) + "\n" for text in texts)
    path = write(tmp_path / f"rows.{ending}", b"\xef\xbb\xbf" + content.encode())
    monkeypatch.setattr(line_sources, "_BLOCK_BYTES", max(size, 3))
    assert read_corpus(path).texts == texts


@pytest.mark.parametrize("size", [3, 5, 16, 2**16])
@pytest.mark.parametrize("gzipped", [False, True])
def test_the_place_of_a_bad_byte_does_not_depend_on_blocks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, size: int, gzipped: bool
) -> None:
    monkeypatch.setattr(line_sources, "_BLOCK_BYTES", size)
    name = "rows.txt.gz" if gzipped else "rows.txt"
    good = "\ufeffgrüße\none\ntwo\n".encode()
    for bad, words in ((b"a\xff\n", "not UTF-8 (0xff"), (b"a\0b\n", "NUL byte")):
        path = write(tmp_path / name, good + bad + b"end\n")
        message = refusal(path)
        assert f"line 4, byte {len(good) + 1}{' after decompression' if gzipped else ''}: {words}" in message
        # What stands before it is given first.
        stream = iter_corpus(path, chunk_rows=1)
        assert [next(stream).texts[0] for _ in range(3)] == ["grüße", "one", "two"]


@pytest.mark.parametrize(
    "line",
    ['  {"text": "a"}', '{"text": "a"}  \t', '\t{"text": "a"}\r', '{"text": "a", "n": [1, {"x": null}]}'],
)
def test_white_space_around_an_object(tmp_path: Path, line: str) -> None:
    assert read_corpus(write(tmp_path / "rows.jsonl", f"{line}\n")).texts == ("a",)


def test_more_than_one_object_a_line(tmp_path: Path) -> None:
    assert "row 1 (line 1): broken JSON at character 14: Extra data" in refusal(
        write(tmp_path / "rows.jsonl", '{"text": "a"}{"text": "b"}\n')
    )
