"""Read word vectors from a text file in the format of word2vec and GloVe, and look up the words of texts in it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from coterie.encoders.tokenization import TokenArrays, contiguous_tokens
from coterie.errors import InputError
from coterie.text.word_segmentation import split_words

# A word with its inner apostrophes, hyphens and dots ("don't", "e-mail", "u.s."), or a single punctuation mark.
_WORD = re.compile(r"\w+(?:['’.-]\w+)*|[^\w\s]")


def split_words_and_punctuation(text: str) -> list[str]:
    """Return the words and punctuation marks of ``text``, unchanged.

    Examples
    --------
    >>> split_words_and_punctuation("Where's my e-mail?")
    ["Where's", 'my', 'e-mail', '?']
    """
    return [word for chunk in split_words(text) for word in _WORD.findall(chunk)]


def read_vectors(path: Path, vocabulary: Iterable[str]) -> tuple[list[str], NDArray[np.float32]]:
    """Return the words among ``vocabulary`` that ``path`` contains, in the file's order, and their vectors.

    Every line of the file has a word and its numbers; word2vec writes a first line with two counts. Only the lines of
    these words are parsed, because files of millions of words are common.
    """
    keys = {word.encode("utf-8"): word for word in vocabulary}
    found: dict[str, NDArray[np.float32]] = {}
    width: int | None = None
    with path.open("rb") as file:
        for number, line in enumerate(file, start=1):
            fields = line.split() if number == 1 else []
            if len(fields) == 2:
                width = int(fields[1]) if fields[1].isdigit() else None
                continue
            word, _, numbers = line.partition(b" ")
            text = keys.get(word)
            if text is None or text in found:
                continue
            values = numbers.split()
            width = len(values) if width is None else width
            if len(values) != width:
                continue  # GloVe's largest file holds "words" with spaces in them
            try:
                found[text] = np.array(values, dtype=np.float32)
            except ValueError as error:
                raise InputError(
                    f"vectors={str(path)!r}: line {number} is not a word and its numbers: give a file in the format "
                    "of word2vec or GloVe"
                ) from error
    if not found or not width:
        raise InputError(f"vectors={str(path)!r} holds none of the words of the texts: give one in their language")
    return list(found), np.stack(list(found.values()))


class WordVectorVocabulary:
    """The words of a table of word vectors; maps texts to rows of the table.

    A word is looked up unchanged, then in lower case: some files distinguish case, others are in lower case. Words that
    are not in the table are left out.
    """

    def __init__(self, words: Sequence[str]) -> None:
        self.words = list(words)
        self._rows = {word: row for row, word in enumerate(self.words)}

    @classmethod
    def read(cls, path: Path, texts: Sequence[str]) -> tuple[WordVectorVocabulary, NDArray[np.float32]]:
        """Read the vectors of the words of ``texts`` that the file holds."""
        vocabulary = dict.fromkeys(
            word for text in texts for each in split_words_and_punctuation(text) for word in (each, each.lower())
        )
        words, table = read_vectors(path, vocabulary)
        return cls(words), table

    def tokenize(self, texts: Sequence[str]) -> TokenArrays:
        """Return the rows of the words of each text."""
        rows = [
            [row for word in split_words_and_punctuation(text) if (row := self._row(word)) is not None]
            for text in texts
        ]
        lengths = np.array([len(row) for row in rows], dtype=np.int64)
        return contiguous_tokens(np.array([row for each in rows for row in each], dtype=np.int32), lengths, 0)

    def _row(self, word: str) -> int | None:
        row = self._rows.get(word)
        return self._rows.get(word.lower()) if row is None else row
