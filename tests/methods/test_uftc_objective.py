"""UFTC's objective against the naive float64 oracle: both losses, the targets, the total, and what they reach."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from reference import uftc_oracle as oracle
from torch import Tensor, nn

from coterie.encoders.device_tokens import DeviceTokens
from coterie.encoders.sentence_transformer_files import SentenceSettings
from coterie.encoders.transformer import TransformerEncoder
from coterie.language.masked_head import MaskedHead
from coterie.language.masked_training import MaskedWords
from coterie.methods.uftc import UFTC, UFTCObjective
from coterie.training.objective import ORIGINAL, Batch, LossTerms, TokenView

Array = np.ndarray
CORPUS, TEXTS, WIDTH, DIMENSION, CLUSTERS, VOCABULARY = 10, 6, 5, 4, 3, 9
ROWS = np.array([9, 2, 5, 0, 7, 3])
COUNTS = np.array([2, 1, 1, 4, 1, 3, 1, 2, 1, 5])
ALPHA, RADIUS, MASK = 2.5, 1.7, 8
CENTERS = np.random.default_rng(0).normal(size=(CLUSTERS, DIMENSION))
WEIGHTED = pytest.mark.parametrize("counts", [np.ones(CORPUS, dtype=np.int64), COUNTS], ids=["plain", "weighted"])
SEEDS = pytest.mark.parametrize("seed", range(3))


def _normal(*shape: int, seed: int) -> Array:
    return np.random.default_rng(seed).normal(size=shape)


class ToyHead(nn.Module):
    """A masked-language head as small as it gets, in the place of a real one."""

    def __init__(self) -> None:
        super().__init__()
        self.dense = nn.Linear(DIMENSION, VOCABULARY)
        with torch.no_grad():
            self.dense.weight.copy_(torch.from_numpy(_normal(VOCABULARY, DIMENSION, seed=3)))
            self.dense.bias.copy_(torch.from_numpy(_normal(VOCABULARY, seed=4)))

    def forward(self, states: Tensor) -> Tensor:
        return self.dense(states)

    def logits(self, states: Array) -> Array:
        return states @ self.dense.weight.detach().numpy().T + self.dense.bias.detach().numpy()


def _masked() -> MaskedWords:
    tokenizer = _Tokenizer()
    return MaskedWords(SimpleNamespace(tokenizer=tokenizer), ToyHead().double(), 0.3)  # type: ignore[arg-type]


class _Tokenizer:
    mask_token_id = MASK
    all_special_ids = (0, 1, MASK)

    def __len__(self) -> int:
        return VOCABULARY


def _objective(counts: Array, masked: bool = True) -> UFTCObjective:
    given = _masked() if masked else None
    centers = torch.from_numpy(CENTERS)
    return UFTCObjective(centers, torch.from_numpy(counts), ALPHA, RADIUS, given).double()


class Case:
    """A corpus and a batch of it, with targets as the objective must have made them."""

    def __init__(self, counts: Array, seed: int = 0, masked: bool = True) -> None:
        self.counts, self.weights = counts, counts[ROWS].astype(np.float64)
        self.objective = _objective(counts, masked)
        self.corpus = _normal(CORPUS, DIMENSION, seed=seed)  # unmasked, before the epoch
        self.objective.refresh(lambda: torch.from_numpy(self.corpus))
        q = oracle.student_t(RADIUS * self.corpus, RADIUS * CENTERS, ALPHA)
        self.targets = oracle.target_distribution(q, counts)
        self.sentences = _normal(TEXTS, DIMENSION, seed=seed + 10)  # masked, in training mode
        self.states = _normal(TEXTS, WIDTH, DIMENSION, seed=seed + 20)
        generator = np.random.default_rng(seed)
        self.original = generator.integers(2, MASK, size=(TEXTS, WIDTH))
        self.is_masked = generator.random((TEXTS, WIDTH)) < 0.4

    def loss(self, sentences: Tensor | None = None, states: Tensor | None = None) -> LossTerms:
        ids = torch.from_numpy(np.where(self.is_masked, MASK, self.original))
        real = torch.ones_like(ids)
        states = torch.from_numpy(self.states) if states is None else states
        sentences = torch.from_numpy(self.sentences) if sentences is None else sentences
        view = TokenView(states, ids, real, torch.from_numpy(self.original))
        return self.objective.loss(
            Batch((sentences,), torch.from_numpy(ROWS), torch.from_numpy(self.weights), token_views=(view,))
        )

    def language(self) -> float:
        assert self.objective.masked is not None
        head = self.objective.masked.head
        assert isinstance(head, ToyHead)
        return oracle.masked_language_loss(head.logits(self.states), self.original, self.is_masked, self.weights)

    def cluster(self) -> float:
        centers = self.objective.centers.detach().numpy()
        q = oracle.student_t(RADIUS * self.sentences, centers, ALPHA)  # Eq. 3
        return oracle.cluster_loss(self.targets[ROWS], q, self.weights)  # Eq. 2


# --- Terms and total ---


@SEEDS
@WEIGHTED
def test_terms_and_total(counts: Array, seed: int) -> None:
    case = Case(counts, seed)
    found = {name: value.item() for name, value in case.loss().named.items()}
    language, cluster = case.language(), case.cluster()
    assert set(found) == {"loss", "language", "cluster"}
    assert found["language"] == pytest.approx(language, rel=1e-10)
    assert found["cluster"] == pytest.approx(cluster, rel=1e-10)
    assert found["loss"] == pytest.approx(oracle.uftc_total(language, cluster), rel=1e-10)


@SEEDS
@WEIGHTED
def test_without_the_masked_loss_clustering_is_all(counts: Array, seed: int) -> None:
    case = Case(counts, seed, masked=False)
    found = {name: value.item() for name, value in case.loss().named.items()}
    assert set(found) == {"loss", "cluster"}
    assert found["loss"] == found["cluster"] == pytest.approx(case.cluster(), rel=1e-10)
    ids = torch.arange(12).reshape(3, 4)
    assert case.objective.corrupt(ids, torch.ones_like(ids)) is ids


@pytest.mark.parametrize("factor", [0.0, -1.0], ids=["dropped", "flipped"])
@pytest.mark.parametrize("name", ["language", "cluster"])
def test_each_term_is_in_the_total_with_its_sign(name: str, factor: float) -> None:
    case = Case(COUNTS)
    terms = {"language": case.language(), "cluster": case.cluster()}
    total = case.loss().total.item()
    assert total == pytest.approx(oracle.uftc_total(*terms.values()), rel=1e-10)
    terms[name] *= factor
    assert abs(total - oracle.uftc_total(*terms.values())) > 0.05


@SEEDS
@WEIGHTED
def test_the_targets_are_of_the_whole_corpus_with_its_counts(counts: Array, seed: int) -> None:
    case = Case(counts, seed)
    np.testing.assert_allclose(case.objective.targets.numpy(), case.targets, rtol=1e-10)
    # Of the batch alone they would be others.
    q = oracle.student_t(RADIUS * case.corpus[ROWS], RADIUS * CENTERS, ALPHA)
    assert np.abs(oracle.target_distribution(q, counts[ROWS]) - case.targets[ROWS]).max() > 1e-3


def test_the_targets_stay_until_the_next_epoch() -> None:
    case = Case(COUNTS)
    before = case.objective.targets.clone()
    case.loss()
    with torch.no_grad():
        case.objective.centers.add_(1.0)
    case.loss()
    assert torch.equal(case.objective.targets, before)
    case.objective.refresh(lambda: torch.from_numpy(case.corpus))
    assert not torch.allclose(case.objective.targets, before)
    centers = case.objective.centers.detach().numpy()
    expected = oracle.target_distribution(oracle.student_t(RADIUS * case.corpus, centers, ALPHA), COUNTS)
    np.testing.assert_allclose(case.objective.targets.numpy(), expected, rtol=1e-10)


@SEEDS
def test_the_head_answers_with_eq_3_and_4(seed: int) -> None:
    case = Case(COUNTS, seed)
    answer = case.objective.head_probabilities(torch.from_numpy(case.corpus)).detach().numpy()
    q = oracle.student_t(RADIUS * case.corpus, RADIUS * CENTERS, ALPHA)
    np.testing.assert_allclose(answer, q, rtol=1e-10)
    assert answer.argmax(axis=1).tolist() == oracle.labels(q)


# --- Gradients ---


def _directional(case: Case, leaves: dict[str, Tensor]) -> None:
    """The gradient of the total along random directions is that of the oracle, its targets held."""
    total = case.loss(leaves["sentences"], leaves["states"]).total
    found = torch.autograd.grad(total, list(leaves.values()))
    arrays = {"sentences": case.sentences, "states": case.states}
    for (name, leaf), gradient in zip(leaves.items(), found, strict=True):
        direction = torch.from_numpy(_normal(*leaf.shape, seed=7))
        ends = []
        for place in (1e-6, -1e-6):
            target = torch.from_numpy(arrays[name]) if name in arrays else leaf.detach()
            target.add_(direction, alpha=place)
            ends.append(oracle.uftc_total(case.language(), case.cluster()))
            target.sub_(direction, alpha=place)
        slope = float((gradient * direction).sum())
        assert slope == pytest.approx((ends[0] - ends[1]) / 2e-6, rel=1e-5, abs=1e-7), name
        assert abs(slope) > 1e-4


@SEEDS
@WEIGHTED
def test_the_gradient_is_that_of_the_oracle_with_p_fixed(counts: Array, seed: int) -> None:
    case = Case(counts, seed)
    assert case.objective.masked is not None
    leaves = {
        "sentences": torch.from_numpy(case.sentences.copy()).requires_grad_(),
        "states": torch.from_numpy(case.states.copy()).requires_grad_(),
        "centers": case.objective.centers,
        "head": case.objective.masked.head.dense.weight,
    }
    _directional(case, leaves)  # type: ignore[arg-type]


def test_each_term_reaches_what_it_should_and_nothing_else() -> None:
    case = Case(COUNTS)
    sentences = torch.from_numpy(case.sentences).requires_grad_()
    states = torch.from_numpy(case.states).requires_grad_()
    assert case.objective.masked is not None
    leaves = {"sentences": sentences, "states": states, **dict(case.objective.named_parameters())}
    assert set(leaves) == {"sentences", "states", "centers", "masked.head.dense.weight", "masked.head.dense.bias"}
    assert not case.objective.targets.requires_grad
    reach = {
        "language": {"states", "masked.head.dense.weight", "masked.head.dense.bias"},
        "cluster": {"sentences", "centers"},
        "loss": set(leaves),
    }
    for name, term in case.loss(sentences, states).named.items():
        gradients = torch.autograd.grad(term, list(leaves.values()), retain_graph=True, allow_unused=True)
        reached = {each for each, g in zip(leaves, gradients, strict=True) if g is not None and g.abs().max() > 1e-9}
        assert reached == reach[name]


def test_a_real_encoder_and_head_are_reached_whole(tiny_encoder: Path) -> None:
    encoder = TransformerEncoder.load(tiny_encoder)
    head, _ = MaskedHead.for_encoder(encoder, torch.Generator().manual_seed(0))
    texts = ["parcel late courier", "password login reset my", "refund money"]
    tokens = encoder.tokenize(texts)
    centers = encoder.encode_tokens(tokens)[:2]
    objective = UFTCObjective(centers, torch.ones(3), ALPHA, RADIUS, MaskedWords(encoder, head, 0.5))
    objective.refresh(lambda: encoder.encode_tokens(tokens))
    ids, mask = DeviceTokens(tokens, encoder.pad_id, encoder.device).batch(torch.arange(3), 6)
    read = ids.clone()
    read[:, 1] = 4
    output = encoder(read, mask)
    view = TokenView(output.token_states, read, mask, ids)
    terms = objective.loss(Batch((output.sentences,), torch.arange(3), torch.ones(3), token_views=(view,)))
    named = dict([*encoder.named_parameters(prefix="encoder"), *objective.named_parameters(prefix="objective")])
    named = {name: parameter for name, parameter in named.items() if ".pooler." not in name}
    for name, gradient in zip(named, torch.autograd.grad(terms.total, list(named.values())), strict=True):
        assert torch.isfinite(gradient).all(), name
        if not name.endswith("attention.self.key.bias"):  # the same for all keys: zero by nature
            assert gradient.abs().max() > 1e-9, name
    # The head's last layer is the word embeddings: they learn from the words guessed, not only from those read.
    words = encoder.model.get_input_embeddings().weight  # type: ignore[operator]
    output = encoder(read, mask)
    view = TokenView(output.token_states.detach(), read, mask, ids)
    loss = objective.loss(Batch((output.sentences.detach(),), torch.arange(3), torch.ones(3), token_views=(view,)))
    (gradient,) = torch.autograd.grad(loss.named["language"], words)
    assert (gradient.abs().amax(dim=1) > 0).all()


# --- As the estimator builds it ---


def _start(encoder: Any) -> Any:
    return SimpleNamespace(
        encoder=encoder,
        generator=torch.Generator().manual_seed(0),
        counts=COUNTS,
        centers=torch.from_numpy(CENTERS).float(),
    )


@pytest.mark.parametrize(("normalize", "scale"), [(True, RADIUS), (False, 1.0)])
def test_the_estimators_objective(tiny_encoder: Path, normalize: bool, scale: float) -> None:
    method = UFTC(CLUSTERS, alpha=ALPHA, radius=RADIUS, masked_loss=False)
    method.encoder_ = SimpleNamespace(settings=SentenceSettings(normalize=normalize))  # type: ignore[assignment]
    (stage,) = method._stages(_start(None))
    objective = stage.objective
    assert isinstance(objective, UFTCObjective)
    np.testing.assert_allclose(objective.centers.detach().numpy(), scale * CENTERS, rtol=1e-6)
    assert objective.counts.tolist() == COUNTS.tolist()
    assert objective.views == (ORIGINAL,) and objective.needs_token_states and objective.trains_encoder
    assert stage.by_head and stage.stops
    corpus = torch.from_numpy(_normal(CORPUS, DIMENSION, seed=5)).float()
    expected = oracle.student_t(scale * corpus.numpy(), scale * CENTERS, ALPHA)
    np.testing.assert_allclose(objective.head_probabilities(corpus).detach().numpy(), expected, rtol=1e-5)


@pytest.mark.parametrize(("max_epochs", "head_epochs", "epochs"), [(11, 1, [1, 10]), (6, 2, [2, 4]), (11, 0, [11])])
def test_the_epochs_of_the_head_are_part_of_the_run(
    tiny_encoder: Path, max_epochs: int, head_epochs: int, epochs: list[int]
) -> None:
    method = UFTC(CLUSTERS, head_epochs=head_epochs)
    method.set_params(training__max_epochs=max_epochs)
    method.notes_ = ()
    method.encoder_ = TransformerEncoder.load(tiny_encoder)
    stages = method._stages(_start(method.encoder_))
    assert [stage.epochs for stage in stages] == epochs
    assert [stage.name for stage in stages] == ["masked_head", "joint"][-len(stages) :]
    if head_epochs:
        first, second = stages
        assert not first.stops and not first.objective.trains_encoder
        assert first.objective.masked is second.objective.masked  # what the first learns the second goes on with
