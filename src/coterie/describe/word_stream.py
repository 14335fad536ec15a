"""All words of clustered texts as one array of ids, cluster by cluster."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from coterie.text.function_words import (
    ELIDING_LANGUAGES,
    ELISION,
    LIGHT_ENGLISH,
    OTHER_LANGUAGES,
    is_english_function_word,
    markers,
)

# A web address or an HTML character reference; a word (a letter, then letters, digits, apostrophes or hyphens: numbers
# alone say little about a cluster); or what separates two words: the end of a text, punctuation, a single digit or
# letter.
PIECE = re.compile(r"(?:https?://|www\.)\S+|&#?\w{1,8};|\b[^\W\d_][\w'’-]+\b|[\0\n]|[^\w\s\0]+|\w")
WEB_ADDRESS = re.compile(r"https?://|www\.", re.IGNORECASE)
END_OF_TEXT = "\0"
# In place of a word's id: a separator of two words.
BREAK = -1
# In place of a word's id: the end of a text.
END = -2

# Texts that are split into words at a time, which bounds the memory.
READ_AT_A_TIME = 10_000
# Letters of a word; longer sequences are identifiers, or scripts that are written without spaces.
MAX_WORD_LENGTH = 40
# Occurrences of a word that count per text; more say no more about the cluster.
MAX_COUNT_PER_TEXT = 2

# Share of all texts with a function word of a language from which the language is present everywhere.
MIN_SHARE_OF_ALL = 0.05
# Share of a cluster's texts from which it is present in the cluster.
MIN_SHARE_OF_CLUSTER = 0.25
# Most common function words of a language that are not counted: names ("Los Angeles", "Le Mans") may contain them.
N_IGNORED_MARKERS = 2

Ids = NDArray[np.int32]


@dataclass(frozen=True, eq=False)
class WordStream:
    """The words of all clusters one after the other; a separator of two words is -1, the end of a text -2.

    Attributes
    ----------
    words:
        The distinct words in lower case, by id.
    ids, begins:
        The stream of word ids, and where each cluster begins in it; the last entry of ``begins`` is the end.
    function_words:
        For each cluster, the row of ``masks`` that marks its function words.
    masks:
        One row per combination of languages that occurs, one column per word.
    light:
        Which words have little content without being function words.
    """

    words: list[str]
    ids: Ids
    begins: NDArray[np.int64]
    function_words: NDArray[np.int64]
    masks: NDArray[np.bool_]
    light: NDArray[np.bool_]

    def __iter__(self) -> Iterator[tuple[Ids, NDArray[np.bool_]]]:
        """Yield the word ids of each cluster, and which words are function words in it."""
        for (begin, end), row in zip(pairwise(self.begins.tolist()), self.function_words.tolist(), strict=True):
            yield self.ids[begin:end], self.masks[row]

    def without_function_words(self) -> WordStream:
        """Return the same stream in which no word counts as a function word."""
        return replace(self, masks=np.zeros_like(self.masks))


def read_words(texts: Sequence[str], clusters: Sequence[NDArray[np.int64]]) -> WordStream:
    """Return the words of the texts at the rows of each cluster.

    English function words are marked in every cluster, those of another language where a clear share of all texts, or
    of the cluster's texts, has some.
    """
    pieces: defaultdict[str, int] = defaultdict()
    pieces.default_factory = pieces.__len__
    found: list[Ids] = []
    begins = [0]
    for members in clusters:
        length = 0
        for begin in range(0, len(members), READ_AT_A_TIME):
            part = [texts[row] for row in members[begin : begin + READ_AT_A_TIME].tolist()]
            joined = f" {END_OF_TEXT} ".join([*part, ""])
            ids = np.fromiter(map(pieces.__getitem__, PIECE.findall(joined)), np.int32)
            found.append(ids)
            length += len(ids)
        begins.append(begins[-1] + length)
    words, word_of_piece = _find_words(list(pieces))
    ids = word_of_piece[np.concatenate(found)] if found else np.empty(0, np.int32)
    return _mark_function_words(words, ids, np.array(begins))


def _find_words(pieces: list[str]) -> tuple[list[str], Ids]:
    """Return the distinct words in lower case, and the id of each piece's word, ``BREAK`` or ``END``."""
    known: defaultdict[str, int] = defaultdict()
    known.default_factory = known.__len__
    word_of_piece = np.full(len(pieces), BREAK, np.int32)
    for i, piece in enumerate(pieces):
        if piece == END_OF_TEXT:
            word_of_piece[i] = END
        elif len(piece) > 1 and piece[0].isalnum() and not WEB_ADDRESS.match(piece):
            word_of_piece[i] = known[piece.lower()]
    return list(known), word_of_piece


