"""STCC as an estimator: where its words come from, what it teaches itself, texts it cannot read."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from conftest import TOPICS, topic_texts
from reference import stcc_oracle as oracle

import coterie
import coterie.methods.baselines.stcc.codes as codes_module
from coterie import STCC, evaluate, load
from coterie.errors import InputError, SettingError
from coterie.methods.baselines.stcc.method import standardise

TEXTS, NAMES = topic_texts(60)
FAST: dict[str, Any] = {"n_bits": 6, "word_dimension": 8, "epochs": 3, "batch_size": 30}


@pytest.fixture(scope="module")
def vector_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Vectors of the topics' words but of none of the fillers, six numbers each."""
    generator = np.random.default_rng(0)
    path = tmp_path_factory.mktemp("vectors") / "words.txt"
    lines = ["24 6"]
    for i, words in enumerate(TOPICS.values()):
        for word in words:
            vector = np.eye(6)[i] * 4 + generator.normal(size=6)
            lines.append(" ".join([word, *(f"{x:.4f}" for x in vector)]))
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


@pytest.mark.parametrize("target", ["le", "lsa", "average"])
def test_the_groups_are_found_with_good_vectors(vector_file: Path, target: str) -> None:
    model = STCC(3, target=target, vectors=vector_file, epochs=10, n_bits=6, batch_size=20).fit(TEXTS)
    assert evaluate(NAMES, model.labels_).accuracy > 0.9
    np.testing.assert_array_equal(model.predict(TEXTS), model.labels_)
    new, names = topic_texts(30, seed=7)
    assert evaluate(names, model.predict(new)).accuracy > 0.9


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_a_gpu_tells_the_same_groups_apart(vector_file: Path, tmp_path: Path) -> None:
    model = STCC(3, vectors=vector_file, epochs=10, n_bits=6, batch_size=20, device="cuda").fit(TEXTS)
    assert model.words_.network.words.is_cuda
    assert evaluate(NAMES, model.labels_).accuracy > 0.9
    np.testing.assert_array_equal(model.predict(TEXTS), model.labels_)
    model.save(tmp_path / "run")
    np.testing.assert_array_equal(load(tmp_path / "run", device="cpu").predict(TEXTS), model.labels_)


def test_words_come_from_the_texts_without_a_file() -> None:
    model = STCC(3, **FAST).fit(TEXTS)
    assert set(model.words_.words.words) == {word for text in TEXTS for word in text.split()}
    assert model.words_.network.words.shape == (len(model.words_.words.words) + 1, 8)
    assert model.transform(TEXTS).shape == (60, 8 // 4 * 8 * 5)
    assert any("of the 6 bits" in note for note in model.notes_)


def test_the_targets_are_what_the_network_is_taught(monkeypatch: pytest.MonkeyPatch) -> None:
    """Laplacian eigenmaps of TF-IDF, cut at the median, repeats counted there and nowhere before."""
    seen: dict[str, Any] = {}
    real = codes_module.laplacian_eigenmaps

    def spy(rows: Any, dimension: int, neighbours: int, seed: int) -> np.ndarray:
        seen.update(rows=rows.toarray(), dimension=dimension, neighbours=neighbours)
        # Texts of the same words have the same place but for the last digits, and those must not choose the median.
        seen["coordinates"] = np.round(real(rows, dimension, neighbours, seed), 9)
        return seen["coordinates"]

    monkeypatch.setattr(codes_module, "laplacian_eigenmaps", spy)
    repeats = [*TEXTS, *TEXTS[:20], *TEXTS[:20]]
    model = STCC(3, neighbours=4, **FAST).fit(repeats)
    counts = np.where(np.arange(60) < 20, 3, 1)
    rows = [[model.words_.words.words.index(word) for word in text.split()] for text in TEXTS]
    np.testing.assert_allclose(seen["rows"], oracle.tf_idf(rows, len(model.words_.words.words), counts))
    assert (seen["dimension"], seen["neighbours"]) == (6, 4)
    codes = oracle.codes(seen["coordinates"], counts)
    guesses = model.words_.network.logits(model.words_.network(*_ids(model))).detach().numpy() > 0
    share = (guesses == codes).mean()
    assert f"the network predicts {share:.1%} of the 6 bits of the texts" in model.notes_


def _ids(model: STCC) -> tuple[Any, Any]:
    from coterie.methods.baselines.stcc.convolution import pad_texts

    return pad_texts(model.words_.words.tokenize(TEXTS), np.arange(len(TEXTS)), model.max_length)


def test_texts_without_a_known_word(vector_file: Path) -> None:
    model = STCC(3, vectors=vector_file, **FAST).fit([*TEXTS, "why today"])
    assert any("1 distinct texts hold none of the 24 words" in note for note in model.notes_)
    assert not model.transform(["why today", "xyzzy"]).any()
    assert np.isnan(model.center_distance_[-1]) and model.confidence_[-1] == 0
    answer = model.assign(["xyzzy", "parcel xyzzy", "parcel"])
    assert answer.confidence[0] == 0
    assert answer.labels[1] == answer.labels[2]


def test_long_texts_are_cut(vector_file: Path) -> None:
    model = STCC(3, vectors=vector_file, max_length=3, **FAST).fit([*TEXTS, "parcel late courier refund money"])
    assert any("1 distinct texts were cut at 3 words" in note for note in model.notes_)
    np.testing.assert_array_equal(*model.transform(["parcel late courier", "parcel late courier refund money"]))
    assert model.assign(["parcel late courier refund"]).n_truncated == 1


def test_a_saved_model_needs_neither_the_file_nor_gensim(
    vector_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    copy = tmp_path / "words.txt"
    copy.write_bytes(vector_file.read_bytes())
    models = {"file": STCC(3, vectors=copy, **FAST).fit(TEXTS), "trained": STCC(3, **FAST).fit(TEXTS)}
    for name, model in models.items():
        model.save_pretrained(tmp_path / name)
    copy.unlink()
    monkeypatch.setitem(sys.modules, "gensim", None)
    for name, model in models.items():
        loaded = coterie.load(tmp_path / name)
        np.testing.assert_array_equal(loaded.transform(TEXTS), model.transform(TEXTS))


def test_without_gensim_the_extra_is_named(vector_file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "gensim", None)
    with pytest.raises(SettingError, match=r"word2vec.*coterie\[word2vec\].*vectors="):
        STCC(3, **FAST).fit(TEXTS)
    STCC(3, vectors=vector_file, **FAST).fit(TEXTS)


def test_files_that_cannot_be_used(tmp_path: Path) -> None:
    other = tmp_path / "other.txt"
    other.write_text("zebra 1 2 3\n", encoding="utf-8")
    with pytest.raises(InputError, match="none of the words"):
        STCC(3, vectors=other, **FAST).fit(TEXTS)
    with pytest.raises(SettingError, match="no such file"):
        STCC(3, vectors=tmp_path / "nothing.txt", **FAST).fit(TEXTS)


def test_standardised_vectors() -> None:
    table = np.random.default_rng(0).normal(3, 5, size=(50, 4)).astype(np.float32)
    table[:, 2] = 7
    found = standardise(table)
    np.testing.assert_allclose(found.mean(axis=0), 0, atol=1e-6)
    np.testing.assert_allclose(found.std(axis=0), [1, 1, 0, 1], atol=1e-6)
    assert not standardise(table[:1]).any()
