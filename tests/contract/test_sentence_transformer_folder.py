"""A saved folder is at the same time a SentenceTransformer, and one of those is an encoder for us."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import coterie
from coterie import Coterie, FrozenEncoder, TrainingConfig
from coterie.errors import ModelFolderError

from .cases import CLUSTERERS_OF_FROZEN, DISTINCT, FOLDER_CASES, ROWS, UNSEEN, Case, K

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("sentence_transformers") is None, reason="sentence-transformers is not installed"
)

# Also a text that is cut and an empty one.
TEXTS = [*DISTINCT[:6], *UNSEEN, ""]


def _loaded(folder: Path) -> Any:
    # Imported here, so that only a process that runs these tests waits for it.
    import sentence_transformers

    return sentence_transformers.SentenceTransformer(str(folder), device="cpu")


# Of these methods every pooling: one without and one with a linear layer behind the encoder. Of the others one that is
# not the default.
IN_EVERY_POOLING = {"frozen", "deccrl"}
POOLINGS = [(case, "cls", True) for case in FOLDER_CASES if case.info.name not in IN_EVERY_POOLING] + [
    (case, pooling, normalize)
    for case in FOLDER_CASES
    if case.info.name in IN_EVERY_POOLING
    for pooling in ("mean", "cls", "max")
    for normalize in (True, False)
]


@pytest.mark.parametrize(("folder_case", "pooling", "normalize"), POOLINGS, ids=str)
def test_the_same_vectors(folder_case: Case, tiny_encoder: Path, tmp_path: Path, pooling: str, normalize: bool) -> None:
    model = folder_case.make(tiny_encoder, pooling=pooling, normalize=normalize, max_length=12).fit(ROWS)
    model.save_pretrained(tmp_path / "model")
    vectors = model.transform(TEXTS)
    if not folder_case.projects:
        assert np.allclose(np.linalg.norm(vectors, axis=1), 1) == normalize
    np.testing.assert_allclose(_loaded(tmp_path / "model").encode(TEXTS), vectors, atol=1e-5)

    # Saved again by sentence-transformers: the encoder is still there, the clusters are not.
    again = tmp_path / "again"
    _loaded(tmp_path / "model").save(str(again))
    with pytest.raises(ModelFolderError, match="no clusters.*sentence-transformers keeps the encoder only") as caught:
        coterie.load(again)
    assert str(again) in str(caught.value)
    refitted = FrozenEncoder(K, encoder=str(again), max_length=12, device="cpu").fit(ROWS)
    np.testing.assert_allclose(refitted.transform(TEXTS), vectors, atol=1e-5)


@pytest.mark.parametrize("words", [False, True])
def test_the_folder_of_the_default_method_is_its_encoder(tiny_encoder: Path, tmp_path: Path, words: bool) -> None:
    """With words, ``transform`` returns joined vectors, whose first part is the encoder's."""
    training = TrainingConfig(max_steps=2, batch_size=8)
    model = Coterie(K, encoder=str(tiny_encoder), words=words, guard=False, training=training, device="cpu").fit(ROWS)
    assert (model.lexical_share_ > 0) == words
    model.save_pretrained(tmp_path / "model")
    expected = np.asarray(_loaded(tmp_path / "model").encode(TEXTS))
    semantic = model.transform(TEXTS)[:, : expected.shape[1]]
    if words:
        expected, semantic = (each / np.linalg.norm(each, axis=1, keepdims=True) for each in (expected, semantic))
    np.testing.assert_allclose(semantic, expected, atol=1e-5)


def test_the_encoders_own_settings_are_followed(folder_case: Case, tiny_encoder: Path, tmp_path: Path) -> None:
    """ "auto" reads pooling and normalisation from a folder of sentence-transformers."""
    first = folder_case.make(tiny_encoder, pooling="cls", normalize=True).fit(ROWS)
    first.save_pretrained(tmp_path / "first")
    second = FrozenEncoder(K, encoder=str(tmp_path / "first"), device="cpu").fit(ROWS)
    np.testing.assert_allclose(second.transform(TEXTS), first.transform(TEXTS), atol=1e-5)


@pytest.mark.parametrize("clusterer", CLUSTERERS_OF_FROZEN)
def test_frozen_encoders_in_every_clustering(tiny_encoder: Path, tmp_path: Path, clusterer: str) -> None:
    model = FrozenEncoder(K, clusterer=clusterer, encoder=str(tiny_encoder), normalize=False, device="cpu")
    model.fit(ROWS).save_pretrained(tmp_path / "model")
    vectors = model.transform(TEXTS)
    np.testing.assert_allclose(_loaded(tmp_path / "model").encode(TEXTS), vectors, atol=1e-5)
    # Spherical k-means has vectors of length one, whatever normalize= says.
    assert np.allclose(np.linalg.norm(vectors, axis=1), 1) == (clusterer == "spherical")


def test_a_folder_with_other_modules_is_refused(tiny_encoder: Path, tmp_path: Path) -> None:
    FrozenEncoder(K, encoder=str(tiny_encoder), device="cpu").fit(ROWS).save_pretrained(tmp_path / "model")
    modules = (tmp_path / "model" / "modules.json").read_text(encoding="utf-8")
    (tmp_path / "model" / "modules.json").write_text(modules.replace("models.Pooling", "models.Dense"))
    with pytest.raises(ModelFolderError, match="Dense"):
        FrozenEncoder(K, encoder=str(tmp_path / "model"), device="cpu").fit(ROWS)
