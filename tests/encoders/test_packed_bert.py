"""BERT and RoBERTa on packed texts against the model of the transformers library on padded ones."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

from coterie.encoders.fused_operations import FusedOperations
from coterie.encoders.packed_bert import ACTIVATIONS, can_pack, run_packed
from coterie.encoders.packing import PackedBatch, pack, pack_windows
from coterie.encoders.sentence_transformer_files import SentenceSettings
from coterie.encoders.transformer import TransformerEncoder
from coterie.encoders.window_packing import plan_windows, window_width

VOCABULARY, PAD = 120, 1
MIXED, UNIFORM, LONG = [9, 3, 14, 1, 30, 9, 22, 64, 5, 2], [12] * 7, [70, 3, 128, 64, 40, 9]
SHAPES = {"mixed": MIXED, "uniform": UNIFORM, "one": [17], "long": LONG}
KINDS = ("Bert", "Roberta")


def _model(kind: str, activation: str = "gelu", **settings: Any) -> nn.Module:
    """Three layers of weights large enough for each of them, biases and norms included, to leave its mark."""
    import transformers

    chosen = {
        "vocab_size": VOCABULARY,
        "hidden_size": 24,
        "num_hidden_layers": 3,
        "num_attention_heads": 4,
        "intermediate_size": 40,
        "max_position_embeddings": 132,
        "hidden_act": activation,
        "pad_token_id": PAD,
        "type_vocab_size": 2,
        "layer_norm_eps": 1e-3,
        **settings,
    }
    with torch.random.fork_rng():
        torch.manual_seed(0)
        model = getattr(transformers, f"{kind}Model")(getattr(transformers, f"{kind}Config")(**chosen))
        for parameter in model.parameters():
            parameter.data.add_(0.15 * torch.randn_like(parameter))
    return model.eval()


def _encoder(
    kind: str, activation: str = "gelu", pooling: str = "mean", normalize: bool = False, **settings: Any
) -> TransformerEncoder:
    tokenizer = SimpleNamespace(pad_token_id=PAD)
    model = _model(kind, activation, **settings)
    return TransformerEncoder(model, tokenizer, SentenceSettings(pooling, normalize), "here").eval()


def _table(lengths: list[int], seed: int = 0) -> Any:
    """Random texts; a padding id is no part of any. Behind them there is room for a filler to read."""
    wide = torch.tensor(lengths)
    ids = torch.randint(2, VOCABULARY, (sum(lengths) + 200,), generator=torch.Generator().manual_seed(seed))
    return SimpleNamespace(ids=ids.int(), starts=wide.cumsum(0) - wide, lengths=wide)


def _texts(table: Any) -> list[Tensor]:
    return [table.ids[i : i + n].long() for i, n in zip(table.starts, table.lengths, strict=True)]


def _padded(table: Any) -> tuple[Tensor, Tensor]:
    ids = nn.utils.rnn.pad_sequence(_texts(table), batch_first=True, padding_value=PAD)
    return ids, (torch.arange(ids.shape[1]) < table.lengths[:, None]).long()


def _packed(table: Any) -> PackedBatch:
    lengths = table.lengths.tolist()
    uniform = len(set(lengths)) == 1
    return pack(table, torch.arange(len(lengths)), sum(lengths), max(lengths), uniform=uniform)


def _windowed(table: Any) -> PackedBatch:
    lengths = table.lengths.numpy()
    layout = plan_windows(np.arange(len(lengths)), lengths, window_width(int(lengths.max())), 3)
    arrays = (torch.from_numpy(each) for each in (layout.rows, layout.lengths, layout.places))
    return pack_windows(table, *arrays, layout.n_windows, layout.width)


WAYS = pytest.mark.parametrize("way", [_packed, _windowed])


def _embed(encoder: TransformerEncoder, packed: PackedBatch, dtype: torch.dtype = torch.float32) -> Tensor:
    return encoder.forward_packed(packed, encoder.layer_weights(dtype))


def _alone(encoder: TransformerEncoder, table: Any, pooling: str) -> Tensor:
    """Each text in a pass of its own through the library's model, pooled here."""
    pool = {"mean": lambda s: s.mean(0), "cls": lambda s: s[0], "max": lambda s: s.amax(0)}[pooling]
    model: Any = encoder.model
    return torch.stack([pool(model(input_ids=text[None]).last_hidden_state[0]) for text in _texts(table)])


# --- Values ---


@WAYS
@pytest.mark.parametrize("pooling", ["mean", "cls", "max"])
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("kind", KINDS)
@torch.no_grad()
def test_embeddings_are_those_of_the_library(kind: str, shape: str, pooling: str, way: Any) -> None:
    encoder, table = _encoder(kind, pooling=pooling), _table(SHAPES[shape])
    assert encoder.packs
    found = _embed(encoder, way(table))
    assert found.dtype == torch.float32
    torch.testing.assert_close(found, _alone(encoder, table, pooling), atol=1e-5, rtol=0)
    torch.testing.assert_close(found, encoder(*_padded(table)).sentences, atol=1e-5, rtol=0)


