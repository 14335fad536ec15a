"""ClusterBERT's objectives against the naive float64 oracle: values, gradients, targets, what each term reaches."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from conftest import topic_texts
from reference import clusterbert_oracle as oracle
from reference.sccl_oracle import numerical_gradient
from torch import Tensor, nn

from coterie.clustering.partition import Partition
from coterie.encoders.device_tokens import DeviceTokens
from coterie.encoders.transformer import TransformerEncoder
from coterie.language.denoising import NOISED, Reconstruction, SentenceDecoder
from coterie.methods.clusterbert import (
    ClusterBERT,
    ClusterPrediction,
    place_head,
    soft_cross_entropy,
)
from coterie.training.objective import ORIGINAL, Batch, LossTerms

Array = np.ndarray
DIMENSION, CLUSTERS, RADIUS, BALANCE = 32, 3, 1.7, 0.65
CORPUS, _ = topic_texts(9, seed=2)
ROWS = np.array([5, 0, 2, 7, 4, 3])
WEIGHTS = np.array([1, 3, 2, 1, 5, 1, 2, 4, 1])
SEEDS = pytest.mark.parametrize("seed", [0, 1, 2])
WEIGHTED = pytest.mark.parametrize("counts", [np.ones(9, dtype=np.int64), WEIGHTS], ids=["plain", "weighted"])


def _normal(*shape: int, seed: int) -> Array:
    return np.random.default_rng(seed).normal(size=shape)


def _tensor(array: Array, requires_grad: bool = False) -> Tensor:
    return torch.tensor(array, dtype=torch.float64, requires_grad=requires_grad)


@pytest.fixture(scope="module")
def encoder(tiny_encoder: Path) -> TransformerEncoder:
    return TransformerEncoder.load(tiny_encoder)


@pytest.fixture(scope="module")
def decoder(encoder: TransformerEncoder) -> SentenceDecoder:
    return SentenceDecoder(encoder, 0).double().eval()


class _Start(SimpleNamespace):
    """What the objective asks of the method's start."""

    n_clusters = CLUSTERS

    def recluster(self, embeddings: Tensor) -> Partition:
        self.seen = embeddings
        labels = np.arange(len(embeddings)) % CLUSTERS
        return Partition(labels=labels, centers=_normal(CLUSTERS, DIMENSION, seed=77), inertia=1.0)


def _prediction(
    decoder: SentenceDecoder,
    counts: Array = WEIGHTS,
    balance: float = BALANCE,
    hardens: bool = False,
    seed: int = 0,
    radius: float = RADIUS,
) -> ClusterPrediction:
    head = nn.Linear(DIMENSION, CLUSTERS)
    start: Any = _Start(counts=counts)
    objective = ClusterPrediction(decoder, head, start, balance, hardens, radius, (1e-3, 1e-2)).double()
    with torch.no_grad():
        head.weight.copy_(_tensor(_normal(CLUSTERS, DIMENSION, seed=seed + 10) * 0.3))
        head.bias.copy_(_tensor(_normal(CLUSTERS, seed=seed + 11)))
    objective.targets = _tensor(np.random.default_rng(seed).dirichlet(np.ones(CLUSTERS), size=len(counts)))
    return objective.eval()


def _tokens(encoder: TransformerEncoder) -> Callable[[str], tuple[Tensor, Tensor]]:
    def tokens(name: str) -> tuple[Tensor, Tensor]:
        assert name == ORIGINAL  # the decoder writes the text as it was, not as it was noised
        arrays = encoder.tokenize(CORPUS)
        return DeviceTokens(arrays, encoder.pad_id, encoder.device).batch(torch.from_numpy(ROWS), 8)

    return tokens


def _loss(encoder: TransformerEncoder, objective: Reconstruction, embeddings: Tensor, counts: Array) -> LossTerms:
    weights = torch.from_numpy(counts[ROWS]).double()
    return objective.loss(Batch((embeddings,), torch.from_numpy(ROWS), weights, tokens=_tokens(encoder)))


class Expected:
    """Eq. 1-4 by the oracle for one batch."""

    def __init__(self, encoder: TransformerEncoder, objective: Reconstruction, counts: Array) -> None:
        self.objective, self.weights = objective, counts[ROWS].astype(np.float64)
        self.ids, self.mask = _tokens(encoder)(ORIGINAL)

    def reconstruction(self, z: Array) -> float:
        with torch.no_grad():
            logits = self.objective.decoder.model(
                input_ids=self.ids[:, :-1], attention_mask=self.mask[:, :-1], encoder_hidden_states=_tensor(z)[:, None]
            ).logits
        return oracle.reconstruction_loss(logits.numpy(), self.ids[:, 1:], self.mask[:, 1:], self.weights)  # Eq. 1

    def cluster(self, z: Array, weight: Array | None = None, bias: Array | None = None) -> float:
        assert isinstance(self.objective, ClusterPrediction)
        head = self.objective.head
        w, b = (p.detach().numpy() for p in (head.weight, head.bias))
        radius = self.objective.radius
        logits = oracle.head_logits(radius * z, w if weight is None else weight, b if bias is None else bias)
        targets = self.objective.targets.numpy()[ROWS]
        return oracle.cluster_loss(oracle.cluster_probabilities(logits), targets, self.weights)  # Eq. 2-3


