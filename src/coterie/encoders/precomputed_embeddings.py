"""Check precomputed embeddings, which replace those of an encoder."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from coterie.errors import InputError
from coterie.text.corpus import Corpus

# Rows checked for NaN at a time, so that the check needs little memory.
CHECKED_AT_A_TIME = 65_536


def embeddings_by_text(embeddings: Any, corpus: Corpus) -> NDArray[np.float32]:
    """Return one embedding per distinct text (that of its first row) from one per row of the corpus."""
    try:
        array = np.asarray(embeddings, dtype=np.float32)
    except (TypeError, ValueError) as error:
        raise InputError("embeddings= must be a table of numbers: one row per text, all rows of one length") from error
    if array.ndim != 2 or len(array) != len(corpus) or array.shape[1] == 0:
        raise InputError(
            f"embeddings= must have one row per text: received shape {array.shape} for {len(corpus)} texts"
        )
    for begin in range(0, len(array), CHECKED_AT_A_TIME):
        some = slice(begin, begin + CHECKED_AT_A_TIME)
        bad = np.flatnonzero(~np.isfinite(array[some]).all(axis=1) & ~corpus.empty[some])
        if len(bad):
            raise InputError(f"embeddings= holds NaN or infinity in row {begin + bad[0] + 1}: give finite numbers")
    if len(corpus.distinct) == len(corpus):
        return array
    rows = np.flatnonzero(~corpus.empty)
    _, first = np.unique(corpus.distinct_index[rows], return_index=True)
    return array[rows[first]]
