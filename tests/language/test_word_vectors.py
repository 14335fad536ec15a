"""A vector for each word: from the encoder's table, or by word2vec where gensim is there."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import numpy as np
import pytest
from conftest import topic_texts

from coterie.encoders.transformer import TransformerEncoder
from coterie.errors import SettingError
from coterie.language.word_vectors import encoder_word_vectors, unit, word2vec_vectors

WORDS = ["parcel", "money", "zebra", "bank"]  # the tiny tokenizer has all but "zebra" in one piece
SENTENCES = [tuple(text.split()) for text in topic_texts(60)[0]]
needs_gensim = pytest.mark.skipif(importlib.util.find_spec("gensim") is None, reason="gensim is not installed")


def test_the_encoders_own_vectors(tiny_encoder: Path) -> None:
    encoder = TransformerEncoder.load(tiny_encoder)
    found = encoder_word_vectors(encoder, WORDS)
    table = encoder.model.get_input_embeddings().weight.detach().numpy()  # type: ignore[operator]
    vocabulary = encoder.tokenizer.get_vocab()
    pieces = [[word] if word in vocabulary else [word[0], *(f"##{c}" for c in word[1:])] for word in WORDS]
    plain = np.array([np.mean([table[vocabulary[piece]] for piece in each], axis=0) for each in pieces])
    centred = plain - plain.mean(axis=0)
    expected = centred / np.linalg.norm(centred, axis=1, keepdims=True)
    assert found.dtype == np.float32
    assert found.shape == (4, 32)
    np.testing.assert_allclose(found, expected, atol=1e-5)


def test_the_order_of_the_words_is_kept(tiny_encoder: Path) -> None:
    encoder = TransformerEncoder.load(tiny_encoder)
    np.testing.assert_allclose(
        encoder_word_vectors(encoder, WORDS[::-1]), encoder_word_vectors(encoder, WORDS)[::-1], atol=1e-6
    )


def test_one_word_and_words_without_a_piece_stay_finite(tiny_encoder: Path) -> None:
    encoder = TransformerEncoder.load(tiny_encoder)
    assert not encoder_word_vectors(encoder, ["parcel"]).any()  # nothing to tell it from
    found = encoder_word_vectors(encoder, ["parcel", "", "money"])
    assert np.isfinite(found).all()
    np.testing.assert_allclose(np.linalg.norm(found, axis=1), 1, atol=1e-5)


def test_rows_of_length_one_and_rows_of_zeros() -> None:
    found = unit(np.array([[3.0, 4.0], [0.0, 0.0], [-1e-6, 0.0]]))
    np.testing.assert_allclose(found, [[0.6, 0.8], [0, 0], [-1, 0]], atol=1e-6)
    assert found.dtype == np.float32


def test_without_gensim_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "gensim", None)
    monkeypatch.setitem(sys.modules, "gensim.models", None)
    with pytest.raises(SettingError, match=r"word2vec.*coterie\[word2vec\].*'encoder'.*'learned'"):
        word2vec_vectors(SENTENCES, WORDS, 10, 0)


@needs_gensim
def test_word2vec_is_trained_on_the_sentences_and_repeatable() -> None:
    first, second = (word2vec_vectors(SENTENCES, WORDS, 20, seed=1) for _ in range(2))
    assert first.shape == (4, 20)
    np.testing.assert_array_equal(first, second)
    assert not first[2].any()  # "zebra" stands in no sentence
    np.testing.assert_allclose(np.linalg.norm(first[[0, 1, 3]], axis=1), 1, atol=1e-5)
