"""AECL's networks, losses and objectives against the naive float64 oracle: values, composition, gradients."""

from __future__ import annotations

import math
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from reference import aecl_oracle as oracle
from torch import Tensor, nn

from coterie.methods.aecl import losses as aecl_losses
from coterie.methods.aecl import networks as aecl_networks
from coterie.methods.aecl.method import AECL, CONTRASTS, AECLObjective
from coterie.methods.aecl.networks import ATTENTIONS, AttentionHead, SampleAttention
from coterie.training.objective import AUGMENTED, ORIGINAL, Batch, LossTerms

Array = np.ndarray
TEXTS, DIMENSION, CLUSTERS, WIDTH = 6, 5, 3, 8
ROWS = np.array([9, 2, 5, 0, 7, 3])  # which of ten texts are in the batch
KMEANS = np.array([2, 1, 0, 2, 1, 0, 1, 1, 2, 2])
COUNTS = np.array([1.0, 3.0, 2.0, 1.0, 5.0, 1.0])
# Every weight large enough for its term to be seen in the total.
SETTINGS: dict[str, Any] = {
    "tau_instance": 0.7,
    "tau_cluster": 0.6,
    "lambda1": 3.0,
    "lambda2": 1.7,
    "lambda3": 0.9,
    "lambda4": 2.3,
    "threshold": 0.65,
}
WEIGHTED = pytest.mark.parametrize("weights", [np.ones(TEXTS), COUNTS], ids=["plain", "weighted"])
SEEDS = pytest.mark.parametrize("seed", range(4))
ATTENTION = pytest.mark.parametrize("attention", ATTENTIONS)
CONTRAST = pytest.mark.parametrize("contrast", CONTRASTS)


def _normal(*shape: int, seed: int) -> Array:
    return np.random.default_rng(seed).normal(size=shape)


def _probabilities(n: int, clusters: int, seed: int) -> Array:
    return np.random.default_rng(seed).dirichlet(np.full(clusters, 0.6), size=n)


def _tensors(*arrays: Array) -> list[Tensor]:
    return [torch.from_numpy(np.asarray(array)) for array in arrays]


def _layers(network: nn.Module) -> list[tuple[Array, Array]]:
    found = [module for module in network.modules() if isinstance(module, nn.Linear)]
    return [(module.weight.detach().numpy(), module.bias.detach().numpy()) for module in found]


def _layer_parameters(attention: SampleAttention) -> dict[str, Array]:
    parts = {
        "q": attention.queries,
        "k": attention.keys,
        "v": attention.values,
        "out": attention.mix,
        "ffn1": attention.feed_forward[0],
        "ffn2": attention.feed_forward[3],
        "norm1": attention.norms[0],
        "norm2": attention.norms[1],
    }
    named = [(f"{name}_{kind}", getattr(part, kind)) for name, part in parts.items() for kind in ("weight", "bias")]
    return {name: parameter.detach().numpy() for name, parameter in named}


def _oracle_attention(attention: SampleAttention, z: Array) -> tuple[Array, Array]:
    """(S, H) by the oracle."""
    if attention.kind == "layer":
        return oracle.encoder_layer(z, _layer_parameters(attention))
    maps = [layer.weight.detach().numpy().T for layer in (attention.queries, attention.keys, attention.values)]
    s = oracle.attention_similarity(z, maps[0], maps[1])
    return s, oracle.consistent_representation(s, z, maps[2])


def _roughen(module: nn.Module, seed: int) -> None:
    """Fresh norms are the identity: a layer that ignored them would pass."""
    generator = torch.Generator().manual_seed(seed)
    for part in module.modules():
        if isinstance(part, nn.LayerNorm):
            nn.init.uniform_(part.weight, 0.5, 1.5, generator=generator)
            nn.init.uniform_(part.bias, -0.5, 0.5, generator=generator)


@pytest.fixture(autouse=True)
def _narrow(monkeypatch: pytest.MonkeyPatch) -> None:
    """Networks small enough for loops."""
    monkeypatch.setattr(aecl_networks, "WIDTH", WIDTH)
    monkeypatch.setattr(aecl_networks, "FEED_FORWARD", 6)
    monkeypatch.setattr(SampleAttention.__init__, "__defaults__", (WIDTH,))


