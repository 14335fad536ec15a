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

# An address of the web or a character's name in HTML; a word (letters, then letters, digits, apostrophes or hyphens:
# numbers alone say little about a cluster); or what parts two words: the end of a text, punctuation, a digit or a
# letter that stands alone.
PIECE = re.compile(r"(?:https?://|www\.)\S+|&#?\w{1,8};|\b[^\W\d_][\w'’-]+\b|[\0\n]|[^\w\s\0]+|\w")
WEB_ADDRESS = re.compile(r"https?://|www\.", re.IGNORECASE)
END_OF_TEXT = "\0"
# Instead of a word's id: something that parts two words, and the end of a text.
BREAK, END = -1, -2

# Texts whose words are looked up at a time.
READ_AT_A_TIME = 10_000
# A longer run of letters is no word that a reader knows: an identifier, or a script that is written without spaces.
LONGEST_WORD = 40

# More of a word in one text tells no more about the cluster.
COUNTED_IN_A_TEXT = 2

# A language is in a group of texts when this share of them holds one of its function words. A place's name ("Los
# Angeles", "Le Mans") may hold one too, so the two commonest are not looked at.
CLEAR_SHARE_OF_ALL = 0.05
CLEAR_SHARE_OF_A_CLUSTER = 0.25
POSSIBLE_NAMES = 2

Ids = NDArray[np.int32]


@dataclass(frozen=True, eq=False)
class WordStream:
    """The words of all clusters one after the other; what parts two words is -1, the end of a text -2.

    Attributes
    ----------
    words: the distinct words in lower case, as the ids count them.
    ids, begins: the stream, and where each cluster begins in it (one more than clusters).
    function_words: for each cluster, the row of ``masks`` with the words that are function words there.
    masks: one row for each set of languages that occurs.
    light: which words are no function words, but say little.
    """

    words: list[str]
    ids: Ids
    begins: NDArray[np.int64]
    function_words: NDArray[np.int64]
    masks: NDArray[np.bool_]
    light: NDArray[np.bool_]

    def __iter__(self) -> Iterator[tuple[Ids, NDArray[np.bool_]]]:
        """The ids of each cluster, and which words are function words in it."""
        for (begin, end), row in zip(pairwise(self.begins.tolist()), self.function_words.tolist(), strict=True):
            yield self.ids[begin:end], self.masks[row]

    def all_telling(self) -> WordStream:
        """The same with no word taken for a function word."""
        return replace(self, masks=np.zeros_like(self.masks))


def read_words(texts: Sequence[str], clusters: Sequence[NDArray[np.int64]]) -> WordStream:
    """The words of the texts at the rows of each cluster.

    English function words are left out in every cluster, those of another language where its function words are in
    a clear share of all texts or of the cluster's.
    """
    pieces: defaultdict[str, int] = defaultdict()
    pieces.default_factory = pieces.__len__
    found: list[Ids] = []
    begins = [0]
    for members in clusters:
        length = 0
        for begin in range(0, len(members), READ_AT_A_TIME):
            some = [texts[row] for row in members[begin : begin + READ_AT_A_TIME].tolist()]
            joined = f" {END_OF_TEXT} ".join([*some, ""])
            ids = np.fromiter(map(pieces.__getitem__, PIECE.findall(joined)), np.int32)
            found.append(ids)
            length += len(ids)
        begins.append(begins[-1] + length)
    words, meaning = _words_of(list(pieces))
    ids = meaning[np.concatenate(found)] if found else np.empty(0, np.int32)
    return _with_function_words(words, ids, np.array(begins))


def _words_of(pieces: list[str]) -> tuple[list[str], Ids]:
    """The distinct words among the pieces in lower case, and the word that each piece is, or ``BREAK`` or ``END``."""
    known: defaultdict[str, int] = defaultdict()
    known.default_factory = known.__len__
    meaning = np.full(len(pieces), BREAK, np.int32)
    for i, piece in enumerate(pieces):
        if piece == END_OF_TEXT:
            meaning[i] = END
        elif len(piece) > 1 and piece[0].isalnum() and not WEB_ADDRESS.match(piece):
            meaning[i] = known[piece.lower()]
    return list(known), meaning


