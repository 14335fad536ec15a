"""The masked-language head, from token states to word predictions: loaded from a model's files or initialised."""

from __future__ import annotations

import json
import logging
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from coterie.encoders.transformer import TransformerEncoder
from coterie.encoders.weights import WEIGHTS_FILE
from coterie.errors import SettingError

logger = logging.getLogger(__name__)

# Standard deviation of the noise on a new head's identity layer: that of BERT's initial weights.
INITIAL_DEVIATION = 0.02
# Epsilon of the layer norm, as in BERT.
DEFAULT_EPSILON = 1e-12


@dataclass(frozen=True)
class _Layout:
    """The names of a head's parts in one family of models, and its settings."""

    dense: str
    norm: str
    bias: str
    activation: str | None = None  # the setting that names it; GELU where the family has none
    epsilon: str | None = "layer_norm_eps"


_LAYOUTS = (
    # BERT
    _Layout(
        "cls.predictions.transform.dense", "cls.predictions.transform.LayerNorm", "cls.predictions.bias", "hidden_act"
    ),
    # RoBERTa, XLM-R, CamemBERT, MPNet
    _Layout("lm_head.dense", "lm_head.layer_norm", "lm_head.bias"),
    # DistilBERT
    _Layout("vocab_transform", "vocab_layer_norm", "vocab_projector.bias", "activation", epsilon=None),
    # ALBERT
    _Layout("predictions.dense", "predictions.LayerNorm", "predictions.bias", "hidden_act"),
    # ELECTRA's generator
    _Layout("generator_predictions.dense", "generator_predictions.LayerNorm", "generator_lm_head.bias"),
    # ModernBERT
    _Layout("head.dense", "head.norm", "decoder.bias", "classifier_activation", "norm_eps"),
)


class MaskedHead(nn.Module):
    """Compute logits over the vocabulary from token states: dense layer, activation, norm, word embeddings, bias.

    The last layer is the encoder's own matrix of word embeddings, which is shared and not copied. It is not among this
    module's parameters: ``head.parameters()`` are those that the encoder does not have, so an optimiser of both gets
    each parameter once.

    Parameters
    ----------
    embeddings:
        The encoder's word embeddings.
    dimension:
        Size of the token states; it may differ from that of the embeddings (ALBERT, ELECTRA).
    activation:
        Name of the activation in ``transformers``.
    epsilon:
        Epsilon of the layer norm.
    """

    def __init__(
        self, embeddings: nn.Embedding, dimension: int, activation: str = "gelu", epsilon: float = DEFAULT_EPSILON
    ) -> None:
        from transformers.activations import ACT2FN

        super().__init__()
        vocabulary, width = embeddings.weight.shape
        with torch.random.fork_rng(
            devices=[]
        ):  # these weights are replaced: they must not advance the user's generator
            self.dense = nn.Linear(dimension, width)
        self.activation: nn.Module = ACT2FN[activation]
        self.norm = nn.LayerNorm(width, eps=epsilon)
        self.bias = nn.Parameter(torch.zeros(vocabulary))
        self._tied = (embeddings,)  # in a tuple, because torch would register a plain attribute as a submodule

    @classmethod
    def for_encoder(cls, encoder: TransformerEncoder, generator: torch.Generator) -> tuple[MaskedHead, bool]:
        """Return the head of ``encoder``, on its device, and whether a trained one is in the model's folder.

        A new head is the identity (cut to shape where the embeddings are smaller) plus a little noise from
        ``generator``: the residual connections of a transformer carry a token's embedding to the last layer, so states
        and embeddings share directions and a short training suffices.
        """
        embeddings = encoder.model.get_input_embeddings()  # type: ignore[operator]
        found = _find_trained(encoder, embeddings)
        if found is not None:
            layout, tensors = found
            config = _config(encoder)
            activation = str(config[layout.activation]) if layout.activation else "gelu"
            epsilon = float(config[layout.epsilon]) if layout.epsilon else DEFAULT_EPSILON
            head = cls(embeddings, encoder.hidden_size, activation, epsilon)
            head.load_state_dict(tensors)
        else:
            head = cls(embeddings, encoder.hidden_size)
            head.reset(generator)
        return head.eval().to(encoder.device), found is not None

    @torch.no_grad()
    def reset(self, generator: torch.Generator) -> None:
        """Initialise the head again, with noise from ``generator``."""
        noise = torch.empty(self.dense.weight.shape).normal_(0.0, INITIAL_DEVIATION, generator=generator)
        self.dense.weight.copy_(torch.eye(*self.dense.weight.shape) + noise)
        self.dense.bias.zero_()
        self.norm.reset_parameters()
        self.bias.zero_()

    def forward(self, states: Tensor) -> Tensor:
        """Return the logits of states, ``... x dimension`` to ``... x vocabulary``.

        The vocabulary is large: select the states of masked positions before the call.
        """
        hidden = self.norm(self.activation(self.dense(states)))
        return nn.functional.linear(hidden, self._tied[0].weight, self.bias)


