"""Tokenised texts as flat arrays, and batches cut from them. Nothing here needs torch or transformers.

A corpus is tokenised once. Its ids lie one text after the other in a single array.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tokenizers import Tokenizer

from coterie.encoders.word_token_cache import WordTokenCache

TOKENIZE_CHUNK = 20_000
# Fewer texts repeat too few words for a table of them.
FEWEST_TEXTS_FOR_CACHE = 200


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


def contiguous_tokens(ids: NDArray[np.int32], lengths: NDArray[np.int64], truncated: int) -> TokenArrays:
    """Texts of these lengths that lie without a gap in ``ids``."""
    return TokenArrays(ids, np.cumsum(lengths) - lengths, lengths, truncated)


def tokenize(tokenizer: Any, texts: Sequence[str], max_length: int, table: WordTokenCache | None = None) -> TokenArrays:
    """Tokenise ``texts`` in chunks.

    Where the tokenizer allows it, each distinct word is tokenised once; otherwise the fast tokenizers spread each chunk
    over the cores.

    Parameters
    ----------
    tokenizer: one of the transformers library, or the Rust tokenizer behind it.
    table: the words of earlier calls with the same tokenizer; without one, each call makes its own.
    """
    backend = rust_tokenizer(tokenizer)
    if table is None and len(texts) >= FEWEST_TEXTS_FOR_CACHE:
        table = word_token_cache(tokenizer)
    ids: list[NDArray[np.int32]] = []
    lengths: list[NDArray[np.int64]] = []
    truncated = 0
    for begin in range(0, len(texts), TOKENIZE_CHUNK):
        chunk = list(texts[begin : begin + TOKENIZE_CHUNK])
        if table is not None:
            chunk_ids, chunk_lengths, n_cut = table.tokenize(chunk, max_length)
            table = table if table.repays else None
        else:
            rows, n_cut = _by_text(backend, chunk, max_length) if backend else _by_python(tokenizer, chunk, max_length)
            chunk_lengths = np.fromiter(map(len, rows), dtype=np.int64, count=len(rows))
            flat = chain.from_iterable(rows)
            chunk_ids = np.fromiter(flat, dtype=np.int32, count=int(chunk_lengths.sum()))
        ids.append(chunk_ids)
        lengths.append(chunk_lengths)
        truncated += n_cut
    if not ids:
        return contiguous_tokens(np.zeros(0, dtype=np.int32), np.zeros(0, dtype=np.int64), 0)
    return contiguous_tokens(np.concatenate(ids), np.concatenate(lengths), truncated)


def rust_tokenizer(tokenizer: Any) -> Tokenizer | None:
    """What a tokenizer of transformers works with: calling its wrapper takes longer than the tokenising.

    None for one that is written in Python.
    """
    if isinstance(tokenizer, Tokenizer):
        return tokenizer
    return tokenizer.backend_tokenizer if tokenizer.is_fast else None


def word_token_cache(tokenizer: Any) -> WordTokenCache | None:
    """A table for many calls of :func:`tokenize` with texts of the same words; None where there can be none."""
    backend = rust_tokenizer(tokenizer)
    return None if backend is None else WordTokenCache.of(backend)


def _by_text(backend: Tokenizer, texts: list[str], max_length: int) -> tuple[list[list[int]], int]:
    """Ids of each text with its special tokens, and how many texts were cut."""
    backend.no_padding()
    backend.enable_truncation(max_length)
    try:
        encodings = backend.encode_batch_fast(texts)
    finally:
        backend.no_truncation()  # the limit is ours, not the tokenizer's: it must not be saved with it
    rows = [encoding.ids for encoding in encodings]
    full = (encoding for encoding, row in zip(encodings, rows, strict=True) if len(row) >= max_length)
    return rows, sum(bool(encoding.overflowing) for encoding in full)


def _by_python(tokenizer: Any, texts: list[str], max_length: int) -> tuple[list[list[int]], int]:
    """The same from a tokenizer that is written in Python, which does not tell what it cut."""
    rows = list(tokenizer(texts, return_attention_mask=False, verbose=False)["input_ids"])
    too_long = [i for i, row in enumerate(rows) if len(row) > max_length]
    if too_long:
        # The tokenizer itself knows which special tokens must survive a cut.
        cut = tokenizer([texts[i] for i in too_long], truncation=True, max_length=max_length, verbose=False)
        for i, row in zip(too_long, cut["input_ids"], strict=True):
            rows[i] = row
    return rows, len(too_long)


def joined(parts: Sequence[TokenArrays]) -> TokenArrays:
    """Several tokenised corpora, one after the other."""
    offsets = np.cumsum([0] + [len(part.ids) for part in parts[:-1]])
    return TokenArrays(
        np.concatenate([part.ids for part in parts]),
        np.concatenate([part.starts + offset for part, offset in zip(parts, offsets, strict=True)]),
        np.concatenate([part.lengths for part in parts]),
        sum(part.truncated for part in parts),
    )


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
