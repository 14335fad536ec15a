"""Learning on a sample: which texts are drawn, and the way back to all rows."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from coterie.text.corpus import Corpus

FEW_TEXTS = 1_000


@dataclass(frozen=True)
class Sample:
    """Some of the distinct texts of a corpus, or all of them.

    Attributes
    ----------
    whole:
        The corpus that was drawn from.
    corpus:
        The rows of the drawn texts: their repeats come along, so a text keeps its weight.
    drawn, others:
        Places of the drawn texts in ``whole.distinct``, rising, and of those left out.
    """

    whole: Corpus
    corpus: Corpus
    drawn: NDArray[np.int64]
    others: NDArray[np.int64]

    def remarks(self) -> Iterator[str]:
        """What a user should know about the texts that are learned on."""
        n_texts, n_all = len(self.drawn), len(self.whole.distinct)
        if n_texts < n_all:
            yield f"learned on a sample of {n_texts:,} of {n_all:,} distinct texts; the others were assigned afterwards"
            if self.corpus.counts.sum() < self.whole.counts[self.drawn].sum():
                yield f"repeats in the sample were thinned out to {len(self.corpus):,} rows, all that can be held"
        if n_texts < FEW_TEXTS:
            yield f"with fewer than {FEW_TEXTS:,} distinct texts clusters can change with the seed: compare two"

    def rows_of(self, vectors: NDArray[np.float32] | None) -> NDArray[np.float32] | None:
        """Of vectors of all distinct texts those of the drawn ones."""
        return vectors[self.drawn] if vectors is not None and len(self.others) else vectors

    def spread(self, values: NDArray[Any], fill: Any) -> NDArray[Any]:
        """One value a drawn text over the rows of the whole corpus; rows of other texts get ``fill``."""
        every = np.full(len(self.whole.distinct), fill, dtype=values.dtype)
        every[self.drawn] = values
        return self.whole.expand(every, fill)


def learned_places(corpus: Corpus, initial_labels: NDArray[np.int64]) -> NDArray[np.int64]:
    """For every row of ``corpus`` the place of its text among those that were learned on; -1 where it was not.

    ``initial_labels`` are a trained method's, which has a start for the rows it learned on and -1 for the others. Its
    snapshots hold the learned texts, in this order.
    """
    learned_on = initial_labels >= 0
    places = np.full(len(corpus), -1, dtype=np.int64)
    places[learned_on] = np.unique(corpus.distinct_index[learned_on], return_inverse=True)[1]
    return places


def by_row(labels: NDArray[np.int64], places: NDArray[np.int64]) -> NDArray[np.int64]:
    """Labels of learned texts over the rows that ``places`` names, see :func:`learned_places`; -1 for the others."""
    return np.where(places >= 0, labels[np.maximum(places, 0)], -1)


def everything(corpus: Corpus) -> Sample:
    """The sample that leaves nothing out."""
    return Sample(corpus, corpus, np.arange(len(corpus.distinct)), np.zeros(0, dtype=np.int64))


def draw_sample(corpus: Corpus, size: int | None, seed: int, most_rows: int | None = None) -> Sample:
    """``size`` of the distinct texts, each as likely as any other; all where there are no more, or without a size.

    With ``most_rows``, for methods that hold every row, repeats are left out evenly until so many rows remain; each
    text keeps one row at least.
    """
    n_texts = len(corpus.distinct)
    if size is None or n_texts <= size:
        return everything(corpus)
    is_drawn = np.zeros(n_texts, dtype=bool)
    is_drawn[np.random.default_rng(seed).choice(n_texts, size, replace=False)] = True
    index = corpus.distinct_index
    rows = np.flatnonzero((index >= 0) & is_drawn[index])
    if most_rows is not None and len(rows) > most_rows:
        rows = _thinned(rows, index[rows], size, most_rows)
    texts = tuple(corpus.texts[row] for row in rows.tolist())
    drawn = Corpus(texts=texts, row_ids=tuple(rows.tolist()))
    return Sample(corpus, drawn, np.flatnonzero(is_drawn), np.flatnonzero(~is_drawn))


def _thinned(rows: NDArray[np.int64], texts: NDArray[np.int64], n_texts: int, most_rows: int) -> NDArray[np.int64]:
    """The first rows of each text, in proportion to how many it has, ``most_rows`` in all where that is possible."""
    order = np.argsort(texts, kind="stable")
    _, begins, counts = np.unique(texts[order], return_index=True, return_counts=True)
    share = max(0, most_rows - n_texts) / (len(rows) - n_texts)
    kept = 1 + np.floor((counts - 1) * share).astype(np.int64)
    occurrence = np.arange(len(rows)) - np.repeat(begins, counts)
    return rows[order[occurrence < np.repeat(kept, counts)]]
