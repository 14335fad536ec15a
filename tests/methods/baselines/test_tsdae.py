"""TSDAE as an estimator: its two stages, what it deletes, what it shares with ClusterBERT."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import topic_texts

from coterie import TSDAE, ClusterBERT, FrozenEncoder, TrainingConfig
from coterie.encoders.transformer import TransformerEncoder
from coterie.errors import SettingError
from coterie.language.denoising import NOISED, Reconstruction
from coterie.text.augmentation.word_deletion import WordDeletion

TEXTS, _ = topic_texts(30)


def _method(folder: Path, *, training: dict[str, Any] | None = None, **settings: Any) -> TSDAE:
    chosen = {"batch_size": 10, "max_epochs": None, "precision": "float32", "learning_rate": 3e-3, **(training or {})}
    return TSDAE(3, encoder=str(folder), device="cpu", training=TrainingConfig(**chosen), **settings)


def test_the_decoder_learns_first_then_both(tiny_encoder: Path) -> None:
    model = _method(tiny_encoder).fit(TEXTS)
    # Three batches an epoch, one epoch and two.
    assert Counter(record["stage"] for record in model.history_.steps) == {"decoder": 3, "denoising": 6}
    assert model.history_.stop_reasons == {"decoder": "cap", "denoising": "cap"}
    for record in model.history_.steps:
        assert record["loss"] == record["reconstruction"]
    np.testing.assert_array_equal(model.predict(TEXTS), model.labels_)
    np.testing.assert_array_equal(model.kmeans_labels_, model.labels_)
    np.testing.assert_array_equal(model.head_labels_, model.labels_)


def test_epochs_are_followed_and_shrink_alike_under_a_cap(tiny_encoder: Path) -> None:
    long = _method(tiny_encoder, decoder_epochs=0, denoising_epochs=4).fit(TEXTS)
    assert Counter(record["stage"] for record in long.history_.steps) == {"denoising": 12}
    short = _method(tiny_encoder, denoising_epochs=3, training={"max_steps": 4}).fit(TEXTS)
    assert Counter(record["stage"] for record in short.history_.steps) == {"decoder": 1, "denoising": 3}


def test_it_learns_to_rebuild(tiny_encoder: Path) -> None:
    model = _method(tiny_encoder, denoising_epochs=20).fit(TEXTS)
    loss = model.history_.term("loss")
    assert np.mean(loss[-3:]) < 0.7 * np.mean(loss[:3])


def test_initial_labels_are_those_of_the_frozen_encoder(tiny_encoder: Path) -> None:
    model = _method(tiny_encoder).fit(TEXTS)
    frozen = FrozenEncoder(3, encoder=str(tiny_encoder), device="cpu").fit(TEXTS)
    pairs = set(zip(frozen.labels_.tolist(), model.initial_labels_.tolist(), strict=True))
    assert len(pairs) == 3  # one name for each cluster, whatever the names


def test_it_is_the_first_stage_of_clusterbert(tiny_encoder: Path) -> None:
    """The same objective, seed and rates: the same encoder, bit by bit."""
    training = TrainingConfig(batch_size=10, max_epochs=3, precision="float32", learning_rate=3e-3)
    alone = {"clustering_epochs": 0, "hardening_epochs": 0}
    first = ClusterBERT(3, encoder=str(tiny_encoder), device="cpu", training=training, **alone).fit(TEXTS)
    model = TSDAE(3, encoder=str(tiny_encoder), device="cpu", training=training).fit(TEXTS)
    before = TransformerEncoder.load(tiny_encoder).state_dict()
    trained = model.encoder_.state_dict()
    assert any((trained[name] != before[name]).any() for name in before)
    for name, value in first.encoder_.state_dict().items():
        np.testing.assert_array_equal(trained[name].numpy(), value.numpy(), err_msg=name)
    np.testing.assert_array_equal(model.labels_, first.labels_)


def test_the_share_of_deleted_words(tiny_encoder: Path) -> None:
    assert TSDAE(2)._augmenters() == {NOISED: WordDeletion(0.6)}
    assert _method(tiny_encoder, noise=0.1)._augmenters() == {NOISED: WordDeletion(0.1)}


def test_the_deleted_words_are_asked_for(tiny_encoder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The encoder reads fewer tokens than the decoder writes."""
    read, written = [], []
    real = Reconstruction.reconstruct

    def spy(self: Reconstruction, batch: Any) -> Any:
        read.append(int(batch.tokens(NOISED)[1].sum()))
        written.append(int(batch.tokens("original")[1].sum()))
        return real(self, batch)

    monkeypatch.setattr(Reconstruction, "reconstruct", spy)
    _method(tiny_encoder).fit(TEXTS)
    # Five words and two special tokens a text, in three epochs.
    assert sum(written) == 3 * 30 * 7
    assert 0.3 < (sum(read) - 3 * 30 * 2) / (3 * 30 * 5) < 0.5


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"decoder_epochs": -1}, "decoder_epochs"),
        ({"denoising_epochs": 0}, "denoising_epochs"),
        ({"noise": 0.0}, "noise"),
        ({"noise": 1.0}, "noise"),
    ],
)
def test_settings_that_cannot_work(tiny_encoder: Path, settings: dict[str, Any], message: str) -> None:
    with pytest.raises(SettingError, match=message):
        _method(tiny_encoder, **settings).fit(TEXTS)
