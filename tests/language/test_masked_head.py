"""The masked-language head: found where a model brings one, new where not, tied to the word embeddings."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
import torch
from conftest import topic_texts
from torch import Tensor, nn

from coterie.encoders.device_tokens import DeviceTokens
from coterie.encoders.transformer import TransformerEncoder
from coterie.errors import SettingError
from coterie.language.masked_head import MaskedHead, check_mask_token

TEXTS = topic_texts(9, seed=5)[0]
SMALL = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 64}


def _generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def _model_with_head(family: str, vocabulary: int) -> nn.Module:
    """A small model of ``family`` with a head whose every weight is random, biases and norms included."""
    import transformers

    positions = {"max_position_embeddings": 64, "pad_token_id": 0}
    kinds: dict[str, tuple[str, dict[str, Any]]] = {
        "bert": ("Bert", SMALL | positions | {"hidden_act": "relu", "layer_norm_eps": 1e-2}),
        "roberta": ("Roberta", SMALL | positions | {"layer_norm_eps": 1e-2}),
        "xlm-roberta": ("XLMRoberta", SMALL | positions),
        "mpnet": ("MPNet", SMALL | positions),
        "distilbert": ("DistilBert", {"dim": 32, "n_layers": 2, "n_heads": 4, "hidden_dim": 64, "activation": "relu"}),
        "albert": ("Albert", SMALL | positions | {"embedding_size": 16}),
        "electra": ("Electra", SMALL | positions | {"embedding_size": 16}),
        "modernbert": ("ModernBert", SMALL | {"pad_token_id": 0, "local_attention": 16}),
    }
    name, settings = kinds[family]
    config = getattr(transformers, f"{name}Config")(vocab_size=vocabulary, **settings)
    with torch.random.fork_rng():
        torch.manual_seed(1)
        model: nn.Module = getattr(transformers, f"{name}ForMaskedLM")(config)
        # Fresh norms are the identity and fresh biases zero: a head that ignored them would pass.
        for parameter in model.parameters():
            if parameter.dim() == 1:
                nn.init.uniform_(parameter, 0.2, 1.5)
    return model.eval()


def _save(tiny: Path, folder: Path, family: str, **options: Any) -> nn.Module:
    """``folder`` with a model of ``family``, head included, and the tiny tokenizer."""
    vocabulary = json.loads((tiny / "config.json").read_text())["vocab_size"]
    model = _model_with_head(family, vocabulary)
    model.save_pretrained(folder, **options)  # type: ignore[operator]
    for file in tiny.glob("tokenizer*"):
        shutil.copy(file, folder)
    return model


def _both_logits(encoder: TransformerEncoder, head: MaskedHead, model: nn.Module) -> tuple[Tensor, Tensor]:
    """Ours, and those of transformers alone, at every real token of the same batch."""
    tokens = encoder.tokenize(TEXTS)
    ids, mask = DeviceTokens(tokens, encoder.pad_id, encoder.device).batch(torch.arange(len(tokens)), 12)
    with torch.no_grad():
        ours = head(encoder(ids, mask).token_states)
        theirs = model(input_ids=ids, attention_mask=mask).logits
    return ours[mask.bool()], theirs[mask.bool()]


# --- A head that is there ---


@pytest.mark.parametrize(
    "family", ["bert", "roberta", "xlm-roberta", "mpnet", "distilbert", "albert", "electra", "modernbert"]
)
def test_a_models_own_head_gives_the_logits_of_transformers(tiny_encoder: Path, tmp_path: Path, family: str) -> None:
    model = _save(tiny_encoder, tmp_path / family, family)
    encoder = TransformerEncoder.load(tmp_path / family)
    head, trained = MaskedHead.for_encoder(encoder, _generator())
    assert trained
    ours, theirs = _both_logits(encoder, head, model)
    assert theirs.std() > 0.05
    torch.testing.assert_close(ours, theirs, atol=1e-5, rtol=1e-5)


def test_a_head_in_one_of_several_files_is_found(tiny_encoder: Path, tmp_path: Path) -> None:
    model = _save(tiny_encoder, tmp_path / "shards", "bert", max_shard_size="20KB")
    assert len(list((tmp_path / "shards").glob("*.safetensors"))) > 1
    encoder = TransformerEncoder.load(tmp_path / "shards")
    head, trained = MaskedHead.for_encoder(encoder, _generator())
    assert trained
    torch.testing.assert_close(*_both_logits(encoder, head, model), atol=1e-5, rtol=1e-5)


def test_old_names_of_a_layer_norm_are_understood(tiny_encoder: Path, tmp_path: Path) -> None:
    from safetensors.torch import load_file, save_file

    model = _save(tiny_encoder, tmp_path / "old", "bert")
    file = tmp_path / "old" / "model.safetensors"
    stored = load_file(file)
    norm = "cls.predictions.transform.LayerNorm"
    renamed = {f"{norm}.weight": f"{norm}.gamma", f"{norm}.bias": f"{norm}.beta"}
    assert set(renamed) <= set(stored)
    save_file({renamed.get(name, name): tensor for name, tensor in stored.items()}, file, metadata={"format": "pt"})
    encoder = TransformerEncoder.load(tmp_path / "old")
    head, trained = MaskedHead.for_encoder(encoder, _generator())
    assert trained
    torch.testing.assert_close(*_both_logits(encoder, head, model), atol=1e-5, rtol=1e-5)


def test_a_head_that_does_not_fit_the_embeddings_is_not_taken(
    tiny_encoder: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    _save(tiny_encoder, tmp_path / "untied", "bert")
    config = tmp_path / "untied" / "config.json"
    config.write_text(json.dumps(json.loads(config.read_text()) | {"tie_word_embeddings": False}))
    head, trained = MaskedHead.for_encoder(TransformerEncoder.load(tmp_path / "untied"), _generator())
    assert not trained
    assert "does not fit" in caplog.text
    assert not head.bias.any()


# --- A new head ---


def test_a_model_without_a_head_gets_a_new_one_from_the_generator(tiny_encoder: Path) -> None:
    encoder = TransformerEncoder.load(tiny_encoder)
    first, trained = MaskedHead.for_encoder(encoder, _generator(3))
    assert not trained
    again, _ = MaskedHead.for_encoder(encoder, _generator(3))
    other, _ = MaskedHead.for_encoder(encoder, _generator(4))
    for name, tensor in first.state_dict().items():
        assert torch.equal(tensor, again.state_dict()[name])
    assert not torch.equal(first.dense.weight, other.dense.weight)
    away = first.dense.weight.detach() - torch.eye(32)
    assert 0.015 < away.std() < 0.025


def test_a_new_head_fits_embeddings_smaller_than_the_states(tiny_encoder: Path, tmp_path: Path) -> None:
    _save(tiny_encoder, tmp_path / "whole", "albert")
    TransformerEncoder.load(tmp_path / "whole").save(tmp_path / "body")  # what an encoder saves has no head
    encoder = TransformerEncoder.load(tmp_path / "body")
    head, trained = MaskedHead.for_encoder(encoder, _generator())
    assert not trained
    assert head.dense.weight.shape == (16, 32)
    vocabulary = encoder.model.get_input_embeddings().weight.shape[0]  # type: ignore[operator]
    assert head(torch.zeros(2, 3, 32)).shape == (2, 3, vocabulary)


def test_making_a_head_leaves_the_users_generator_alone(tiny_encoder: Path) -> None:
    encoder = TransformerEncoder.load(tiny_encoder)
    before = torch.random.get_rng_state()
    MaskedHead.for_encoder(encoder, _generator())
    assert torch.equal(before, torch.random.get_rng_state())


# --- Tied, yet the encoder's ---


def test_the_word_embeddings_are_shared_and_stay_the_encoders(tiny_encoder: Path) -> None:
    encoder = TransformerEncoder.load(tiny_encoder)
    head, _ = MaskedHead.for_encoder(encoder, _generator())
    assert {name for name, _ in head.named_parameters()} == {
        "dense.weight",
        "dense.bias",
        "norm.weight",
        "norm.bias",
        "bias",
    }
    states = torch.randn(4, 32, generator=_generator())
    before = head(states)
    embeddings = encoder.model.get_input_embeddings().weight  # type: ignore[operator]
    with torch.no_grad():
        embeddings[7, 0] += 1.0  # one component: a layer norm's output sums to nothing
    after = head(states)
    assert not torch.allclose(before[:, 7], after[:, 7])
    torch.testing.assert_close(before[:, :7], after[:, :7])

    head(states).sum().backward()
    assert embeddings.grad is not None and embeddings.grad.abs().sum() > 0


# --- The mask token ---


def test_the_mask_tokens_id(tiny_encoder: Path) -> None:
    assert check_mask_token(TransformerEncoder.load(tiny_encoder)) == 4


def test_no_mask_token_is_an_error_that_names_the_encoder(tiny_encoder: Path) -> None:
    encoder = TransformerEncoder.load(tiny_encoder)
    encoder.tokenizer.mask_token = None
    with pytest.raises(SettingError, match=r"tiny has no mask token.*use one that"):
        check_mask_token(encoder)
