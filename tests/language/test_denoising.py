"""The decoder of TSDAE: what it sees, what it shares with the encoder, what it is asked to say."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from conftest import topic_texts
from reference import clusterbert_oracle as oracle
from torch import Tensor, nn

import coterie.language.denoising as denoising_module
from coterie.encoders.device_tokens import DeviceTokens
from coterie.encoders.transformer import TransformerEncoder
from coterie.errors import SettingError
from coterie.language.denoising import SentenceDecoder, check_decoder, reconstruction_loss

TEXTS = [*topic_texts(4, seed=5)[0], "parcel", "money late"]
COUNTS = np.array([1.0, 3.0, 2.0, 1.0, 5.0, 1.0])
SMALL = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 64}
POSITIONS = {"max_position_embeddings": 64, "pad_token_id": 0}
KINDS: dict[str, tuple[str, dict[str, Any]]] = {
    "roberta": ("Roberta", SMALL | POSITIONS),
    "xlm-roberta": ("XLMRoberta", SMALL | POSITIONS),
    "electra": ("Electra", SMALL | POSITIONS | {"embedding_size": 16}),
    "distilbert": ("DistilBert", {"dim": 32, "n_layers": 2, "n_heads": 4, "hidden_dim": 64}),
    "mpnet": ("MPNet", SMALL | POSITIONS),
}
DECODABLE = pytest.mark.parametrize("family", ["bert", "roberta", "xlm-roberta", "electra"])
WEIGHTED = pytest.mark.parametrize("weights", [np.ones(6), COUNTS], ids=["plain", "weighted"])


def _folder(tiny: Path, family: str, into: Path) -> Path:
    """A small model of ``family`` with the tiny tokenizer."""
    import transformers

    if family == "bert":
        return tiny
    name, settings = KINDS[family]
    vocabulary = json.loads((tiny / "config.json").read_text())["vocab_size"]
    config = getattr(transformers, f"{name}Config")(vocab_size=vocabulary, **settings)
    with torch.random.fork_rng():
        torch.manual_seed(1)
        getattr(transformers, f"{name}Model")(config).save_pretrained(into / family)
    for file in tiny.glob("tokenizer*"):
        shutil.copy(file, into / family)
    return into / family


def _pair(folder: Path, seed: int = 0) -> tuple[TransformerEncoder, SentenceDecoder]:
    """Encoder and decoder in float64, both without dropout."""
    encoder = TransformerEncoder.load(folder)
    decoder = SentenceDecoder(encoder, seed)
    # Random networks of this size say nearly the same whatever they see; larger numbers make differences show.
    with torch.no_grad():
        for parameter in decoder.parameters():
            if parameter.dim() > 1:
                parameter.mul_(5)
    return encoder.double().eval(), decoder.double().eval()


def _tokens(encoder: TransformerEncoder, texts: list[str] = TEXTS) -> tuple[Tensor, Tensor]:
    tokens = encoder.tokenize(texts)
    return DeviceTokens(tokens, encoder.pad_id, encoder.device).batch(torch.arange(len(texts)), 8)


def _sentences(seed: int = 0, n: int = len(TEXTS)) -> Tensor:
    return torch.randn(n, 32, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def _loss(decoder: SentenceDecoder, sentences: Tensor, ids: Tensor, mask: Tensor, weights: Any = None) -> Tensor:
    weights = torch.ones(len(ids), dtype=torch.float64) if weights is None else torch.as_tensor(weights)
    return decoder.loss(sentences, ids, mask, weights, torch.float32)


def _logits(
    monkeypatch: pytest.MonkeyPatch, decoder: SentenceDecoder, sentences: Tensor, ids: Tensor, mask: Tensor
) -> Tensor:
    """What ``decoder.loss`` bases its loss on."""
    caught: list[Tensor] = []

    def catch(logits: Tensor, *rest: Any) -> Tensor:
        caught.append(logits.detach())
        return reconstruction_loss(logits, *rest)

    with monkeypatch.context() as patch:
        patch.setattr(denoising_module, "reconstruction_loss", catch)
        _loss(decoder, sentences, ids, mask)
    return caught[0]


# --- Eq. 1 ---


@pytest.mark.parametrize("seed", [0, 1, 2])
@WEIGHTED
def test_the_loss_of_logits_is_the_oracles(seed: int, weights: np.ndarray) -> None:
    generator = np.random.default_rng(seed)
    logits, targets = generator.normal(size=(6, 5, 9)) * 2, generator.integers(9, size=(6, 5))
    mask = (np.arange(5) < generator.integers(1, 6, size=(6, 1))).astype(np.int64)
    leaf = torch.tensor(logits, requires_grad=True)
    loss = reconstruction_loss(leaf, torch.from_numpy(targets), torch.from_numpy(mask), torch.from_numpy(weights))
    assert loss.item() == pytest.approx(oracle.reconstruction_loss(logits, targets, mask, weights), rel=1e-10)
    loss.backward()
    assert leaf.grad is not None
    assert not leaf.grad[torch.from_numpy(mask) == 0].any()  # padding teaches nothing
    assert leaf.grad[torch.from_numpy(mask) == 1].abs().amax(dim=-1).min() > 0


def test_half_precision_logits_are_widened() -> None:
    logits = torch.randn(2, 3, 50, generator=torch.Generator().manual_seed(0))
    arguments = (torch.zeros(2, 3, dtype=torch.long), torch.ones(2, 3), torch.ones(2))
    loss = reconstruction_loss(logits.bfloat16(), *arguments)
    assert loss.dtype == torch.float32
    assert loss.item() == pytest.approx(reconstruction_loss(logits, *arguments).item(), rel=0.01)


@DECODABLE
@WEIGHTED
def test_each_text_is_said_token_by_token(tiny_encoder: Path, tmp_path: Path, family: str, weights: np.ndarray) -> None:
    """The padded batch against every text alone, without padding: token t is guessed from the tokens before it."""
    encoder, decoder = _pair(_folder(tiny_encoder, family, tmp_path))
    ids, mask = _tokens(encoder)
    sentences = _sentences()
    width, vocabulary = ids.shape[1] - 1, decoder.model.config.vocab_size  # type: ignore[union-attr]
    logits, targets = np.zeros((6, width, vocabulary)), np.zeros((6, width), dtype=np.int64)  # type: ignore[arg-type]
    real = np.zeros((6, width), dtype=bool)
    for i, length in enumerate(mask.sum(dim=1).tolist()):
        with torch.no_grad():
            alone = decoder.model(
                input_ids=ids[i : i + 1, : length - 1], encoder_hidden_states=sentences[i][None, None]
            )
        logits[i, : length - 1] = alone.logits[0].numpy()
        targets[i, : length - 1] = ids[i, 1:length]
        real[i, : length - 1] = True
    expected = oracle.reconstruction_loss(logits, targets, real, weights)
    assert _loss(decoder, sentences, ids, mask, weights).item() == pytest.approx(expected, rel=1e-8)
    assert real.sum() == sum(len(text.split()) + 1 for text in TEXTS)  # every word and the closing token


def test_mixed_precision_comes_near(tiny_encoder: Path) -> None:
    encoder = TransformerEncoder.load(tiny_encoder)
    decoder = SentenceDecoder(encoder, 0).eval()
    ids, mask = _tokens(encoder)
    sentences, weights = _sentences().float(), torch.ones(6)
    full, mixed = (decoder.loss(sentences, ids, mask, weights, kind) for kind in (torch.float32, torch.bfloat16))
    assert mixed.dtype == torch.float32
    assert mixed.item() == pytest.approx(full.item(), rel=0.02)
    assert mixed.item() != full.item()


# --- What the decoder sees ---


@DECODABLE
def test_a_later_token_does_not_change_earlier_guesses(
    tiny_encoder: Path, tmp_path: Path, family: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    encoder, decoder = _pair(_folder(tiny_encoder, family, tmp_path))
    ids, mask = _tokens(encoder, TEXTS[:4])
    sentences = _sentences(n=4)
    before = _logits(monkeypatch, decoder, sentences, ids, mask)
    for place in (1, 3):
        changed = ids.clone()
        changed[:, place] = 50  # a lone letter, in none of the texts
        assert not (ids == 50).any()
        after = _logits(monkeypatch, decoder, sentences, changed, mask)
        torch.testing.assert_close(after[:, :place], before[:, :place], rtol=0, atol=1e-10)
        assert (after[:, place] - before[:, place]).abs().max() > 1e-3


@DECODABLE
def test_the_sentence_vector_changes_every_guess_of_its_text_alone(
    tiny_encoder: Path, tmp_path: Path, family: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    encoder, decoder = _pair(_folder(tiny_encoder, family, tmp_path))
    ids, mask = _tokens(encoder, TEXTS[:4])
    sentences = _sentences(n=4)
    other = sentences.clone()
    other[1] = -other[1]
    before, after = (_logits(monkeypatch, decoder, each, ids, mask) for each in (sentences, other))
    assert (after[1] - before[1]).abs().amax(dim=-1).min() > 1e-3
    torch.testing.assert_close(after[[0, 2, 3]], before[[0, 2, 3]], rtol=0, atol=1e-10)


# --- What it shares ---


@DECODABLE
def test_all_weights_in_common_are_the_encoders_own(tiny_encoder: Path, tmp_path: Path, family: str) -> None:
    encoder = TransformerEncoder.load(_folder(tiny_encoder, family, tmp_path))
    decoder = SentenceDecoder(encoder, 0)
    own = {id(parameter) for parameter in encoder.parameters()}
    new = [name for name, parameter in decoder.named_parameters() if id(parameter) not in own]
    assert new
    assert all("crossattention" in name or name.startswith(HEADS) for name in new), new
    shared = {id(parameter) for parameter in decoder.parameters()} & own
    assert len(shared) == len([name for name, _ in encoder.named_parameters() if "pooler" not in name])
    output = decoder.model.get_output_embeddings()  # type: ignore[operator]
    assert output.weight is encoder.model.get_input_embeddings().weight  # type: ignore[operator]
    # Also after a move to another device, which goes through all parameters.
    decoder.to(torch.device("cpu")).double().float()
    assert {id(parameter) for parameter in decoder.parameters()} & own == shared


HEADS = ("model.cls.", "model.lm_head.", "model.generator_predictions.", "model.generator_lm_head.")


def test_training_the_decoder_moves_the_encoder(tiny_encoder: Path) -> None:
    encoder = TransformerEncoder.load(tiny_encoder)
    before = encoder.encode(TEXTS)
    decoder = SentenceDecoder(encoder, 0)
    ids, mask = _tokens(encoder)
    optimizer = torch.optim.SGD(decoder.parameters(), lr=0.1)
    decoder.loss(_sentences().float(), ids, mask, torch.ones(6), torch.float32).backward()
    optimizer.step()
    assert np.abs(encoder.encode(TEXTS) - before).max() > 1e-4


@DECODABLE
def test_the_loss_reaches_all_but_the_questions_to_the_one_sentence(
    tiny_encoder: Path, tmp_path: Path, family: str
) -> None:
    encoder, decoder = _pair(_folder(tiny_encoder, family, tmp_path))
    ids, mask = _tokens(encoder)
    sentences = _sentences().requires_grad_()
    _loss(decoder, sentences, ids, mask).backward()
    assert sentences.grad is not None
    assert sentences.grad.abs().amax(dim=1).min() > 1e-8
    largest = max(float(p.grad.abs().max()) for p in decoder.parameters() if p.grad is not None)
    for name, parameter in decoder.named_parameters():
        # With one vector to attend to, attention is 1 whatever is asked; a bias alike for all keys is not seen either.
        silent = "crossattention.self.query" in name or "crossattention.self.key" in name
        grown = 0.0 if parameter.grad is None else float(parameter.grad.abs().max())
        if silent:
            assert grown <= 1e-10 * largest, name
        elif not name.endswith("attention.self.key.bias"):
            assert grown > 1e-8, name


# --- New weights ---


def test_the_seed_decides_the_new_weights_and_nothing_else(tiny_encoder: Path) -> None:
    encoder = TransformerEncoder.load(tiny_encoder)
    state = torch.random.get_rng_state()
    first, again, other = (SentenceDecoder(encoder, seed).state_dict() for seed in (3, 3, 4))
    assert torch.equal(state, torch.random.get_rng_state())
    assert all(torch.equal(first[name], again[name]) for name in first)
    different = {name for name in first if not torch.equal(first[name], other[name])}
    assert different
    assert all("crossattention" in name or ".cls." in name for name in different)
    assert not encoder.model.config.is_decoder  # type: ignore[union-attr]


# --- Models that cannot ---


@pytest.mark.parametrize("family", ["distilbert", "mpnet"])
def test_a_model_that_cannot_be_a_decoder_is_named(tiny_encoder: Path, tmp_path: Path, family: str) -> None:
    encoder = TransformerEncoder.load(_folder(tiny_encoder, family, tmp_path))
    with pytest.raises(SettingError, match=rf"\({family}\) cannot be turned into a decoder.*use a BERT"):
        check_decoder(encoder)


@DECODABLE
def test_a_model_that_can_passes_and_stays_as_it_is(tiny_encoder: Path, tmp_path: Path, family: str) -> None:
    encoder = TransformerEncoder.load(_folder(tiny_encoder, family, tmp_path))
    before = encoder.encode(TEXTS)
    check_decoder(encoder)
    np.testing.assert_array_equal(encoder.encode(TEXTS), before)


def test_an_encoder_whose_vectors_do_not_fit_its_states_is_refused(tiny_encoder: Path) -> None:
    """A projection behind the encoder makes sentence vectors that the attention cannot read."""
    encoder = TransformerEncoder.load(tiny_encoder)
    encoder.project(nn.Linear(32, 7))
    with pytest.raises(SettingError, match="projection|linear layer"):
        check_decoder(encoder)
