"""Masking words and learning to guess them: UFTC's first loss, and the training of a head that a model lacks."""

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

HEAD_LEARNING_RATE = 1e-3


class MaskedWords(nn.Module):
    """Replaces a share of the tokens by the mask token, and scores how well a head guesses them.

    Parameters
    ----------
    ratio:
        Share of the tokens that are masked; the tokenizer's special tokens never are.
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
        """``ids`` with a random share of the ordinary tokens masked."""
        drawn = torch.rand(ids.shape, device=ids.device) < self.ratio
        return ids.masked_fill(drawn & ~self._special[ids], self.mask_id)

    def loss(self, view: TokenView, weights: Tensor) -> Tensor:
        """Mean negative log-likelihood of the masked tokens, each counted as often as its text occurs."""
        chosen = view.ids != view.original_ids
        logits = self.head(view.states[chosen])
        guesses = nn.functional.cross_entropy(logits, view.original_ids[chosen], reduction="none")
        each = weights[:, None].expand(chosen.shape)[chosen]
        if not len(guesses):
            # A batch of short texts may have no masked token at all: nothing to learn from it.
            return view.states.sum() * 0 + self.head.bias.sum() * 0
        return weighted_mean(guesses, each)


class HeadTraining(Objective):
    """The masked-language loss alone, with the encoder as it is."""

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
    """Train ``head`` on ``texts``; the encoder stays as it is."""
    tokens = encoder.tokenize(texts)
    config = TrainingConfig(max_epochs=epochs, max_steps=None, batch_size=32, check_every=0, progress=progress)
    views = Views(encoder, texts, tokens, {}, seed)
    trainer = Trainer(encoder, views, tokens, np.ones(len(texts), dtype=np.int64), config, None, seed)
    history = trainer.run([Stage("masked_head", HeadTraining(MaskedWords(encoder, head, mask_ratio)))])
    if history.interrupted:
        raise KeyboardInterrupt  # half a head is none: whoever asked for it cannot go on
