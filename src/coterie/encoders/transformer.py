"""A transformer with pooling: texts in, sentence embeddings out, trainable."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from coterie.encoders.base import EncoderOutput
from coterie.encoders.device import autocast
from coterie.encoders.folder import SentenceSettings, check_settings, read_settings, write_settings
from coterie.encoders.projection import PROJECTION_FOLDER, in_a_row, read_linear, write_linear
from coterie.encoders.quiet import without_bars
from coterie.encoders.tokens import DeviceTokens, TokenArrays, batches_by_tokens, tokenize
from coterie.encoders.weights import find_weights
from coterie.errors import ModelFolderError

logger = logging.getLogger(__name__)

# Padded tokens in one forward pass when encoding: enough to fill the device, small enough for its caches.
TOKENS_PER_FORWARD = {"cuda": 131_072, "mps": 16_384, "cpu": 4_096}


class TransformerEncoder(nn.Module):
    """Any Hugging Face encoder with mean, CLS or max pooling, optional L2 normalisation, optional linear projection."""

    def __init__(self, model: nn.Module, tokenizer: Any, settings: SentenceSettings, origin: str) -> None:
        super().__init__()
        self.model = model
        self.tokenizer = tokenizer
        self.settings = settings
        self.origin = origin
        self.projection: nn.Linear | None = None
        # Sentence embeddings are pooled from the token states: the model's own pooler never gets a gradient.
        pooler = dict(model.named_children()).get("pooler")
        if pooler is not None:
            pooler.requires_grad_(False)

    @classmethod
    def load(
        cls,
        name: str | os.PathLike[str],
        *,
        pooling: str = "auto",
        normalize: bool | str = "auto",
        max_length: int | None = None,
        device: torch.device | None = None,
        local_files_only: bool = False,
    ) -> TransformerEncoder:
        """Load ``name`` from wherever its weights are (see :mod:`coterie.encoders.weights`), as float32.

        ``"auto"`` follows the model's own pooling and normalisation. ``max_length`` counts tokens; it is
        lowered to what the model can take.
        """
        from transformers import AutoModel, AutoTokenizer

        check_settings(pooling, normalize, max_length)
        source = find_weights(name, local_files_only=local_files_only)
        logger.info("encoder %s from %s (%s)", name, source.origin, source.folder)
        folder = str(source.folder)
        try:
            # Weights that a file lacks are drawn at random: that must not move the user's generator.
            with without_bars(), torch.random.fork_rng(devices=[]):
                # The dtype is explicit because transformers otherwise keeps whatever precision the file stores.
                model = AutoModel.from_pretrained(
                    folder, dtype=torch.float32, local_files_only=True, use_safetensors=True
                )
            tokenizer = AutoTokenizer.from_pretrained(folder, local_files_only=True)
        except Exception as error:  # transformers raises whatever its parsers do
            raise ModelFolderError(f"{folder} cannot be loaded as an encoder: {_first_line(error)}") from error
        own = read_settings(source.folder, pooling)
        own_limit = own.max_length or tokenizer.model_max_length  # where newer sentence-transformers keep it
        settings = SentenceSettings(
            pooling=own.pooling,
            normalize=own.normalize if normalize == "auto" else bool(normalize),
            max_length=_length_limit(max_length, own_limit, model),
        )
        encoder = cls(model, tokenizer, settings, source.origin)
        if own.projection is not None:
            encoder.project(read_linear(source.folder / own.projection))
        encoder.eval()
        return encoder if device is None else encoder.to(device)

    @property
    def device(self) -> torch.device:
        return next(self.model.parameters()).device

    def project(self, projection: nn.Linear) -> None:
        """Put a linear layer behind everything else; it is trained and saved with the encoder."""
        layer = projection if self.projection is None else in_a_row(self.projection, projection)
        self.projection = layer.to(self.device)
        self.settings = replace(self.settings, projection=PROJECTION_FOLDER)

    @property
    def hidden_size(self) -> int:
        """Width of a token state."""
        return int(self.model.config.hidden_size)  # type: ignore[union-attr, arg-type]

    @property
    def dimension(self) -> int:
        """Width of a sentence embedding."""
        return self.hidden_size if self.projection is None else self.projection.out_features

    @property
    def max_length(self) -> int:
        return self.settings.max_length or 512

    @property
    def pad_id(self) -> int:
        return int(self.tokenizer.pad_token_id or 0)

    def forward(self, ids: Tensor, mask: Tensor) -> EncoderOutput:
        """Sentence embeddings of a padded batch."""
        states = self.model(input_ids=ids, attention_mask=mask).last_hidden_state.float()
        sentences = self._pool(states, mask)
        if self.settings.normalize:
            sentences = nn.functional.normalize(sentences, dim=-1)
        if self.projection is not None:
            sentences = self.projection(sentences).float()
        return EncoderOutput(sentences, states, mask)

    def _pool(self, states: Tensor, mask: Tensor) -> Tensor:
        if self.settings.pooling == "cls":
            return states[:, 0]
        weights = mask.unsqueeze(-1).to(states.dtype)
        if self.settings.pooling == "max":
            return states.masked_fill(weights == 0, float("-inf")).amax(dim=1)
        return (states * weights).sum(dim=1) / weights.sum(dim=1)

    def tokenize(self, texts: Sequence[str]) -> TokenArrays:
        """Token ids of ``texts``, cut at :attr:`max_length`."""
        return tokenize(self.tokenizer, texts, self.max_length)

    def encode(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Embeddings of ``texts`` in float32, in evaluation mode."""
        return self.encode_tokens(self.tokenize(texts)).cpu().numpy()

    def encode_alone(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Embeddings of ``texts``, each in a forward pass of its own.

        The last digits of a batched result depend on the batch's shape; these do not, so they settle which of
        two nearly equally near clusters a text belongs to, whatever stood beside it.
        """
        rows = [self.encode([text]) for text in texts]
        return np.concatenate(rows) if rows else np.zeros((0, self.dimension), dtype=np.float32)

    @torch.no_grad()
    def encode_tokens(
        self, tokens: TokenArrays, dtype: torch.dtype = torch.float32, progress: str | None = None
    ) -> Tensor:
        """Embeddings of tokenised texts on the encoder's device, in evaluation mode, in the texts' order.

        ``progress`` is the name of a progress bar to show.
        """
        was_training = self.training
        self.eval()
        on_device = DeviceTokens(tokens, self.pad_id, self.device)
        rows = np.arange(len(tokens))
        budget = TOKENS_PER_FORWARD.get(self.device.type, 4_096)
        bar = None
        if progress is not None:
            from tqdm import tqdm

            bar = tqdm(total=len(tokens), desc=progress, unit="text", mininterval=1.0, leave=False)
        result, _ = self.encode_rows(on_device, rows, dtype, budget, done=None if bar is None else bar.update)
        if bar is not None:
            bar.close()
        self.train(was_training)
        return result

    def encode_rows(
        self,
        tokens: DeviceTokens,
        rows: NDArray[np.int64],
        dtype: torch.dtype,
        token_budget: int,
        done: Callable[[int], object] | None = None,
    ) -> tuple[Tensor, int]:
        """Embeddings of ``rows`` in their order, and how many padded tokens that took.

        Rows of like length go through the model together, at most ``token_budget`` padded tokens at a time; a
        text's embedding does not depend on its company, so this changes the cost alone. ``done`` is told of every
        few rows finished.
        """
        parts, places, padded = [], [], 0
        with autocast(self.device, dtype):
            for part in batches_by_tokens(tokens.lengths_on_host[rows], token_budget):
                width = tokens.width(rows[part])
                ids, mask = tokens.batch(torch.from_numpy(rows[part]).to(self.device), width)
                parts.append(self(ids, mask).sentences)
                places.append(part)
                padded += len(part) * width
                if done is not None:
                    done(len(part))
        if not parts:
            return torch.empty(0, self.dimension, device=self.device), 0
        back = np.argsort(np.concatenate(places))
        return torch.cat(parts)[torch.from_numpy(back).to(self.device)], padded

    def save(self, folder: Path) -> None:
        """Write a folder that ``SentenceTransformer(folder)`` loads."""
        folder.mkdir(parents=True, exist_ok=True)
        with without_bars():
            self.model.save_pretrained(str(folder))  # type: ignore[operator]
        self.tokenizer.save_pretrained(str(folder))
        write_settings(folder, self.settings, self.hidden_size)
        if self.projection is not None:
            write_linear(folder / PROJECTION_FOLDER, self.projection)


def _first_line(error: Exception) -> str:
    lines = str(error).strip().splitlines()
    return lines[0] if lines else type(error).__name__


def _length_limit(asked: int | None, own: int | None, model: nn.Module) -> int:
    """The smallest of what was asked, what the folder says (when nothing was asked) and what the model takes."""
    config: Any = model.config
    # RoBERTa-like models spend the first positions on padding.
    positions = int(getattr(config, "max_position_embeddings", 512) or 512)
    if getattr(config, "model_type", "") in {"roberta", "xlm-roberta", "camembert", "mpnet"}:
        positions -= int(getattr(config, "pad_token_id", 1) or 0) + 1
    wanted = asked if asked is not None else (own or positions)
    return max(3, min(wanted, positions))