def _with_function_words(words: list[str], ids: Ids, begins: NDArray[np.int64]) -> WordStream:
    spoken = _languages(words, ids, begins)
    eliding = [row for row, language in enumerate(OTHER_LANGUAGES) if language in ELIDING_LANGUAGES]
    words, ids = _without_elisions(words, ids, begins, np.flatnonzero(spoken[eliding].any(axis=0)).tolist())
    english = np.fromiter((is_english_function_word(w) or len(w) > LONGEST_WORD for w in words), np.bool_, len(words))
    mixtures = sorted(set(map(tuple, spoken.T.tolist())))
    masks = np.tile(english, (len(mixtures), 1))
    for mask, mixture in zip(masks, mixtures, strict=True):
        for others, is_spoken in zip(OTHER_LANGUAGES.values(), mixture, strict=True):
            if is_spoken:
                mask |= np.fromiter((word in others for word in words), np.bool_, len(words))
    row_of = {mixture: row for row, mixture in enumerate(mixtures)}
    which = np.array([row_of[tuple(mixture)] for mixture in spoken.T.tolist()], np.int64)
    light = np.fromiter((word in LIGHT_ENGLISH for word in words), np.bool_, len(words))
    return WordStream(words, _without_surplus(ids, ~np.asarray(masks.any(axis=0))), begins, which, masks, light)


def _without_surplus(ids: Ids, telling: NDArray[np.bool_]) -> Ids:
    """The stream without a telling word's third and later occurrences in a text."""
    at = np.flatnonzero(np.append(telling, False)[np.maximum(ids, BREAK)])
    keys = np.cumsum(ids == END)[at] * len(telling) + ids[at]
    order = np.argsort(keys, kind="stable")
    in_order = keys[order]
    surplus = order[COUNTED_IN_A_TEXT:][in_order[COUNTED_IN_A_TEXT:] == in_order[:-COUNTED_IN_A_TEXT]]
    if not len(surplus):
        return ids
    ids = ids.copy()
    ids[at[surplus]] = BREAK
    return ids


def _languages(words: list[str], ids: Ids, begins: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Which languages beside English are in which clusters: a row a language, a column a cluster."""
    place = {word: i for i, word in enumerate(words)}
    ends = ids == END
    text_of = np.cumsum(ends)
    n_texts = np.diff(np.concatenate(([0], text_of))[begins])
    spoken = np.zeros((len(OTHER_LANGUAGES), len(n_texts)), np.bool_)
    for row, language in enumerate(OTHER_LANGUAGES):
        is_sign = np.zeros(len(words) + 1, np.bool_)
        is_sign[[place[word] for word in markers()[language] if word in place]] = True
        # The last entry stands for what is no word.
        at = np.flatnonzero(is_sign[np.maximum(ids, BREAK)])
        if _clear_share(ids[at], text_of[at], int(n_texts.sum()), CLEAR_SHARE_OF_ALL):
            spoken[row] = True
            continue
        cuts = np.searchsorted(at, begins)
        for k in np.flatnonzero(np.diff(cuts)).tolist():
            here = at[cuts[k] : cuts[k + 1]]
            spoken[row, k] = _clear_share(ids[here], text_of[here], int(n_texts[k]), CLEAR_SHARE_OF_A_CLUSTER)
    return spoken


def _clear_share(signs: Ids, text_of: NDArray[np.int64], n_texts: int, least: float) -> bool:
    """Whether enough of the texts hold one of these words, without the commonest."""
    distinct, counts = np.unique(signs, return_counts=True)
    names = distinct[np.argsort(-counts, kind="stable")[:POSSIBLE_NAMES]]
    return len(np.unique(text_of[~np.isin(signs, names)])) >= max(1, least * n_texts)


def _without_elisions(
    words: list[str], ids: Ids, begins: NDArray[np.int64], clusters: list[int]
) -> tuple[list[str], Ids]:
    """``l'été`` read as ``été`` in these clusters."""
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
