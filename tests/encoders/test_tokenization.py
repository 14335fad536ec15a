"""Tokens in flat arrays, and the batches cut from them."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import topic_texts
from hypothesis import given, settings
from hypothesis import strategies as st

from coterie.encoders import tokenization
from coterie.encoders.tokenization import TokenArrays, batches_by_tokens, concatenate_tokens, tokenize, training_batches


@pytest.fixture(scope="module")
def tokenizer(tiny_encoder: Path) -> Any:
    from transformers import AutoTokenizer

    return AutoTokenizer.from_pretrained(str(tiny_encoder))


def _from_lists(rows: list[list[int]], truncated: int = 0) -> TokenArrays:
    lengths = np.array([len(row) for row in rows], dtype=np.int64)
    starts = np.concatenate([[0], np.cumsum(lengths)[:-1]]).astype(np.int64)
    return TokenArrays(np.concatenate(rows).astype(np.int32), starts, lengths, truncated)


def _to_lists(tokens: TokenArrays) -> list[list[int]]:
    return [
        tokens.ids[start : start + length].tolist() for start, length in zip(tokens.starts, tokens.lengths, strict=True)
    ]


# --- Flat arrays ---


def test_flat_arrays_hold_what_the_tokenizer_says(tokenizer: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    texts, _ = topic_texts(23)
    expected = [tokenizer(text)["input_ids"] for text in texts]
    assert _to_lists(tokenize(tokenizer, texts, 64)) == expected
    monkeypatch.setattr(tokenization, "TOKENIZE_CHUNK", 5)
    in_chunks = tokenize(tokenizer, texts, 64)
    assert _to_lists(in_chunks) == expected
    assert in_chunks.truncated == 0
    assert len(in_chunks) == 23


def test_no_texts_are_no_tokens(tokenizer: Any) -> None:
    tokens = tokenize(tokenizer, [], 64)
    assert len(tokens) == 0
    assert tokens.ids.size == tokens.starts.size == tokens.truncated == 0


def test_long_texts_are_cut_and_counted(tokenizer: Any) -> None:
    texts = ["parcel " * 40, "parcel late", "money " * 9, "refund " * 8]
    tokens = tokenize(tokenizer, texts, 10)
    assert tokens.truncated == 2  # nine words and two special tokens are one too many, eight are not
    assert tokens.lengths.tolist() == [10, 4, 10, 10]
    for row in _to_lists(tokens):
        assert row[0] == tokenizer.cls_token_id
        assert row[-1] == tokenizer.sep_token_id
    # A cut text must not change how the next one is tokenised.
    assert tokenize(tokenizer, ["parcel " * 40], 64).lengths.tolist() == [42]


def test_joined_keeps_every_row() -> None:
    first = _from_lists([[2, 7, 3], [2, 3]], truncated=1)
    second = _from_lists([[2, 8, 9, 3]])
    third = _from_lists([[2, 5, 3], [2, 6, 3]], truncated=2)
    together = concatenate_tokens([first, second, third])
    assert _to_lists(together) == _to_lists(first) + _to_lists(second) + _to_lists(third)
    assert together.truncated == 3


# --- One epoch of batches ---


def _padding(lengths: np.ndarray, batches: list[np.ndarray]) -> float:
    padded = sum(len(rows) * int(lengths[rows].max()) for rows in batches)
    return padded / float(lengths.sum())


@settings(max_examples=60, deadline=None)
@given(
    lengths=st.lists(st.integers(2, 30), min_size=1, max_size=70),
    batch_size=st.integers(2, 20),
    pool=st.integers(1, 9),
)
def test_an_epoch_has_every_row_once_in_even_batches(lengths: list[int], batch_size: int, pool: int) -> None:
    batches = training_batches(np.array(lengths), batch_size, pool, np.random.default_rng(0))
    assert sorted(np.concatenate(batches).tolist()) == list(range(len(lengths)))
    sizes = [len(rows) for rows in batches]
    assert max(sizes) <= batch_size
    assert max(sizes) - min(sizes) <= 1
    assert len(batches) == -(-len(lengths) // batch_size)


def test_texts_of_like_length_share_a_batch() -> None:
    lengths = np.random.default_rng(1).integers(3, 60, size=400)
    plain = _padding(lengths, training_batches(lengths, 20, 1, np.random.default_rng(0)))
    pooled = _padding(lengths, training_batches(lengths, 20, 8, np.random.default_rng(0)))
    whole = _padding(lengths, training_batches(lengths, 20, 20, np.random.default_rng(0)))
    assert 1 <= whole < pooled < plain
    assert pooled < 1.25
    assert plain > 1.6


def test_one_pool_over_everything_cuts_the_sorted_lengths() -> None:
    lengths = np.random.default_rng(1).integers(3, 60, size=90)
    batches = training_batches(lengths, 10, 9, np.random.default_rng(0))
    spans = sorted((int(lengths[rows].min()), int(lengths[rows].max())) for rows in batches)
    assert all(left[1] <= right[0] for left, right in itertools.pairwise(spans))


def test_batches_do_not_come_in_the_order_of_length() -> None:
    lengths = np.arange(3, 203)
    batches = training_batches(lengths, 10, 20, np.random.default_rng(0))
    means = [float(lengths[rows].mean()) for rows in batches]
    assert means not in (sorted(means), sorted(means, reverse=True))


def test_the_generator_decides_the_batches() -> None:
    lengths = np.random.default_rng(1).integers(3, 60, size=90)

    def draw(generator: np.random.Generator) -> list[list[int]]:
        return [rows.tolist() for rows in training_batches(lengths, 8, 4, generator)]

    generator = np.random.default_rng(5)
    first = draw(generator)
    assert first == draw(np.random.default_rng(5))
    assert first != draw(generator)
    assert first != draw(np.random.default_rng(6))


@settings(max_examples=60, deadline=None)
@given(lengths=st.lists(st.integers(1, 30), min_size=0, max_size=60), budget=st.integers(1, 200))
def test_batches_by_tokens_cover_all_rows_within_the_budget(lengths: list[int], budget: int) -> None:
    array = np.array(lengths, dtype=np.int64)
    batches = list(batches_by_tokens(array, budget))
    assert sorted(row for rows in batches for row in rows.tolist()) == list(range(len(lengths)))
    for rows in batches:
        assert len(rows) == 1 or len(rows) * int(array[rows].max()) <= budget
    widths = [int(array[rows].max()) for rows in batches]
    assert widths == sorted(widths, reverse=True)


def test_a_budget_without_end_is_one_batch() -> None:
    import sys

    lengths = np.random.default_rng(1).integers(3, 60, size=90)
    assert [len(rows) for rows in batches_by_tokens(lengths, sys.maxsize)] == [90]
