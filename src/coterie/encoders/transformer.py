"""A trainable sentence encoder: a transformer with pooling."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from coterie.encoders.dense_layer import PROJECTION_FOLDER, compose_linear, read_linear, write_linear
from coterie.encoders.device import autocast
from coterie.encoders.device_tokens import DeviceTokens
from coterie.encoders.fused_operations import FusedOperations
from coterie.encoders.model_loading import hide_transformers_output, length_limit, load_light, load_with_transformers
from coterie.encoders.packed_bert import Layer, can_pack, layer_weights, run_packed
from coterie.encoders.packing import PackedBatch, pack, pad, text_means
from coterie.encoders.sentence_transformer_files import SentenceSettings, check_settings, read_settings, write_settings
from coterie.encoders.tokenization import (
    FEWEST_TEXTS_FOR_CACHE,
    TokenArrays,
    batches_by_tokens,
    tokenize,
    tokenize_ahead,
    word_token_cache,
)
from coterie.encoders.weights import find_weights
from coterie.encoders.word_token_cache import WordTokenCache
from coterie.errors import SettingError

logger = logging.getLogger(__name__)

# Tokens per forward pass when encoding: enough to use the whole device, few enough for its caches.
TOKENS_PER_FORWARD = {"cuda": 131_072, "mps": 16_384, "cpu": 2_048}


@dataclass(frozen=True)
class EncoderOutput:
    """One forward pass over a padded batch.

    Attributes
    ----------
    sentences:
        Sentence embeddings, ``batch x dimension``.
    token_states:
        The last layer's states, ``batch x width x hidden``.
    mask:
        1 for real tokens, 0 for padding, ``batch x width``.
    """

    sentences: Tensor
    token_states: Tensor
    mask: Tensor


class TransformerEncoder(nn.Module):
    """A Hugging Face encoder with mean, CLS or max pooling, and optional L2 normalisation and linear projection."""

    def __init__(self, model: nn.Module, tokenizer: Any, settings: SentenceSettings, origin: str) -> None:
        super().__init__()
        self.model = model
        self.tokenizer = tokenizer
        self.settings = settings
        self.origin = origin
        self.projection: nn.Linear | None = None
        # Shared by all calls: later texts mostly repeat words of earlier ones.
        self._words: WordTokenCache | None = None
        self._can_pack = can_pack(model)
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
        light: bool = False,
    ) -> TransformerEncoder:
        """Load the encoder ``name``, found by :mod:`coterie.encoders.weights`, in float32.

        ``"auto"`` uses the model's own pooling and normalisation. ``max_length`` is in tokens; it is lowered to the
        model's limit. A ``light`` encoder is loaded without the transformers library, which is seconds faster, if the
        folder allows it; it can encode and be saved, but not trained.
        """
        check_settings(pooling, normalize, max_length)
        source = find_weights(name, local_files_only=local_files_only)
        logger.info("encoder %s from %s (%s)", name, source.origin, source.folder)
        folder = str(source.folder)
        model, tokenizer = (load_light(source.folder) if light else None) or load_with_transformers(folder)
        own = read_settings(source.folder, pooling)
        own_limit = own.max_length or tokenizer.model_max_length  # where newer sentence-transformers keep it
        settings = SentenceSettings(
            pooling=own.pooling,
            normalize=own.normalize if normalize == "auto" else bool(normalize),
            max_length=length_limit(max_length, own_limit, model),
        )
        encoder = cls(model, tokenizer, settings, source.origin)
        if own.projection is not None:
            encoder.project(read_linear(source.folder / own.projection))
        encoder.eval()
        return encoder if device is None else encoder.to(device)

    @property
    def packs(self) -> bool:
        """Whether texts are packed for the model; for other models, and on Apple's GPUs, they are padded."""
        return self._can_pack and self.device.type != "mps"

    @property
    def device(self) -> torch.device:
        return next(self.model.parameters()).device

    def project(self, projection: nn.Linear) -> None:
        """Add a linear layer after the last layer; it is trained and saved with the encoder."""
        layer = projection if self.projection is None else compose_linear(self.projection, projection)
        self.projection = layer.to(self.device)
        self.settings = replace(self.settings, projection=PROJECTION_FOLDER)

    def lower_layers(self, n_layers: int) -> list[nn.Module]:
        """Return the word embeddings and all layers but the last ``n_layers``."""
        if not self.has_layers:
            kind = type(self.model).__name__
            raise SettingError(f"training.trainable_layers: {kind} has no layers that Coterie can find; leave it out")
        return [self.model.embeddings, *self._layers[: max(0, self.n_layers - n_layers)]]

    @property
    def has_layers(self) -> bool:
        """Whether :meth:`lower_layers` can find the layers and word embeddings."""
        return self.n_layers > 0 and "embeddings" in dict(self.model.named_children())

    @property
    def _layers(self) -> nn.ModuleList:
        return next((each for each in self.model.modules() if isinstance(each, nn.ModuleList)), nn.ModuleList())

    @property
    def n_layers(self) -> int:
        return len(self._layers)

    @property
    def hidden_size(self) -> int:
        """Numbers per token state."""
        return int(self.model.config.hidden_size)  # type: ignore[union-attr, arg-type]

    @property
    def dimension(self) -> int:
        """Numbers per sentence embedding."""
        return self.hidden_size if self.projection is None else self.projection.out_features

    @property
    def max_length(self) -> int:
        return self.settings.max_length or 512

    @property
    def pad_id(self) -> int:
        return int(self.tokenizer.pad_token_id or 0)

    def forward(self, ids: Tensor, mask: Tensor) -> EncoderOutput:
        """Return sentence embeddings and token states of a padded batch."""
        states = self.model(input_ids=ids, attention_mask=mask).last_hidden_state.float()
        return EncoderOutput(self._normalize_and_project(self._pool(states, mask)), states, mask)

    def forward_packed(self, packed: PackedBatch, layers: list[Layer], fused: FusedOperations | None = None) -> Tensor:
        """Return the sentence embeddings of packed texts; ``layers`` are those of :meth:`layer_weights`."""
        states = run_packed(self.model, layers, packed, fused)
        if self.settings.pooling == "mean":
            return self._normalize_and_project(text_means(states, packed))
        if self.settings.pooling == "cls":
            return self._normalize_and_project(states[packed.select_needed(packed.offsets[:-1]).long()])
        table = packed.select_needed(pad(states, packed))
        lengths = packed.select_needed(packed.offsets.diff()).unsqueeze(1)
        return self._normalize_and_project(
            self._pool(table, torch.arange(packed.longest, device=states.device) < lengths)
        )

    def layer_weights(self, dtype: torch.dtype) -> list[Layer]:
        """Return the model's weights for :meth:`forward_packed`; they can be used for many passes."""
        return layer_weights(self.model, dtype)

    def _pool(self, states: Tensor, mask: Tensor) -> Tensor:
        if self.settings.pooling == "cls":
            return states[:, 0]
        weights = mask.unsqueeze(-1).to(states.dtype)
        if self.settings.pooling == "max":
            return states.masked_fill(weights == 0, float("-inf")).amax(dim=1)
        return (states * weights).sum(dim=1) / weights.sum(dim=1)

    def _normalize_and_project(self, sentences: Tensor) -> Tensor:
        if self.settings.normalize:
            sentences = nn.functional.normalize(sentences, dim=-1)
        return sentences if self.projection is None else self.projection(sentences).float()

    def tokenize(self, texts: Sequence[str]) -> TokenArrays:
        """Return the token ids of ``texts``, truncated at :attr:`max_length`."""
        if self._words is None and len(texts) >= FEWEST_TEXTS_FOR_CACHE:
            self._words = word_token_cache(self.tokenizer)
        return tokenize(self.tokenizer, texts, self.max_length, self._words)

    def encode(self, texts: Sequence[str], dtype: torch.dtype = torch.float32) -> NDArray[np.float32]:
        """Return the embeddings of ``texts``, in evaluation mode; ``dtype`` is that of the matrix products."""
        return self.encode_and_count_truncated(texts, dtype)[0]

    def encode_and_count_truncated(
        self, texts: Sequence[str], dtype: torch.dtype = torch.float32
    ) -> tuple[NDArray[np.float32], int]:
        """Return the embeddings of ``texts``, and how many were truncated at :attr:`max_length`.

        Texts are tokenised in another thread, ahead of the device.
        """
        result = np.empty((len(texts), self.dimension), dtype=np.float32)
        begin = truncated = 0
        for tokens in tokenize_ahead(self.tokenize, texts):
            end = begin + len(tokens)
            result[begin:end] = self.encode_tokens(tokens, dtype).cpu().numpy()
            begin, truncated = end, truncated + tokens.truncated
        return result, truncated

    def encode_one_by_one(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return the embeddings of ``texts``, each from its own forward pass.

        The last digits of a batched result depend on the shape of the batch; those of this result do not. It decides
        which of two almost equally near clusters a text belongs to, independently of the other texts.
        """
        rows = [self.encode([text]) for text in texts]
        return np.concatenate(rows) if rows else np.zeros((0, self.dimension), dtype=np.float32)

    @torch.no_grad()
    def encode_tokens(
        self, tokens: TokenArrays, dtype: torch.dtype = torch.float32, progress: str | None = None
    ) -> Tensor:
        """Return the embeddings of tokenised texts on the encoder's device, in evaluation mode, in the texts' order.

        ``progress`` is the title of a progress bar; none is shown without it.
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
        try:
            result, _ = self.encode_rows(on_device, rows, dtype, budget, done=None if bar is None else bar.update)
        finally:
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
        """Return the embeddings of ``rows`` in their order, and how many tokens, padding included, were computed.

        A batch has at most about ``token_budget`` tokens, in rows of similar length. The embedding of a text does not
        depend on the other texts, so this changes only the cost. ``done`` is called with the number of rows after every
        batch.
        """
        if not len(rows):
            return torch.empty(0, self.dimension, device=self.device), 0
        layers = self.layer_weights(dtype) if self.packs else []
        results, places, computed = [], [], 0
        for part in batches_by_tokens(tokens.lengths_on_host[rows], token_budget):
            chosen = torch.from_numpy(rows[part]).to(self.device)
            lengths = tokens.lengths_on_host[rows[part]]
            if self.packs:
                longest, size = int(lengths.max()), int(lengths.sum())
                packed = pack(tokens, chosen, size, longest, uniform=size == longest * len(part))
                results.append(self.forward_packed(packed, layers))
                computed += size
            else:
                width = tokens.width(rows[part])
                with autocast(self.device, dtype):
                    results.append(self(*tokens.batch(chosen, width)).sentences)
                computed += len(part) * width
            places.append(part)
            if done is not None:
                done(len(part))
        back = np.argsort(np.concatenate(places))
        return torch.cat(results)[torch.from_numpy(back).to(self.device)], computed

    def save(self, folder: Path) -> None:
        """Write a folder that ``SentenceTransformer(folder)`` loads."""
        folder.mkdir(parents=True, exist_ok=True)
        with hide_transformers_output():
            self.model.save_pretrained(str(folder))  # type: ignore[operator]
        self.tokenizer.save_pretrained(str(folder))
        write_settings(folder, self.settings, self.hidden_size)
        if self.projection is not None:
            write_linear(folder / PROJECTION_FOLDER, self.projection)
