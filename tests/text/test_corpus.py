"""Corpus: rows are kept, duplicates and empty texts are distinguished, bad cells are named."""

from __future__ import annotations

import copy
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from coterie.errors import InputError
from coterie.text.corpus import Corpus, as_corpus

ROWS = ["b", "", "a", "b", " \t\n", "a ", "b"]


@pytest.fixture
def corpus() -> Corpus:
    return as_corpus(ROWS)


def message_of(call: Callable[[], object]) -> str:
    with pytest.raises(InputError) as caught:
        call()
    message = str(caught.value)
    assert "\n" not in message
    return message


def test_rows_are_kept_as_they_are(corpus: Corpus) -> None:
    assert corpus.texts == tuple(ROWS)
    assert corpus.row_ids == tuple(range(7))
    assert corpus.columns == {}
    assert corpus.text_column is None and corpus.id_column is None
    assert len(corpus) == 7


def test_empty_and_distinct(corpus: Corpus) -> None:
    assert corpus.empty.tolist() == [False, True, False, False, True, False, False]
    assert corpus.distinct == ("b", "a", "a ")  # exact equality: "a" and "a " are two texts
    assert corpus.distinct_index.tolist() == [0, -1, 1, 0, -1, 2, 0]
    assert corpus.counts.tolist() == [3, 1, 1]
    assert corpus.status == ("assigned", "empty", "assigned", "assigned", "empty", "assigned", "assigned")
    assert (corpus.empty.dtype, corpus.distinct_index.dtype, corpus.counts.dtype) == (
        bool,
        np.int64,
        np.int64,
    )


def test_derived_arrays_cannot_be_changed(corpus: Corpus) -> None:
    for array in (corpus.empty, corpus.distinct_index, corpus.counts):
        with pytest.raises(ValueError):
            array[0] = 1


def test_expand_one_value_a_text(corpus: Corpus) -> None:
    labels = corpus.expand(np.array([10, 20, 30], dtype=np.int64), -1)
    assert labels.tolist() == [10, -1, 20, 10, -1, 30, 10]
    assert labels.dtype == np.int64


def test_expand_one_vector_a_text(corpus: Corpus) -> None:
    values = np.arange(6, dtype=np.float32).reshape(3, 2)
    rows = corpus.expand(values, np.nan)
    assert rows.shape == (7, 2) and rows.dtype == np.float32
    assert np.isnan(rows[[1, 4]]).all()
    np.testing.assert_array_equal(rows[[0, 2, 5]], values)


@pytest.mark.parametrize(
    ("dtype", "fill", "expected"),
    [
        (np.int32, -1, np.int32),
        (np.uint8, -1, np.int16),
        (np.int64, np.nan, np.float64),
        (np.float32, -1, np.float32),
        (np.bool_, False, np.bool_),
        (np.float64, None, object),
    ],
)
def test_expand_finds_a_dtype_that_holds_the_fill(corpus: Corpus, dtype: type, fill: object, expected: type) -> None:
    rows = corpus.expand(np.array([1, 0, 1], dtype=dtype), fill)
    assert rows.dtype == expected
    assert rows[0] == 1 and (rows[1] == fill or np.isnan(rows[1]))


def test_expand_strings(corpus: Corpus) -> None:
    assert corpus.expand(np.array(["x", "yy", "z"]), "none").tolist()[:3] == ["x", "none", "yy"]


def test_expand_with_nothing_but_empty_rows() -> None:
    chunk = Corpus(("", " "), (0, 1))
    assert chunk.expand(np.empty(0, dtype=np.int64), -1).tolist() == [-1, -1]
    assert chunk.expand(np.empty((0, 3)), 0.0).shape == (2, 3)
    assert chunk.counts.tolist() == []


def test_expand_refuses_another_number_of_values(corpus: Corpus) -> None:
    assert "(7,)" in message_of(lambda: corpus.expand(np.zeros(7), 0))


def test_lengths_must_agree() -> None:
    assert "row_ids" in message_of(lambda: Corpus(("a",), (0, 1)))
    assert "'label'" in message_of(lambda: Corpus(("a",), (0,), {"label": ()}))


def test_corpus_is_returned_as_is_and_can_be_copied(corpus: Corpus) -> None:
    assert as_corpus(corpus) is corpus
    assert Corpus.from_texts(ROWS) == corpus == copy.deepcopy(corpus)
    assert isinstance(hash(corpus), int)


