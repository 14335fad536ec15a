"""The convolutional network over word vectors: against the oracle, and the same whatever stands beside a text."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from reference import stcc_oracle as oracle

from coterie.encoders.tokenization import TokenArrays, contiguous_tokens
from coterie.encoders.word_vector_file import WordVectorVocabulary
from coterie.methods.baselines.stcc.convolution import ConvolvedWords, DynamicConvolution, fold, k_max, pad_texts

LENGTHS = np.array([1, 2, 7, 12, 4, 0, 11])
N_WORDS, WIDTH = 15, 8


def _tokens(seed: int = 0) -> TokenArrays:
    ids = np.random.default_rng(seed).integers(0, N_WORDS, LENGTHS.sum()).astype(np.int32)
    return contiguous_tokens(ids, LENGTHS, 0)


def _network(width: int = WIDTH, seed: int = 0) -> DynamicConvolution:
    vectors = np.random.default_rng(seed).normal(size=(N_WORDS, width)).astype(np.float32)
    network = DynamicConvolution(vectors, 6, torch.Generator().manual_seed(seed))
    with torch.no_grad():  # so that tanh bends, and biases count
        for name, parameter in network.named_parameters():
            if name != "words":
                parameter.normal_(0, 0.4, generator=torch.Generator().manual_seed(seed + 1))
    return network


@pytest.mark.parametrize("seed", [0, 1])
def test_every_text_as_the_oracle_has_it(seed: int) -> None:
    network, tokens = _network(seed=seed).double(), _tokens(seed)
    found = network(*pad_texts(tokens, np.arange(7), 12)).detach().numpy()
    weights = {name: value.detach().numpy() for name, value in network.named_parameters()}
    assert found.shape == (7, network.dimension) == (7, WIDTH // 4 * 8 * 5)
    for i, n in enumerate(LENGTHS):
        words = weights["words"][tokens.ids[tokens.starts[i] : tokens.starts[i] + n]]
        expected = oracle.text_vector(words, weights) if n else np.zeros(network.dimension)
        np.testing.assert_allclose(found[i], expected, atol=1e-12, err_msg=f"{n} words")


def test_gradients_reach_every_parameter_and_no_padding() -> None:
    network, tokens = _network(), _tokens()
    network.logits(network(*pad_texts(tokens, np.arange(7), 20))).square().sum().backward()
    for name, parameter in network.named_parameters():
        assert parameter.grad is not None and parameter.grad.isfinite().all(), name
        assert parameter.grad.any(), name
    assert network.words.grad is not None
    assert not network.words.grad[-1].any()  # the row for "no word"
    assert network.words.grad[np.unique(tokens.ids)].any(dim=1).all()


def test_padding_and_company_leave_no_trace() -> None:
    network, tokens = _network(), _tokens()
    with torch.no_grad():
        together = network(*pad_texts(tokens, np.arange(7), 12))
        wider = network(*pad_texts(tokens, np.arange(7), 40))
        alone = torch.cat([network(*pad_texts(tokens, np.array([i]), max(1, n))) for i, n in enumerate(LENGTHS)])
    np.testing.assert_allclose(wider, together, atol=1e-6)
    np.testing.assert_allclose(alone, together, atol=1e-6)


def test_folding_adds_the_halves() -> None:
    maps = torch.arange(4 * 3 * 2.0).reshape(1, 12, 2)  # four dimensions of three maps
    np.testing.assert_array_equal(fold(maps, 4)[0], maps[0, :6] + maps[0, 6:])


def test_k_max_keeps_the_order_and_fills_with_zeros() -> None:
    maps = torch.tensor([[[5.0, -1.0, 7.0, 6.0, 9.0], [-5.0, -1.0, -2.0, 6.0, 9.0]]]).repeat(3, 1, 1)
    found = k_max(maps, torch.tensor([4, 5, 2]), torch.tensor([2, 3, 4]), 4)
    expected = [
        [[7, 6, 0, 0], [-1, 6, 0, 0]],
        [[7, 6, 9, 0], [-1, 6, 9, 0]],
        [[5, -1, 0, 0], [-5, -1, 0, 0]],  # two places belong to the text, though four might be kept
    ]
    np.testing.assert_array_equal(found, expected)
    assert k_max(maps, torch.tensor([5, 5, 5]), torch.tensor([5, 5, 5]), 8).shape == (3, 2, 8)


def test_padded_cuts_and_fills() -> None:
    tokens = contiguous_tokens(np.array([3, 1, 4, 1, 5, 9], dtype=np.int32), np.array([2, 0, 4]), 0)
    ids, lengths = pad_texts(tokens, np.array([2, 0, 1]), 3)
    np.testing.assert_array_equal(lengths, [3, 2, 0])
    np.testing.assert_array_equal(ids, [[4, 1, 5], [3, 1, 0], [0, 0, 0]])


def test_other_widths_are_filled_with_zeros() -> None:
    assert _network(width=50).dimension == 13 * 8 * 5
    assert not _network(width=50).words[:, 50:].any()


def test_encode_reads_known_words_and_counts_cut_texts() -> None:
    words = [f"w{i}" for i in range(N_WORDS)]
    space = ConvolvedWords(WordVectorVocabulary(words), _network(), 4)
    texts = ["w1 w2 w3", "W1 unknown w2 w3", "unknown", "w1 w2 w3 w4", "w1 w2 w3 w4 w5", "w3 w2 w1"]
    vectors, cut = space.encode(texts)
    assert cut == 1
    np.testing.assert_array_equal(vectors[0], vectors[1])
    assert not vectors[2].any()
    np.testing.assert_array_equal(vectors[3], vectors[4])
    assert np.abs(vectors[0] - vectors[5]).max() > 0.1  # the order of words counts
    np.testing.assert_allclose(space.encode(texts, at_a_time=1)[0], vectors, atol=1e-6)
    np.testing.assert_array_equal(space.encode(texts[::-1] * 60)[0][:6][::-1], vectors)
    assert space.encode([])[0].shape == (0, vectors.shape[1])
