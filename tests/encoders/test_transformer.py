"""The transformer encoder: what it loads, how it pools and cuts, and that company changes nothing."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from conftest import topic_texts

from coterie.encoders.transformer import TransformerEncoder
from coterie.errors import ModelFolderError, SettingError, WeightsNotFoundError

TEXTS = [*topic_texts(17, seed=3)[0], "parcel", "the money is not returned please help again today why"]


@pytest.fixture(scope="module")
def encoder(tiny_encoder: Path) -> TransformerEncoder:
    return TransformerEncoder.load(tiny_encoder)


def _sentence_folder(
    tiny: Path, folder: Path, pooling: dict[str, Any] | None, *, kinds: tuple[str, ...] = (), limit: int | None = None
) -> Path:
    """A copy of the tiny encoder with the files of a SentenceTransformer."""
    shutil.copytree(tiny, folder)
    names = ("Transformer", "Pooling", *kinds)
    modules = [{"idx": i, "path": f"{i}_{n}" if i else "", "type": f"x.models.{n}"} for i, n in enumerate(names)]
    (folder / "modules.json").write_text(json.dumps(modules))
    (folder / "1_Pooling").mkdir()
    if pooling is not None:
        (folder / "1_Pooling" / "config.json").write_text(json.dumps(pooling))
    if limit is not None:
        (folder / "sentence_bert_config.json").write_text(json.dumps({"max_seq_length": limit}))
    return folder


def _states(encoder: TransformerEncoder, text: str) -> np.ndarray:
    """Token states of one text by transformers alone."""
    with torch.no_grad():
        return encoder.model(**encoder.tokenizer(text, return_tensors="pt")).last_hidden_state[0].numpy()


# --- Loading ---


def test_half_precision_files_become_float32(tiny_encoder: Path, tmp_path: Path) -> None:
    from transformers import AutoModel

    folder = tmp_path / "half"
    shutil.copytree(tiny_encoder, folder)
    AutoModel.from_pretrained(str(tiny_encoder), dtype=torch.float16).save_pretrained(folder)
    config = json.loads((folder / "config.json").read_text())
    assert "float16" in (config.get("dtype"), config.get("torch_dtype"))

    loaded = TransformerEncoder.load(folder)
    assert {parameter.dtype for parameter in loaded.parameters()} == {torch.float32}
    embeddings = loaded.encode(TEXTS)
    assert embeddings.dtype == np.float32
    # Half precision keeps eleven bits of each weight.
    np.testing.assert_allclose(embeddings, TransformerEncoder.load(tiny_encoder).encode(TEXTS), atol=0.02)


def test_a_loaded_encoder_is_in_evaluation_mode_and_its_pooler_is_not_trained(encoder: TransformerEncoder) -> None:
    assert not encoder.training
    frozen = [name for name, parameter in encoder.named_parameters() if not parameter.requires_grad]
    assert frozen == ["model.pooler.dense.weight", "model.pooler.dense.bias"]


def test_what_is_no_model_is_not_found() -> None:
    with pytest.raises(WeightsNotFoundError):
        TransformerEncoder.load("no-such-organisation/no-such-model", local_files_only=True)


# --- Pooling and normalisation ---


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        ({"pooling_mode_mean_tokens": True, "pooling_mode_cls_token": False}, "mean"),
        ({"pooling_mode_mean_tokens": False, "pooling_mode_cls_token": True}, "cls"),
        ({"pooling_mode_mean_tokens": False, "pooling_mode_max_tokens": True}, "max"),
        ({"pooling_mode": "mean"}, "mean"),
        ({"pooling_mode": "cls"}, "cls"),
    ],
)
def test_auto_pooling_is_the_folders_own(
    tiny_encoder: Path, tmp_path: Path, config: dict[str, Any], expected: str
) -> None:
    folder = _sentence_folder(tiny_encoder, tmp_path / "model", config)
    assert TransformerEncoder.load(folder).settings.pooling == expected
    assert TransformerEncoder.load(folder, pooling="max").settings.pooling == "max"


def test_a_plain_folder_is_mean_pooled_and_not_normalised(encoder: TransformerEncoder) -> None:
    assert encoder.settings.pooling == "mean"
    assert encoder.settings.normalize is False


@pytest.mark.parametrize("pooling", ["mean", "cls", "max"])
def test_pooling_is_what_its_name_says(tiny_encoder: Path, pooling: str) -> None:
    loaded = TransformerEncoder.load(tiny_encoder, pooling=pooling)
    pool = {"mean": lambda s: s.mean(axis=0), "cls": lambda s: s[0], "max": lambda s: s.max(axis=0)}[pooling]
    expected = np.stack([pool(_states(loaded, text)) for text in TEXTS])
    np.testing.assert_allclose(loaded.encode(TEXTS), expected, atol=2e-6)


def test_normalisation_follows_the_folder_and_can_be_set(tiny_encoder: Path, tmp_path: Path) -> None:
    folder = _sentence_folder(tiny_encoder, tmp_path / "model", {"pooling_mode": "mean"}, kinds=("Normalize",))
    plain = TransformerEncoder.load(folder, normalize=False).encode(TEXTS)
    assert np.abs(np.linalg.norm(plain, axis=1) - 1).min() > 0.1
    expected = plain / np.linalg.norm(plain, axis=1, keepdims=True)
    np.testing.assert_allclose(TransformerEncoder.load(folder).encode(TEXTS), expected, atol=1e-6)
    np.testing.assert_allclose(TransformerEncoder.load(tiny_encoder, normalize=True).encode(TEXTS), expected, atol=1e-6)


def test_a_module_that_is_not_supported_is_named(tiny_encoder: Path, tmp_path: Path) -> None:
    folder = _sentence_folder(tiny_encoder, tmp_path / "model", {"pooling_mode": "mean"}, kinds=("Dense",))
    with pytest.raises(ModelFolderError, match="Dense"):
        TransformerEncoder.load(folder)


def test_a_pooling_that_is_not_supported_is_named(tiny_encoder: Path, tmp_path: Path) -> None:
    for i, config in enumerate(
        (
            {"pooling_mode": "lasttoken"},
            {"pooling_mode_lasttoken": True},
            {"pooling_mode_mean_tokens": True, "pooling_mode_cls_token": True},
        )
    ):
        folder = _sentence_folder(tiny_encoder, tmp_path / str(i), config)
        with pytest.raises(ModelFolderError, match="give pooling="):
            TransformerEncoder.load(folder)


def test_a_pooling_that_is_not_supported_can_be_replaced_as_its_message_says(
    tiny_encoder: Path, tmp_path: Path
) -> None:
    folder = _sentence_folder(tiny_encoder, tmp_path / "model", {"pooling_mode": "lasttoken"})
    assert TransformerEncoder.load(folder, pooling="mean").settings.pooling == "mean"


def test_a_folder_without_its_pooling_file_is_a_clear_error(tiny_encoder: Path, tmp_path: Path) -> None:
    with pytest.raises(ModelFolderError, match="config.json cannot be read"):
        TransformerEncoder.load(_sentence_folder(tiny_encoder, tmp_path / "model", None))


@pytest.mark.parametrize("setting", [{"pooling": "sum"}, {"normalize": "yes"}, {"max_length": 2}])
def test_bad_settings_are_named(tiny_encoder: Path, setting: dict[str, Any]) -> None:
    with pytest.raises(SettingError, match=next(iter(setting))):
        TransformerEncoder.load(tiny_encoder, **setting)


# --- Length ---


def test_the_length_limit_is_the_smallest_that_holds(tiny_encoder: Path, tmp_path: Path) -> None:
    folder = _sentence_folder(tiny_encoder, tmp_path / "model", {"pooling_mode": "mean"}, limit=20)
    limits = {asked: TransformerEncoder.load(folder, max_length=asked).max_length for asked in (None, 8, 30, 1000)}
    assert limits == {None: 20, 8: 8, 30: 30, 1000: 64}  # the model has 64 positions
    assert TransformerEncoder.load(tiny_encoder).max_length == 64


def test_cut_texts_are_counted_and_keep_their_special_tokens(tiny_encoder: Path) -> None:
    loaded = TransformerEncoder.load(tiny_encoder, max_length=6)
    tokens = loaded.tokenize(["parcel late courier delivery tracking", "parcel late courier delivery", "parcel"])
    assert tokens.truncated == 1
    assert tokens.lengths.tolist() == [6, 6, 3]
    assert tokens.ids[0] == loaded.tokenizer.cls_token_id
    assert tokens.ids[5] == loaded.tokenizer.sep_token_id


def test_a_text_beyond_the_models_positions_is_cut_not_refused(encoder: TransformerEncoder) -> None:
    tokens = encoder.tokenize(["parcel " * 500])
    assert tokens.lengths.tolist() == [64]
    assert np.isfinite(encoder.encode(["parcel " * 500])).all()


# --- Encoding ---


def test_encode_is_a_plain_forward_with_mean_pooling(encoder: TransformerEncoder) -> None:
    batch = encoder.tokenizer(TEXTS, padding=True, return_tensors="pt")
    with torch.no_grad():
        states = encoder.model(**batch).last_hidden_state
    mask = batch["attention_mask"].unsqueeze(-1)
    expected = (states * mask).sum(1) / mask.sum(1)
    result = encoder.encode(TEXTS)
    assert result.dtype == np.float32
    assert result.shape == (len(TEXTS), encoder.dimension)
    np.testing.assert_allclose(result, expected.numpy(), atol=2e-6)


def test_company_and_order_do_not_change_an_embedding(
    encoder: TransformerEncoder, monkeypatch: pytest.MonkeyPatch
) -> None:
    together = encoder.encode(TEXTS)
    order = np.random.default_rng(0).permutation(len(TEXTS))
    shuffled = encoder.encode([TEXTS[i] for i in order])
    np.testing.assert_allclose(shuffled, together[order], atol=1e-6)
    monkeypatch.setattr("coterie.encoders.transformer.TOKENS_PER_FORWARD", {"cpu": 20})
    np.testing.assert_allclose(encoder.encode(TEXTS), together, atol=1e-6)


def test_encode_alone_gives_the_same_bits_whatever_the_company(encoder: TransformerEncoder) -> None:
    alone = encoder.encode_one_by_one(TEXTS)
    np.testing.assert_allclose(alone, encoder.encode(TEXTS), atol=1e-6)
    assert np.array_equal(alone, encoder.encode_one_by_one(TEXTS))
    assert np.array_equal(alone[::-1], encoder.encode_one_by_one(TEXTS[::-1]))
    assert np.array_equal(alone[4:6], encoder.encode_one_by_one(TEXTS[4:6]))


def test_no_texts_are_no_embeddings(encoder: TransformerEncoder) -> None:
    assert encoder.encode([]).shape == encoder.encode_one_by_one([]).shape == (0, encoder.dimension)


def test_encoding_has_no_dropout_and_leaves_the_mode_alone(tiny_encoder: Path) -> None:
    loaded = TransformerEncoder.load(tiny_encoder)
    expected = loaded.encode(TEXTS)
    loaded.train()
    assert np.array_equal(loaded.encode(TEXTS), expected)
    assert loaded.training


@pytest.mark.parametrize(("pooling", "normalize"), [("mean", True), ("cls", False), ("max", True)])
def test_save_and_load_give_the_same_embeddings(
    tiny_encoder: Path, tmp_path: Path, pooling: str, normalize: bool
) -> None:
    first = TransformerEncoder.load(tiny_encoder, pooling=pooling, normalize=normalize, max_length=6)
    assert first.tokenize(TEXTS).truncated  # a cut leaves its traces in the tokenizer
    first.save(tmp_path / "saved")
    again = TransformerEncoder.load(tmp_path / "saved")
    assert again.settings == first.settings
    assert np.array_equal(again.encode(TEXTS), first.encode(TEXTS))
    written = {path.suffix for path in (tmp_path / "saved").rglob("*") if path.is_file()}
    assert written <= {".json", ".safetensors", ".txt"}