def check_mask_token(encoder: TransformerEncoder) -> int:
    """Return the id of the encoder's mask token; raise an error where it has none."""
    mask_id = encoder.tokenizer.mask_token_id
    if mask_id is None:
        raise SettingError(
            f"the encoder {backbone_name(encoder)} has no mask token, so no words can be masked; use one that was "
            "trained on masked words, such as 'all-MiniLM-L6-v2', 'bert-base-uncased' or 'roberta-base'"
        )
    return int(mask_id)


def backbone_name(encoder: TransformerEncoder) -> str:
    """Return the folder of the encoder's model; its architecture for a model made in memory."""
    return str(encoder.model.name_or_path) or str(_config(encoder)["model_type"])


def _config(encoder: TransformerEncoder) -> dict[str, Any]:
    return encoder.model.config.to_dict()  # type: ignore[union-attr, operator]


def _find_trained(encoder: TransformerEncoder, embeddings: nn.Embedding) -> tuple[_Layout, dict[str, Tensor]] | None:
    """Return the head's tensors in the folder of the encoder's weights, named as in :class:`MaskedHead`."""
    folder = Path(str(encoder.model.name_or_path))
    files = _stored_tensors(folder)
    for layout in _LAYOUTS:
        if f"{layout.dense}.weight" not in files or not any(f"{layout.norm}.{n}" in files for n in ("weight", "gamma")):
            continue
        tensors = _read_head(layout, files, embeddings)
        vocabulary, width = embeddings.weight.shape
        fits = (
            tensors["dense.weight"].shape == (width, encoder.hidden_size)
            and tensors["bias"].shape == (vocabulary,)
            and _config(encoder).get("tie_word_embeddings", True)
        )
        if fits:
            return layout, tensors
        logger.warning("the masked-language head in %s does not fit its word embeddings; a new one is used", folder)
    return None


def _read_head(layout: _Layout, files: dict[str, Path], embeddings: nn.Embedding) -> dict[str, Tensor]:
    vocabulary, width = embeddings.weight.shape
    # Old checkpoints call a layer norm's weight gamma and its bias beta; ModernBERT has no biases here.
    names = {
        "dense.weight": (f"{layout.dense}.weight",),
        "dense.bias": (f"{layout.dense}.bias",),
        "norm.weight": (f"{layout.norm}.weight", f"{layout.norm}.gamma"),
        "norm.bias": (f"{layout.norm}.bias", f"{layout.norm}.beta"),
        "bias": (layout.bias, layout.bias.replace(".bias", ".decoder.bias")),
    }
    sizes = {"dense.bias": width, "norm.bias": width, "bias": vocabulary}
    tensors: dict[str, Tensor] = {}
    for ours, candidates in names.items():
        stored = next((name for name in candidates if name in files), None)
        tensors[ours] = torch.zeros(sizes[ours]) if stored is None else _read_tensor(files[stored], stored)
    return tensors


def _stored_tensors(folder: Path) -> dict[str, Path]:
    """Return the file of each tensor in ``folder``; only safetensors, the only format of encoders."""
    from safetensors import safe_open

    index = folder / f"{WEIGHTS_FILE}.index.json"
    if index.is_file():
        places = json.loads(index.read_text(encoding="utf-8"))["weight_map"]
        return {name: folder / file for name, file in places.items()}
    single = folder / WEIGHTS_FILE
    if not single.is_file():
        return {}
    with safe_open(str(single), framework="pt") as stored:
        return dict.fromkeys(stored.keys(), single)


def _read_tensor(file: Path, name: str) -> Tensor:
    from safetensors import safe_open

    with safe_open(str(file), framework="pt") as stored:
        tensor: Tensor = stored.get_tensor(name)
        return tensor.float()
