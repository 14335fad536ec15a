"""Measure the share of AECL's attention that goes to texts of another class (Eq. 18-19 of its paper)."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from coterie.errors import InputError
from coterie.metrics.external.scores import _codes, _is_missing


@dataclass(frozen=True)
class AttentionScores:
    """Shares of the attention between texts.

    Attributes
    ----------
    negative:
        NS, the share of texts of other classes (Eq. 18); lower is better.
    positive:
        PS = 1 - NS, the share of the text itself and others of its class (Eq. 19).
    even:
        NS if every text attended equally to all texts of its batch: a baseline that NS should be below.
    """

    negative: float
    positive: float
    even: float

    def to_dict(self) -> dict[str, float]:
        """Return the scores as plain numbers, ready for JSON."""
        return asdict(self)


def attention_scores(
    similarities: ArrayLike, labels: Sequence[Hashable], weights: ArrayLike | None = None
) -> AttentionScores:
    """Return NS and PS of one batch.

    Parameters
    ----------
    similarities:
        S of Eq. 2, one row and one column per text; rows sum to one.
    labels:
        One true label per text.
    weights:
        Occurrences of each text, for the mean over texts; 1 if not given.
    """
    matrix = np.asarray(similarities, dtype=np.float64)
    if matrix.ndim != 2 or matrix.shape != (len(labels), len(labels)) or not len(labels):
        raise InputError(
            f"similarities has shape {matrix.shape} and labels has {len(labels)} rows: give a row and a column per text"
        )
    if not np.allclose(matrix.sum(axis=1), 1.0, atol=1e-4):
        raise InputError("similarities has rows that do not sum to 1: give the attention after its softmax (Eq. 2)")
    counts = np.ones(len(labels)) if weights is None else np.asarray(weights, dtype=np.float64)
    if counts.shape != (len(labels),) or not (counts > 0).all():
        raise InputError(f"weights has shape {counts.shape}: give one positive number per text")
    codes = _codes(list(labels), "labels")
    other = codes[:, None] != codes[None, :]
    negative = float(np.average((matrix * other).sum(axis=1), weights=counts))  # Eq. 18
    even = float(np.average(other.mean(axis=1), weights=counts))
    return AttentionScores(negative, 1.0 - negative, even)  # Eq. 19


def corpus_attention(
    attention_between: Callable[[Sequence[str]], NDArray[Any]],
    texts: Sequence[str],
    labels: Sequence[Hashable],
    batch_size_for: Callable[[int], int],
    seed: int = 0,
) -> AttentionScores:
    """Return NS and PS over a corpus: the mean over its texts, in batches of the model's training size.

    As in training, every text is used once and weighted by its occurrences; ``seed`` decides which texts share a batch.
    Empty texts and those without a label (None, NaN, "") are left out. A text with several labels counts with its first
    one.

    Parameters
    ----------
    attention_between:
        Returns the attention between the texts of a batch: one row and one column per text.
    texts, labels:
        One true label per text.
    batch_size_for:
        Returns the batch size for a number of distinct texts.
    """
    from coterie.text.corpus import as_corpus

    if len(texts) != len(labels):
        raise InputError(f"texts has {len(texts)} rows and labels has {len(labels)}: give one label per text")
    rows = [i for i, label in enumerate(labels) if not _is_missing(label)]
    corpus = as_corpus([texts[i] for i in rows], allow_empty=True)
    distinct = corpus.distinct
    if not distinct:
        raise InputError(f"nothing to score: none of the {len(texts)} texts has a label; check the column of labels")
    label_of: dict[int, Hashable] = {}
    for place, row in zip(corpus.distinct_index.tolist(), rows, strict=True):
        label_of.setdefault(place, labels[row])
    found = []
    masses = []
    for batch in _batches(len(distinct), batch_size_for(len(distinct)), seed):
        similarities = attention_between([distinct[i] for i in batch])
        counts = corpus.counts[batch]
        found.append(attention_scores(similarities, [label_of[i] for i in batch.tolist()], counts))
        masses.append(counts.sum())
    negative = float(np.average([each.negative for each in found], weights=masses))
    even = float(np.average([each.even for each in found], weights=masses))
    return AttentionScores(negative, 1.0 - negative, even)


def _batches(n_texts: int, size: int, seed: int) -> list[NDArray[np.int64]]:
    """Return all texts in random order, in batches of nearly equal size."""
    order = np.random.default_rng(seed).permutation(n_texts)
    return np.array_split(order, max(1, -(-n_texts // size)))
