"""A saved BERT without the transformers library: the same embeddings, and the whole library where it is needed."""

from __future__ import annotations

import importlib.util
import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from conftest import topic_texts
from safetensors import safe_open
from torch import nn

from coterie.encoders.model_loading import LightBert, LightTokenizer
from coterie.encoders.transformer import TransformerEncoder
from coterie.encoders.weights import DEFAULT_MODEL, PACKAGED_MODEL_MODULE
from coterie.errors import ModelFolderError

TEXTS = [
    *topic_texts(11, seed=3)[0],
    "parcel",
    "",
    "Äpfel, [SEP] [MASK] 日本語 🙂 Parcel-LATE!",
    "where is my refund " * 30,
]


def _save(tiny: Path, folder: Path, kind: str = "Bert", part: str = "Model", **settings: Any) -> Path:
    """A random model with weights that all leave their mark, and the tiny tokenizer."""
    import transformers

    chosen = {
        "vocab_size": json.loads((tiny / "config.json").read_text())["vocab_size"],
        "hidden_size": 24,
        "num_attention_heads": 12,
        "intermediate_size": 40,
        "max_position_embeddings": 64,
        "num_hidden_layers": 2,
        "pad_token_id": 0,
        **settings,
    }
    with torch.random.fork_rng():
        torch.manual_seed(1)
        model = getattr(transformers, f"{kind}{part}")(getattr(transformers, f"{kind}Config")(**chosen))
        for parameter in model.parameters():
            parameter.data.add_(0.15 * torch.randn_like(parameter))
    model.save_pretrained(folder)
    for file in tiny.glob("tokenizer*"):
        shutil.copy(file, folder)
    return folder