def _assert_gradient(gradient: Tensor | None, function: Callable[[Array], float], at: Array) -> None:
    assert gradient is not None
    np.testing.assert_allclose(gradient.numpy(), numerical_gradient(function, at), rtol=1e-5, atol=1e-7)


# --- Eq. 2, 3, and the head ---


@SEEDS
@WEIGHTED
def test_the_cross_entropy_with_soft_targets(seed: int, counts: Array) -> None:
    logits = _normal(9, CLUSTERS, seed=seed) * 2
    targets = np.random.default_rng(seed).dirichlet(np.ones(CLUSTERS), size=9)
    targets[0] = [0, 1, 0]
    leaf = _tensor(logits, requires_grad=True)
    loss = soft_cross_entropy(leaf, _tensor(targets), torch.from_numpy(counts))

    def expected(at: Array) -> float:
        return oracle.cluster_loss(oracle.cluster_probabilities(at), targets, counts)

    assert loss.item() == pytest.approx(expected(logits), rel=1e-10)
    loss.backward()
    _assert_gradient(leaf.grad, expected, logits)


def test_the_cross_entropy_of_distant_texts_stays_finite() -> None:
    leaf = torch.tensor([[1e4, 0.0], [0.0, 1e4]], requires_grad=True)
    loss = soft_cross_entropy(leaf, torch.tensor([[0.0, 1.0], [0.0, 1.0]]), torch.ones(2))
    loss.backward()
    assert loss.item() == pytest.approx(5e3)
    assert torch.isfinite(leaf.grad).all()  # type: ignore[arg-type]


@SEEDS
def test_a_head_from_centres_answers_the_nearest(seed: int) -> None:
    centers, z = _normal(CLUSTERS, 4, seed=seed), _normal(7, 4, seed=seed + 1)
    head = nn.Linear(4, CLUSTERS).double()
    place_head(head, _tensor(centers))
    weight, bias = oracle.head_from_centroids(centers)
    np.testing.assert_allclose(head.weight.detach().numpy(), weight, rtol=1e-12)
    np.testing.assert_allclose(head.bias.detach().numpy(), bias, rtol=1e-12)
    squared = ((z[:, None] - centers[None]) ** 2).sum(-1)
    answer = head(_tensor(z)).softmax(dim=-1).detach().numpy()
    expected = np.exp(-squared / 2) / np.exp(-squared / 2).sum(axis=1, keepdims=True)
    np.testing.assert_allclose(answer, expected, rtol=1e-9)
    assert head.weight.requires_grad and head.bias.requires_grad


@SEEDS
def test_the_heads_probabilities_are_eq_2_at_the_radius(seed: int, decoder: SentenceDecoder) -> None:
    objective, z = _prediction(decoder, seed=seed), _normal(5, DIMENSION, seed=seed)
    weight, bias = (p.detach().numpy() for p in (objective.head.weight, objective.head.bias))
    expected = oracle.cluster_probabilities(oracle.head_logits(RADIUS * z, weight, bias))
    np.testing.assert_allclose(objective.head_probabilities(_tensor(z)).detach().numpy(), expected, rtol=1e-9)


# --- Targets ---


def test_clustering_starts_with_kmeans_targets_and_a_placed_head(decoder: SentenceDecoder) -> None:
    objective = _prediction(decoder)
    embeddings = _tensor(_normal(9, DIMENSION, seed=0))
    objective.start(lambda: embeddings)
    assert objective._start.seen is embeddings  # type: ignore[attr-defined]
    np.testing.assert_array_equal(objective.targets.numpy(), oracle.one_hot([i % CLUSTERS for i in range(9)], CLUSTERS))
    assert objective.targets.dtype == torch.float64
    weight, bias = oracle.head_from_centroids(RADIUS * _normal(CLUSTERS, DIMENSION, seed=77))
    np.testing.assert_allclose(objective.head.weight.detach().numpy(), weight, rtol=1e-6)
    np.testing.assert_allclose(objective.head.bias.detach().numpy(), bias, rtol=1e-6)
    # Between the epochs of a stage they stay.
    objective.refresh(lambda: pytest.fail("clustering asks for the corpus once a stage"))


