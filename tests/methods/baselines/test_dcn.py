"""DCN: the loss and the moving centres against loops, and the alternation."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from reference.dec_oracle import dcn_centers, dcn_loss

from coterie import DCN
from coterie.clustering.partition import Partition
from coterie.methods.baselines.dcn import FIRST_COUNT, HardClusters, nearest, update_centers
from coterie.methods.baselines.deep import Pretrained
from coterie.methods.baselines.stacked import StackedAutoEncoder
from coterie.training.history import History
from coterie.training.vectors import VectorTrainer

CPU = torch.device("cpu")
WEIGHTS = torch.tensor([1.0, 2, 1, 1, 3, 1])


def _state() -> tuple[StackedAutoEncoder, torch.Tensor, torch.Tensor]:
    network = StackedAutoEncoder([5, 4, 2], torch.Generator().manual_seed(0))
    inputs = 3 * torch.randn(6, 5, generator=torch.Generator().manual_seed(1))
    return network, inputs, network.encode(inputs[:3]).detach() + 0.05


def test_centres_move_as_in_the_paper_text_by_text() -> None:
    generator = np.random.default_rng(0)
    centers, uses = generator.normal(size=(4, 3)), np.array([100.0, 5, 1, 7])
    latents, labels = generator.normal(size=(9, 3)), np.array([0, 1, 1, 0, 3, 1, 0, 3, 3])
    counts = np.array([1, 2, 1, 1, 4, 1, 1, 1, 2])
    expected = dcn_centers(centers, uses, np.repeat(latents, counts, axis=0), np.repeat(labels, counts))
    found = update_centers(*map(torch.from_numpy, (centers, uses, latents, labels, counts.astype(np.float64))))
    for ours, theirs in zip(found, expected, strict=True):
        np.testing.assert_allclose(ours, theirs, atol=1e-12)
    # A centre that no text has stays.
    np.testing.assert_allclose(found[0][2], centers[2], atol=1e-12)


def test_a_batch_changes_its_own_labels_alone() -> None:
    network, inputs, centers = _state()
    hard = HardClusters(network, inputs, WEIGHTS, centers)
    np.testing.assert_array_equal(hard.labels, nearest(network.encode(inputs), centers))
    assert hard.label_change() is None
    with torch.no_grad():
        network.down[-1].bias += torch.tensor([2.0, -3.0])
    before = hard.labels.clone()
    rows = torch.tensor([1, 4])
    hard.update(rows)
    latents = network.encode(inputs).detach()
    np.testing.assert_array_equal(hard.labels[rows], nearest(latents, centers)[rows])
    others = torch.tensor([0, 2, 3, 5])
    np.testing.assert_array_equal(hard.labels[others], before[others])
    assert float(hard.uses.sum()) == 3 * FIRST_COUNT + 5
    expected, _ = update_centers(
        centers, torch.full((3,), FIRST_COUNT), latents[rows], hard.labels[rows], WEIGHTS[rows]
    )
    torch.testing.assert_close(hard.centers, expected)


@pytest.mark.parametrize("weight", [0.05, 1.0])
def test_the_loss_of_the_first_step(weight: float) -> None:
    network, inputs, centers = _state()
    model = DCN(3, distance_weight=weight, max_steps=1)
    model.network_ = network
    with torch.no_grad():
        latents = network.encode(inputs)
        outputs = network.decode(latents)
    own = centers[nearest(latents, centers)]
    history = History()
    trainer = VectorTrainer(6, 100, CPU, 0, history)
    partition = Partition(np.zeros(6, dtype=np.int64), centers.numpy().copy(), 0.0)
    counts = WEIGHTS.numpy().astype(np.int64)
    model._refine(Pretrained(inputs, WEIGHTS, counts, partition, trainer))
    tables = [np.repeat(each.double().numpy(), counts, axis=0) for each in (inputs, outputs, latents, own)]
    assert history.term("loss") == pytest.approx([dcn_loss(*tables, weight)], rel=1e-5)


def test_latent_vectors_come_near_their_centres() -> None:
    truth = np.repeat(np.arange(3), 30)
    points = 3 * np.eye(16)[truth] + np.random.default_rng(0).normal(scale=0.3, size=(90, 16))
    texts = [f"text {i}" for i in range(90)]
    distance = {}
    for weight in (0.0, 20.0):
        model = DCN(3, layers="32-4", pretrain_steps=100, max_steps=150, distance_weight=weight, tolerance=0)
        model.fit(texts, embeddings=points)
        distance[weight] = float(np.mean(model.history_.term("distance")[-20:]))
        assert len(set(zip(truth.tolist(), model.labels_.tolist(), strict=True))) == 3
    assert distance[20.0] < 0.5 * distance[0.0]
