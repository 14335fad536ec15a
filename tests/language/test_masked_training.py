"""Masking words, the loss of guessing them, and training a head with the encoder as it is."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from conftest import topic_texts
from reference import uftc_oracle as oracle
from torch import Tensor

from coterie.encoders.device_tokens import DeviceTokens
from coterie.encoders.transformer import TransformerEncoder
from coterie.errors import SettingError
from coterie.language import masked_training
from coterie.language.masked_head import MaskedHead
from coterie.language.masked_training import HeadTraining, MaskedWords, train_masked_head
from coterie.training.objective import ORIGINAL, Batch, TokenView
from coterie.training.trainer import Trainer

TEXTS = topic_texts(40)[0]
MASK, SPECIAL = 4, [0, 1, 2, 3, 4]


@pytest.fixture
def encoder(tiny_encoder: Path) -> TransformerEncoder:
    return TransformerEncoder.load(tiny_encoder)


def _head(encoder: TransformerEncoder) -> MaskedHead:
    return MaskedHead.for_encoder(encoder, torch.Generator().manual_seed(0))[0]


def _ids(encoder: TransformerEncoder, texts: list[str], width: int = 12) -> tuple[Tensor, Tensor]:
    tokens = encoder.tokenize(texts)
    return DeviceTokens(tokens, encoder.pad_id, encoder.device).batch(torch.arange(len(tokens)), width)


def _mask(masked: MaskedWords, ids: Tensor, seed: int = 0) -> Tensor:
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        return masked.mask(ids)


# --- Masking ---


@pytest.mark.parametrize("ratio", [0.05, 0.15, 0.5])
def test_a_share_of_the_ordinary_tokens_becomes_the_mask_token(encoder: TransformerEncoder, ratio: float) -> None:
    ids, _ = _ids(encoder, TEXTS * 50)
    before = ids.clone()
    read = _mask(MaskedWords(encoder, _head(encoder), ratio), ids)
    assert torch.equal(ids, before)  # the caller's own stay
    changed = read != ids
    assert (read[changed] == MASK).all()
    ordinary = ~torch.isin(ids, torch.tensor(SPECIAL))
    assert not changed[~ordinary].any()
    n = int(ordinary.sum())
    assert abs(changed.sum().item() / n - ratio) < 4 * (ratio * (1 - ratio) / n) ** 0.5


def test_special_tokens_are_never_masked(encoder: TransformerEncoder) -> None:
    texts = ["parcel late", "[MASK] parcel", "日本 refund", "x"]
    ids, mask = _ids(encoder, texts)
    assert set(SPECIAL) <= set(ids.flatten().tolist())  # padding, unknown, both ends, and the mask token itself
    read = _mask(MaskedWords(encoder, _head(encoder), 0.999), ids)
    special = torch.isin(ids, torch.tensor(SPECIAL))
    assert torch.equal(read[special], ids[special])
    assert (read[~special] == MASK).all()
    assert not (read[mask == 0] == MASK).any()


def test_every_pass_masks_other_tokens(encoder: TransformerEncoder) -> None:
    ids, _ = _ids(encoder, TEXTS)
    masked = MaskedWords(encoder, _head(encoder), 0.3)
    assert not torch.equal(_mask(masked, ids, 0), _mask(masked, ids, 1))
    assert torch.equal(_mask(masked, ids, 0), _mask(masked, ids, 0))


def test_no_mask_token_is_an_error_that_names_the_encoder(encoder: TransformerEncoder) -> None:
    head = _head(encoder)
    encoder.tokenizer.mask_token = None
    with pytest.raises(SettingError, match=r"tiny has no mask token"):
        MaskedWords(encoder, head, 0.1)


# --- The loss ---


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("weighted", [False, True], ids=["plain", "weighted"])
def test_the_loss_is_the_oracles(encoder: TransformerEncoder, seed: int, weighted: bool) -> None:
    texts = TEXTS[seed : seed + 5]
    weights = np.array([1.0, 4.0, 2.0, 1.0, 3.0]) if weighted else np.ones(5)
    encoder.double()
    head = _head(encoder).double()
    masked = MaskedWords(encoder, head, 0.3)
    ids, mask = _ids(encoder, texts)
    read = _mask(masked, ids, seed)
    states = torch.from_numpy(np.random.default_rng(seed).normal(size=(5, 12, 32)))
    loss = masked.loss(TokenView(states, read, mask, ids), torch.from_numpy(weights))
    logits = head(states).detach().numpy()
    expected = oracle.masked_language_loss(logits, ids.numpy(), (read != ids).numpy(), weights)
    assert loss.item() == pytest.approx(expected, rel=1e-10)
    plain = oracle.masked_language_loss(logits, ids.numpy(), (read != ids).numpy())
    assert (abs(expected - plain) > 1e-5) == weighted


def test_only_masked_places_count(encoder: TransformerEncoder) -> None:
    masked = MaskedWords(encoder, _head(encoder), 0.3)
    ids, mask = _ids(encoder, TEXTS[:5])
    read = _mask(masked, ids)
    states = torch.randn(5, 12, 32, generator=torch.Generator().manual_seed(0)).requires_grad_()
    (gradient,) = torch.autograd.grad(masked.loss(TokenView(states, read, mask, ids), torch.ones(5)), states)
    assert torch.equal(gradient.abs().amax(dim=2) > 0, read != ids)


@pytest.mark.parametrize("trained", [True, False], ids=["trained encoder", "frozen encoder"])
def test_a_batch_without_a_masked_token_has_nothing_to_learn(encoder: TransformerEncoder, trained: bool) -> None:
    head = _head(encoder)
    ids, mask = _ids(encoder, TEXTS[:3])
    states = torch.randn(3, 12, 32, requires_grad=trained)
    loss = MaskedWords(encoder, head, 0.1).loss(TokenView(states, ids, mask, ids), torch.ones(3))
    assert loss.item() == 0
    loss.backward()  # the trainer goes backward through every batch
    assert all(each.grad is None or not each.grad.any() for each in [states, *head.parameters()])


# --- Training a head ---


def _untouched(encoder: TransformerEncoder) -> list[Tensor]:
    return [each.detach().clone() for each in [*encoder.parameters(), *encoder.buffers()]]


def test_the_head_learns_and_the_encoder_stays_as_it_is(encoder: TransformerEncoder) -> None:
    head = _head(encoder)
    before, head_before = _untouched(encoder), [each.detach().clone() for each in head.parameters()]
    masked = MaskedWords(encoder, head, 0.3)
    ids, mask = _ids(encoder, TEXTS)
    read = _mask(masked, ids, 5)

    def loss() -> float:
        with torch.no_grad():
            states = encoder(read, mask).token_states
            return masked.loss(TokenView(states, read, mask, ids), torch.ones(len(TEXTS))).item()

    start = loss()
    train_masked_head(encoder, head, TEXTS, mask_ratio=0.3, epochs=60)
    assert loss() < start - 0.15
    # Word embeddings included: the head's last layer is theirs, and the optimiser must leave it alone.
    assert all(torch.equal(a, b) for a, b in zip(before, _untouched(encoder), strict=True))
    assert all(not torch.equal(a, b) for a, b in zip(head_before, head.parameters(), strict=True))
    assert not encoder.training
    assert all(each.requires_grad for name, each in encoder.named_parameters() if ".pooler." not in name)


def test_the_encoder_is_read_without_dropout_and_with_masks(
    encoder: TransformerEncoder, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[tuple[bool, bool, Tensor]] = []
    encoder.register_forward_hook(
        lambda module, given, result: seen.append((module.training, torch.is_grad_enabled(), given[0]))
    )
    rates: list[list[float]] = []
    real = Trainer._optimizer

    def spy(trainer: Trainer, objective: HeadTraining) -> torch.optim.Optimizer:
        optimizer = real(trainer, objective)
        rates.append([group["lr"] for group in optimizer.param_groups])
        known = {id(each) for group in optimizer.param_groups for each in group["params"]}
        assert known == {id(each) for each in objective.masked.head.parameters()}
        return optimizer

    monkeypatch.setattr(Trainer, "_optimizer", spy)
    train_masked_head(encoder, _head(encoder), TEXTS, mask_ratio=0.3, epochs=2)
    assert len(seen) == 4  # forty texts in batches of thirty-two at most
    assert not any(training or gradients for training, gradients, _ in seen)
    assert all((ids == MASK).any() for _, _, ids in seen)
    assert rates == [[masked_training.HEAD_LEARNING_RATE]]


def test_the_seed_decides_what_the_head_learns(tiny_encoder: Path) -> None:
    heads = []
    for seed in (0, 0, 1):
        encoder = TransformerEncoder.load(tiny_encoder)
        heads.append(_head(encoder))
        state = torch.get_rng_state()
        train_masked_head(encoder, heads[-1], TEXTS, mask_ratio=0.3, seed=seed)
        assert torch.equal(torch.get_rng_state(), state)
    assert torch.equal(heads[0].dense.weight, heads[1].dense.weight)
    assert not torch.equal(heads[0].dense.weight, heads[2].dense.weight)


def test_short_texts_that_are_seldom_masked_train_all_the_same(encoder: TransformerEncoder) -> None:
    head = _head(encoder)
    train_masked_head(encoder, head, ["parcel", "refund", "login"], mask_ratio=0.01, epochs=3)
    assert all(torch.isfinite(parameter).all() for parameter in head.parameters())


def test_the_objective_of_the_head(encoder: TransformerEncoder) -> None:
    masked = MaskedWords(encoder, _head(encoder), 0.3)
    objective = HeadTraining(masked, learning_rate=0.25)
    assert objective.views == (ORIGINAL,)
    assert objective.needs_token_states and not objective.trains_encoder
    assert objective.own_rates() == {"masked": 0.25}
    assert objective.head_probabilities(torch.zeros(2, 32)) is None
    ids, mask = _ids(encoder, TEXTS[:5])
    with torch.random.fork_rng():
        torch.manual_seed(0)
        read = objective.corrupt(ids, mask)
    assert torch.equal(read, _mask(masked, ids, 0))
    view = TokenView(torch.randn(5, 12, 32), read, mask, ids)
    batch = Batch((torch.zeros(5, 32),), torch.arange(5), torch.arange(1, 6).float(), token_views=(view,))
    terms = objective.loss(batch)
    assert set(terms.named) == {"loss", "language"}
    assert terms.total.item() == terms.named["language"].item() == masked.loss(view, batch.weights).item() > 0