def _head(attention: str, seed: int = 1, clusters: int = CLUSTERS) -> AttentionHead:
    """In float64 and evaluation mode, sure of some texts and not of others."""
    head = AttentionHead(DIMENSION, clusters, attention, torch.Generator().manual_seed(seed)).double().eval()
    _roughen(head, seed)
    with torch.no_grad():
        # Attention that tells texts apart: averages over all of them would be alike.
        head.projector[-1].weight.mul_(3.0)
        head.attention.queries.weight.mul_(4.0)
        last = head.classifier[-1]
        mixed = [head.attention(head.projector(view))[0] for view in _tensors(*_views())]
        logits = head.classifier(torch.cat(mixed))
        # Logits of the same mean and spread for every cluster.
        spread = 2.0 / logits.std(dim=0)
        last.bias.copy_((last.bias - logits.mean(dim=0)) * spread)
        last.weight.mul_(spread[:, None])
        last.bias[0] += 1.0  # clusters of like size would hide the penalty on unlike ones
    return head


def _views() -> list[Array]:
    first = _normal(TEXTS, DIMENSION, seed=1)
    return [first, first + 0.5 * _normal(TEXTS, DIMENSION, seed=2)]


def _objectives(attention: str = "layer", **changed: Any) -> list[AECLObjective]:
    """Those of the three stages, as the estimator builds them, with a head made as above."""
    method = AECL(CLUSTERS, attention=attention, augmentation="virtual", **{**SETTINGS, **changed})
    start = SimpleNamespace(
        encoder=SimpleNamespace(dimension=DIMENSION),
        generator=torch.Generator().manual_seed(0),
        labels=KMEANS,
        centers=torch.zeros(CLUSTERS, DIMENSION),
        recluster=None,
    )
    objectives = [stage.objective for stage in method._stages(start)]  # type: ignore[arg-type]
    assert all(isinstance(objective, AECLObjective) for objective in objectives)
    head = _head(attention)
    for objective in objectives:
        objective.head.load_state_dict(head.state_dict())
        objective.double().eval()
    return objectives  # type: ignore[return-value]


def _loss(objective: AECLObjective, views: list[Tensor], weights: Array) -> LossTerms:
    return objective.loss(Batch(tuple(views), torch.from_numpy(ROWS), torch.from_numpy(weights)))


class Expected:
    """Everything by the oracle, from the head's parameters as they are now and two views of embeddings."""

    def __init__(self, objective: AECLObjective, views: list[Array], weights: Array, **settings: Any) -> None:
        self.chosen = {**SETTINGS, "contrast": "similarity", "positive_in_denominator": True, **settings}
        self.stage, self.weights = objective.stage, weights
        head = objective.head
        self.z = [oracle.feed_forward(view, _layers(head.projector)) for view in views]
        attended = [_oracle_attention(head.attention, z) for z in self.z]
        self.s, self.h = [s for s, _ in attended], [h for _, h in attended]
        logits = [oracle.feed_forward(h, _layers(head.classifier)) for h in self.h]
        self.p = [np.array([oracle.softmax(list(row)) for row in rows]) for rows in logits]
        self.confident, self.pseudo_labels = oracle.confident_labels(self.p[0], self.chosen["threshold"])

    @property
    def labels(self) -> list[int]:
        return self.pseudo_labels if self.stage == 3 else KMEANS[ROWS].tolist()

    def instance(self) -> float:
        z, tau, contrast = self.z, self.chosen["tau_instance"], self.chosen["contrast"]
        if contrast == "plain":
            return oracle.plain_contrast(z[0], z[1], tau, self.weights)
        if contrast == "confidence":
            return oracle.class_aware_loss(z[0], z[1], self.pseudo_labels, self.confident, tau, self.weights)
        guided = contrast == "similarity"
        pairs = ((v[0], v[1]) for v in (z, self.h, self.s))
        return oracle.similarity_guided_loss(*pairs, self.labels, tau, self.weights, use_consistency=guided)

    def pseudo(self) -> float:
        trusted = self.confident if self.stage == 3 else None
        return oracle.pseudo_label_loss(self.p[1], self.labels, trusted, self.weights)

    def terms(self) -> dict[str, float]:
        terms = {"instance": self.instance()}
        if self.stage > 1:
            terms["pseudo"] = self.pseudo()
        if self.stage > 2:
            tau, inside = self.chosen["tau_cluster"], self.chosen["positive_in_denominator"]
            terms["cluster"] = oracle.cluster_contrast(
                self.p[0], self.p[1], tau, self.weights, positive_in_denominator=inside
            )
            terms["entropy"] = oracle.mean_entropy(self.p[0], self.weights)
            terms["balance"] = oracle.balance_penalty(self.p[0], self.p[1], self.weights)
        return terms

    def total(self, terms: dict[str, float]) -> float:
        lambdas = {f"lambda_{i}": self.chosen[f"lambda{i}"] for i in (1, 2, 3, 4)}
        if self.stage == 1:
            return terms["instance"]
        if self.stage == 2:
            two = {name: lambdas[name] for name in ("lambda_1", "lambda_2")}
            return oracle.stage_two_total(terms["instance"], terms["pseudo"], **two)
        order = ("cluster", "instance", "pseudo", "entropy", "balance")
        return oracle.stage_three_total(*(terms[name] for name in order), **lambdas)


