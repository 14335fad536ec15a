"""The linear layer behind pooling: computed, trained, saved, and read as sentence-transformers does."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from conftest import topic_texts
from torch import nn

from coterie.encoders.dense_layer import PROJECTION_FOLDER, read_linear, write_linear
from coterie.encoders.transformer import TransformerEncoder
from coterie.errors import ModelFolderError

TEXTS = [*topic_texts(11, seed=3)[0], "parcel " * 30]


def _layer(inputs: int = 32, outputs: int = 7, bias: bool = True) -> nn.Linear:
    with torch.random.fork_rng():
        torch.manual_seed(0)
        return nn.Linear(inputs, outputs, bias=bias)


def _projected(folder: Path, layer: nn.Linear | None = None, **settings: Any) -> TransformerEncoder:
    encoder = TransformerEncoder.load(folder, **settings)
    encoder.project(_layer() if layer is None else layer)
    return encoder


def _saved(tiny: Path, folder: Path, **settings: Any) -> Path:
    _projected(tiny, **settings).save(folder)
    return folder


# --- Computing ---


@pytest.mark.parametrize("normalize", [False, True])
def test_the_layer_comes_last(tiny_encoder: Path, normalize: bool) -> None:
    layer = _layer()
    encoder = _projected(tiny_encoder, layer, normalize=normalize)
    plain = TransformerEncoder.load(tiny_encoder, normalize=normalize).encode(TEXTS)
    weight, bias = layer.weight.detach().numpy(), layer.bias.detach().numpy()
    np.testing.assert_allclose(encoder.encode(TEXTS), plain @ weight.T + bias, atol=1e-5)
    assert (encoder.hidden_size, encoder.dimension) == (32, 7)
    assert encoder.encode_one_by_one([]).shape == (0, 7)
    np.testing.assert_allclose(encoder.encode_one_by_one(TEXTS[:2]), encoder.encode(TEXTS[:2]), atol=1e-5)


def test_without_a_layer_nothing_changes(tiny_encoder: Path, tmp_path: Path) -> None:
    encoder = TransformerEncoder.load(tiny_encoder)
    assert encoder.projection is None
    assert encoder.dimension == encoder.hidden_size == 32
    encoder.save(tmp_path / "plain")
    assert not (tmp_path / "plain" / PROJECTION_FOLDER).exists()
    assert "Dense" not in (tmp_path / "plain" / "modules.json").read_text()


def test_the_layer_is_trained_with_the_encoder(tiny_encoder: Path) -> None:
    encoder = _projected(tiny_encoder)
    assert {"projection.weight", "projection.bias"} <= {name for name, _ in encoder.named_parameters()}
    ids = torch.tensor([[2, 5, 6, 3]])
    output = encoder(ids, torch.ones_like(ids))
    output.sentences.square().sum().backward()
    assert encoder.projection is not None and encoder.projection.weight.grad is not None
    assert encoder.projection.weight.grad.abs().max() > 0
    word = encoder.model.get_input_embeddings().weight.grad  # type: ignore[operator]
    assert word is not None and word.abs().max() > 0
    # Token states stay as wide as the model.
    assert output.token_states.shape == (1, 4, 32)


def test_embeddings_are_float32_under_mixed_precision(tiny_encoder: Path) -> None:
    encoder = _projected(tiny_encoder)
    mixed = encoder.encode_tokens(encoder.tokenize(TEXTS), torch.bfloat16)
    assert mixed.dtype == torch.float32
    np.testing.assert_allclose(mixed.numpy(), encoder.encode(TEXTS), atol=0.1)


# --- Files ---


@pytest.mark.parametrize("bias", [True, False])
def test_a_layer_comes_back_as_it_was(tmp_path: Path, bias: bool) -> None:
    layer = _layer(bias=bias)
    write_linear(tmp_path, layer)
    again = read_linear(tmp_path)
    assert torch.equal(again.weight, layer.weight)
    assert (again.bias is not None) == bias
    if bias:
        assert torch.equal(again.bias, layer.bias)
    config = json.loads((tmp_path / "config.json").read_text())
    assert config["activation_function"] == "torch.nn.modules.linear.Identity"
    assert (config["in_features"], config["out_features"], config["bias"]) == (32, 7, bias)


@pytest.mark.parametrize("normalize", [False, True])
def test_a_saved_encoder_comes_back_with_its_layer(tiny_encoder: Path, tmp_path: Path, normalize: bool) -> None:
    encoder = _projected(tiny_encoder, normalize=normalize)
    encoder.save(tmp_path / "saved")
    again = TransformerEncoder.load(tmp_path / "saved")
    assert again.settings == encoder.settings
    assert again.dimension == 7
    np.testing.assert_array_equal(again.encode(TEXTS), encoder.encode(TEXTS))
    modules = json.loads((tmp_path / "saved" / "modules.json").read_text())
    kinds = ["Transformer", "Pooling", *(["Normalize"] if normalize else []), "Dense"]
    assert [module["type"].rsplit(".", 1)[-1] for module in modules] == kinds
    assert [module["idx"] for module in modules] == list(range(len(kinds)))
    # The pooling's configuration has the width of a token state, not of the result.
    pooling = json.loads((tmp_path / "saved" / "1_Pooling" / "config.json").read_text())
    assert pooling["word_embedding_dimension"] == 32


@pytest.mark.parametrize("normalize", [False, True])
@pytest.mark.parametrize("bias", [True, False])
def test_sentence_transformers_computes_the_same(
    tiny_encoder: Path, tmp_path: Path, normalize: bool, bias: bool
) -> None:
    library = pytest.importorskip("sentence_transformers", reason="sentence-transformers is not installed")
    encoder = _projected(tiny_encoder, _layer(bias=bias), normalize=normalize, max_length=9)
    encoder.save(tmp_path / "ours")
    theirs = library.SentenceTransformer(str(tmp_path / "ours"), device="cpu")
    assert type(theirs[-1]).__name__ == "Dense"
    np.testing.assert_allclose(theirs.encode(TEXTS), encoder.encode(TEXTS), atol=1e-6)
    # And back: whatever sub-folder that library chooses for the layer.
    theirs.save_pretrained(str(tmp_path / "theirs"))
    again = TransformerEncoder.load(tmp_path / "theirs")
    np.testing.assert_allclose(again.encode(TEXTS), encoder.encode(TEXTS), atol=1e-6)
    again.save(tmp_path / "again")
    np.testing.assert_allclose(TransformerEncoder.load(tmp_path / "again").encode(TEXTS), encoder.encode(TEXTS))


# --- Folders that are something else ---


def _change_config(folder: Path, **changes: Any) -> None:
    file = folder / PROJECTION_FOLDER / "config.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | changes))


@pytest.mark.parametrize("activation", ["torch.nn.modules.activation.Tanh", "torch.nn.modules.activation.ReLU", None])
def test_another_activation_is_refused(tiny_encoder: Path, tmp_path: Path, activation: str | None) -> None:
    folder = _saved(tiny_encoder, tmp_path / "m")
    _change_config(folder, activation_function=activation)
    with pytest.raises(ModelFolderError, match=r"modules are not supported.*Dense"):
        TransformerEncoder.load(folder)


@pytest.mark.parametrize("changes", [{"use_residual": True}, {"module_input_name": "token_embeddings"}])
def test_a_layer_that_does_more_than_a_linear_map_is_refused(
    tiny_encoder: Path, tmp_path: Path, changes: dict[str, Any]
) -> None:
    folder = tmp_path / "m"
    _projected(tiny_encoder, _layer(32, 32)).save(folder)
    _change_config(folder, **changes)
    with pytest.raises(ModelFolderError):
        TransformerEncoder.load(folder)


@pytest.mark.parametrize(
    "order",
    [
        ("Transformer", "Pooling", "Dense", "Normalize"),
        ("Transformer", "Dense", "Pooling"),
        ("Transformer", "Pooling", "Dense", "Dense"),
        ("Transformer", "Pooling", "Normalize", "Dense", "Normalize"),
    ],
    ids="-".join,
)
def test_another_order_is_refused(tiny_encoder: Path, tmp_path: Path, order: tuple[str, ...]) -> None:
    folder = _saved(tiny_encoder, tmp_path / "m", normalize=True)
    paths = {"Transformer": "", "Pooling": "1_Pooling", "Normalize": "2_Normalize", "Dense": PROJECTION_FOLDER}
    modules = [{"idx": i, "name": str(i), "path": paths[n], "type": f"x.models.{n}"} for i, n in enumerate(order)]
    (folder / "modules.json").write_text(json.dumps(modules))
    with pytest.raises(ModelFolderError, match=r"modules are not supported.*then a linear layer"):
        TransformerEncoder.load(folder)


@pytest.mark.parametrize("missing", ["config.json", "model.safetensors", ""])
def test_a_layer_that_is_not_all_there_is_named(tiny_encoder: Path, tmp_path: Path, missing: str) -> None:
    folder = _saved(tiny_encoder, tmp_path / "m")
    if missing:
        (folder / PROJECTION_FOLDER / missing).unlink()
    else:
        shutil.rmtree(folder / PROJECTION_FOLDER)
    with pytest.raises(ModelFolderError, match=str(folder)):
        TransformerEncoder.load(folder)


def test_a_layer_of_another_size_is_named(tiny_encoder: Path, tmp_path: Path) -> None:
    folder = _saved(tiny_encoder, tmp_path / "m")
    _change_config(folder, out_features=8)
    with pytest.raises(ModelFolderError, match=r"3_Dense cannot be read as a linear layer"):
        TransformerEncoder.load(folder)
