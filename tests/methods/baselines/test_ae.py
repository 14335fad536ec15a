"""The stacked auto-encoder: its layers against float64, what it learns, what k-means makes of it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from reference.dec_oracle import forward, mean_squares

from coterie import AutoEncoder
from coterie.losses.reconstruction import reconstruction_error
from coterie.methods.baselines.deep import scale_rows
from coterie.methods.baselines.stacked import CORRUPTION_RATE, StackedAutoEncoder, corrupt_states, pretrain
from coterie.training.history import History
from coterie.training.vectors import VectorTrainer


def _network() -> StackedAutoEncoder:
    return StackedAutoEncoder([7, 5, 6, 2], torch.Generator().manual_seed(0))


def _half(layers: Any) -> list[tuple[Any, Any]]:
    return [(layer.weight.detach().double().numpy(), layer.bias.detach().double().numpy()) for layer in layers]


def test_the_network_in_float64() -> None:
    network, rows = _network(), np.random.default_rng(0).normal(size=(9, 7))
    with torch.no_grad():
        latents = network.encode(torch.from_numpy(rows).float())
        outputs = network.decode(latents)
    # The latent vector and the output are linear.
    expected = forward(_half(network.down), rows, linear=2)
    np.testing.assert_allclose(latents, expected, atol=1e-6)
    np.testing.assert_allclose(outputs, forward(_half(reversed(network.up)), expected, linear=2), atol=1e-6)
    again = StackedAutoEncoder.from_arrays(network.arrays())
    torch.testing.assert_close(again.encode(torch.from_numpy(rows).float()), latents)


def test_the_reconstruction_error_counts_repeats() -> None:
    generator = np.random.default_rng(0)
    inputs, outputs, counts = generator.normal(size=(4, 3)), generator.normal(size=(4, 3)), np.array([1, 3, 1, 2])
    found = reconstruction_error(torch.from_numpy(inputs), torch.from_numpy(outputs), torch.from_numpy(counts).double())
    assert float(found) == pytest.approx(mean_squares(np.repeat(inputs, counts, 0), np.repeat(outputs, counts, 0)))


def test_corruption() -> None:
    generator = torch.Generator().manual_seed(0)
    states = torch.ones(400, 100)
    found = corrupt_states(states, generator)
    assert float((found == 0).float().mean()) == pytest.approx(CORRUPTION_RATE, abs=0.01)
    assert float(found.mean()) == pytest.approx(1, abs=0.02)
    assert not torch.equal(found, corrupt_states(states, generator))


def test_every_layer_is_trained_alone_and_then_all_together() -> None:
    network, history = _network(), History()
    inputs = torch.randn(40, 7, generator=torch.Generator().manual_seed(1))
    before = {name: value.clone() for name, value in network.state_dict().items()}
    trainer = VectorTrainer(40, 16, torch.device("cpu"), 0, history)
    pretrain(network, inputs, torch.ones(40), 5, trainer, 0)
    stages = [record["stage"] for record in history.steps]
    assert stages == [*["layer_1"] * 3, *["layer_2"] * 3, *["layer_3"] * 3, *["pretraining"] * 5]
    assert all((value != before[name]).any() for name, value in network.state_dict().items())


def test_a_tiny_set_is_learned_by_heart() -> None:
    """Ten points through a latent vector of four: the reconstruction must become nearly exact."""
    points = np.random.default_rng(0).normal(size=(10, 12)).astype(np.float32)
    texts = [f"text {i}" for i in range(10)]
    model = AutoEncoder(2, layers="64-64-4", pretrain_steps=500, device="cpu").fit(texts, embeddings=points)
    errors = model.history_.term("reconstruction")
    assert len(errors) == 500
    assert errors[0] > 0.2 > 0.02 > errors[-1]
    with torch.no_grad():
        rows = torch.from_numpy(scale_rows(points))
        outputs = model.network_.decode(model.network_.encode(rows))
    assert float((outputs - rows).square().mean()) == pytest.approx(errors[-1], rel=0.5)


def test_groups_stay_groups() -> None:
    generator = np.random.default_rng(0)
    truth = np.repeat(np.arange(3), 30)
    points = 3 * np.eye(16)[truth] + generator.normal(scale=0.3, size=(90, 16))
    model = AutoEncoder(3, layers="32-4", pretrain_steps=150, device="cpu").fit(
        [f"text {i}" for i in range(90)], embeddings=points
    )
    assert len(set(zip(truth.tolist(), model.labels_.tolist(), strict=True))) == 3
    # Before the network they were as plain.
    np.testing.assert_array_equal(model.initial_labels_, model.labels_)
    np.testing.assert_array_equal(model.kmeans_labels_, model.labels_)
    assert any("k-means on the vectors before the network" in note for note in model.notes_)