@pytest.mark.parametrize(
    "texts",
    [
        ["a", "", "b"],
        ("a", "", "b"),
        ["a", None, "b"],
        ["a", float("nan"), "b"],
        ["a", np.float32("nan"), "b"],
        ["a", pd.NA, "b"],
        ["a", pd.NaT, "b"],
        np.array(["a", "", "b"]),
        np.array(["a", None, "b"], dtype=object),
        pd.Series(["a", None, "b"]),
        pd.Series(["a", None, "b"], dtype=object),
        pd.Series(["a", None, "b"], dtype="string", index=[7, 7, 9]),
        pd.Series(["a", None, "b"], dtype="category"),
        pa.array(["a", None, "b"]),
        pa.array(["a", None, "b"], pa.large_string()),
        pa.array(["a", None, "b"]).dictionary_encode(),
        pa.chunked_array([["a", None], ["b"]]),
    ],
)
def test_containers(texts: object) -> None:
    corpus = as_corpus(texts)
    assert corpus.texts == ("a", "", "b")
    assert corpus.row_ids == (0, 1, 2)
    assert all(type(text) is str for text in corpus.texts)


def test_polars_series() -> None:
    pl = pytest.importorskip("polars")
    corpus = as_corpus(pl.Series("question", ["a", None, "b"]))
    assert corpus.texts == ("a", "", "b") and corpus.text_column == "question"
    assert as_corpus(pl.Series(["a", None], dtype=pl.Categorical)).texts == ("a", "")


def test_numpy_strings_become_plain_strings() -> None:
    assert type(as_corpus([np.str_("a")]).texts[0]) is str


def test_words_for_nothing_stay_texts() -> None:
    assert as_corpus(["null", "nan", "NA", "None"]).distinct == ("null", "nan", "NA", "None")


def test_single_string() -> None:
    assert "pass a list of texts" in message_of(lambda: as_corpus("one text"))
    assert "read_corpus" in message_of(lambda: as_corpus(Path("texts.csv")))


@pytest.mark.parametrize(
    ("cell", "named"), [(42, "int 42"), (1.5, "float 1.5"), (b"x", "bytes b'x'"), (["a"], "list ['a']")]
)
def test_other_cells_are_named(cell: object, named: str) -> None:
    message = message_of(lambda: as_corpus(["a", None, cell]))
    assert "row 3" in message and named in message


def test_the_cell_of_a_series_is_named_with_its_column() -> None:
    message = message_of(lambda: as_corpus(pd.Series(["a", 7], name="question")))
    assert "row 2" in message and "'question'" in message and "int 7" in message


def test_long_cells_are_cut() -> None:
    assert len(message_of(lambda: as_corpus(["a", b"x" * 100_000]))) < 300


def test_texts_that_cannot_be_written() -> None:
    assert "NUL" in message_of(lambda: as_corpus(["a", "b\0"]))
    message = message_of(lambda: as_corpus(["a", "é\ud83d"]))
    assert "row 2" in message and "U+D83D" in message


@pytest.mark.parametrize("texts", [[], (), np.array([], dtype=str), pd.Series([], dtype=object)])
def test_no_texts(texts: object) -> None:
    assert "no texts" in message_of(lambda: as_corpus(texts))


def test_only_empty_texts() -> None:
    assert "all 3 texts" in message_of(lambda: as_corpus(["", None, " \n"]))


@pytest.mark.parametrize("texts", [{"a"}, {"a": 1}, iter(["a"]), 3, None, pd.DataFrame({"text": ["a"]})])
def test_other_containers(texts: object) -> None:
    assert "cannot take texts from" in message_of(lambda: as_corpus(texts))


def test_two_dimensional_array() -> None:
    assert "(1, 2)" in message_of(lambda: as_corpus(np.array([["a", "b"]])))


def test_a_bad_cell_far_down_is_named() -> None:
    texts: list[object] = ["fine"] * 10_000
    for cell, words in ((3, "int 3"), ("a\0b", "NUL"), ("\ud83d", "half of a character pair")):
        with pytest.raises(InputError, match=rf"row 9001 \(index 9000\).*{words}"):
            as_corpus([*texts[:9_000], cell, *texts[9_001:]])
    assert as_corpus([*texts, None, float("nan")]).texts == (*texts, "", "")
