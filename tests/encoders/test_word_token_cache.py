"""Tokenising by distinct words gives what tokenising whole texts gives."""

from __future__ import annotations

from typing import Any

import pytest
from conftest import topic_texts
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import AddedToken, Tokenizer, models, normalizers, pre_tokenizers, processors

from coterie.encoders import tokenization, word_token_cache
from coterie.encoders.tokenization import tokenize
from coterie.encoders.word_token_cache import WordTokenCache

LETTERS = "abcé中ς1'#"
VOCABULARY = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "[", "]", "parcel", "late", ".", "mask", "ab", *LETTERS]
VOCABULARY += [f"##{letter}" for letter in LETTERS]
# White space that tokenizers and Python see differently, marks, control characters, special tokens in a text.
PIECES = (
    " ", "  ", " ", "a", "B", "ab", "parcel", "late", "é", "e\u0301", "\u0301", "中", "Σ", "ς", "1", "'", ".", "#",
    "\t", "\n", "\x1c", "\x85", "\xa0", "\u3000", "\u200b", "\x00", "[MASK]", " [SEP]", "[UNK] ", "<x>", "c" * 101,
)  # fmt: skip
TEXTS = st.lists(st.lists(st.sampled_from(PIECES), max_size=12).map("".join), min_size=1, max_size=12)


def _bert(**settings: Any) -> Tokenizer:
    tokenizer = Tokenizer(models.WordPiece({word: i for i, word in enumerate(VOCABULARY)}, unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer(**settings)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP] [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    tokenizer.add_special_tokens(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"])
    return tokenizer


def _rows(tokenizer: Tokenizer, texts: list[str], max_length: int) -> tuple[list[list[int]], int]:
    """One text after the other, by the tokenizer's own padding-free way."""
    whole = [tokenizer.encode(text).ids for text in texts]
    tokenizer.enable_truncation(max_length)
    cut = [tokenizer.encode(text).ids for text in texts]
    tokenizer.no_truncation()
    return cut, sum(len(row) > max_length for row in whole)


def _by_words(table: WordTokenCache, texts: list[str], max_length: int) -> tuple[list[list[int]], int]:
    ids, lengths, truncated = table.tokenize(texts, max_length)
    assert (ids.dtype, lengths.dtype) == ("int32", "int64")
    assert len(ids) == lengths.sum()
    ends = lengths.cumsum()
    return [ids[end - length : end].tolist() for end, length in zip(ends, lengths, strict=True)], truncated


@settings(max_examples=150, deadline=None)
@given(texts=TEXTS, more=TEXTS, max_length=st.integers(4, 12), lowercase=st.booleans(), clean=st.booleans())
def test_words_give_what_texts_give(
    texts: list[str], more: list[str], max_length: int, lowercase: bool, clean: bool
) -> None:
    tokenizer = _bert(lowercase=lowercase, clean_text=clean)
    tokenizer.add_special_tokens([AddedToken("<x>", lstrip=True, rstrip=True)])
    tokenizer.add_tokens([AddedToken("ab", single_word=True)])
    table = WordTokenCache.of(tokenizer)
    assert table is not None
    for each in (texts, more):  # the second time some words are known
        assert _by_words(table, each, max_length) == _rows(tokenizer, each, max_length)


def test_a_table_that_is_full_starts_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(word_token_cache, "MOST_IDS", 3)
    tokenizer = _bert()
    table = WordTokenCache.of(tokenizer)
    assert table is not None
    for texts in (["parcel late ab"], ["late 1 a", "parcel"], ["ab ab"], [""]):
        assert _by_words(table, texts, 9) == _rows(tokenizer, texts, 9)
    assert len(table._ids) <= 4


def test_texts_that_share_no_words_do_not_repay() -> None:
    table = WordTokenCache.of(_bert())
    assert table is not None
    table.tokenize(["parcel late", "parcel late"], 9)
    assert table.is_worthwhile
    table.tokenize(["a b", "c 1"], 9)
    assert not table.is_worthwhile


def _byte_level() -> Tokenizer:
    tokenizer = _bert()
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel()
    return tokenizer


def _normalized_otherwise() -> Tokenizer:
    tokenizer = _bert()
    tokenizer.normalizer = normalizers.Sequence([normalizers.NFKC(), normalizers.Replace("a b", "c")])
    return tokenizer


def _token_with_a_space() -> Tokenizer:
    tokenizer = _bert()
    tokenizer.add_tokens(["parcel late"])
    return tokenizer


def _no_words() -> Tokenizer:
    return Tokenizer(models.WordLevel({"a": 0}, unk_token="a"))


@pytest.mark.parametrize("make", [_byte_level, _normalized_otherwise, _token_with_a_space, _no_words])
def test_tokenizers_whose_words_depend_on_each_other_have_no_table(make: Any) -> None:
    assert WordTokenCache.of(make()) is None


@pytest.mark.parametrize("make", [_bert, _byte_level, _normalized_otherwise, _token_with_a_space])
@pytest.mark.parametrize("max_length", [5, 64])
def test_a_corpus_is_tokenised_alike_by_every_way(make: Any, max_length: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tokenization, "TOKENIZE_CHUNK", 90)
    tokenizer = make()
    texts = [f"{text} a b" for text in topic_texts(230)[0]]
    texts += [f"{i}{'x' * i}" for i in range(100)]  # a chunk without repeated words, and one after it
    texts += topic_texts(100, seed=1)[0]
    tokens = tokenize(tokenizer, texts, max_length)
    expected, truncated = _rows(tokenizer, texts, max_length)
    rows = [tokens.ids[begin:][:length].tolist() for begin, length in zip(tokens.starts, tokens.lengths, strict=True)]
    assert rows == expected
    assert tokens.truncated == truncated
    assert tokenizer.truncation is None


def test_a_corpus_of_repeated_words_goes_by_words(monkeypatch: pytest.MonkeyPatch) -> None:
    whole: list[int] = []
    by_text = tokenization._tokenize_in_rust
    monkeypatch.setattr(
        tokenization, "_tokenize_in_rust", lambda *given: whole.append(len(given[1])) or by_text(*given)
    )
    tokenizer = _bert()
    texts = topic_texts(300)[0]
    tokenize(tokenizer, texts, 16)
    assert whole == []
    tokenize(tokenizer, texts[:10], 16)
    assert whole == [10]
    tokenize(tokenizer, texts[:10], 16, WordTokenCache.of(tokenizer))
    assert whole == [10]
    monkeypatch.setattr(tokenization, "TOKENIZE_CHUNK", 100)
    tokenize(tokenizer, [f"{i} x{i}" for i in range(250)], 16)  # seen after the first chunk
    assert whole == [10, 100, 50]
