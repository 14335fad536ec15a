"""Tokenised texts as flat arrays, and batches cut from them.

A corpus is tokenised once. Its ids lie one text after the other in a single array, which moves to the
training device whole; a batch is gathered there and padded to its own longest text.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

# Widths are rounded up to a multiple of this: aligned rows and few distinct shapes on a GPU; a CPU gains nothing.
WIDTH_STEP = {"cuda": 8}
TOKENIZE_CHUNK = 20_000


@dataclass(frozen=True)
class TokenArrays:
    """Token ids of many texts in one array, special tokens included.

    ``ids[starts[i] : starts[i] + lengths[i]]`` are the ids of text ``i``; ``truncated`` counts the texts that
    were longer than the limit.
    """

    ids: NDArray[np.int32]
    starts: NDArray[np.int64]
    lengths: NDArray[np.int64]
    truncated: int

    def __len__(self) -> int:
        return len(self.lengths)


def tokenize(tokenizer: Any, texts: Sequence[str], max_length: int) -> TokenArrays:
    """Tokenise ``texts`` in chunks; the fast tokenizers spread each chunk over the cores."""
    pieces: list[NDArray[np.int32]] = []
    lengths: list[int] = []
    truncated = 0
    for begin in range(0, len(texts), TOKENIZE_CHUNK):
        chunk = list(texts[begin : begin + TOKENIZE_CHUNK])
        rows = _encode(tokenizer, chunk)
        too_long = [i for i, row in enumerate(rows) if len(row) > max_length]
        truncated += len(too_long)
        if too_long:
            # The tokenizer itself knows which special tokens must survive a cut.
            cut = _encode(tokenizer, [chunk[i] for i in too_long], max_length)
            for i, row in zip(too_long, cut, strict=True):
                rows[i] = row
        lengths.extend(len(row) for row in rows)
        pieces.append(np.fromiter((token for row in rows for token in row), dtype=np.int32))
    length_array = np.asarray(lengths, dtype=np.int64)
    starts = np.concatenate([[0], np.cumsum(length_array)[:-1]]) if len(lengths) else np.zeros(0)
    ids = np.concatenate(pieces) if pieces else np.zeros(0, dtype=np.int32)
    return TokenArrays(ids, starts.astype(np.int64), length_array, truncated)


def joined(parts: Sequence[TokenArrays]) -> TokenArrays:
    """Several tokenised corpora, one after the other."""
    offsets = np.cumsum([0] + [len(part.ids) for part in parts[:-1]])
    return TokenArrays(
        np.concatenate([part.ids for part in parts]),
        np.concatenate([part.starts + offset for part, offset in zip(parts, offsets, strict=True)]),
        np.concatenate([part.lengths for part in parts]),
        sum(part.truncated for part in parts),
    )


def _encode(tokenizer: Any, texts: list[str], max_length: int | None = None) -> list[list[int]]:
    """Ids of each text with its special tokens, cut at ``max_length`` if given."""
    if tokenizer.is_fast:
        # Straight to the Rust tokenizer: its wrapper takes longer than the tokenising.
        backend = tokenizer.backend_tokenizer
        backend.no_padding()
        backend.no_truncation()
        if max_length is not None:
            backend.enable_truncation(max_length)
        rows = [encoding.ids for encoding in backend.encode_batch_fast(texts)]
        backend.no_truncation()  # the limit is ours, not the tokenizer's: it must not be saved with it
        return rows
    encoded = tokenizer(
        texts, truncation=max_length is not None, max_length=max_length, return_attention_mask=False, verbose=False
    )
    return list(encoded["input_ids"])


class DeviceTokens:
    """:class:`TokenArrays` on a device, from which padded batches are gathered without a copy from the host."""

    def __init__(self, tokens: TokenArrays, pad_id: int, device: torch.device) -> None:
        self.lengths_on_host = tokens.lengths
        self.pad_id = pad_id
        self.width_step = WIDTH_STEP.get(device.type, 1)
        self._ids = torch.from_numpy(tokens.ids).to(device)
        self._starts = torch.from_numpy(tokens.starts).to(device)
        self._lengths = torch.from_numpy(tokens.lengths).to(device)

    def __len__(self) -> int:
        return len(self.lengths_on_host)

    def width(self, rows: NDArray[np.int64]) -> int:
        """The padded width of a batch of these rows."""
        return rounded_up(int(self.lengths_on_host[rows].max()), self.width_step)

    def batch(self, rows: Tensor, width: int) -> tuple[Tensor, Tensor]:
        """Ids and mask (``rows`` x ``width``) of the texts ``rows``."""
        positions = torch.arange(width, device=self._ids.device)
        lengths = self._lengths[rows].unsqueeze(1)
        mask = positions < lengths
        # Places beyond a text's end read its last token and are overwritten by padding.
        places = self._starts[rows].unsqueeze(1) + torch.minimum(positions, lengths - 1)
        ids = self._ids[places].long().masked_fill(~mask, self.pad_id)
        return ids, mask.long()


def rounded_up(length: int, step: int) -> int:
    """``length`` rounded up to the next multiple of ``step``."""
    return -(-length // step) * step


def batches_by_tokens(lengths: NDArray[np.int64], token_budget: int) -> Iterator[NDArray[np.int64]]:
    """All rows, longest first, in batches of at most about ``token_budget`` padded tokens."""
    order = np.argsort(-lengths, kind="stable")
    begin = 0
    while begin < len(order):
        end = min(len(order), begin + max(1, token_budget // int(lengths[order[begin]])))
        yield order[begin:end]
        begin = end


def training_batches(
    lengths: NDArray[np.int64], batch_size: int, pool: int, generator: np.random.Generator
) -> list[NDArray[np.int64]]:
    """One epoch of batches: every row once, near-equal sizes, texts of like length together.

    ``pool`` batches' worth of random rows are sorted by length before they are cut; 1 gives plain random
    batches. Sizes differ by one at most, so that no small last batch has few negatives.
    """
    order = generator.permutation(len(lengths))
    n_batches = max(1, -(-len(lengths) // batch_size))
    batches: list[NDArray[np.int64]] = []
    cuts = np.array_split(order, n_batches)
    for begin in range(0, n_batches, pool):
        group = cuts[begin : begin + pool]
        rows = np.concatenate(group)
        rows = rows[np.argsort(lengths[rows], kind="stable")]
        batches.extend(np.split(rows, np.cumsum([len(part) for part in group])[:-1]))
    return [batches[i] for i in generator.permutation(n_batches)]
