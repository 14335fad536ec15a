"""Whether fine-tuning helped, told without labels.

A measure taken in the trained embeddings would flatter them: training pulls apart what the clusters already say. So two
partitions are judged by neighbours that training cannot have moved: texts alike in their words, and texts alike to the
frozen encoder.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from coterie.clustering.kmeans import unit_rows
from coterie.clustering.nearest import nearest_rows
from coterie.formatting import percent

NEIGHBOURS = 10
# Texts whose neighbours are looked at, among as many.
SAMPLE = 4_000
# A difference of shares that is worth a sentence.
NOTICEABLE = 0.005


@dataclass(frozen=True)
class Kept:
    """How often a text shares its cluster with its nearest neighbours, before and after training.

    Attributes
    ----------
    name:
        What makes them neighbours.
    before, after:
        The share of neighbours in the same cluster, over what clusters of these sizes would share by chance: 0 is
        chance, 1 is all of them.
    """

    name: str
    before: float
    after: float

    @property
    def gain(self) -> float:
        return self.after - self.before

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


def neighbours_kept(
    texts: Sequence[str],
    frozen: NDArray[np.floating[Any]] | None,
    before: NDArray[np.int64],
    after: NDArray[np.int64],
    *,
    seed: int = 0,
) -> list[Kept]:
    """How well both partitions keep neighbours together: those alike in words, and those alike to the frozen encoder.

    ``frozen`` are the frozen encoder's vectors, a row a text. At most ``SAMPLE`` texts are looked at.
    """
    usable = np.flatnonzero((before >= 0) & (after >= 0))
    rows = np.sort(np.random.default_rng(seed).permutation(usable)[:SAMPLE])
    if len(rows) < 3:
        return []
    tables = {"texts that share telling words": _word_rows([texts[row] for row in rows])}
    if frozen is not None:
        tables["texts alike to the frozen encoder"] = unit_rows(np.asarray(frozen[rows], dtype=np.float32))
    found = []
    for name, table in tables.items():
        if table is None:
            continue
        asked, near = _nearest(table, min(NEIGHBOURS, len(rows) - 1))
        if len(asked):
            shares = [_beyond_chance(labels[rows], asked, near) for labels in (before, after)]
            found.append(Kept(name, round(shares[0], 4), round(shares[1], 4)))
    return found


def verdict(kept: Sequence[Kept]) -> str:
    """One sentence: helped, harmed, changed little, or the signs disagree."""
    if not kept:
        return "There are too few texts to tell whether fine-tuning helped."
    better = [each for each in kept if each.gain > NOTICEABLE]
    worse = [each for each in kept if each.gain < -NOTICEABLE]
    if better and not worse:
        return f"Fine-tuning helped by the label-free signs ({_told(better)})."
    if worse and not better:
        return f"Fine-tuning did not help by the label-free signs ({_told(worse)}): compare with --method frozen."
    if not better:
        return "Fine-tuning changed little by the label-free signs."
    return f"The label-free signs disagree on whether fine-tuning helped: {_told(kept)}."


def _told(kept: Sequence[Kept]) -> str:
    return "; ".join(
        f"{each.name}: {percent(each.before)} together before, {percent(each.after)} after" for each in kept
    )


def _word_rows(texts: Sequence[str]) -> Any:
    """TF-IDF rows of unit length; ``None`` where no word occurs twice."""
    from sklearn.feature_extraction.text import TfidfVectorizer

    try:
        return TfidfVectorizer(sublinear_tf=True, min_df=2, max_df=0.2, dtype=np.float32).fit_transform(texts)
    except ValueError:
        return None


def _nearest(table: Any, k: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The rows that have ``k`` neighbours with anything in common, and these, by cosine."""
    asked, found = [], []
    for rows, near, cosines in nearest_rows(table, k):
        shares = cosines.min(axis=1) > 0
        asked.append(rows[shares])
        found.append(near[shares])
    return np.concatenate(asked), np.concatenate(found)


def _beyond_chance(labels: NDArray[np.int64], asked: NDArray[np.int64], near: NDArray[np.int64]) -> float:
    together = float((labels[near] == labels[asked][:, None]).mean())
    shares = np.bincount(labels) / len(labels)
    chance = float((shares**2).sum())
    return (together - chance) / max(1e-12, 1 - chance)
