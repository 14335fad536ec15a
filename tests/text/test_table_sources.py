"""Reading typed tables: Parquet, Arrow, data frames and data sets of ``datasets``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from coterie.errors import InputError
from coterie.text.corpus import Corpus
from coterie.text.reading import iter_corpus, read_corpus


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


def typed_table() -> pa.Table:
    return pa.table(
        {
            "when": pa.array([1, 2, 3], pa.timestamp("s")),
            "body.long": pa.array(["a", None, "b"], pa.large_string()),
            "body": pa.array([1.5, None, 2.5]),
        }
    )


def test_parquet_types(tmp_path: Path) -> None:
    path = tmp_path / "rows.parquet"
    table = typed_table()
    pq.write_table(table, path)
    corpus = read_corpus(path, id_column="when", keep_columns=["body"])
    assert corpus.text_column == "body.long" and corpus.texts == ("a", "", "b")
    assert corpus.row_ids == tuple(table["when"].to_pylist()) and corpus.columns["body"] == (1.5, None, 2.5)
    pq.write_table(pa.table({"text": pa.array(["a", "b", "a"]).dictionary_encode()}), path)
    assert read_corpus(path).texts == ("a", "b", "a")


def test_bad_parquet(tmp_path: Path) -> None:
    path = tmp_path / "rows.parquet"
    path.write_bytes(b"not parquet at all")
    assert "Parquet" in refusal(path)
    pq.write_table(pa.table({"text": pa.array(["a"], pa.string()).slice(1)}), path)
    assert "no rows" in refusal(path)
    pq.write_table(pa.table({"text": [1, 2, 3]}), path)
    message = refusal(path)
    assert "row 1, column 'text'" in message and "int 1" in message
    latin = pa.Array.from_buffers(pa.string(), 1, pa.array([b"caf\xe9"]).buffers())
    pq.write_table(pa.table({"text": pa.concat_arrays([pa.array(["fine", "fine"]), latin])}), path)
    message = refusal(path)
    assert "row 3, column 'text'" in message and "UTF-8" in message


def test_arrow_table() -> None:
    assert read_corpus(typed_table(), id_column="when").texts == ("a", "", "b")
    assert read_corpus(typed_table().to_batches()[0]).texts == ("a", "", "b")
    twice = pa.table([pa.array(["a"]), pa.array(["b"])], names=["text", "text"])
    assert "'text'" in refusal(twice)


def test_pandas_frame() -> None:
    frame = pd.DataFrame({"text": ["a", None, pd.NA], "n": [1, 2, 3], "k": list("xyz")}, index=[9, 9, 9])
    corpus = read_corpus(frame, id_column="n", keep_columns="all")
    assert corpus.texts == ("a", "", "") and corpus.row_ids == (1, 2, 3)
    assert corpus.columns == {"k": ("x", "y", "z")}
    assert read_corpus(pd.DataFrame([["a", 1], ["b", 2]])).text_column == "0"
    assert "same name" in refusal(pd.DataFrame([["a", "b"]], columns=["text", "text"]))
    message = refusal(pd.DataFrame({"text": ["a", 5]}))
    assert "row 2, column 'text'" in message and "int 5" in message


def test_large_frame_is_whole() -> None:
    frame = pd.DataFrame({"text": [str(i) for i in range(25_000)]})
    assert read_corpus(frame).texts == tuple(frame["text"])


def test_polars_frame() -> None:
    pl = pytest.importorskip("polars")
    frame = pl.DataFrame({"n": [1, 2], "body": ["a", None]})
    assert read_corpus(frame, id_column="n") == Corpus(("a", ""), (1, 2), {}, "body", "n")
    assert "collect" in refusal(frame.lazy())


def test_hub_dataset() -> None:
    datasets = pytest.importorskip("datasets")
    dataset = datasets.Dataset.from_dict({"text": ["a", "b", "c"], "label": [0, 1, 2]})
    chosen = read_corpus(dataset.select([2, 0]), keep_columns=["label"])
    assert chosen.texts == ("c", "a") and chosen.columns == {"label": (2, 0)}
    assert read_corpus(dataset["text"]).texts == ("a", "b", "c")
    assert "train" in refusal(datasets.DatasetDict(train=dataset))
    assert "IterableDataset" in refusal(dataset.to_iterable_dataset())


def test_what_as_corpus_takes() -> None:
    assert read_corpus(["a", "b"]).texts == ("a", "b")
    assert read_corpus(pd.Series(["a"], name="q")).text_column == "q"
    assert read_corpus(pa.array(["a"])).texts == ("a",)
    assert "text_column" in refusal(["a"], text_column="text")
    assert "cannot take texts" in refusal(3)
