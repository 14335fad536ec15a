"""SIF in float64, word by word, from Algorithm 1 of Arora et al. (ICLR 2017)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray


def sif(texts: Sequence[Sequence[str]], vectors: Mapping[str, NDArray[np.float64]], a: float) -> NDArray[np.float64]:
    """One row a text (a list of words, repeats of texts written out): weighted means less the first singular vector."""
    words = [word for text in texts for word in text]
    frequency = {word: words.count(word) / len(words) for word in words}
    dimension = len(next(iter(vectors.values())))
    rows = []
    for text in texts:
        total = np.zeros(dimension)
        for word in text:
            total += a / (a + frequency[word]) * vectors[word]
        rows.append(total / max(1, len(text)))
    table = np.array(rows)
    u = np.linalg.svd(table, full_matrices=False)[2][0]
    return table - np.outer(table @ u, u)
