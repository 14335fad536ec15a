"""Masked language modelling: UFTC's first loss, and training a head for a model without one."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor, nn

from coterie.encoders.transformer import TransformerEncoder
from coterie.language.masked_head import MaskedHead, check_mask_token
from coterie.losses.nt_xent import weighted_mean
from coterie.training.config import TrainingConfig
from coterie.training.objective import ORIGINAL, Batch, LossTerms, Objective, Stage, TokenView
from coterie.training.trainer import Trainer
from coterie.training.views import Views

# Learning rate of a new head, whose encoder is frozen.
HEAD_LEARNING_RATE = 1e-3


class MaskedWords(nn.Module):
    """Replace a share of the tokens by the mask token and compute the loss of predicting them.

    Parameters
    ----------
    ratio:
        Share of the tokens that are masked; special tokens never are.
    """

    def __init__(self, encoder: TransformerEncoder, head: MaskedHead, ratio: float) -> None:
        super().__init__()
        self.head = head
        self.ratio = ratio
        self.mask_id = check_mask_token(encoder)
        special = torch.zeros(len(encoder.tokenizer), dtype=torch.bool)
        special[[each for each in encoder.tokenizer.all_special_ids if each < len(special)]] = True
        self.register_buffer("_special", special, persistent=False)
        self._special: Tensor

    def mask(self, ids: Tensor) -> Tensor:
        """Return ``ids`` with a random share of the ordinary tokens masked."""
        chosen = torch.rand(ids.shape, device=ids.device) < self.ratio
        return ids.masked_fill(chosen & ~self._special[ids], self.mask_id)

    def loss(self, view: TokenView, weights: Tensor) -> Tensor:
        """Return the mean negative log-likelihood of the masked tokens, weighted by their texts' counts."""
        chosen = view.ids != view.original_ids
        logits = self.head(view.states[chosen])
        losses = nn.functional.cross_entropy(logits, view.original_ids[chosen], reduction="none")
        each = weights[:, None].expand(chosen.shape)[chosen]
        if not len(losses):
            # A batch of short texts may have no masked token: its loss is 0.
            return view.states.sum() * 0 + self.head.bias.sum() * 0
        return weighted_mean(losses, each)


class HeadTraining(Objective):
    """Train only a masked-language head, with the encoder frozen."""

    views = (ORIGINAL,)
    needs_token_states = True
    trains_encoder = False

    def __init__(self, masked: MaskedWords, learning_rate: float = HEAD_LEARNING_RATE) -> None:
        super().__init__()
        self.masked = masked
        self._learning_rate = learning_rate

    def own_rates(self) -> dict[str, float]:
        return {"masked": self._learning_rate}

    def corrupt(self, ids: Tensor, mask: Tensor) -> Tensor:
        return self.masked.mask(ids)

    def loss(self, batch: Batch) -> LossTerms:
        language = self.masked.loss(batch.token_views[0], batch.weights)
        return LossTerms(language, language=language)


def train_masked_head(
    encoder: TransformerEncoder,
    head: MaskedHead,
    texts: Sequence[str],
    *,
    mask_ratio: float = 0.1,
    epochs: int = 1,
    seed: int = 0,
    progress: bool = False,
) -> None:
    """Train ``head`` on ``texts``; the encoder does not change."""
    tokens = encoder.tokenize(texts)
    config = TrainingConfig(max_epochs=epochs, max_steps=None, batch_size=32, check_every=0, progress=progress)
    views = Views(encoder, texts, tokens, {}, seed)
    trainer = Trainer(encoder, views, tokens, np.ones(len(texts), dtype=np.int64), config, None, seed)
    history = trainer.run([Stage("masked_head", HeadTraining(MaskedWords(encoder, head, mask_ratio)))])
    if history.interrupted:
        raise KeyboardInterrupt  # the caller cannot use a half-trained head
