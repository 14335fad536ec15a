"""Bag-of-words and TF-IDF encoders, whose state is plain data (no pickle)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.feature_extraction.text import CountVectorizer, TfidfTransformer
from sklearn.preprocessing import normalize

from coterie.errors import InputError


class BagOfWordsEncoder:
    """Encode texts as counts of the most frequent words, plain or weighted by inverse document frequency.

    With ``idf``, rows are scaled to unit length, as usual for TF-IDF. In ``fit``, a text with ``counts`` occurrences
    counts that many times, for the choice of words and for the frequencies.

    Parameters
    ----------
    vocabulary:
        The column of each word.
    idf:
        The weight of each column; ``None`` for plain counts.
    """

    def __init__(self, vocabulary: dict[str, int], idf: NDArray[np.float64] | None) -> None:
        self.vocabulary = vocabulary
        self.idf = idf
        self._counter = CountVectorizer(vocabulary=vocabulary)

    @classmethod
    def fit(
        cls,
        texts: Sequence[str],
        counts: NDArray[np.int64],
        *,
        max_features: int,
        stop_words: str | None,
        weighting: str,
    ) -> BagOfWordsEncoder:
        """Choose the words from ``texts``; ``weighting`` is ``"count"`` or ``"tfidf"``."""
        repeated = [text for text, count in zip(texts, counts, strict=True) for _ in range(count)]
        counter = CountVectorizer(max_features=max_features, stop_words=stop_words)
        try:
            table = counter.fit_transform(repeated)
        except ValueError as error:
            raise InputError(
                "the texts hold no words to count (words have at least two letters"
                f"{', stop words are left out' if stop_words else ''}); use a method with an encoder"
            ) from error
        idf = TfidfTransformer().fit(table).idf_ if weighting == "tfidf" else None
        return cls({word: int(place) for word, place in counter.vocabulary_.items()}, idf)

    @property
    def dimension(self) -> int:
        return len(self.vocabulary)

    def encode(self, texts: Sequence[str]) -> Any:
        """Return one sparse row per text; a text without words of the vocabulary is a row of zeros."""
        table = self._counter.transform(texts).astype(np.float64)
        if self.idf is None:
            return table
        return normalize(table @ sparse.diags(self.idf))
