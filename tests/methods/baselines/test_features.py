"""Networks over vectors of every source: the same model before and after saving, given vectors, scaling."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import topic_texts

import coterie
from coterie import DEC, IDEC, AutoEncoder, FrozenEncoder
from coterie.errors import InputError, SettingError
from coterie.methods.baselines.deep import scale_rows

TEXTS, GROUP = topic_texts(30)
UNSEEN = [*topic_texts(9, seed=5)[0], "xyzzy", "?!"]
SMALL: dict[str, Any] = {"layers": "12-4", "pretrain_steps": 30, "device": "cpu"}


@pytest.mark.parametrize("features", ["embedding", "tfidf", "sif", "file"])
def test_every_source_comes_back(tiny_encoder: Path, tmp_path: Path, features: str) -> None:
    settings = {**SMALL, "encoder": str(tiny_encoder), "features": features, "max_steps": 4}
    if features == "file":
        generator = np.random.default_rng(0)
        words = sorted({word for text in TEXTS for word in text.split()})
        lines = [f"{word} {' '.join(map(str, generator.normal(size=5)))}" for word in words]
        (tmp_path / "words.txt").write_text("\n".join(lines), encoding="utf-8")
        settings |= {"features": "sif", "vectors": tmp_path / "words.txt"}
    model = DEC(3, **settings).fit(TEXTS)
    model.save_pretrained(tmp_path / "model")
    has_encoder = (tmp_path / "model" / "model.safetensors").is_file()
    assert has_encoder == (features in {"embedding", "sif"})
    assert (model.provenance()["encoder_from"] is not None) == has_encoder
    loaded = coterie.load(tmp_path / "model", device="cpu")
    np.testing.assert_array_equal(loaded.predict(UNSEEN), model.predict(UNSEEN))
    np.testing.assert_allclose(loaded.transform(UNSEEN), model.transform(UNSEEN), atol=1e-6)
    assert model.transform(UNSEEN).shape == (len(UNSEEN), 4)
    # A text without any known word is near nothing.
    if features in {"tfidf", "file"}:
        assert model.assign(["xyzzy"]).confidence.tolist() == [0]


@pytest.mark.parametrize("kind", [AutoEncoder, IDEC])
def test_given_vectors(tiny_encoder: Path, tmp_path: Path, kind: Any) -> None:
    settings = {**SMALL, "encoder": str(tiny_encoder)}
    frozen = FrozenEncoder(3, encoder=str(tiny_encoder), device="cpu").fit(TEXTS)
    vectors, unseen = frozen.transform(TEXTS), frozen.transform(UNSEEN)
    computed = kind(3, **settings).fit(TEXTS)
    given = kind(3, **settings).fit(TEXTS, embeddings=vectors)
    np.testing.assert_array_equal(given.labels_, computed.labels_)
    np.testing.assert_array_equal(given.predict(UNSEEN, embeddings=unseen), computed.predict(UNSEEN))
    given.save_pretrained(tmp_path / "model")
    loaded = coterie.load(tmp_path / "model", device="cpu")
    np.testing.assert_array_equal(loaded.predict(UNSEEN, embeddings=unseen), given.predict(UNSEEN, embeddings=unseen))
    for model in (given, loaded):
        for call in (model.predict, model.transform):
            with pytest.raises(SettingError, match="given embeddings"):
                call(UNSEEN)
        with pytest.raises(InputError, match="3 dimensions.* 32"):
            model.predict(UNSEEN, embeddings=unseen[:, :3])


def test_vectors_are_scaled_and_empty_ones_stay() -> None:
    rows = np.array([[3.0, 4, 0, 0], [0, 0, 0, 0], [0.1, 0, 0, 0]], dtype=np.float32)
    np.testing.assert_allclose(scale_rows(rows), [[1.2, 1.6, 0, 0], [0, 0, 0, 0], [2, 0, 0, 0]], atol=1e-6)
    assert scale_rows(rows).dtype == np.float32


def test_learning_on_a_sample(tiny_encoder: Path) -> None:
    model = DEC(3, **SMALL, encoder=str(tiny_encoder), max_steps=4).fit(TEXTS, sample=20)
    assert (model.initial_labels_ == -1).sum() == 10
    np.testing.assert_array_equal(model.predict(TEXTS), model.labels_)


def test_no_trial_is_made_of_them() -> None:
    from coterie.methods.cost_estimate import estimate, worth_estimating
    from coterie.text.corpus import as_corpus

    corpus = as_corpus([f"text {i}" for i in range(20_000)])
    assert not worth_estimating(DEC(3), corpus)
    assert estimate(DEC(3), corpus) is None
