"""Self-Train: DEC's phase on SIF vectors."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch
from conftest import topic_texts
from word_file import write_word_file

from coterie import SIF, SelfTrain
from coterie.methods.baselines.deep import scale_rows
from coterie.methods.baselines.self_train import SelfTrain as Same
from coterie.metrics.external.scores import evaluate

TEXTS, GROUP = topic_texts(45)


def test_its_vectors_are_those_of_sif(tiny_encoder: Path) -> None:
    settings = {"encoder": str(tiny_encoder), "device": "cpu"}
    model = SelfTrain(3, layers="16-5", pretrain_steps=40, max_steps=10, **settings).fit(TEXTS)  # type: ignore[arg-type]
    vectors = SIF(3, **settings).fit(TEXTS).transform(TEXTS)  # type: ignore[arg-type]
    with torch.no_grad():
        latents = model.network_.encode(torch.from_numpy(scale_rows(vectors)))
    np.testing.assert_allclose(model.transform(TEXTS), latents, atol=1e-5)


def test_the_papers_settings() -> None:
    model = SelfTrain(3)
    assert (model.features, model.layers, model.learning_rate) == ("sif", "500-500-2000-20", 0.1)
    assert Same._n_init == 100
    group = model._optimizer([torch.nn.Parameter(torch.zeros(1))]).param_groups[0]
    assert (group["lr"], group["momentum"]) == (0.1, 0.9)


def test_groups_of_words_are_found(tmp_path: Path) -> None:
    words = write_word_file(tmp_path / "words.txt")
    model = SelfTrain(3, vectors=words, layers="64-8", pretrain_steps=150, max_steps=60, device="cpu").fit(TEXTS)
    assert evaluate(GROUP, model.labels_).to_dict()["accuracy"] == 1
    assert evaluate(GROUP, model.initial_labels_).to_dict()["accuracy"] > 0.9
