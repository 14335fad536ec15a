"""How much AECL's attention gives to texts of the wrong class (Eq. 18-19 of its paper)."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from coterie.errors import InputError, SettingError
from coterie.metrics.external.scores import _codes, _is_missing

if TYPE_CHECKING:
    from coterie.methods.base import ClusteringMethod


@dataclass(frozen=True)
class AttentionScores:
    """Where attention goes, as shares of all attention.

    Attributes
    ----------
    negative:
        NS, what texts of other classes get (Eq. 18); lower is better.
    positive:
        PS = 1 - NS, what the text itself and others of its class get (Eq. 19).
    even:
        What NS would be if a text looked at all texts of its batch alike: the figure to be below.
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
    """NS and PS of one batch.

    Parameters
    ----------
    similarities:
        S of Eq. 2, one row a text, over the same texts; rows sum to one.
    labels:
        One true label a text.
    weights:
        How often each text occurs, for the mean over texts; once if not given.
    """
    matrix = np.asarray(similarities, dtype=np.float64)
    if matrix.ndim != 2 or matrix.shape != (len(labels), len(labels)) or not len(labels):
        raise InputError(
            f"similarities has shape {matrix.shape} and labels has {len(labels)} rows: give a row and a column a text"
        )
    if not np.allclose(matrix.sum(axis=1), 1.0, atol=1e-4):
        raise InputError("similarities has rows that do not sum to 1: give the attention after its softmax (Eq. 2)")
    counts = np.ones(len(labels)) if weights is None else np.asarray(weights, dtype=np.float64)
    if counts.shape != (len(labels),) or not (counts > 0).all():
        raise InputError(f"weights has shape {counts.shape}: give one positive number a text")
    codes = _codes(list(labels), "labels")
    other = codes[:, None] != codes[None, :]
    negative = float(np.average((matrix * other).sum(axis=1), weights=counts))  # Eq. 18
    even = float(np.average(other.mean(axis=1), weights=counts))
    return AttentionScores(negative, 1.0 - negative, even)  # Eq. 19


def corpus_attention(
    model: ClusteringMethod, texts: Sequence[str], labels: Sequence[Hashable], seed: int = 0
) -> AttentionScores:
    """NS and PS over a corpus: the mean over its texts, each in a batch of the size the model trains with.

    As in training, every text is used once and counts as often as it occurs; which texts share a batch is drawn by
    ``seed``. Empty texts and those without a label (None, NaN, "") are left out; of a text with several labels the
    first counts.

    Parameters
    ----------
    model:
        A fitted :class:`~coterie.methods.aecl.method.AECL`.
    """
    from coterie.methods.aecl.method import AECL
    from coterie.text.corpus import as_corpus

    if not isinstance(model, AECL):
        raise SettingError(
            f"attention between texts is a part of AECL, and this is {type(model).__name__}: fit with --method aecl"
        )
    if len(texts) != len(labels):
        raise InputError(f"texts has {len(texts)} rows and labels has {len(labels)}: give one label a text")
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
    for batch in _batches(len(distinct), model.training.batch_size_for(len(distinct)), seed):
        similarities = model.attention_between([distinct[i] for i in batch])
        counts = corpus.counts[batch]
        found.append(attention_scores(similarities, [label_of[i] for i in batch.tolist()], counts))
        masses.append(counts.sum())
    negative = float(np.average([each.negative for each in found], weights=masses))
    even = float(np.average([each.even for each in found], weights=masses))
    return AttentionScores(negative, 1.0 - negative, even)


def _batches(n_texts: int, size: int, seed: int) -> list[NDArray[np.int64]]:
    """All texts in random order, in batches of nearly the same size."""
    order = np.random.default_rng(seed).permutation(n_texts)
    return np.array_split(order, max(1, -(-n_texts // size)))