# --- Networks ---


@ATTENTION
@SEEDS
def test_attention_is_the_papers(attention: str, seed: int) -> None:
    layer = SampleAttention(attention, torch.Generator().manual_seed(seed), WIDTH).double().eval()
    _roughen(layer, seed)
    z = _normal(TEXTS, WIDTH, seed=seed)
    h, s = layer(torch.from_numpy(z))
    expected_s, expected_h = _oracle_attention(layer, z)
    np.testing.assert_allclose(s.detach().numpy(), expected_s, rtol=1e-10)
    np.testing.assert_allclose(h.detach().numpy(), expected_h, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(s.detach().sum(dim=1).numpy(), 1.0)
    assert s.detach().numpy().std() > 0.01


@ATTENTION
@SEEDS
def test_a_text_towards_references_is_the_text_in_a_batch_with_them(attention: str, seed: int) -> None:
    layer = SampleAttention(attention, torch.Generator().manual_seed(seed), WIDTH).double().eval()
    _roughen(layer, seed)
    z, references = _tensors(_normal(4, WIDTH, seed=seed), _normal(TEXTS, WIDTH, seed=seed + 50))
    found = layer.towards(z, references)
    for i in range(4):
        together, _ = layer(torch.cat([z[i : i + 1], references]))
        torch.testing.assert_close(found[i], together[0], rtol=1e-10, atol=1e-12)
    assert (found[0] - layer.towards(z[:1], references[:3])[0]).abs().max() > 1e-3  # references do matter


@ATTENTION
def test_the_head_is_the_papers_from_end_to_end(attention: str) -> None:
    head = _head(attention)
    objective = SimpleNamespace(head=head, stage=3)
    expected = Expected(objective, _views(), COUNTS)  # type: ignore[arg-type]
    for view, p in zip(_views(), expected.p, strict=True):
        np.testing.assert_allclose(head(torch.from_numpy(view)).detach().numpy(), p, rtol=1e-9, atol=1e-12)
    references = _views()[1][1:].astype(np.float32)
    answer = head.probability_function(references)(_views()[0].astype(np.float32))
    for row, text in zip(answer, _views()[0].astype(np.float32), strict=True):
        batch = torch.from_numpy(np.concatenate([text[None], references])).double()
        np.testing.assert_allclose(row, head(batch)[0].detach().numpy(), rtol=1e-9)
    np.testing.assert_allclose(head.similarities(_views()[0].astype(np.float32)), expected.s[0], rtol=1e-5)


def test_the_shapes_are_the_public_codes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    head = AttentionHead(20, 7, "layer", torch.Generator().manual_seed(0))
    shapes = {name: [tuple(p.shape) for p in part.parameters()] for name, part in head.named_children()}
    assert shapes["projector"] == [(20, 20), (20,), (128, 20), (128,)]
    assert shapes["classifier"] == [(20, 128), (20,), (20, 20), (20,), (7, 20), (7,)]
    assert shapes["attention"] == [(128, 128), (128,)] * 4 + [(256, 128), (256,), (128, 256)] + [(128,)] * 5
    rates = [(name, module.p) for name, module in head.named_modules() if isinstance(module, nn.Dropout)]
    assert rates == [
        ("attention.feed_forward.2", 0.1),
        ("attention.dropout", 0.1),
        ("classifier.0", 0.5),
        ("classifier.3", 0.5),
    ]
    bare = AttentionHead(20, 7, "bare", torch.Generator().manual_seed(0))
    assert [tuple(p.shape) for p in bare.attention.parameters()] == [(128, 128)] * 3
    again = AttentionHead(20, 7, "layer", torch.Generator().manual_seed(0))
    assert all(torch.equal(a, b) for a, b in zip(head.parameters(), again.parameters(), strict=True))


@ATTENTION
def test_settled_probabilities_have_no_dropout_and_leave_the_mode(attention: str) -> None:
    head = _head(attention)
    view = torch.from_numpy(_views()[0])
    calm = head(view)
    head.train()
    assert torch.equal(head.probabilities_without_dropout(view), calm)
    assert head.training and all(module.training for module in head.modules())
    assert not torch.allclose(head(view), calm, atol=1e-3)
    head.eval()
    head.probabilities_without_dropout(view)
    assert not any(module.training for module in head.modules())


@pytest.mark.parametrize(("n", "size"), [(7, 3), (6, 6), (5, 100), (9, 2)])
def test_a_corpus_is_answered_in_batches_like_those_of_training(n: int, size: int) -> None:
    head = _head("layer")
    embeddings = torch.from_numpy(_normal(n, DIMENSION, seed=n))
    sizes: list[int] = []
    head.register_forward_hook(lambda module, given, result: sizes.append(len(given[0])))
    answers = head.in_batches(embeddings, size)
    assert len(sizes) == -(-n // size) and sum(sizes) == n and max(sizes) - min(sizes) <= 1
    # Each text's answer stands in its own row: the same text in the batch it was in.
    order = torch.randperm(n, generator=torch.Generator().manual_seed(0))
    for rows in order.tensor_split(len(sizes)):
        torch.testing.assert_close(answers[rows], head(embeddings[rows]))


def test_the_order_of_clusters_can_be_changed() -> None:
    head = _head("layer")
    view = torch.from_numpy(_views()[0])
    before = head(view).detach()
    order = np.array([2, 0, 1])
    head.reorder(order)
    torch.testing.assert_close(head(view).detach(), before[:, order])


# --- Losses ---


def _guide(seed: int) -> tuple[list[Array], list[Array], list[Array]]:
    z = [_normal(TEXTS, 4, seed=10 * seed + i) for i in (0, 1)]
    h = [_normal(TEXTS, 4, seed=10 * seed + i) for i in (2, 3)]
    s = [np.random.default_rng(10 * seed + i).dirichlet(np.ones(TEXTS), size=TEXTS) for i in (4, 5)]
    return z, h, s


@SEEDS
@WEIGHTED
@pytest.mark.parametrize("temperature", [1.0, 0.5, 0.1])
def test_the_similarity_guided_loss(seed: int, weights: Array, temperature: float) -> None:
    z, h, s = _guide(seed)
    labels = np.random.default_rng(seed).integers(0, 3, TEXTS)
    z0, z1, h0, h1, s0, s1, names, w = _tensors(*z, *h, *s, labels, weights)
    for guide in (((h0, s0), (h1, s1)), None):
        found = aecl_losses.similarity_guided(z0, z1, names, temperature, w, guide)
        expected = oracle.similarity_guided_loss(
            (z[0], z[1]),
            (h[0], h[1]),
            (s[0], s[1]),
            labels.tolist(),
            temperature,
            weights,
            use_consistency=guide is not None,
        )
        assert found.item() == pytest.approx(expected, rel=1e-10)


@SEEDS
@WEIGHTED
@pytest.mark.parametrize("share", [0.0, 0.6, 1.0])
def test_the_confidence_contrast(seed: int, weights: Array, share: float) -> None:
    z, _, _ = _guide(seed)
    generator = np.random.default_rng(seed)
    labels, confident = generator.integers(0, 2, TEXTS), generator.random(TEXTS) < share
    z0, z1, names, c, w = _tensors(*z, labels, confident, weights)
    found = aecl_losses.confidence_contrast(z0, z1, names, c, 0.5, w).item()
    expected = oracle.class_aware_loss(z[0], z[1], labels.tolist(), confident.tolist(), 0.5, weights)
    assert found == pytest.approx(expected, rel=1e-10)
    if not confident.any():
        assert found == pytest.approx(oracle.plain_contrast(z[0], z[1], 0.5, weights), rel=1e-10)


@SEEDS
@WEIGHTED
@pytest.mark.parametrize("clusters", [2, 5])
@pytest.mark.parametrize("inside", [True, False])
def test_the_cluster_contrast(seed: int, weights: Array, clusters: int, inside: bool) -> None:
    p = [_probabilities(TEXTS, clusters, seed=10 * seed + i) for i in (0, 1)]
    p0, p1, w = _tensors(*p, weights)
    found = aecl_losses.cluster_contrast(p0, p1, 0.5, w, inside).item()
    expected = oracle.cluster_contrast(p[0], p[1], 0.5, weights, positive_in_denominator=inside)
    assert found == pytest.approx(expected, rel=1e-10)


@SEEDS
@WEIGHTED
@pytest.mark.parametrize("share", [0.0, 0.5, 1.0])
def test_the_pseudo_label_loss(seed: int, weights: Array, share: float) -> None:
    generator = np.random.default_rng(seed)
    logits, labels = 2 * generator.normal(size=(TEXTS, 4)), generator.integers(0, 4, TEXTS)
    trusted = generator.random(TEXTS) < share
    p = [oracle.softmax(list(row)) for row in logits]
    x, names, t, w = _tensors(logits, labels, trusted, weights)
    found = aecl_losses.pseudo_label_loss(x, names, t, w).item()
    assert found == pytest.approx(oracle.pseudo_label_loss(p, labels.tolist(), trusted.tolist(), weights), rel=1e-10)


@SEEDS
@WEIGHTED
@pytest.mark.parametrize("clusters", [2, 5])
def test_the_two_entropies(seed: int, weights: Array, clusters: int) -> None:
    p = [_probabilities(TEXTS, clusters, seed=10 * seed + i) for i in (0, 1)]
    p0, p1, w = _tensors(*p, weights)
    entropy, balance = aecl_losses.mean_entropy(p0, w).item(), aecl_losses.balance_penalty(p0, p1, w).item()
    assert entropy == pytest.approx(oracle.mean_entropy(p[0], weights), rel=1e-10)
    assert balance == pytest.approx(oracle.balance_penalty(p[0], p[1], weights), rel=1e-10, abs=1e-14)
    assert balance > 0


def test_the_ends_of_the_entropies() -> None:
    sure, even, ones = torch.eye(4).double(), torch.full((4, 4), 0.25).double(), torch.ones(4)
    one = sure[[0, 0, 0, 0]]
    assert aecl_losses.mean_entropy(sure, ones).item() == 0
    assert aecl_losses.mean_entropy(even, ones).item() == pytest.approx(math.log(4))
    assert aecl_losses.balance_penalty(sure, even, ones).item() == pytest.approx(0, abs=1e-12)
    assert aecl_losses.balance_penalty(one, one, ones).item() == pytest.approx(math.log(4))
    assert aecl_losses.balance_penalty(one, even, ones).item() == pytest.approx(math.log(4) / 2)  # of both views


@pytest.mark.parametrize("term", ["entropy", "balance"])
def test_an_assignment_that_is_sure_beyond_rounding_has_a_gradient(term: str) -> None:
    """A softmax in float32 comes to exactly 0 once two logits are some hundred apart."""
    logits = torch.tensor([[150.0, 0.0, 0.0], [150.0, 0.0, 0.5]], requires_grad=True)
    p, ones = logits.softmax(dim=1), torch.ones(2)
    assert (p == 0).any()
    loss = aecl_losses.mean_entropy(p, ones) if term == "entropy" else aecl_losses.balance_penalty(p, p, ones)
    (gradient,) = torch.autograd.grad(loss, logits)
    assert torch.isfinite(gradient).all()


@pytest.mark.parametrize("temperature", [0.5, 0.1, 0.05])
def test_float32_is_near_float64(temperature: float) -> None:
    """What a text has with itself is far larger than what it has with others, and must not drown it."""
    z, h, s = _guide(3)
    labels, ones = torch.tensor([0, 1, 0, 1, 0, 1]), torch.ones(TEXTS)
    found = []
    for dtype in (torch.float32, torch.float64):
        z0, z1, h0, h1, s0, s1 = (tensor.to(dtype) for tensor in _tensors(*z, *h, *s))
        guide = ((h0, s0), (h1, s1))
        found.append(
            [
                aecl_losses.similarity_guided(z0, z1, labels, temperature, ones, guide).item(),
                aecl_losses.similarity_guided(z0, z1, labels, temperature, ones, None).item(),
                aecl_losses.confidence_contrast(z0, z1, labels, labels == 0, temperature, ones).item(),
                aecl_losses.cluster_contrast(s0, s1, temperature, ones, False).item(),
            ]
        )
    assert found[0] == pytest.approx(found[1], rel=1e-4)


# --- The objective: terms and total ---


FORMS = pytest.mark.parametrize(
    ("attention", "contrast", "inside"),
    [
        *(("layer", contrast, True) for contrast in CONTRASTS),
        *(("bare", contrast, False) for contrast in CONTRASTS),
        ("layer", "similarity", False),
    ],
)


@FORMS
@WEIGHTED
def test_terms_and_total_of_every_stage(attention: str, contrast: str, inside: bool, weights: Array) -> None:
    chosen = {"contrast": contrast, "positive_in_denominator": inside}
    views = _views()
    for objective in _objectives(attention, **chosen):
        expected = Expected(objective, views, weights, **chosen)
        # Some texts are sure and some not, of several labels that differ from those of k-means.
        assert 0 < sum(expected.confident) < TEXTS and len(set(expected.pseudo_labels)) > 1
        assert expected.pseudo_labels != KMEANS[ROWS].tolist()
        found = {name: value.item() for name, value in _loss(objective, _tensors(*views), weights).named.items()}
        terms = expected.terms()
        for name, value in terms.items():
            assert found.pop(name) == pytest.approx(value, rel=1e-9), name
            assert abs(value) > 1e-3, name
        assert found.pop("loss") == pytest.approx(expected.total(terms), rel=1e-9)
        if objective.stage == 3:
            confident = np.average(expected.confident, weights=weights)
            assert found.pop("confident") == pytest.approx(confident, rel=1e-6)
        assert found == {}


@pytest.mark.parametrize("stage", [1, 2, 3])
@pytest.mark.parametrize("factor", [0.0, -1.0], ids=["dropped", "flipped"])
def test_each_term_is_in_the_total_with_its_sign(stage: int, factor: float) -> None:
    """The total with one term left out or of the other sign is another total, by far."""
    objective = _objectives()[stage - 1]
    expected = Expected(objective, _views(), COUNTS)
    total = _loss(objective, _tensors(*_views()), COUNTS).total.item()
    terms = expected.terms()
    assert set(terms) == {1: {"instance"}, 2: {"instance", "pseudo"}}.get(
        stage, {"instance", "pseudo", "cluster", "entropy", "balance"}
    )
    assert total == pytest.approx(expected.total(terms), rel=1e-9)
    for name in terms:
        changed = expected.total({**terms, name: factor * terms[name]})
        assert abs(total - changed) > 0.05, name


def test_the_defaults() -> None:
    """Eq. 15's weights where the paper has one value for all data, the temperatures of the public code."""
    method = AECL(CLUSTERS)
    assert (method.lambda1, method.lambda2, method.lambda3) == (10.0, 5.0, 0.01)
    assert (method.tau_instance, method.tau_cluster, method.threshold) == (0.5, 1.0, 0.95)
    assert method.contrast == "similarity" and method.attention == "layer" and method.positive_in_denominator


@CONTRAST
def test_a_batch_of_one_text_has_nothing_to_contrast(contrast: str) -> None:
    for objective in _objectives(contrast=contrast):
        views = [tensor[:1].requires_grad_() for tensor in _tensors(*_views())]
        terms = objective.loss(Batch(tuple(views), torch.tensor([9]), torch.ones(1).double()))
        assert terms.named["instance"].item() == pytest.approx(0, abs=1e-12)
        assert all(torch.isfinite(value) for value in terms.named.values())
        gradients = torch.autograd.grad(terms.total, [*views, *objective.head.parameters()], allow_unused=True)
        assert all(gradient is None or torch.isfinite(gradient).all() for gradient in gradients)


@pytest.mark.parametrize(
    ("name", "value", "stages"),
    [
        ("tau_instance", 0.2, {1, 2, 3}),
        ("lambda1", 1.0, {2, 3}),
        ("lambda2", 0.2, {2, 3}),
        ("lambda3", 0.0, {3}),
        ("lambda4", 0.0, {3}),
        ("tau_cluster", 1.5, {3}),
        ("threshold", 0.99, {3}),
        ("positive_in_denominator", False, {3}),
    ],
)
def test_a_setting_matters_in_its_stages_alone(name: str, value: Any, stages: set[int]) -> None:
    for before, after in zip(_objectives(), _objectives(**{name: value}), strict=True):
        totals = [_loss(each, _tensors(*_views()), COUNTS).total.item() for each in (before, after)]
        assert (abs(totals[0] - totals[1]) > 1e-3) == (before.stage in stages)
        if before.stage not in stages:
            assert totals[0] == totals[1]


def test_a_text_at_the_threshold_is_confident() -> None:
    p = _objectives()[2].head(torch.from_numpy(_views()[0]))
    highest = p.amax(dim=1).detach()
    at = highest.sort().values[3].item()
    for threshold, share in ((at, 3 / 6), (np.nextafter(at, 1), 2 / 6)):
        objective = _objectives(threshold=threshold)[2]
        terms = _loss(objective, _tensors(*_views()), np.ones(TEXTS))
        assert terms.named["confident"].item() == pytest.approx(share)


# --- Gradients ---


def _parts(objective: AECLObjective) -> dict[str, list[nn.Parameter]]:
    return {name: list(part.parameters()) for name, part in objective.head.named_children()}


@torch.no_grad()
def _move(leaves: list[Tensor], directions: list[Tensor], length: float) -> None:
    for leaf, direction in zip(leaves, directions, strict=True):
        leaf.add_(direction, alpha=length)


@ATTENTION
@pytest.mark.parametrize("stage", [1, 2, 3])
@pytest.mark.parametrize("contrast", ["similarity", "confidence"])
def test_the_gradient_is_that_of_the_oracle(attention: str, stage: int, contrast: str) -> None:
    """Along a random direction in each view and each part of the head."""
    objective = _objectives(attention, contrast=contrast)[stage - 1]
    views = [tensor.requires_grad_() for tensor in _tensors(*_views())]
    parts: dict[str, list[Tensor]] = {"v0": [views[0]], "v1": [views[1]], **_parts(objective)}  # type: ignore[dict-item]
    total = _loss(objective, views, COUNTS).total
    generator = torch.Generator().manual_seed(5)

    def value() -> float:
        expected = Expected(objective, [view.detach().numpy() for view in views], COUNTS, contrast=contrast)
        return expected.total(expected.terms())

    found = {
        name: torch.autograd.grad(total, leaves, retain_graph=True, allow_unused=True) for name, leaves in parts.items()
    }
    for name, leaves in parts.items():
        gradients = found[name]
        directions = [torch.randn(leaf.shape, generator=generator, dtype=torch.float64) for leaf in leaves]
        slope = sum(float((g * d).sum()) for g, d in zip(gradients, directions, strict=True) if g is not None)
        step = 1e-6
        ends = []
        for place in (step, -step):
            _move(leaves, directions, place)
            ends.append(value())
            _move(leaves, directions, -place)
        assert slope == pytest.approx((ends[0] - ends[1]) / (2 * step), rel=1e-4, abs=1e-6), name


EVERYWHERE = {"v0", "v1", "projector", "attention", "classifier"}
REACH: dict[str, set[str]] = {
    "instance": EVERYWHERE - {"classifier"},
    "pseudo": EVERYWHERE - {"v0"},  # the label comes from view 0, and is no way back
    "cluster": EVERYWHERE,
    "entropy": EVERYWHERE - {"v1"},
    "balance": EVERYWHERE,
    "loss": EVERYWHERE,
}


@ATTENTION
@CONTRAST
def test_each_term_reaches_what_it_should_and_nothing_else(attention: str, contrast: str) -> None:
    for objective in _objectives(attention, contrast=contrast):
        views = [tensor.requires_grad_() for tensor in _tensors(*_views())]
        terms = _loss(objective, views, COUNTS).named
        assert set(terms) - {"confident"} <= set(REACH)
        leaves: dict[str, list[Tensor]] = {"v0": [views[0]], "v1": [views[1]], **_parts(objective)}  # type: ignore[dict-item]
        for name, term in terms.items():
            if name == "confident":
                assert not term.requires_grad
                continue
            expected = REACH["instance" if objective.stage == 1 else name]
            if contrast != "similarity" and (name == "instance" or objective.stage == 1):
                expected = expected - {"attention"}  # only Eq. 7 looks at H and S
            for part, tensors in leaves.items():
                gradients = torch.autograd.grad(term, tensors, retain_graph=True, allow_unused=True)
                reached = [gradient is not None and bool(gradient.abs().max() > 1e-9) for gradient in gradients]
                if part in expected:
                    # A key's bias is the same for all keys and falls out of the softmax.
                    assert sum(reached) >= len(reached) - (part == "attention"), (name, part, reached)
                else:
                    assert not any(reached), (name, part)


def test_the_pseudo_labels_are_read_without_dropout_and_the_loss_has_it() -> None:
    objective = _objectives()[2]
    calm = _loss(objective, _tensors(*_views()), COUNTS).named
    objective.train()
    with torch.random.fork_rng():
        torch.manual_seed(0)
        rough = [_loss(objective, _tensors(*_views()), COUNTS).named for _ in range(2)]
    assert all(each["confident"] == calm["confident"] for each in rough)
    assert objective.head.training
    for name in ("instance", "pseudo", "cluster", "entropy", "balance"):
        assert rough[0][name] != rough[1][name], name


# --- Labels from stage to stage ---


def test_the_stages_share_their_head_and_labels() -> None:
    first, second, third = _objectives()
    assert first.head is second.head is third.head
    assert first.pseudo_labels is second.pseudo_labels
    assert [each.stage for each in (first, second, third)] == [1, 2, 3]


def test_labels_are_clustered_anew_in_stage_1_alone() -> None:
    objectives = _objectives()
    asked: list[Tensor] = []

    def kmeans_labels(embeddings: Tensor) -> Tensor:
        asked.append(embeddings)
        return torch.arange(10) // 4

    def corpus() -> Tensor:
        return torch.ones(10, DIMENSION)

    before = [_loss(each, _tensors(*_views()), COUNTS).total.item() for each in objectives]
    for objective in objectives:
        objective._kmeans_labels = kmeans_labels
    for objective in objectives[1:]:
        objective.refresh(corpus)
    assert asked == []
    assert [_loss(each, _tensors(*_views()), COUNTS).total.item() for each in objectives] == before
    objectives[0].refresh(corpus)
    assert len(asked) == 1 and torch.equal(asked[0], corpus())
    after = [_loss(each, _tensors(*_views()), COUNTS).total.item() for each in objectives]
    # Stage 2 goes on with what stage 1 came to; stage 3 has the head's own.
    assert [a != b for a, b in zip(after, before, strict=True)] == [True, True, False]


def test_the_head_answers_once_it_has_learned() -> None:
    embeddings = torch.from_numpy(_normal(9, DIMENSION, seed=0))
    objectives = _objectives()
    _loss(objectives[0], _tensors(*_views()), COUNTS)  # stage 1 teaches the classifier nothing
    assert all(objective.head_probabilities(embeddings) is None for objective in objectives)
    _loss(objectives[1], _tensors(*_views()), COUNTS)
    for objective in objectives[1:]:
        answer = objective.head_probabilities(embeddings)
        assert answer is not None
        torch.testing.assert_close(answer, objective.head.in_batches(embeddings, 32))


@pytest.mark.parametrize(
    ("augmentation", "views"), [("virtual", (ORIGINAL, ORIGINAL)), ("eda", (ORIGINAL, AUGMENTED[0]))]
)
def test_the_views_asked_for(augmentation: str, views: tuple[str, str]) -> None:
    settings = SimpleNamespace(_virtual=AECL(2, augmentation=augmentation)._virtual)
    unused: Callable[[Tensor], Tensor] = torch.zeros_like
    objective = AECLObjective(_head("bare"), settings, 1, unused, nn.Module())  # type: ignore[arg-type]
    assert objective.views == views
