"""Draw a sample of a corpus to train on, and expand values per sampled text to all rows."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from coterie.text.corpus import Corpus

# Number of distinct texts below which clusters often change with the seed, or with a few more texts.
FEW_TEXTS = 1_000


@dataclass(frozen=True)
class Sample:
    """Some of the distinct texts of a corpus, or all of them.

    Attributes
    ----------
    whole:
        The corpus that the sample was drawn from.
    corpus:
        All rows of the drawn texts: a repeated text keeps its weight.
    drawn, others:
        Positions in ``whole.distinct`` of the drawn texts and of the others, ascending.
    """

    whole: Corpus
    corpus: Corpus
    drawn: NDArray[np.int64]
    others: NDArray[np.int64]

    def notes(self) -> Iterator[str]:
        """Yield what a user should know about the sample."""
        n_texts, n_all = len(self.drawn), len(self.whole.distinct)
        if n_texts < n_all:
            yield f"learned on a sample of {n_texts:,} of {n_all:,} distinct texts; the others were assigned afterwards"
            if self.corpus.counts.sum() < self.whole.counts[self.drawn].sum():
                yield f"repeats in the sample were left out: {len(self.corpus):,} rows are all the method can hold"
        if n_texts < FEW_TEXTS:
            yield (
                f"with fewer than {FEW_TEXTS:,} distinct texts, the seed or a few more texts can change the clusters: "
                "compare two fits"
            )

    def rows_of(self, vectors: NDArray[np.float32] | None) -> NDArray[np.float32] | None:
        """Return the vectors of the drawn texts, from one vector per distinct text of the whole corpus."""
        return vectors[self.drawn] if vectors is not None and len(self.others) else vectors

    def spread(self, values: NDArray[Any], fill: Any) -> NDArray[Any]:
        """Return one value per row of the whole corpus from one per drawn text; rows of other texts get ``fill``."""
        every = np.full(len(self.whole.distinct), fill, dtype=values.dtype)
        every[self.drawn] = values
        return self.whole.expand(every, fill)


def sample_places(corpus: Corpus, initial_labels: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the position of each row's text among the texts that a method was trained on; -1 for other texts.

    ``initial_labels`` are those of a trained method: the labels before training of the rows it was trained on, -1 for
    the others. Its snapshots hold the texts it was trained on, in this order.
    """
    in_training = initial_labels >= 0
    places = np.full(len(corpus), -1, dtype=np.int64)
    places[in_training] = np.unique(corpus.distinct_index[in_training], return_inverse=True)[1]
    return places


def labels_by_row(labels: NDArray[np.int64], places: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return one label per row from one per training text; -1 where ``places`` (:func:`sample_places`) is -1."""
    return np.where(places >= 0, labels[np.maximum(places, 0)], -1)


def whole_sample(corpus: Corpus) -> Sample:
    """Return the sample that holds all texts."""
    return Sample(corpus, corpus, np.arange(len(corpus.distinct)), np.zeros(0, dtype=np.int64))


def draw_sample(corpus: Corpus, size: int | None, seed: int, most_rows: int | None = None) -> Sample:
    """Draw ``size`` of the distinct texts with equal probability; return all if ``size`` is ``None`` or large enough.

    With ``most_rows``, for methods that hold every row in memory, repeated rows are left out evenly until at most
    ``most_rows`` rows remain; each text keeps at least one row.
    """
    n_texts = len(corpus.distinct)
    if size is None or n_texts <= size:
        return whole_sample(corpus)
    is_drawn = np.zeros(n_texts, dtype=bool)
    is_drawn[np.random.default_rng(seed).choice(n_texts, size, replace=False)] = True
    index = corpus.distinct_index
    rows = np.flatnonzero((index >= 0) & is_drawn[index])
    if most_rows is not None and len(rows) > most_rows:
        rows = _thin_out(rows, index[rows], size, most_rows)
    texts = tuple(corpus.texts[row] for row in rows.tolist())
    drawn = Corpus(texts=texts, row_ids=tuple(rows.tolist()))
    return Sample(corpus, drawn, np.flatnonzero(is_drawn), np.flatnonzero(~is_drawn))


def _thin_out(rows: NDArray[np.int64], texts: NDArray[np.int64], n_texts: int, most_rows: int) -> NDArray[np.int64]:
    """Return the first rows of each text, in proportion to its number of rows: ``most_rows`` in total, if possible."""
    order = np.argsort(texts, kind="stable")
    _, begins, counts = np.unique(texts[order], return_index=True, return_counts=True)
    share = max(0, most_rows - n_texts) / (len(rows) - n_texts)
    rows_per_text = 1 + np.floor((counts - 1) * share).astype(np.int64)
    occurrence = np.arange(len(rows)) - np.repeat(begins, counts)
    return rows[order[occurrence < np.repeat(rows_per_text, counts)]]
