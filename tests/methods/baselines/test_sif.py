"""SIF as a method: word files, saved models, clusters of words found."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from conftest import topic_texts
from word_file import write_word_file

import coterie
from coterie import SIF
from coterie.errors import InputError, SettingError
from coterie.metrics.external.scores import evaluate

TEXTS, GROUP = topic_texts(60)


@pytest.fixture
def word_file(tmp_path: Path) -> Path:
    return write_word_file(tmp_path / "words.txt")


def test_word_vectors_from_a_file(word_file: Path, tmp_path: Path) -> None:
    model = SIF(3, vectors=word_file).fit(TEXTS)
    assert evaluate(GROUP, model.labels_).to_dict()["accuracy"] == 1
    model.save_pretrained(tmp_path / "model")
    word_file.unlink()
    loaded = coterie.load(tmp_path / "model")
    unseen = [*topic_texts(20, seed=4)[0], "xyzzy"]
    np.testing.assert_array_equal(loaded.predict(unseen), model.predict(unseen))
    np.testing.assert_array_equal(loaded.transform(unseen), model.transform(unseen))
    # No encoder was needed, and none was saved.
    assert sorted(path.name for path in (tmp_path / "model").iterdir()) == ["coterie.json", "coterie.safetensors"]
    assert model.provenance()["encoder_from"] is None
    assert model.assign(["xyzzy"]).confidence.tolist() == [0]


def test_texts_without_a_known_word_are_counted(word_file: Path) -> None:
    model = SIF(3, vectors=word_file).fit([*TEXTS, "xyzzy", "plugh"])
    assert "2 distinct texts hold none of the words known" in model.notes_
    assert np.isnan(model.center_distance_[-2:]).all()


def test_smoothing_decides_what_frequent_words_count(tiny_encoder: Path) -> None:
    settings = {"encoder": str(tiny_encoder), "device": "cpu"}
    little, much = (SIF(3, smoothing=a, **settings).fit(TEXTS).transform(TEXTS) for a in (1e-4, 1e4))  # type: ignore[arg-type]
    assert not np.allclose(little / np.linalg.norm(little), much / np.linalg.norm(much), atol=1e-3)


def test_files_that_cannot_be_used(tmp_path: Path) -> None:
    with pytest.raises(SettingError, match="no such file"):
        SIF(3, vectors=tmp_path).fit(TEXTS)
    (tmp_path / "words.txt").write_text("nothing 1 2\n", encoding="utf-8")
    with pytest.raises(InputError, match="none of the words"):
        SIF(3, vectors=tmp_path / "words.txt").fit(TEXTS)
