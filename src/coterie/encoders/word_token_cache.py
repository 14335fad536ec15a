"""Cache the tokens of distinct words where a tokenizer allows it, which is faster than tokenising a word again."""

from __future__ import annotations

from itertools import chain
from threading import Lock
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tokenizers import Tokenizer
from tokenizers.models import WordPiece
from tokenizers.normalizers import BertNormalizer
from tokenizers.pre_tokenizers import BertPreTokenizer

# Largest share of new words in a chunk for which the cache is faster than tokenising whole texts on all cores.
MOST_DISTINCT = 0.5
# Most token ids in the cache (about 30 MB) before it is emptied, so that the numbers in a long file do not fill the
# memory. Frequent words are soon in it again.
MOST_IDS = 300_000
# Words tokenised at a time: the tokenizer's result takes many times the memory of the word.
WORDS_AT_A_TIME = 8_192


class WordTokenCache:
    """A cache of the token ids of words, which are joined to those of texts.

    Attributes
    ----------
    is_worthwhile: whether the last texts repeated words often enough for the cache to be faster.
    """

    def __init__(self, backend: Tokenizer, prefix: list[int], suffix: list[int]) -> None:
        self.is_worthwhile = True
        self._backend = backend
        self._prefix = prefix
        self._suffix = suffix
        self._lock = Lock()
        self._places: dict[str, int]
        self._ids: NDArray[np.int32]
        self._starts: NDArray[np.int64]
        self._lengths: NDArray[np.int64]
        self._clear()

    @classmethod
    def of(cls, backend: Tokenizer) -> WordTokenCache | None:
        """Return a cache for ``backend``; None if the words around a word can change its tokens.

        BERT's tokenizers process each character, then each word. Only U+0020 separates words here: the tokenizer treats
        other white space in its own way.
        """
        parts = (backend.model, backend.normalizer, backend.pre_tokenizer)
        kinds = (WordPiece, BertNormalizer, BertPreTokenizer)
        if not all(type(part) is kind for part, kind in zip(parts, kinds, strict=True)):
            return None
        added = [token.content for token in backend.get_added_tokens_decoder().values()]
        if not all(content.isascii() and content.split() == [content] for content in added):
            return None
        backend.no_padding()
        backend.no_truncation()
        whole, bare = backend.encode("a"), backend.encode("a", add_special_tokens=False)
        before = whole.special_tokens_mask.index(0) if 0 in whole.special_tokens_mask else 0
        prefix, suffix = whole.ids[:before], whole.ids[before + len(bare.ids) :]
        return cls(backend, prefix, suffix) if [*prefix, *bare.ids, *suffix] == whole.ids else None

    def tokenize(self, texts: list[str], max_length: int) -> tuple[NDArray[np.int32], NDArray[np.int64], int]:
        """Return the concatenated ids of one or more texts, the tokens per text, and how many texts were truncated."""
        with self._lock:
            return self._tokenize(texts, max_length)

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "_lock"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state, _lock=Lock())

    def _tokenize(self, texts: list[str], max_length: int) -> tuple[NDArray[np.int32], NDArray[np.int64], int]:
        split = [text.split(" ") for text in texts]
        words = list(chain.from_iterable(split))
        self._add_words(words)
        places = np.fromiter(map(self._places.__getitem__, words), dtype=np.int64, count=len(words))
        n_words = np.fromiter(map(len, split), dtype=np.int64, count=len(split))
        tokens_per_word = self._lengths[places]
        # An empty text has one word, the empty one, so every sum has at least one term.
        tokens_per_text = np.add.reduceat(tokens_per_word, np.cumsum(n_words) - n_words)
        content = self._ids[_ranges(self._starts[places], tokens_per_word)]
        room = max_length - len(self._prefix) - len(self._suffix)
        cut = tokens_per_text > room
        if cut.any():
            content = content[_ranges(np.zeros_like(tokens_per_text), tokens_per_text) < room]
            tokens_per_text = np.minimum(tokens_per_text, room)
        return (
            self._with_special_tokens(content, tokens_per_text),
            tokens_per_text + (max_length - room),
            int(cut.sum()),
        )

    def _with_special_tokens(self, content: NDArray[np.int32], tokens_per_text: NDArray[np.int64]) -> NDArray[np.int32]:
        """Return every text with the special tokens around it."""
        lengths = tokens_per_text + len(self._prefix) + len(self._suffix)
        ends = np.cumsum(lengths)
        whole = np.empty(int(ends[-1]), dtype=np.int32)
        is_content = np.ones(len(whole), dtype=bool)
        for first, special in ((ends - lengths, self._prefix), (ends - len(self._suffix), self._suffix)):
            for i, token in enumerate(special):
                whole[first + i] = token
                is_content[first + i] = False
        whole[is_content] = content
        return whole

    def _add_words(self, words: list[str]) -> None:
        """Tokenise the words that are new."""
        if len(self._ids) > MOST_IDS:
            self._clear()
        known = self._places
        new = [word for word in dict.fromkeys(words) if word not in known]
        self.is_worthwhile = len(new) <= MOST_DISTINCT * len(words)
        if not new:
            return
        parts = (new[begin : begin + WORDS_AT_A_TIME] for begin in range(0, len(new), WORDS_AT_A_TIME))
        rows = [ids for part in parts for ids in self._ids_of(part)]
        lengths = np.fromiter(map(len, rows), dtype=np.int64, count=len(rows))
        ids = np.fromiter(chain.from_iterable(rows), dtype=np.int32, count=int(lengths.sum()))
        known.update(zip(new, range(len(known), len(known) + len(new)), strict=True))
        self._starts = np.concatenate([self._starts, len(self._ids) + np.cumsum(lengths) - lengths])
        self._lengths = np.concatenate([self._lengths, lengths])
        self._ids = np.concatenate([self._ids, ids])

    def _ids_of(self, words: list[str]) -> list[list[int]]:
        return [encoding.ids for encoding in self._backend.encode_batch_fast(words, add_special_tokens=False)]

    def _clear(self) -> None:
        self._places = {}
        self._ids = np.zeros(0, dtype=np.int32)
        self._starts = np.zeros(0, dtype=np.int64)
        self._lengths = np.zeros(0, dtype=np.int64)


def _ranges(starts: NDArray[np.int64], lengths: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the concatenated ranges ``start, ..., start + length - 1`` of all starts and lengths."""
    ends = np.cumsum(lengths)
    return np.arange(ends[-1]) + np.repeat(starts - (ends - lengths), lengths)