def _mark_function_words(words: list[str], ids: Ids, begins: NDArray[np.int64]) -> WordStream:
    """Return the stream with masks of the function words of the languages in each cluster."""
    present = _find_languages(words, ids, begins)
    eliding = [row for row, language in enumerate(OTHER_LANGUAGES) if language in ELIDING_LANGUAGES]
    words, ids = _remove_elisions(words, ids, begins, np.flatnonzero(present[eliding].any(axis=0)).tolist())
    english = np.fromiter(
        (is_english_function_word(w) or len(w) > MAX_WORD_LENGTH for w in words), np.bool_, len(words)
    )
    mixtures = sorted(set(map(tuple, present.T.tolist())))
    masks = np.tile(english, (len(mixtures), 1))
    for mask, mixture in zip(masks, mixtures, strict=True):
        for others, is_present in zip(OTHER_LANGUAGES.values(), mixture, strict=True):
            if is_present:
                mask |= np.fromiter((word in others for word in words), np.bool_, len(words))
    row_of = {mixture: row for row, mixture in enumerate(mixtures)}
    which = np.array([row_of[tuple(mixture)] for mixture in present.T.tolist()], np.int64)
    light = np.fromiter((word in LIGHT_ENGLISH for word in words), np.bool_, len(words))
    return WordStream(words, _drop_repeated_words(ids, ~np.asarray(masks.any(axis=0))), begins, which, masks, light)


def _drop_repeated_words(ids: Ids, is_content: NDArray[np.bool_]) -> Ids:
    """Replace the third and later occurrences of a content word in a text by breaks."""
    at = np.flatnonzero(np.append(is_content, False)[np.maximum(ids, BREAK)])
    keys = np.cumsum(ids == END)[at] * len(is_content) + ids[at]
    order = np.argsort(keys, kind="stable")
    in_order = keys[order]
    surplus = order[MAX_COUNT_PER_TEXT:][in_order[MAX_COUNT_PER_TEXT:] == in_order[:-MAX_COUNT_PER_TEXT]]
    if not len(surplus):
        return ids
    ids = ids.copy()
    ids[at[surplus]] = BREAK
    return ids


def _find_languages(words: list[str], ids: Ids, begins: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Return which languages besides English are present in which clusters: shape (n_languages, n_clusters)."""
    place = {word: i for i, word in enumerate(words)}
    ends = ids == END
    text_of = np.cumsum(ends)
    n_texts = np.diff(np.concatenate(([0], text_of))[begins])
    present = np.zeros((len(OTHER_LANGUAGES), len(n_texts)), np.bool_)
    for row, language in enumerate(OTHER_LANGUAGES):
        is_marker = np.zeros(len(words) + 1, np.bool_)
        is_marker[[place[word] for word in markers()[language] if word in place]] = True
        # The last entry is for breaks and ends.
        at = np.flatnonzero(is_marker[np.maximum(ids, BREAK)])
        if _is_clear_share(ids[at], text_of[at], int(n_texts.sum()), MIN_SHARE_OF_ALL):
            present[row] = True
            continue
        cuts = np.searchsorted(at, begins)
        for k in np.flatnonzero(np.diff(cuts)).tolist():
            here = at[cuts[k] : cuts[k + 1]]
            present[row, k] = _is_clear_share(ids[here], text_of[here], int(n_texts[k]), MIN_SHARE_OF_CLUSTER)
    return present


def _is_clear_share(found: Ids, text_of: NDArray[np.int64], n_texts: int, min_share: float) -> bool:
    """Return whether enough of the texts have one of the words found, not counting the most common words."""
    distinct, counts = np.unique(found, return_counts=True)
    ignored = distinct[np.argsort(-counts, kind="stable")[:N_IGNORED_MARKERS]]
    return len(np.unique(text_of[~np.isin(found, ignored)])) >= max(1, min_share * n_texts)


def _remove_elisions(
    words: list[str], ids: Ids, begins: NDArray[np.int64], clusters: list[int]
) -> tuple[list[str], Ids]:
    """Read ``l'été`` as ``été`` in these clusters."""
    elided = {i: ELISION.sub("", word) for i, word in enumerate(words) if clusters and ELISION.match(word)}
    if not elided:
        return words, ids
    words = list(dict.fromkeys([*words, *elided.values()]))
    place = {word: i for i, word in enumerate(words)}
    instead = np.arange(END, len(words), dtype=np.int32)
    for i, word in elided.items():
        instead[i - END] = place[word]
    ids = ids.copy()
    for k in clusters:
        part = slice(begins[k], begins[k + 1])
        ids[part] = instead[ids[part] - END]
    return words, ids
