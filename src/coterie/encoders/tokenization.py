"""Tokenise texts into flat arrays, and choose batches of them. Nothing here imports torch or transformers.

A corpus is tokenised once. Its ids are in a single array, one text after the other.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tokenizers import Tokenizer

from coterie.encoders.word_token_cache import WordTokenCache

# Texts tokenised at a time: enough for all cores, few enough for memory.
TOKENIZE_CHUNK = 20_000
# Texts tokenised at a time in another thread, while the device encodes the previous ones.
TEXTS_AHEAD = 32_768
# Fewest texts of one call for which a cache of words is made: fewer texts repeat too few words.
FEWEST_TEXTS_FOR_CACHE = 200


@dataclass(frozen=True)
class TokenArrays:
    """Token ids of many texts in one array, special tokens included.

    ``ids[starts[i] : starts[i] + lengths[i]]`` are the ids of text ``i``; ``truncated`` is the number of texts
    that were longer than the limit.
    """

    ids: NDArray[np.int32]
    starts: NDArray[np.int64]
    lengths: NDArray[np.int64]
    truncated: int

    def __len__(self) -> int:
        return len(self.lengths)


def contiguous_tokens(ids: NDArray[np.int32], lengths: NDArray[np.int64], truncated: int) -> TokenArrays:
    """Return the token arrays of texts with these lengths, concatenated in ``ids`` without gaps."""
    return TokenArrays(ids, np.cumsum(lengths) - lengths, lengths, truncated)


def tokenize(tokenizer: Any, texts: Sequence[str], max_length: int, table: WordTokenCache | None = None) -> TokenArrays:
    """Tokenise ``texts`` in chunks.

    Where the tokenizer allows it, each distinct word is tokenised once; otherwise a fast tokenizer distributes each
    chunk over the cores.

    Parameters
    ----------
    tokenizer: one of the transformers library, or the Rust tokenizer that it wraps.
    max_length: the most tokens per text, special tokens included.
    table: the cache of earlier calls with the same tokenizer; without one, each call makes its own.
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
            chunk_ids, chunk_lengths, n_truncated = table.tokenize(chunk, max_length)
            table = table if table.is_worthwhile else None
        else:
            rows, n_truncated = (
                _tokenize_in_rust(backend, chunk, max_length)
                if backend
                else _tokenize_in_python(tokenizer, chunk, max_length)
            )
            chunk_lengths = np.fromiter(map(len, rows), dtype=np.int64, count=len(rows))
            flat = chain.from_iterable(rows)
            chunk_ids = np.fromiter(flat, dtype=np.int32, count=int(chunk_lengths.sum()))
        ids.append(chunk_ids)
        lengths.append(chunk_lengths)
        truncated += n_truncated
    if not ids:
        return contiguous_tokens(np.zeros(0, dtype=np.int32), np.zeros(0, dtype=np.int64), 0)
    return contiguous_tokens(np.concatenate(ids), np.concatenate(lengths), truncated)


def tokenize_ahead(
    tokenize_texts: Callable[[Sequence[str]], TokenArrays], texts: Sequence[str]
) -> Iterator[TokenArrays]:
    """Yield ``texts`` tokenised in pieces by ``tokenize_texts``, one piece ahead in another thread."""
    pieces = [texts[begin : begin + TEXTS_AHEAD] for begin in range(0, len(texts), TEXTS_AHEAD)]
    if len(pieces) < 2:
        yield from (tokenize_texts(piece) for piece in pieces)
        return
    with ThreadPoolExecutor(max_workers=1) as executor:
        futures = deque(executor.submit(tokenize_texts, piece) for piece in pieces[:2])
        for piece in [*pieces[2:], None, None]:
            tokens = futures.popleft().result()
            if piece is not None:
                futures.append(executor.submit(tokenize_texts, piece))
            yield tokens


