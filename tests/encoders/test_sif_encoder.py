"""SIF vectors against the paper's algorithm, and files of word vectors."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from reference.sif_oracle import sif

from coterie.encoders.sif import SifEncoder, encoder_words, first_component
from coterie.encoders.word_vector_file import WordVectorVocabulary, read_vectors, split_words_and_punctuation
from coterie.errors import InputError

TEXTS = ["late parcel", "parcel is late late", "my password", "the password is reset", "parcel"]
COUNTS = np.array([1, 3, 2, 1, 1])


def _file(folder: Path, header: bool = False, width: int = 6) -> tuple[Path, dict[str, np.ndarray]]:
    words = sorted({word for text in TEXTS for word in text.split()} | {"unused"})
    generator = np.random.default_rng(0)
    vectors = {word: generator.normal(size=width).astype(np.float32).astype(np.float64) for word in words}
    lines = [f"{word} {' '.join(repr(float(value)) for value in vector)}" for word, vector in vectors.items()]
    path = folder / "vectors.txt"
    path.write_text("\n".join([*([f"{len(words)} {width}"] if header else []), *lines]) + "\n", encoding="utf-8")
    return path, vectors


@pytest.mark.parametrize("a", [1e-3, 0.5])
def test_as_in_the_paper(tmp_path: Path, a: float) -> None:
    path, vectors = _file(tmp_path)
    words, table = WordVectorVocabulary.read(path, TEXTS)
    space = SifEncoder.fit(words.tokenize, table, TEXTS, COUNTS, a=a)
    repeated = [text.split() for text, count in zip(TEXTS, COUNTS, strict=True) for _ in range(count)]
    expected = sif(repeated, vectors, a)[np.cumsum(COUNTS) - COUNTS]
    np.testing.assert_allclose(space.encode_and_count_truncated(TEXTS)[0], expected, atol=1e-6)
    np.testing.assert_allclose(np.linalg.norm(space.component), 1)


def test_a_text_without_a_known_word_is_zero_and_company_changes_nothing(tmp_path: Path) -> None:
    words, table = WordVectorVocabulary.read(_file(tmp_path)[0], TEXTS)
    space = SifEncoder.fit(words.tokenize, table, TEXTS, COUNTS, a=1e-3)
    texts = ["xyzzy", *TEXTS, "?!"]
    together = space.encode_and_count_truncated(texts)[0]
    assert not together[0].any() and not together[-1].any() and together[1:-1].any(axis=1).all()
    for text, row in zip(texts, together, strict=True):
        np.testing.assert_array_equal(space.encode_and_count_truncated([text])[0][0], row)


def test_words_of_an_encoder(tiny_encoder: Path) -> None:
    from coterie.encoders.transformer import TransformerEncoder

    encoder = TransformerEncoder.load(tiny_encoder)
    table, ignored = encoder_words(encoder)
    space = SifEncoder.fit(encoder.tokenize, table, TEXTS, COUNTS, a=1e-3, ignored=ignored)
    vocabulary = encoder.tokenizer.get_vocab()
    assert {vocabulary[name] for name in ("[CLS]", "[SEP]", "[UNK]", "[PAD]")} <= set(ignored)
    vectors = {word: table[vocabulary[word]].astype(np.float64) for text in TEXTS for word in text.split()}
    repeated = [text.split() for text, count in zip(TEXTS, COUNTS, strict=True) for _ in range(count)]
    expected = sif(repeated, vectors, 1e-3)[np.cumsum(COUNTS) - COUNTS]
    np.testing.assert_allclose(space.encode_and_count_truncated(TEXTS)[0], expected, atol=1e-6)
    # A word that no text of the fit held counts fully; an unknown one not at all.
    assert space.weights[vocabulary["refund"]] == 1
    assert not space.encode_and_count_truncated(["日本"])[0].any()
    long, truncated = space.encode_and_count_truncated(["parcel " * 200, "parcel"])
    assert truncated == 1
    np.testing.assert_allclose(long[0], long[1], atol=1e-7)


def test_nothing_to_take_out() -> None:
    np.testing.assert_array_equal(first_component(np.zeros((3, 4)), np.ones(3, dtype=np.int64)), np.zeros(4))


@pytest.mark.parametrize("header", [True, False])
def test_files_of_both_kinds(tmp_path: Path, header: bool) -> None:
    path, vectors = _file(tmp_path, header)
    found, table = read_vectors(path, ["late", "unknown", "my"])
    assert found == ["late", "my"]
    np.testing.assert_array_equal(table, np.stack([vectors["late"], vectors["my"]]).astype(np.float32))


def test_odd_lines(tmp_path: Path) -> None:
    path = tmp_path / "vectors.txt"
    # As in GloVe's largest file: a "word" with a space. And a word twice, of which the first counts.
    path.write_text("late 1 2\nlate night 3 4\nlate 5 6\nMy 7 8\n", encoding="utf-8")
    found, table = read_vectors(path, ["late", "My"])
    assert found == ["late", "My"]
    np.testing.assert_array_equal(table, [[1, 2], [7, 8]])
    path.write_text("late 1 x\n", encoding="utf-8")
    with pytest.raises(InputError, match="line 1"):
        read_vectors(path, ["late"])
    with pytest.raises(InputError, match="none of the words"):
        read_vectors(path, ["parcel"])


def test_words_are_looked_up_as_they_stand_then_in_lower_case() -> None:
    words = WordVectorVocabulary(["us", "US", "don't", "e-mail", "我"])
    tokens = words.tokenize(["US us Us", "Don't e-mail, please!", "我的", ""])
    assert tokens.ids.tolist() == [1, 0, 0, 2, 3, 4]
    assert tokens.lengths.tolist() == [3, 2, 1, 0]
    assert split_words_and_punctuation("late? (again)") == ["late", "?", "(", "again", ")"]