@WAYS
@pytest.mark.parametrize("activation", ACTIVATIONS)
@pytest.mark.parametrize("kind", KINDS)
@torch.no_grad()
def test_every_activation_is_the_library_s(kind: str, activation: str, way: Any) -> None:
    encoder, table = _encoder(kind, activation), _table(MIXED)
    torch.testing.assert_close(_embed(encoder, way(table)), _alone(encoder, table, "mean"), atol=1e-5, rtol=0)


@torch.no_grad()
def test_token_states_are_those_of_the_library() -> None:
    encoder, table = _encoder("Bert"), _table(MIXED)
    model: Any = encoder.model
    expected = torch.cat([model(input_ids=text[None]).last_hidden_state[0] for text in _texts(table)])
    found = run_packed(model, encoder.layer_weights(torch.float32), _packed(table))
    torch.testing.assert_close(found, expected, atol=1e-5, rtol=0)


@WAYS
@torch.no_grad()
def test_normalisation_and_projection_come_behind_the_pooling(way: Any) -> None:
    encoder, table = _encoder("Bert", normalize=True), _table(MIXED)
    encoder.project(nn.Linear(24, 5))
    expected = encoder.projection(functional.normalize(_alone(encoder, table, "mean"), dim=-1))
    torch.testing.assert_close(_embed(encoder, way(table)), expected, atol=1e-5, rtol=0)


@WAYS
@pytest.mark.parametrize("pooling", ["mean", "cls", "max"])
@torch.no_grad()
def test_an_embedding_does_not_depend_on_its_company(pooling: str, way: Any) -> None:
    encoder, table = _encoder("Bert", pooling=pooling), _table(MIXED)
    together = _embed(encoder, way(table))
    for row, text in enumerate(_texts(table)):
        other = _table([len(text), 40, 11], seed=9)
        other.ids[: len(text)] = text
        torch.testing.assert_close(_embed(encoder, way(other))[0], together[row], atol=1e-6, rtol=1e-6)


@WAYS
@pytest.mark.parametrize("kind", KINDS)
@torch.no_grad()
def test_half_precision_is_close(kind: str, way: Any) -> None:
    encoder, table = _encoder(kind), _table(MIXED)
    wide, narrow = _embed(encoder, way(table)), _embed(encoder, way(table), torch.bfloat16)
    assert narrow.dtype == torch.float32
    assert not torch.equal(wide, narrow)
    assert functional.cosine_similarity(wide, narrow).min() > 0.999


@torch.no_grad()
def test_a_filler_may_be_longer_than_the_model_has_positions() -> None:
    encoder = _encoder("Bert", max_position_embeddings=40)
    table = _table([9, 3, 40])
    torch.testing.assert_close(_embed(encoder, _windowed(table)), _alone(encoder, table, "mean"), atol=1e-5, rtol=0)


# --- Gradients ---


def _gradients(encoder: TransformerEncoder, sentences: Tensor) -> dict[str, Tensor]:
    """Of a scalar in which every number has its own part."""
    target = torch.randn(sentences.shape, generator=torch.Generator().manual_seed(3))
    encoder.zero_grad(set_to_none=True)
    (sentences * target).sum().backward()
    return {name: each.grad for name, each in encoder.named_parameters() if each.grad is not None}


@WAYS
@pytest.mark.parametrize("pooling", ["mean", "cls", "max"])
@pytest.mark.parametrize("shape", ["mixed", "uniform"])
@pytest.mark.parametrize(("kind", "activation"), [("Bert", "gelu"), ("Roberta", "relu")])
def test_gradients_are_those_of_the_library(kind: str, activation: str, shape: str, pooling: str, way: Any) -> None:
    encoder, table = _encoder(kind, activation, pooling), _table(SHAPES[shape])
    expected = _gradients(encoder, encoder(*_padded(table)).sentences)
    found = _gradients(encoder, _embed(encoder, way(table)))
    trained = {name for name, each in encoder.named_parameters() if each.requires_grad}
    assert set(found) == set(expected) == trained
    largest = max(float(each.abs().max()) for each in expected.values())
    for name, gradient in expected.items():
        # Attention does not see a bias that is the same for all keys: its gradient is rounding noise.
        scale = largest if name.endswith("self.key.bias") else float(gradient.abs().max())
        torch.testing.assert_close(found[name], gradient, atol=1e-4 * scale, rtol=0, msg=lambda m, n=name: f"{n}: {m}")


# --- Which models ---