def rust_tokenizer(tokenizer: Any) -> Tokenizer | None:
    """Return the Rust tokenizer that one of transformers wraps; None for one written in Python.

    Calling the wrapper takes longer than the tokenisation itself.
    """
    if isinstance(tokenizer, Tokenizer):
        return tokenizer
    return tokenizer.backend_tokenizer if tokenizer.is_fast else None


def word_token_cache(tokenizer: Any) -> WordTokenCache | None:
    """Return a cache for several calls of :func:`tokenize`; None if the tokenizer does not allow one."""
    backend = rust_tokenizer(tokenizer)
    return None if backend is None else WordTokenCache.of(backend)


def _tokenize_in_rust(backend: Tokenizer, texts: list[str], max_length: int) -> tuple[list[list[int]], int]:
    """Return the ids of each text with special tokens, and how many texts were truncated."""
    backend.no_padding()
    backend.enable_truncation(max_length)
    try:
        encodings = backend.encode_batch_fast(texts)
    finally:
        backend.no_truncation()  # the limit is Coterie's, and must not be saved with the tokenizer
    rows = [encoding.ids for encoding in encodings]
    full = (encoding for encoding, row in zip(encodings, rows, strict=True) if len(row) >= max_length)
    return rows, sum(bool(encoding.overflowing) for encoding in full)


def _tokenize_in_python(tokenizer: Any, texts: list[str], max_length: int) -> tuple[list[list[int]], int]:
    """Return the same as :func:`_tokenize_in_rust`, from a tokenizer that does not report truncation."""
    rows = list(tokenizer(texts, return_attention_mask=False, verbose=False)["input_ids"])
    too_long = [i for i, row in enumerate(rows) if len(row) > max_length]
    if too_long:
        # Only the tokenizer can truncate and keep the special tokens.
        cut = tokenizer([texts[i] for i in too_long], truncation=True, max_length=max_length, verbose=False)
        for i, row in zip(too_long, cut["input_ids"], strict=True):
            rows[i] = row
    return rows, len(too_long)


def concatenate_tokens(parts: Sequence[TokenArrays]) -> TokenArrays:
    """Return several tokenised corpora as one, one after the other."""
    offsets = np.cumsum([0] + [len(part.ids) for part in parts[:-1]])
    return TokenArrays(
        np.concatenate([part.ids for part in parts]),
        np.concatenate([part.starts + offset for part, offset in zip(parts, offsets, strict=True)]),
        np.concatenate([part.lengths for part in parts]),
        sum(part.truncated for part in parts),
    )


def batches_by_tokens(lengths: NDArray[np.int64], token_budget: int) -> Iterator[NDArray[np.int64]]:
    """Yield all rows, longest first, in batches of at most about ``token_budget`` padded tokens."""
    order = np.argsort(-lengths, kind="stable")
    begin = 0
    while begin < len(order):
        end = min(len(order), begin + max(1, token_budget // int(lengths[order[begin]])))
        yield order[begin:end]
        begin = end


def training_batches(
    lengths: NDArray[np.int64], batch_size: int, pool: int, generator: np.random.Generator
) -> list[NDArray[np.int64]]:
    """Return the batches of one epoch: every row once, nearly equal sizes, texts of similar length together.

    The random rows of ``pool`` batches are sorted by length before they are split; 1 gives plain random
    batches. Sizes differ by at most one, so that no small last batch has few negatives.
    """
    order = generator.permutation(len(lengths))
    n_batches = max(1, -(-len(lengths) // batch_size))
    batches: list[NDArray[np.int64]] = []
    cuts = np.array_split(order, n_batches)
    for begin in range(0, n_batches, pool):
        pooled = cuts[begin : begin + pool]
        rows = np.concatenate(pooled)
        rows = rows[np.argsort(lengths[rows], kind="stable")]
        batches.extend(np.split(rows, np.cumsum([len(part) for part in pooled])[:-1]))
    return [batches[i] for i in generator.permutation(n_batches)]