@pytest.fixture(scope="module")
def deep(tiny_encoder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Twelve layers: by name, layer 10 comes before layer 2."""
    return _save(tiny_encoder, tmp_path_factory.mktemp("light") / "deep", num_hidden_layers=12)


def _assert_same(first: TransformerEncoder, second: TransformerEncoder, texts: list[str] = TEXTS) -> None:
    ours, theirs = first.tokenize(texts), second.tokenize(texts)
    assert np.array_equal(ours.ids, theirs.ids)
    assert np.array_equal(ours.lengths, theirs.lengths)
    assert ours.truncated == theirs.truncated
    assert first.settings == second.settings
    assert first.dimension == second.dimension
    np.testing.assert_allclose(first.encode(texts), second.encode(texts), atol=1e-6)


def _is_light(encoder: TransformerEncoder) -> bool:
    assert isinstance(encoder.model, LightBert) is isinstance(encoder.tokenizer, LightTokenizer)
    return isinstance(encoder.model, LightBert)


# --- The same embeddings ---


@pytest.mark.parametrize(("pooling", "normalize"), [("mean", True), ("cls", False), ("max", False)])
def test_a_light_encoder_embeds_as_the_whole_one(deep: Path, tmp_path: Path, pooling: str, normalize: bool) -> None:
    whole = TransformerEncoder.load(deep, pooling=pooling, normalize=normalize, max_length=20)
    whole.save(tmp_path / "saved")
    light = TransformerEncoder.load(tmp_path / "saved", light=True)
    assert _is_light(light) and not _is_light(whole)
    assert not light.training
    _assert_same(light, whole)
    # Layers in another order would be seen.
    model: Any = light.model
    model.encoder.layer = nn.ModuleList([model.encoder.layer[i] for i in (0, 1, 10, 11, *range(2, 10))])
    assert np.abs(light.encode(TEXTS) - whole.encode(TEXTS)).max() > 1e-3


@pytest.mark.parametrize("kind", ["Bert", "Roberta", "XLMRoberta"])
def test_every_family_can_be_light(tiny_encoder: Path, tmp_path: Path, kind: str) -> None:
    _save(tiny_encoder, tmp_path / "model", kind)
    light = TransformerEncoder.load(tmp_path / "model", light=True)
    assert _is_light(light)
    _assert_same(light, TransformerEncoder.load(tmp_path / "model"))


def test_a_projection_is_loaded_too(deep: Path, tmp_path: Path) -> None:
    whole = TransformerEncoder.load(deep)
    whole.project(nn.Linear(24, 7))
    whole.save(tmp_path / "saved")
    light = TransformerEncoder.load(tmp_path / "saved", light=True)
    assert _is_light(light) and light.dimension == 7
    _assert_same(light, whole)


def test_half_precision_files_become_float32(deep: Path, tmp_path: Path) -> None:
    from transformers import AutoModel

    shutil.copytree(deep, tmp_path / "half")
    AutoModel.from_pretrained(str(deep), dtype=torch.float16).save_pretrained(tmp_path / "half")
    light = TransformerEncoder.load(tmp_path / "half", light=True)
    assert _is_light(light)
    assert {parameter.dtype for parameter in light.parameters()} == {torch.float32}
    _assert_same(light, TransformerEncoder.load(tmp_path / "half"))


@pytest.mark.skipif(importlib.util.find_spec(PACKAGED_MODEL_MODULE) is None, reason="the weights are not installed")
def test_the_default_model_can_be_light(tmp_path: Path) -> None:
    whole = TransformerEncoder.load(DEFAULT_MODEL)
    light = TransformerEncoder.load(DEFAULT_MODEL, light=True)
    assert _is_light(light)
    _assert_same(light, whole)
    light.save(tmp_path / "saved")
    again = TransformerEncoder.load(tmp_path / "saved")
    assert not _is_light(again)
    _assert_same(again, whole)


# --- Saving ---


def test_a_saved_light_encoder_loads_whole_and_light(deep: Path, tmp_path: Path) -> None:
    whole = TransformerEncoder.load(deep, pooling="cls", normalize=True, max_length=9)
    whole.save(tmp_path / "first")
    light = TransformerEncoder.load(tmp_path / "first", light=True)
    assert light.tokenize(TEXTS).truncated  # a cut leaves its traces in the tokenizer
    light.save(tmp_path / "second")
    for asked in (False, True):
        again = TransformerEncoder.load(tmp_path / "second", light=asked)
        assert _is_light(again) is asked
        _assert_same(again, whole)
    special = [TransformerEncoder.load(tmp_path / each).tokenizer.special_tokens_map for each in ("first", "second")]
    assert special[0] == special[1] and "mask_token" in special[0]
    # Older releases of the library refuse a file that does not say so.
    with safe_open(tmp_path / "second" / "model.safetensors", "pt") as weights:
        assert weights.metadata() == {"format": "pt"}
    written = {path.suffix for path in (tmp_path / "second").rglob("*") if path.is_file()}
    assert written <= {".json", ".safetensors", ".txt"}


def test_sentence_transformers_reads_a_saved_light_encoder(deep: Path, tmp_path: Path) -> None:
    library = pytest.importorskip("sentence_transformers", reason="sentence-transformers is not installed")
    whole = TransformerEncoder.load(deep, normalize=True, max_length=9)
    whole.save(tmp_path / "first")
    TransformerEncoder.load(tmp_path / "first", light=True).save(tmp_path / "second")
    theirs = library.SentenceTransformer(str(tmp_path / "second"), device="cpu")
    assert theirs.max_seq_length == 9
    np.testing.assert_allclose(theirs.encode(TEXTS), whole.encode(TEXTS), atol=1e-6)


# --- Without the library ---


def test_the_transformers_library_is_not_imported(deep: Path, tmp_path: Path) -> None:
    lines = [
        "import sys",
        "from pathlib import Path",
        "from coterie.encoders.transformer import TransformerEncoder",
        f"encoder = TransformerEncoder.load({str(deep)!r}, light=True)",
        "encoder.encode(['parcel late', 'password'])",
        "print('transformers' in sys.modules)",
        f"encoder.save(Path({str(tmp_path / 'saved')!r}))",
        f"TransformerEncoder.load({str(deep)!r})",
        "print('transformers' in sys.modules)",
    ]
    outcome = subprocess.run([sys.executable, "-c", "\n".join(lines)], capture_output=True, text=True, check=False)
    assert outcome.returncode == 0, outcome.stderr
    assert outcome.stdout.split() == ["False", "True"]  # the second shows that an import would be seen


# --- Where the library is needed ---


def test_another_kind_of_model_is_loaded_whole(tiny_encoder: Path, tmp_path: Path) -> None:
    distilled = {"dim": 24, "hidden_dim": 40, "n_layers": 2, "n_heads": 4}
    for kind, settings in (("DistilBert", distilled), ("MPNet", {"pad_token_id": 1})):
        folder = _save(tiny_encoder, tmp_path / kind, kind, **settings)
        light = TransformerEncoder.load(folder, light=True)
        assert not _is_light(light) and not light.packs
        _assert_same(light, TransformerEncoder.load(folder))


@pytest.mark.parametrize("setting", [{"hidden_act": "silu"}, {"is_decoder": True}])
def test_what_cannot_be_packed_is_loaded_whole(tiny_encoder: Path, tmp_path: Path, setting: dict[str, Any]) -> None:
    folder = _save(tiny_encoder, tmp_path / "model", **setting)
    light = TransformerEncoder.load(folder, light=True)
    assert not _is_light(light)
    _assert_same(light, TransformerEncoder.load(folder))


def test_weights_under_a_prefix_are_loaded_whole(tiny_encoder: Path, tmp_path: Path) -> None:
    folder = _save(tiny_encoder, tmp_path / "model", part="ForMaskedLM")
    light = TransformerEncoder.load(folder, light=True)
    assert not _is_light(light)
    _assert_same(light, TransformerEncoder.load(folder))


def _without_tokenizer(folder: Path) -> None:
    (folder / "tokenizer.json").unlink()


def _with_broken_weights(folder: Path) -> None:
    (folder / "model.safetensors").write_bytes(b"no weights")


def _with_a_broken_config(folder: Path) -> None:
    (folder / "config.json").write_text("{")


@pytest.mark.parametrize("broken", [_without_tokenizer, _with_broken_weights, _with_a_broken_config])
def test_a_broken_folder_gives_the_same_error_as_ever(
    deep: Path, tmp_path: Path, broken: Callable[[Path], None]
) -> None:
    folder = tmp_path / "model"
    shutil.copytree(deep, folder)
    broken(folder)
    messages = []
    for light in (False, True):
        with pytest.raises(ModelFolderError, match="cannot be loaded as an encoder") as caught:
            TransformerEncoder.load(folder, light=light)
        messages.append(str(caught.value))
    assert messages[0] == messages[1]


def _without_setting(folder: Path, name: str) -> None:
    file = folder / "config.json"
    settings = json.loads(file.read_text())
    del settings[name]
    file.write_text(json.dumps(settings))


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        ("Bert", "hidden_act"),
        ("Bert", "pad_token_id"),
        ("Bert", "num_hidden_layers"),
        ("Bert", "num_attention_heads"),
        ("Bert", "layer_norm_eps"),
        ("Roberta", "pad_token_id"),
    ],
)
def test_a_setting_left_out_has_the_library_s_default(tiny_encoder: Path, tmp_path: Path, kind: str, name: str) -> None:
    # The values here are the library's own: 12 layers, 12 heads, padding by 0 in BERT and by 1 in RoBERTa.
    folder = _save(tiny_encoder, tmp_path / "model", kind, num_hidden_layers=12, pad_token_id=int(kind == "Roberta"))
    whole = TransformerEncoder.load(folder)
    _without_setting(folder, name)
    _assert_same(TransformerEncoder.load(folder, light=True), whole)


def test_layers_that_the_config_does_not_count_are_left_out(deep: Path, tmp_path: Path) -> None:
    folder = tmp_path / "model"
    shutil.copytree(deep, folder)
    settings = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**settings, "num_hidden_layers": 3}))
    _assert_same(TransformerEncoder.load(folder, light=True), TransformerEncoder.load(folder))
