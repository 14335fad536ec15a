"""The denoising auto-encoder TSDAE: a decoder that reconstructs a text from its sentence vector."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn

from coterie.encoders.device import autocast
from coterie.encoders.model_loading import hide_transformers_output
from coterie.encoders.transformer import TransformerEncoder
from coterie.errors import SettingError
from coterie.language.masked_head import backbone_name
from coterie.losses.nt_xent import weighted_mean
from coterie.training.objective import ORIGINAL, Batch, LossTerms, Objective, Stage
from coterie.training.trainer import seeded

# The name of the view in which some words of a text are deleted.
NOISED = "noised"


class SentenceDecoder(nn.Module):
    """Predict each next token of a text from the sentence vector and the tokens before it.

    The decoder shares all weights that the encoder also has (tied weights); the attention to the sentence vector and
    the layer before the vocabulary are new.

    Parameters
    ----------
    encoder:
        Any model that ``transformers`` also has as a decoder with cross attention: BERT (and MiniLM), RoBERTa,
        XLM-R, ELECTRA and similar models.
    seed:
        Seed of the new weights.

    References
    ----------
    Wang et al., TSDAE: Using Transformer-based Sequential Denoising Auto-Encoder for Unsupervised Sentence
    Embedding Learning, EMNLP Findings 2021.
    """

    def __init__(self, encoder: TransformerEncoder, seed: int) -> None:
        super().__init__()
        self.model = _tied_decoder(encoder, seed).to(encoder.device)

    def loss(self, sentences: Tensor, ids: Tensor, mask: Tensor, weights: Tensor, precision: torch.dtype) -> Tensor:
        """Return the mean negative log-likelihood of the tokens of ``ids`` after the first (ClusterBERT Eq. 1).

        Each token is weighted by the occurrences of its text.
        """
        with autocast(ids.device, precision):
            logits = self.model(
                input_ids=ids[:, :-1],
                attention_mask=mask[:, :-1],
                encoder_hidden_states=sentences[:, None],
                encoder_attention_mask=torch.ones_like(mask[:, :1]),
                use_cache=False,
            ).logits
        return reconstruction_loss(logits, ids[:, 1:], mask[:, 1:], weights)


class Reconstruction(Objective):
    """Reconstruct the text from the vector of its noised version (TSDAE; ClusterBERT section 3.2)."""

    views = (NOISED,)

    def __init__(self, decoder: SentenceDecoder, learning_rate: float, trains_encoder: bool = True) -> None:
        super().__init__()
        self.decoder = decoder
        self.trains_encoder = trains_encoder
        self._learning_rate = learning_rate

    def own_rates(self) -> Mapping[str, float]:
        return {"decoder": self._learning_rate}

    def reconstruct(self, batch: Batch) -> Tensor:
        """Return the reconstruction loss of the batch's texts from its first embeddings."""
        assert batch.tokens is not None
        ids, mask = batch.tokens(ORIGINAL)
        return self.decoder.loss(batch.embeddings[0], ids, mask, batch.weights, batch.precision)  # ClusterBERT Eq. 1

    def loss(self, batch: Batch) -> LossTerms:
        reconstruction = self.reconstruct(batch)
        return LossTerms(reconstruction, reconstruction=reconstruction)


def warming(decoder: SentenceDecoder, learning_rate: float, epochs: int) -> Stage:
    """Return a stage that trains only the decoder's own parts, so that their first errors do not change the encoder."""
    alone = Reconstruction(decoder, learning_rate, trains_encoder=False)
    return Stage("decoder", alone, epochs=epochs, stops=False)


def reconstruction_loss(logits: Tensor, targets: Tensor, mask: Tensor, weights: Tensor) -> Tensor:
    """Return the mean negative log-likelihood of the tokens where ``mask`` is 1, weighted by their texts' counts."""
    wide = logits if logits.dtype == torch.float64 else logits.float()
    tokens = nn.functional.cross_entropy(wide.flatten(0, 1), targets.flatten(), reduction="none")
    return weighted_mean(tokens, (weights[:, None] * mask).flatten())  # Eq. 1 of ClusterBERT, per token


def check_decoder(encoder: TransformerEncoder) -> None:
    """Raise an error for a model that cannot be turned into a decoder."""
    if encoder.projection is not None:
        raise SettingError(
            f"the encoder {backbone_name(encoder)} ends in a linear layer: a decoder of its own kind cannot read its "
            "sentence vectors; use a model without one"
        )
    with torch.device("meta"):
        _new_decoder(encoder)


def _new_decoder(encoder: TransformerEncoder) -> nn.Module:
    """Return a decoder of the encoder's architecture with attention to a sentence and random weights."""
    from transformers import AutoModelForCausalLM

    config: Any = type(encoder.model.config).from_dict(encoder.model.config.to_dict())  # type: ignore[union-attr, operator]
    config.is_decoder = True
    config.add_cross_attention = True
    try:
        with hide_transformers_output():
            decoder: nn.Module = AutoModelForCausalLM.from_config(config)
    except ValueError:  # no decoder of this kind
        decoder = nn.Module()
    if not any("crossattention" in name for name, _ in decoder.named_parameters()):
        raise SettingError(
            f"the encoder {backbone_name(encoder)} ({config.model_type}) cannot be turned into a decoder with "
            "attention to a sentence; use a BERT, MiniLM, RoBERTa, XLM-R or ELECTRA model"
        )
    return decoder


def _tied_decoder(encoder: TransformerEncoder, seed: int) -> nn.Module:
    """Return a decoder whose parameters are the encoder's wherever the names agree."""
    with seeded(seed):
        decoder: Any = _new_decoder(encoder)
    base = decoder.base_model
    shared = dict(encoder.model.named_parameters())
    for name, _ in list(base.named_parameters()):
        if name in shared:
            owner, _, leaf = name.rpartition(".")
            setattr(base.get_submodule(owner), leaf, shared[name])
    decoder.tie_weights()  # the output layer is tied to the word embeddings, which are now those of the encoder
    return decoder
