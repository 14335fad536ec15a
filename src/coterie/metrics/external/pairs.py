"""Find pairs of texts that training moved together or apart (Table 5 of the ClusterBERT paper)."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from coterie.checks import check_whole
from coterie.errors import InputError
from coterie.metrics.external.scores import _codes, _is_missing
from coterie.metrics.external.snapshots import sample_rows

KINDS = {
    "same_close": "same label, close throughout",
    "same_rise": "same label, moved together most",
    "different_rise": "different labels, moved together most",
    "different_fall": "different labels, moved apart most",
    "same_fall": "same label, moved apart most",
    "rise": "moved together most",
    "fall": "moved apart most",
}
"""The description of each kind of pair; the last two are the kinds without labels."""

# Most texts among which pairs are searched: time and memory grow with the square of their number.
MOST_TEXTS = 2_000


@dataclass(frozen=True)
class SentencePair:
    """Two texts, by their rows in the snapshots, and their cosine similarity in each snapshot."""

    kind: str
    first: int
    second: int
    similarities: tuple[float, ...]

    @property
    def change(self) -> float:
        """The similarity at the end minus the similarity at the start."""
        return self.similarities[-1] - self.similarities[0]


def sentence_pairs(
    embeddings: Sequence[NDArray[np.float32]],
    labels: Sequence[Hashable] | None = None,
    *,
    count: int = 10,
    most_texts: int = MOST_TEXTS,
    seed: int = 0,
) -> list[SentencePair]:
    """Return the pairs that show how training moved the texts, the clearest of each kind first.

    With labels there are the five kinds of Table 5, in its order: same label and close throughout (by the lowest
    similarity over all snapshots), same label and the largest rise, different labels and the largest rise, different
    labels and the largest fall, same label and the largest fall. Without labels: the largest rise and the largest
    fall. Rise and fall are from the first snapshot to the last. A pair whose similarity did not rise is never listed as
    a rise, nor one that did not fall as a fall.

    Parameters
    ----------
    embeddings:
        Embeddings of the same texts at two or more moments of the training, one row per text.
    labels:
        One true label per text; texts without one (None, NaN, "") are left out.
    count:
        Most pairs of each kind.
    most_texts:
        Pairs are searched among at most this number of texts, sampled by ``seed``.
    """
    check_whole("count", count, least=1)
    check_whole("most_texts", most_texts, least=2)
    if len(embeddings) < 2:
        raise InputError(f"pairs need two snapshots to compare and there is {len(embeddings)}; fit with --snapshots 1")
    n_texts = len(embeddings[0])
    texts = np.arange(n_texts)
    if labels is not None:
        if len(labels) != n_texts:
            raise InputError(f"labels has {len(labels)} rows for {n_texts} texts: give one label per text")
        texts = np.array([i for i in range(n_texts) if not _is_missing(labels[i])], dtype=np.int64)
    texts = texts[sample_rows(len(texts), most_texts, seed)]
    if len(texts) < 2:
        raise InputError(f"pairs need two texts with a label, and there are {len(texts)}; check the column of labels")
    first, second = np.triu_indices(len(texts), k=1)
    start, lowest, end = _similarities_over_time(embeddings, texts, (first, second))
    change = end - start
    found = []
    for kind, scores, of_kind in _kinds(lowest, change, _same_label(labels, texts, first, second)):
        for place in _highest(scores, of_kind, count):
            pair = int(texts[first[place]]), int(texts[second[place]])
            found.append(SentencePair(kind, *pair, tuple(_cosine(each, *pair) for each in embeddings)))
    return found


def labels_of_texts(rows: NDArray[np.int64], labels: Sequence[Hashable], n_texts: int) -> list[Hashable]:
    """Return one label per text from one per row: that of the first row of the text with a label, else ``None``."""
    if len(labels) != len(rows):
        raise InputError(f"labels has {len(labels)} rows for {len(rows)} rows of texts: give one label per row")
    found: list[Hashable] = [None] * n_texts
    for text, label in zip(rows.tolist(), labels, strict=True):
        if text >= 0 and found[text] is None and not _is_missing(label):
            found[text] = label
    return found


def _kinds(
    lowest: NDArray[np.float64], change: NDArray[np.float64], same: NDArray[np.bool_] | None
) -> Iterator[tuple[str, NDArray[np.float64], NDArray[np.bool_]]]:
    """Yield the name of a kind, the values to rank by, and which pairs can be of the kind."""
    if same is None:
        yield "rise", change, change > 0
        yield "fall", -change, change < 0
        return
    yield "same_close", lowest, same
    yield "same_rise", change, same & (change > 0)
    yield "different_rise", change, ~same & (change > 0)
    yield "different_fall", -change, ~same & (change < 0)
    yield "same_fall", -change, same & (change < 0)


def _highest(scores: NDArray[np.float64], of_kind: NDArray[np.bool_], count: int) -> NDArray[np.intp]:
    """Return the positions of the highest scores, the earlier pair first among equals."""
    places = np.flatnonzero(of_kind)
    if len(places) > count:
        bar = np.partition(scores[places], -count)[-count]
        places = places[scores[places] >= bar]
    return places[np.argsort(-scores[places], kind="stable")][:count]


def _same_label(
    labels: Sequence[Hashable] | None, texts: NDArray[np.int64], first: NDArray[np.intp], second: NDArray[np.intp]
) -> NDArray[np.bool_] | None:
    if labels is None:
        return None
    codes = _codes([labels[i] for i in texts], "labels")
    same: NDArray[np.bool_] = codes[first] == codes[second]
    return same


def _similarities_over_time(
    embeddings: Sequence[NDArray[np.float32]],
    texts: NDArray[np.int64],
    pairs: tuple[NDArray[np.intp], NDArray[np.intp]],
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """Return the cosine similarity of every pair at the start, its lowest value, and that at the end."""
    start = lowest = end = np.empty(0)
    for i, vectors in enumerate(embeddings):
        unit = _unit(vectors[texts])
        end = (unit @ unit.T)[pairs]
        start = end if i == 0 else start
        lowest = end if i == 0 else np.minimum(lowest, end)
    return start, lowest, end


def _cosine(embeddings: NDArray[np.float32], first: int, second: int) -> float:
    left, right = _unit(embeddings[[first, second]])
    return float(left @ right)


def _unit(embeddings: NDArray[np.float32]) -> NDArray[np.float64]:
    wide = embeddings.astype(np.float64)
    lengths = np.linalg.norm(wide, axis=1, keepdims=True)
    # A row of zeros has no direction: its similarity with every row is 0.
    unit: NDArray[np.float64] = wide / np.where(lengths > 0, lengths, 1.0)
    return unit