@SEEDS
@WEIGHTED
def test_hardening_sharpens_the_heads_own_answer(seed: int, counts: Array, decoder: SentenceDecoder) -> None:
    objective = _prediction(decoder, counts, hardens=True, seed=seed)
    head = [p.detach().clone() for p in objective.head.parameters()]
    objective.start(lambda: pytest.fail("hardening starts from the head as it is"))
    assert all(torch.equal(a, b) for a, b in zip(head, objective.head.parameters(), strict=True))
    for epoch in range(2):
        z = _normal(9, DIMENSION, seed=seed + epoch)
        objective.refresh(lambda z=z: _tensor(z))
        p = oracle.cluster_probabilities(oracle.head_logits(RADIUS * z, head[0].numpy(), head[1].numpy()))
        np.testing.assert_allclose(objective.targets.numpy(), oracle.hardened_targets(p, counts), rtol=1e-8)  # Eq. 5
        assert not objective.targets.requires_grad


# --- Totals ---


@SEEDS
@WEIGHTED
def test_adaptation_is_eq_1_alone(
    seed: int, counts: Array, encoder: TransformerEncoder, decoder: SentenceDecoder
) -> None:
    objective = Reconstruction(decoder, 1e-3).eval()
    assert objective.views == (NOISED,)
    z = _normal(6, DIMENSION, seed=seed)
    terms = _loss(encoder, objective, _tensor(z), counts)
    expected = Expected(encoder, objective, counts).reconstruction(z)
    assert set(terms.named) == {"loss", "reconstruction"}
    assert terms.total.item() == terms.named["reconstruction"].item() == pytest.approx(expected, rel=1e-8)


@SEEDS
@WEIGHTED
@pytest.mark.parametrize("hardens", [False, True])
@pytest.mark.parametrize("balance", [0.0, 0.65, 0.8, 1.0])
def test_the_total_is_eq_4(
    seed: int,
    counts: Array,
    hardens: bool,
    balance: float,
    encoder: TransformerEncoder,
    decoder: SentenceDecoder,
) -> None:
    objective = _prediction(decoder, counts, balance, hardens, seed)
    assert objective.views == (NOISED,)
    z = _normal(6, DIMENSION, seed=seed)
    terms = _loss(encoder, objective, _tensor(z), counts)
    expected = Expected(encoder, objective, counts)
    cluster = expected.cluster(z)
    assert terms.named["cluster"].item() == pytest.approx(cluster, rel=1e-9)
    if balance == 1:
        assert set(terms.named) == {"loss", "cluster"}
        assert terms.total.item() == pytest.approx(cluster, rel=1e-9)
        return
    assert set(terms.named) == {"loss", "cluster", "reconstruction"}
    reconstruction = expected.reconstruction(z)
    assert terms.named["reconstruction"].item() == pytest.approx(reconstruction, rel=1e-8)
    assert terms.total.item() == pytest.approx(oracle.full_loss(cluster, reconstruction, balance), rel=1e-8)


@pytest.mark.parametrize("how", ["flipped", "dropped"])
@pytest.mark.parametrize("term", ["cluster", "reconstruction"])
@pytest.mark.parametrize("hardens", [False, True])
def test_no_term_can_be_flipped_or_dropped_unseen(
    term: str, how: str, hardens: bool, encoder: TransformerEncoder, decoder: SentenceDecoder
) -> None:
    objective = _prediction(decoder, hardens=hardens)
    z = _normal(6, DIMENSION, seed=0)
    total = _loss(encoder, objective, _tensor(z), WEIGHTS).total.item()
    expected = Expected(encoder, objective, WEIGHTS)
    terms = {"cluster": BALANCE * expected.cluster(z), "reconstruction": (1 - BALANCE) * expected.reconstruction(z)}
    terms[term] *= -1 if how == "flipped" else 0
    assert abs(sum(terms.values()) - total) > 0.3


