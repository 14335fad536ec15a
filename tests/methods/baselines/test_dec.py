"""DEC: its loss, targets and gradients against the paper's equations; clusters pulled together."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from reference.dec_oracle import assignments, divergence, gradients, targets

from coterie import DEC
from coterie.clustering.assignment import student_t, target_distribution
from coterie.clustering.partition import Partition
from coterie.losses.kl_divergence import kl_divergence
from coterie.methods.baselines.deep import Pretrained, SoftState, changed_share
from coterie.methods.baselines.stacked import StackedAutoEncoder
from coterie.training.history import History
from coterie.training.steps import backpropagate
from coterie.training.vectors import VectorTrainer

COUNTS = np.array([1, 2, 1, 3, 1, 1, 2])
CPU = torch.device("cpu")


def _points(spread: float = 0.4) -> tuple[list[str], NDArray[np.float64], NDArray[np.int64]]:
    truth = np.repeat(np.arange(3), 40)
    points = 3 * np.eye(16)[truth] + np.random.default_rng(0).normal(scale=spread, size=(120, 16))
    return [f"text {i}" for i in range(120)], points, truth


def test_equations_1_to_3_with_repeated_texts() -> None:
    generator = np.random.default_rng(0)
    latents, centers = generator.normal(size=(7, 4)), generator.normal(size=(3, 4))
    weights = torch.from_numpy(COUNTS).double()
    q = student_t(torch.from_numpy(latents), torch.from_numpy(centers))
    p = target_distribution(q, weights)
    # The oracle knows nothing of weights: every text stands there as often as it occurs.
    expected_q = assignments(np.repeat(latents, COUNTS, axis=0), centers)
    expected_p = targets(expected_q)
    first = np.cumsum(COUNTS) - COUNTS
    np.testing.assert_allclose(q, expected_q[first], atol=1e-12)
    np.testing.assert_allclose(p, expected_p[first], atol=1e-12)
    assert float(kl_divergence(p, q, weights)) == pytest.approx(divergence(expected_p, expected_q))


def test_equations_4_and_5() -> None:
    generator = np.random.default_rng(1)
    latents = torch.from_numpy(generator.normal(size=(7, 4))).requires_grad_()
    centers = torch.from_numpy(generator.normal(size=(3, 4))).requires_grad_()
    p = targets(assignments(latents.detach().numpy(), centers.detach().numpy()))
    backpropagate(kl_divergence(torch.from_numpy(p), student_t(latents, centers)))
    by_latent, by_center = gradients(latents.detach().numpy(), centers.detach().numpy(), p)
    np.testing.assert_allclose(latents.grad, by_latent, atol=1e-12)
    np.testing.assert_allclose(centers.grad, by_center, atol=1e-12)


def test_targets_are_of_the_whole_corpus_and_count_repeats() -> None:
    network = StackedAutoEncoder([5, 3], torch.Generator().manual_seed(0))
    inputs = torch.randn(7, 5, generator=torch.Generator().manual_seed(1))
    centers, weights = network.encode(inputs[:3]).detach() + 0.1, torch.from_numpy(COUNTS).float()
    state = SoftState(network, centers, inputs, weights)
    assert state.refresh() is None
    latents = network.encode(inputs).detach().double().numpy()
    expected = targets(assignments(np.repeat(latents, COUNTS, axis=0), centers.double().numpy()))
    np.testing.assert_allclose(state.targets, expected[np.cumsum(COUNTS) - COUNTS], atol=1e-5)
    assert state.refresh() == 0
    labels = torch.tensor([0, 1, 2, 0, 1, 2, 0])
    assert changed_share(labels, labels.clone().index_fill_(0, torch.tensor([3]), 1), weights) == pytest.approx(3 / 11)


def test_the_first_step_is_one_of_sgd_on_the_divergence() -> None:
    """All texts in one batch: the centres move by the learning rate times Eq. 5, the decoder stays."""
    model = DEC(3, max_steps=1, learning_rate=0.5, layers="3")
    network = model.network_ = StackedAutoEncoder([5, 3], torch.Generator().manual_seed(0))
    inputs = torch.randn(7, 5, generator=torch.Generator().manual_seed(1))
    start = network.encode(inputs[:3]).detach().numpy() + np.float32(0.1)
    latents = network.encode(inputs).detach().double().numpy()
    decoder = [parameter.clone() for parameter in network.up.parameters()]
    weights = torch.ones(7)
    trainer = VectorTrainer(7, 100, CPU, 0, History())
    partition = Partition(np.zeros(7, dtype=np.int64), start.copy(), 0.0)
    centers = model._refine(Pretrained(inputs, weights, np.ones(7, dtype=np.int64), partition, trainer))
    p = targets(assignments(latents, start.astype(np.float64)))
    _, by_center = gradients(latents, start.astype(np.float64), p)
    np.testing.assert_allclose(centers, start - 0.5 * by_center, atol=1e-6)
    assert all(torch.equal(a, b) for a, b in zip(decoder, network.up.parameters(), strict=True))
    assert (network.encode(inputs).detach().numpy() != latents.astype(np.float32)).any()


def test_groups_are_drawn_together() -> None:
    texts, points, truth = _points()
    settings: dict[str, Any] = {"layers": "32-4", "pretrain_steps": 200, "device": "cpu", "tolerance": 0}
    model = DEC(3, **settings, max_steps=400).fit(texts, embeddings=points)
    assert len(set(zip(truth.tolist(), model.labels_.tolist(), strict=True))) == 3
    losses = [record["cluster"] for record in model.history_.steps if record["stage"] == "clustering"]
    assert all(np.isfinite(losses))
    # Sharper than at the start: a text's own centre is further ahead of the next.
    short = DEC(3, **settings, max_steps=1).fit(texts, embeddings=points)
    assert model.confidence_.mean() > short.confidence_.mean() + 0.02
    np.testing.assert_array_equal(model.head_labels_, model.labels_)


def test_it_stops_when_the_labels_stay() -> None:
    texts, points, _ = _points(0.1)
    model = DEC(3, layers="32-4", pretrain_steps=60, update_interval=5, max_steps=300, device="cpu").fit(
        texts, embeddings=points
    )
    assert model.history_.stop_reasons["clustering"] == "converged"
    assert len([record for record in model.history_.steps if record["stage"] == "clustering"]) < 300
    assert any("k-means on the pretrained network" in note for note in model.notes_)
