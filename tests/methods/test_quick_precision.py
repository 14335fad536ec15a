"""Many texts are embedded in bfloat16, and labels are still those of float32."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from conftest import topic_texts

from coterie import AECL, SCCL, FrozenEncoder, TrainingConfig
from coterie.clustering.assignment import squared_distances, within_noise
from coterie.methods import assignment as placing
from coterie.methods import encoder_method as encoding

TEXTS = topic_texts(90)[0]


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(encoding, "QUICK_FROM", 10)
    monkeypatch.setattr("coterie.encoders.device.resolve_precision", lambda *_: torch.bfloat16)


def _nearest(model: Any) -> Any:
    return squared_distances(model.encoder_.encode(TEXTS), model.cluster_centers_).argmin(axis=1)


def test_within_noise_is_the_bound_of_the_geometry() -> None:
    generator = np.random.default_rng(0)
    centers = generator.normal(size=(5, 8))
    features = generator.normal(size=(400, 8))
    gaps = np.linalg.norm(centers[:, None] - centers, axis=2)
    distances = squared_distances(features, centers)
    doubtful = set(within_noise(distances, features, gaps, 0.05).tolist())
    # The worst move of a vector is along the line between the two centres.
    for row, feature in enumerate(features):
        first = distances[row].argmin()
        could = False
        for other in set(range(5)) - {first}:
            line = (centers[other] - centers[first]) / gaps[first, other]
            moved = feature + 0.05 * np.linalg.norm(feature) * line
            could |= bool(((moved - centers[other]) ** 2).sum() <= ((moved - centers[first]) ** 2).sum())
        assert could == (row in doubtful)
    assert 0 < len(doubtful) < 400


def test_labels_are_those_of_exact_vectors(tiny_encoder: Path, quick: None, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[int] = []
    real = placing.within_noise

    def spy(*arguments: Any) -> Any:
        found = real(*arguments)
        seen.append(len(found))
        return found

    monkeypatch.setattr(placing, "within_noise", spy)
    model = FrozenEncoder(3, encoder=str(tiny_encoder), device="cpu").fit(TEXTS)
    assert seen and model._measured_noise is not None and 0 < model._measured_noise < 0.2
    assert np.array_equal(model.labels_, _nearest(model))
    assert np.array_equal(model.predict(TEXTS), model.labels_)
    assert np.array_equal([model.predict([text])[0] for text in TEXTS[:20]], model.labels_[:20])
    # If nothing were recomputed, noise as large as this would change labels.
    coarse = model.encoder_.encode(TEXTS, torch.bfloat16)
    assert not np.array_equal(coarse, model.encoder_.encode(TEXTS))


def test_noise_that_decides_is_settled(tiny_encoder: Path, quick: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Vectors far off: every label would be wrong if float32 did not decide it."""
    model = FrozenEncoder(3, encoder=str(tiny_encoder), device="cpu").fit(TEXTS)
    wanted = model.labels_.copy()
    real = type(model.encoder_).encode_and_count_truncated

    def far_off(encoder: Any, texts: Any, dtype: torch.dtype = torch.float32) -> Any:
        vectors, truncated = real(encoder, texts, torch.float32)
        return (vectors[::-1].copy() if dtype == torch.bfloat16 else vectors), truncated

    monkeypatch.setattr(type(model.encoder_), "encode_and_count_truncated", far_off)
    model._measured_noise = 10.0
    assert np.array_equal(model.predict(TEXTS), wanted)
    model._measured_noise = 1e-9
    assert not np.array_equal(model.predict(TEXTS), wanted)


def test_transform_is_exact(tiny_encoder: Path, quick: None) -> None:
    model = FrozenEncoder(3, encoder=str(tiny_encoder), device="cpu").fit(TEXTS)
    assert np.array_equal(model.transform(TEXTS), model.encoder_.encode(TEXTS))


def test_who_asks_for_float32_gets_nothing_else(tiny_encoder: Path, quick: None) -> None:
    training = TrainingConfig(max_steps=2, precision="float32")
    model = SCCL(3, encoder=str(tiny_encoder), device="cpu", training=training).fit(TEXTS)
    assert model._quick_dtype(10**6) == torch.float32
    assert model._measured_noise is None
    # A head may turn a little noise into another cluster.
    assert AECL(3)._quick_dtype(10**6) == torch.float32


def test_few_texts_are_embedded_exactly(tiny_encoder: Path) -> None:
    model = FrozenEncoder(3, encoder=str(tiny_encoder), device="cpu").fit(TEXTS)
    assert model._quick_dtype(encoding.QUICK_FROM - 1) == torch.float32
    assert model._measured_noise is None
