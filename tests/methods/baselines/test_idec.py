"""IDEC: reconstruction plus gamma times DEC's loss, decoder included."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from reference.dec_oracle import assignments, divergence, forward, mean_squares, targets

from coterie import IDEC
from coterie.clustering.assignment import student_t
from coterie.losses.kl_divergence import kl_divergence
from coterie.methods.baselines.stacked import StackedAutoEncoder
from coterie.training.steps import backpropagate


def _parts(gamma: float) -> tuple[IDEC, torch.Tensor, torch.Tensor, np.ndarray]:
    model = IDEC(3, gamma=gamma)
    model.network_ = StackedAutoEncoder([5, 4, 3], torch.Generator().manual_seed(0)).double()
    inputs = torch.randn(6, 5, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    centers = torch.randn(3, 3, generator=torch.Generator().manual_seed(2), dtype=torch.float64)
    latents = model.network_.encode(inputs).detach().numpy()
    return model, inputs, centers, targets(assignments(latents, centers.numpy()))


@pytest.mark.parametrize("gamma", [0.1, 2.0])
def test_the_loss(gamma: float) -> None:
    model, inputs, centers, p = _parts(gamma)
    weights = torch.tensor([1.0, 3, 1, 2, 1, 1], dtype=torch.float64)
    latents = model.network_.encode(inputs)
    q = student_t(latents, centers)
    terms = model._loss(inputs, latents, kl_divergence(torch.from_numpy(p), q, weights), weights)
    down = [(layer.weight.detach().numpy(), layer.bias.detach().numpy()) for layer in model.network_.down]
    up = [(layer.weight.detach().numpy(), layer.bias.detach().numpy()) for layer in reversed(model.network_.up)]
    counts = weights.numpy().astype(int)
    rows = np.repeat(inputs.numpy(), counts, axis=0)
    inside = forward(down, rows, linear=1)
    error = mean_squares(rows, forward(up, inside, linear=1))
    cluster = divergence(np.repeat(p, counts, axis=0), assignments(inside, centers.numpy()))
    assert terms.named["reconstruction"].item() == pytest.approx(error)
    assert terms.total.item() == pytest.approx(error + gamma * cluster)


def test_the_gradient_of_the_loss_by_differences() -> None:
    model, inputs, centers, p = _parts(0.7)
    weights = torch.ones(6, dtype=torch.float64)
    layer = model.network_.down[0].weight

    def loss() -> torch.Tensor:
        latents = model.network_.encode(inputs)
        cluster = kl_divergence(torch.from_numpy(p), student_t(latents, centers), weights)
        return model._loss(inputs, latents, cluster, weights).total

    backpropagate(loss())
    assert layer.grad is not None
    for place in ((0, 0), (1, 3), (3, 4)):
        with torch.no_grad():
            layer[place] += 1e-6
            above = float(loss())
            layer[place] -= 2e-6
            below = float(loss())
            layer[place] += 1e-6
        assert float(layer.grad[place]) == pytest.approx((above - below) / 2e-6, abs=1e-7)


def test_both_terms_are_followed_and_the_decoder_goes_on_learning() -> None:
    truth = np.repeat(np.arange(3), 30)
    points = 3 * np.eye(16)[truth] + np.random.default_rng(0).normal(scale=0.3, size=(90, 16))
    texts = [f"text {i}" for i in range(90)]
    model = IDEC(
        3, layers="32-4", pretrain_steps=100, max_steps=200, update_interval=20, tolerance=0, device="cpu"
    ).fit(texts, embeddings=points)
    steps = [record for record in model.history_.steps if record["stage"] == "clustering"]
    assert len(steps) == 200
    for record in steps:
        assert record["loss"] == pytest.approx(record["reconstruction"] + 0.1 * record["cluster"], rel=1e-4)
    error = [record["reconstruction"] for record in steps]
    assert np.mean(error[-20:]) < 0.9 * np.mean(error[:5])
    assert len(set(zip(truth.tolist(), model.labels_.tolist(), strict=True))) == 3