@pytest.mark.parametrize(
    ("kind", "settings", "expected"),
    [
        ("Bert", {}, True),
        ("Bert", {"position_embedding_type": "absolute"}, True),
        ("Roberta", {}, True),
        ("XLMRoberta", {}, True),
        ("Camembert", {}, True),
        ("Bert", {"hidden_act": "silu"}, False),
        ("Bert", {"hidden_act": "no_such"}, False),
        ("Bert", {"is_decoder": True}, False),
        ("Bert", {"is_decoder": True, "add_cross_attention": True}, False),
        ("Bert", {"position_embedding_type": "relative_key"}, False),
        ("Roberta", {"position_embedding_type": "relative_key_query"}, False),
        ("DistilBert", {}, False),
        ("MPNet", {}, False),
        ("Electra", {}, False),
        ("Albert", {}, False),
    ],
)
def test_can_pack(kind: str, settings: dict[str, Any], expected: bool) -> None:
    import transformers

    config = getattr(transformers, f"{kind}Config")(**settings)
    assert can_pack(SimpleNamespace(config=config)) is expected


def test_what_has_no_config_cannot_pack() -> None:
    assert not can_pack(nn.Linear(2, 2))


# --- Dropout ---


def _set_dropout(model: nn.Module, rate: float) -> None:
    for module in model.modules():
        if isinstance(module, nn.Dropout):
            module.p = rate


@WAYS
@torch.no_grad()
def test_dropout_rates_are_those_of_the_modules_now(way: Any) -> None:
    encoder = _encoder("Bert").train()
    packed = way(_table(MIXED))
    assert not torch.allclose(_embed(encoder, packed), _embed(encoder, packed), atol=1e-3)
    _set_dropout(encoder.model, 0.0)
    still = _embed(encoder, packed)
    assert torch.equal(still, _embed(encoder, packed))
    assert torch.equal(still, _embed(encoder.eval(), packed))
    # Each of the four places drops by itself.
    model: Any = encoder.model
    layer = model.encoder.layer[1]
    for module in (model.embeddings, layer.attention.self, layer.attention.output, layer.output):
        module.dropout.p = 0.5
        assert not torch.allclose(_embed(encoder.train(), packed), still, atol=1e-3)
        assert torch.equal(_embed(encoder.eval(), packed), still)
        module.dropout.p = 0.0


@WAYS
@pytest.mark.parametrize("place", ["embeddings", "attention", "attention_out", "out"])
@torch.no_grad()
def test_dropout_changes_a_pass_but_not_the_mean_of_many(way: Any, place: str) -> None:
    encoder = _encoder("Bert").eval()
    _set_dropout(encoder.model, 0.0)
    model: Any = encoder.model
    layer = model.encoder.layer[-1]
    places = {
        "embeddings": model.embeddings,
        "attention": layer.attention.self,
        "attention_out": layer.attention.output,
        "out": layer.output,
    }
    places[place].dropout.p = 0.1
    packed = way(_table(MIXED))
    expected = _embed(encoder, packed)
    encoder.train()
    with torch.random.fork_rng():
        torch.manual_seed(0)
        passes = torch.stack([_embed(encoder, packed) for _ in range(150)])
    single = (passes - expected).norm(dim=-1).mean()
    assert single > 0.01
    assert (passes.mean(dim=0) - expected).norm(dim=-1).mean() < 0.3 * single


# --- The fused branch ---


class _PlainFused(FusedOperations):
    """What the kernels compute, in plain operations."""

    def __init__(self) -> None:
        super().__init__(torch.zeros((), dtype=torch.int64))
        self.rates: list[float] = []
        self.activated = 0

    def residual_norm(
        self, states: Tensor, update: Tensor, bias: Tensor, norm: tuple[Tensor, Tensor], rate: float, eps: float
    ) -> tuple[Tensor, Tensor]:
        self.rates.append(rate)
        dropped = functional.dropout(update + bias, rate)
        found = functional.layer_norm(states + dropped, states.shape[-1:], *norm, eps)
        return found, found.to(update.dtype)

    def bias_gelu(self, states: Tensor, bias: Tensor) -> Tensor:
        self.activated += 1
        return functional.gelu(states + bias)


@WAYS
def test_fused_kernels_are_given_what_the_plain_operations_use(way: Any) -> None:
    encoder, table = _encoder("Bert"), _table(MIXED)
    layers, fused = encoder.layer_weights(torch.float32), _PlainFused()
    found = encoder.forward_packed(way(table), layers, fused)
    torch.testing.assert_close(found, _embed(encoder, way(table)), atol=1e-5, rtol=0)
    assert (fused.rates, fused.activated) == ([0.0] * 6, 3)
    model: Any = encoder.train().model
    for i, layer in enumerate(model.encoder.layer):
        layer.attention.output.dropout.p, layer.output.dropout.p = 0.1 + i / 10, 0.15 + i / 10
    fused = _PlainFused()
    encoder.forward_packed(way(table), encoder.layer_weights(torch.float32), fused)
    assert fused.rates == pytest.approx([0.1, 0.15, 0.2, 0.25, 0.3, 0.35])


def test_fused_kernels_leave_other_activations_alone() -> None:
    encoder, table, fused = _encoder("Bert", "relu"), _table(MIXED), _PlainFused()
    found = encoder.forward_packed(_packed(table), encoder.layer_weights(torch.float32), fused)
    assert torch.equal(found, _embed(encoder, _packed(table)))
    assert not fused.activated and not fused.rates
