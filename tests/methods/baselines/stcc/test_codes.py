"""Learning binary codes: the loss against the oracle, and a network that gets them right."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from reference import stcc_oracle as oracle
from reference.sccl_oracle import numerical_gradient

from coterie.encoders.tokenization import TokenArrays, contiguous_tokens
from coterie.methods.baselines.stcc.convolution import DynamicConvolution, pad_texts
from coterie.methods.baselines.stcc.training import code_loss, learn_codes
from coterie.training.history import History

COUNTS = np.array([1, 3, 2, 1, 5])
N_TEXTS, N_WORDS = 60, 20


@pytest.mark.parametrize("weights", [np.ones(5), COUNTS.astype(np.float64)], ids=["plain", "weighted"])
@pytest.mark.parametrize("seed", [0, 1])
def test_the_loss_and_its_gradient(weights: np.ndarray, seed: int) -> None:
    generator = np.random.default_rng(seed)
    logits, codes = generator.normal(size=(5, 4)) * 3, generator.integers(0, 2, (5, 4)).astype(np.float64)
    tensor = torch.tensor(logits, requires_grad=True)
    loss = code_loss(tensor, torch.tensor(codes), torch.tensor(weights))
    assert loss.item() == pytest.approx(oracle.code_loss(logits, codes, weights), rel=1e-12)
    loss.backward()
    expected = numerical_gradient(lambda x: oracle.code_loss(x, codes, weights), logits)
    np.testing.assert_allclose(tensor.grad, expected, atol=1e-6)


def _problem() -> tuple[TokenArrays, np.ndarray]:
    """Texts of four words, and for each whether it holds one of the first words, and one of the last."""
    generator = np.random.default_rng(0)
    texts = generator.integers(0, N_WORDS, (N_TEXTS, 4))
    codes = np.stack([(texts < 4).any(axis=1), (texts >= N_WORDS - 4).any(axis=1)], axis=1).astype(np.float32)
    return contiguous_tokens(texts.ravel().astype(np.int32), np.full(N_TEXTS, 4), 0), codes


def _learned(counts: np.ndarray, epochs: int = 15, seed: int = 0) -> tuple[DynamicConvolution, History, np.ndarray]:
    tokens, codes = _problem()
    vectors = np.random.default_rng(1).normal(size=(N_WORDS, 8)).astype(np.float32)
    network = DynamicConvolution(vectors, 2, torch.Generator().manual_seed(0))
    history = learn_codes(
        network, tokens, codes, counts, epochs=epochs, batch_size=20, learning_rate=0.05, max_length=64, seed=seed
    )
    with torch.no_grad():
        guesses = network.logits(network(*pad_texts(tokens, np.arange(N_TEXTS), 4))).numpy() > 0
    return network, history, guesses == codes


def test_the_network_learns_the_codes() -> None:
    _, history, right = _learned(np.ones(N_TEXTS, dtype=np.int64))
    assert len(history.steps) == 15 * 3
    loss = history.term("loss")
    assert np.mean(loss[-3:]) < 0.5 * np.mean(loss[:3])
    assert right.mean() > 0.95


def test_a_text_counts_as_often_as_it_occurs() -> None:
    """Texts that occur very often are learned before all others."""
    counts = np.where(np.arange(N_TEXTS) % 3 == 0, 1000, 1)
    _, _, right = _learned(counts, epochs=6)
    assert right[counts > 1].mean() > right[counts == 1].mean() + 0.05


def test_the_seed_decides_and_nothing_else() -> None:
    state = torch.get_rng_state()
    counts = np.ones(N_TEXTS, dtype=np.int64)
    first, second, other = (_learned(counts, epochs=2, seed=seed)[0].state_dict() for seed in (0, 0, 1))
    assert torch.equal(torch.get_rng_state(), state)
    assert all(torch.equal(first[name], second[name]) for name in first)
    assert not torch.equal(first["bits"], other["bits"])
