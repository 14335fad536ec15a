"""Run BERT and RoBERTa on packed texts, with the model's own weights, no padding and few kernels.

Modules are only read for their weights, so any model with BERT's names works: that of the transformers library, or
:class:`~coterie.encoders.model_loading.LightBert`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from coterie.encoders.fused_operations import FusedOperations
from coterie.encoders.packed_attention import attend, window_bias
from coterie.encoders.packing import PackedBatch

# Model types with the layers of BERT.
FAMILIES = {"bert", "roberta", "xlm-roberta", "camembert"}
# Model types that number positions from the one after the padding id, not from 0.
OFFSET_FAMILIES = FAMILIES - {"bert"}
# Activations by their name in a model's configuration.
ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "gelu": functional.gelu,
    "relu": functional.relu,
    "gelu_new": lambda states: functional.gelu(states, approximate="tanh"),
    "gelu_pytorch_tanh": lambda states: functional.gelu(states, approximate="tanh"),
}
# Steps of a dropout rate on a CPU: sixteen random bits decide each number.
DROPOUT_STEPS = 1 << 16

# A matrix and its bias, or the scale and shift of a norm.
Product = tuple[Tensor, Tensor]


def can_pack(model: Any) -> bool:
    """Return whether :func:`run_packed` computes what ``model`` computes."""
    config: Any = getattr(model, "config", None)
    return (
        getattr(config, "model_type", None) in FAMILIES
        and getattr(config, "position_embedding_type", None) in {None, "absolute"}
        and getattr(config, "hidden_act", None) in ACTIVATIONS
        and not getattr(config, "is_decoder", False)
        and not getattr(config, "add_cross_attention", False)
    )


@dataclass(frozen=True)
class Layer:
    """The weights of one layer: matrices in the precision of the products, biases and norms in float32."""

    attention: Product  # queries, keys and values in one matrix
    attention_out: Product
    attention_norm: Product
    up: Product
    down: Product
    norm: Product
    dropouts: tuple[float, float, float]  # rates: in the attention, after it, and at the end of the layer


def layer_weights(model: Any, dtype: torch.dtype) -> list[Layer]:
    """Return the weights of all layers for :func:`run_packed`; gradients flow to the model's own weights."""

    def cast(*modules: nn.Linear) -> Product:
        if len(modules) == 1:
            return modules[0].weight.to(dtype), modules[0].bias
        weights = torch.cat([module.weight.to(dtype) for module in modules])
        return weights, torch.cat([module.bias for module in modules])

    def norm(module: nn.LayerNorm) -> tuple[Tensor, Tensor]:
        return module.weight, module.bias

    return [
        Layer(
            cast(layer.attention.self.query, layer.attention.self.key, layer.attention.self.value),
            cast(layer.attention.output.dense),
            norm(layer.attention.output.LayerNorm),
            cast(layer.intermediate.dense),
            cast(layer.output.dense),
            norm(layer.output.LayerNorm),
            (_dropout(layer.attention.self), _dropout(layer.attention.output), _dropout(layer.output)),
        )
        for layer in model.encoder.layer
    ]


def run_packed(model: Any, layers: list[Layer], packed: PackedBatch, fused: FusedOperations | None = None) -> Tensor:
    """Return the last token states (float32) of packed texts, one row per token.

    As under autocast, matrix products are in the precision of ``layers``, sums and norms in float32. Dropout follows
    the model's mode. ``fused`` operations compute the same in fewer passes if the model's activation is GELU.
    """
    config, training = model.config, model.training
    activation = ACTIVATIONS[config.hidden_act]
    heads, eps = config.num_attention_heads, config.layer_norm_eps
    width = (config.hidden_size,)
    dtype = layers[0].up[0].dtype
    attention_bias = window_bias(packed, dtype)
    if config.hidden_act != "gelu":
        fused = None

    def apply_norm(states: Tensor, weights: tuple[Tensor, Tensor]) -> Tensor:
        return functional.layer_norm(states, width, *weights, eps)

    def apply_dropout(states: Tensor, rate: float) -> Tensor:
        return dropout(states, rate) if training and rate else states

    def add_norm(states: Tensor, inner: Tensor, weights: Product, norm: Product, rate: float) -> tuple[Tensor, Tensor]:
        """Return ``norm(states + dropout(inner @ weights))``, and the same in the precision of the products."""
        if fused is None:
            result = apply_norm(states + apply_dropout(_product(inner, weights), rate), norm)
            return result, result.to(dtype)
        product = functional.linear(inner, weights[0])
        return fused.residual_norm(states, product, weights[1], norm, rate if training else 0.0, eps)

    table = model.embeddings
    first = config.pad_token_id + 1 if config.model_type in OFFSET_FAMILIES else 0
    # Only a filler text of a window can be longer than the model's limit.
    positions = (packed.positions + first).clamp_max(len(table.position_embeddings.weight) - 1)
    states = (
        functional.embedding(packed.ids, table.word_embeddings.weight)
        + functional.embedding(positions, table.position_embeddings.weight)
        + table.token_type_embeddings.weight[0]
    )
    states = apply_dropout(apply_norm(states, (table.LayerNorm.weight, table.LayerNorm.bias)), _dropout(table))
    narrow = states.to(dtype)
    for layer in layers:
        inside, behind, last = layer.dropouts
        mixed = _product(narrow, layer.attention)
        mixed = attend(mixed.view(len(mixed), 3, heads, -1), packed, inside if training else 0.0, attention_bias)
        states, narrow = add_norm(states, mixed, layer.attention_out, layer.attention_norm, behind)
        if fused is None:
            inner = activation(_product(narrow, layer.up))
        else:
            inner = fused.bias_gelu(functional.linear(narrow, layer.up[0]), layer.up[1])
        states, narrow = add_norm(states, inner, layer.down, layer.norm, last)
    return states


def _product(states: Tensor, weights: Product) -> Tensor:
    return functional.linear(states, weights[0], weights[1].to(states.dtype))


def _dropout(module: nn.Module) -> float:
    """Return the module's current dropout rate; a light model is never trained and has none."""
    return float(getattr(getattr(module, "dropout", None), "p", 0.0))


def dropout(states: Tensor, rate: float) -> Tensor:
    """Set a share of ``rate`` of ``states`` to zero and scale up the rest; torch's generator is the only seed.

    On a CPU torch's own dropout is slower than the arithmetic around it, because it samples one number at a time.
    There, one seed is sampled from torch's generator, and numpy generates the random bits of all numbers at once.
    """
    if states.device.type != "cpu":
        return functional.dropout(states, rate)
    seed = torch.randint(2**62, (1,)).numpy()[0]
    words = -(-states.numel() // 4)
    bits = np.random.SFC64(seed).random_raw(words).view(np.uint16)[: states.numel()]
    keep_mask = torch.from_numpy(bits >= round(rate * DROPOUT_STEPS)).view(states.shape)
    return states * (keep_mask * (1 / (1 - rate))).to(states.dtype)
