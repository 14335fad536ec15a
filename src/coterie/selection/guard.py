"""The guard: whether what training made of the clusters is better than what they were, told without labels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from coterie.metrics.internal.neighbourhoods import kept_together
from coterie.metrics.internal.wording import words_told
from coterie.selection.choose_start import relative
from coterie.selection.neighbour_graphs import Seen


@dataclass(frozen=True)
class Kept:
    """A partition, and what speaks for it by views of the texts that training cannot have moved.

    Attributes
    ----------
    name, labels:
        ``"start"``, or the round it was made after.
    neighbours:
        The share of neighbours, by the encoder as it came, that it keeps together, less what chance gives (modularity).
    words:
        The same for neighbours by TF-IDF; NaN where texts share no words.
    told:
        How well the words of texts are told by the others of their cluster
        (:func:`~coterie.metrics.internal.wording.words_told`); NaN likewise.
    say_of_words:
        How much the two signs of words count beside neighbours (see :func:`~coterie.selection.neighbour_graphs.see`).
    """

    name: str
    labels: NDArray[np.int64]
    neighbours: float
    words: float
    told: float
    say_of_words: float

    def gain_over(self, start: Kept) -> float:
        """How far it is ahead of ``start``: what its signs have risen by, as shares of what they were, added up.

        Training always parts some neighbours of the encoder as it came, for better or worse; what is won by words has
        to be worth more than that.
        """
        by_neighbours = relative(start.neighbours, self.neighbours)
        if np.isnan(self.words):
            return by_neighbours
        by_words = relative(start.words, self.words) + relative(start.told, self.told)
        return by_neighbours + self.say_of_words * by_words


def weigh(name: str, labels: NDArray[np.int64], seen: Seen) -> Kept:
    """Judge a partition by the texts as they were ``seen`` before training."""
    words = told = float("nan")
    if seen.words is not None:
        words, told = kept_together(labels, *seen.words.akin), words_told(seen.words.table, labels)
    return Kept(name, labels, kept_together(labels, *seen.pairs), words, told, seen.say_of_words)


def best_kept(candidates: Sequence[Kept]) -> Kept:
    """The best, the first where several are as good: training has to show a gain."""
    return max(candidates, key=lambda each: each.gain_over(candidates[0]))


def told(start: Kept, best: Kept) -> str:
    """The outcome in a sentence."""
    if best is start:
        return "fine-tuning did not help by the label-free signs: the start is returned, with the encoder as it came"
    parts = [f"neighbours kept together {start.neighbours:.3f} before, {best.neighbours:.3f} after"]
    if not np.isnan(best.words):
        parts += [
            f"texts with words in common {start.words:.3f} before, {best.words:.3f} after",
            f"words told by their cluster {start.told:.3f} before, {best.told:.3f} after",
        ]
    # A NaN is no fall.
    fell = any(getattr(best, sign) < getattr(start, sign) for sign in ("neighbours", "words", "told"))
    helped = "helped on balance" if fell else "helped"
    return (
        f"fine-tuning {helped} by the label-free signs ({'; '.join(parts)}): the partition of {best.name} is returned"
    )