def test_the_gradient_of_the_whole(encoder: TransformerEncoder, decoder: SentenceDecoder) -> None:
    objective = _prediction(decoder)
    z = _normal(6, DIMENSION, seed=0)
    leaf = _tensor(z, requires_grad=True)
    _loss(encoder, objective, leaf, WEIGHTS).total.backward()
    expected = Expected(encoder, objective, WEIGHTS)
    weight, bias = (p.detach().numpy().copy() for p in (objective.head.weight, objective.head.bias))
    _assert_gradient(objective.head.weight.grad, lambda w: BALANCE * expected.cluster(z, weight=w), weight)
    _assert_gradient(objective.head.bias.grad, lambda b: BALANCE * expected.cluster(z, bias=b), bias)
    # Along a few directions, as the decoder is slow.
    for seed in range(3):
        direction = _normal(6, DIMENSION, seed=50 + seed)

        def along(t: Array, direction: Array = direction) -> float:
            moved = z + t * direction
            return oracle.full_loss(expected.cluster(moved), expected.reconstruction(moved), BALANCE)

        assert leaf.grad is not None
        slope = numerical_gradient(along, np.zeros(())).item()
        assert (leaf.grad.numpy() * direction).sum() == pytest.approx(slope, rel=1e-5, abs=1e-8)
        assert abs(slope) > 1e-3


# --- What a term reaches ---


def _reached(folder: Path, term: str) -> tuple[set[str], bool]:
    fresh = TransformerEncoder.load(folder)
    objective = _prediction(SentenceDecoder(fresh, 0).double().eval())
    leaf = _tensor(_normal(6, DIMENSION, seed=0), requires_grad=True)
    _loss(fresh, objective, leaf, WEIGHTS).named[term].backward()
    names = {n for n, p in objective.named_parameters() if p.grad is not None and p.grad.abs().max() > 1e-9}
    # Tied: what the decoder has of the encoder, the encoder has a gradient for.
    for name, parameter in fresh.model.named_parameters():
        if name.startswith("encoder.layer.0.attention.self.value") and term == "reconstruction":
            assert parameter.grad is not None and parameter.grad.abs().max() > 1e-9
    return names, bool(leaf.grad is not None and leaf.grad.abs().max() > 1e-9)


def test_the_cluster_term_reaches_head_and_embeddings_alone(tiny_encoder: Path) -> None:
    assert _reached(tiny_encoder, "cluster") == ({"head.weight", "head.bias"}, True)


def test_the_reconstruction_reaches_decoder_and_embeddings_and_not_the_head(tiny_encoder: Path) -> None:
    names, embeddings = _reached(tiny_encoder, "reconstruction")
    assert embeddings
    assert names and all(name.startswith("decoder.") for name in names)
    assert any("crossattention.self.value" in name for name in names)
    assert any("word_embeddings" in name for name in names)


# --- Settings on their way ---


def _stages(tiny_encoder: Path, **settings: Any) -> list[Any]:
    settings = {"decoder_epochs": 0, **settings}
    method = ClusterBERT(CLUSTERS, encoder=str(tiny_encoder), device="cpu", **settings)
    method.notes_ = ()
    method.encoder_ = TransformerEncoder.load(tiny_encoder, normalize=True)
    start: Any = _Start(
        counts=WEIGHTS,
        encoder=method.encoder_,
        centers=torch.from_numpy(_normal(CLUSTERS, DIMENSION, seed=1)).float(),
        seed=0,
    )
    return method._stages(start)


def test_each_stage_has_its_share_of_the_cluster_loss(tiny_encoder: Path) -> None:
    stages = _stages(tiny_encoder, clustering_lambda=0.3, hardening_lambda=0.9, reclusterings=3, radius=2.5)
    assert [stage.name for stage in stages] == ["adaptation", *["clustering"] * 3, "hardening"]
    assert type(stages[0].objective) is Reconstruction
    later = [stage.objective for stage in stages[1:]]
    assert [objective.balance for objective in later] == [0.3, 0.3, 0.3, 0.9]
    assert [objective.hardens for objective in later] == [False, False, False, True]
    assert {objective.radius for objective in later} == {2.5}
    # One decoder and one head throughout.
    assert len({id(stage.objective.decoder) for stage in stages}) == len({id(each.head) for each in later}) == 1
    assert not any(stage.stops for stage in stages)


def test_the_papers_shares_are_the_default(tiny_encoder: Path) -> None:
    later = [stage.objective.balance for stage in _stages(tiny_encoder)[1:]]
    assert later == [oracle.STAGE_LAMBDA[2]] * 2 + [oracle.STAGE_LAMBDA[3]]


def test_without_reconstruction_the_first_stage_stays(tiny_encoder: Path) -> None:
    stages = _stages(tiny_encoder, reconstruction=False)
    assert type(stages[0].objective) is Reconstruction
    expected = [oracle.WITHOUT_RECONSTRUCTION[stage] for stage in (2, 2, 3)]
    assert [stage.objective.balance for stage in stages[1:]] == expected


def test_the_rates_of_the_parts(decoder: SentenceDecoder) -> None:
    assert _prediction(decoder).own_rates() == {"decoder": 1e-3, "head": 1e-2}
    assert Reconstruction(decoder, 1e-3).own_rates() == {"decoder": 1e-3}
