"""Pairs of texts that training drew together or pushed apart (Table 5 of the ClusterBERT paper)."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from coterie.checks import check_whole
from coterie.errors import InputError
from coterie.metrics.external.scores import _codes, _is_missing
from coterie.metrics.external.snapshots import draw_rows
from coterie.training.history import Snapshot

KINDS = {
    "same_close": "same label, close throughout",
    "same_rise": "same label, drawn together most",
    "different_rise": "different labels, drawn together most",
    "different_fall": "different labels, pushed apart most",
    "same_fall": "same label, pushed apart most",
    "rise": "drawn together most",
    "fall": "pushed apart most",
}
"""What each kind of pair is; the last two are those without labels."""

# Every text against every other is quadratic.
MOST_TEXTS = 2_000


@dataclass(frozen=True)
class SentencePair:
    """Two texts, by their places in the snapshots, and their cosine similarity in each snapshot."""

    kind: str
    first: int
    second: int
    similarities: tuple[float, ...]

    @property
    def change(self) -> float:
        """How much more alike the two are at the end than at the start."""
        return self.similarities[-1] - self.similarities[0]


def sentence_pairs(
    snapshots: Sequence[Snapshot],
    labels: Sequence[Hashable] | None = None,
    *,
    count: int = 10,
    most_texts: int = MOST_TEXTS,
    seed: int = 0,
) -> list[SentencePair]:
    """The pairs that show how a run moved its texts, the most telling of each kind first.

    With labels there are the five kinds of Table 5, in its order: same label and close throughout (by the lowest
    similarity over all snapshots), same label and the largest rise, different labels and the largest rise, different
    labels and the largest fall, same label and the largest fall. Without labels: the largest rise and the largest
    fall. Rise and fall are from the first snapshot to the last, and a pair that did not rise is never listed as one.

    Parameters
    ----------
    snapshots:
        At least two, all of the same texts.
    labels:
        One true label a text of the snapshots; texts without one (None, NaN, "") are left out.
    count:
        How many pairs of each kind, where there are so many.
    most_texts:
        Pairs are looked for among so many texts, drawn by ``seed``.
    """
    check_whole("count", count, least=1)
    check_whole("most_texts", most_texts, least=2)
    if len(snapshots) < 2:
        raise InputError(f"pairs need two snapshots to compare and there is {len(snapshots)}; fit with --snapshots 1")
    n_texts = len(snapshots[0].embeddings)
    texts = np.arange(n_texts)
    if labels is not None:
        if len(labels) != n_texts:
            raise InputError(f"labels has {len(labels)} rows for {n_texts} texts: give one label a text")
        texts = np.array([i for i in range(n_texts) if not _is_missing(labels[i])], dtype=np.int64)
    texts = texts[draw_rows(len(texts), most_texts, seed)]
    if len(texts) < 2:
        raise InputError(f"pairs need two texts with a label, and there are {len(texts)}; check the column of labels")
    first, second = np.triu_indices(len(texts), k=1)
    start, lowest, end = _similarities_over_time(snapshots, texts, (first, second))
    change = end - start
    found = []
    for kind, scores, of_kind in _kinds(lowest, change, _same_label(labels, texts, first, second)):
        for place in _highest(scores, of_kind, count):
            pair = int(texts[first[place]]), int(texts[second[place]])
            found.append(SentencePair(kind, *pair, tuple(_cosine(each, *pair) for each in snapshots)))
    return found


def labels_of_texts(rows: NDArray[np.int64], labels: Sequence[Hashable], n_texts: int) -> list[Hashable]:
    """One label a text from one a row: that of the first row of the text that has one, else ``None``."""
    if len(labels) != len(rows):
        raise InputError(f"labels has {len(labels)} rows for {len(rows)} rows of texts: give one label a row")
    found: list[Hashable] = [None] * n_texts
    for text, label in zip(rows.tolist(), labels, strict=True):
        if text >= 0 and found[text] is None and not _is_missing(label):
            found[text] = label
    return found


def _kinds(
    lowest: NDArray[np.float64], change: NDArray[np.float64], same: NDArray[np.bool_] | None
) -> Iterator[tuple[str, NDArray[np.float64], NDArray[np.bool_]]]:
    """Name, what to rank by, and which pairs can be of the kind."""
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
    """Places of the highest scores, the earlier pair first among equals."""
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
    snapshots: Sequence[Snapshot], texts: NDArray[np.int64], pairs: tuple[NDArray[np.intp], NDArray[np.intp]]
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """Cosine similarity of every pair at the start, at its lowest, and at the end."""
    start = lowest = end = np.empty(0)
    for i, snapshot in enumerate(snapshots):
        unit = _unit(snapshot.embeddings[texts])
        end = (unit @ unit.T)[pairs]
        start = end if i == 0 else start
        lowest = end if i == 0 else np.minimum(lowest, end)
    return start, lowest, end


def _cosine(snapshot: Snapshot, first: int, second: int) -> float:
    left, right = _unit(snapshot.embeddings[[first, second]])
    return float(left @ right)


def _unit(embeddings: NDArray[np.float32]) -> NDArray[np.float64]:
    wide = embeddings.astype(np.float64)
    lengths = np.linalg.norm(wide, axis=1, keepdims=True)
    # A row of zeros has no direction: it is like nothing.
    unit: NDArray[np.float64] = wide / np.where(lengths > 0, lengths, 1.0)
    return unit
