"""The guard: whether what training made of the clusters is better than what they were, told without labels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from coterie.validity.neighbourhoods import Pairs, kept_together


@dataclass(frozen=True)
class Kept:
    """A partition, and the shares of neighbours that it keeps together less what chance gives (modularity).

    Attributes
    ----------
    name, labels:
        ``"start"``, or the round it was made after.
    neighbours:
        By the encoder as it came. Training cannot move them.
    words:
        By TF-IDF, of neighbours that training was not taught by; NaN where texts share no words.
    """

    name: str
    labels: NDArray[np.int64]
    neighbours: float
    words: float

    @property
    def score(self) -> float:
        """Both together; without words the neighbours alone."""
        return self.neighbours + (0.0 if np.isnan(self.words) else self.words)


def weigh(name: str, labels: NDArray[np.int64], near: Pairs, akin: Pairs) -> Kept:
    """Judge a partition by pairs of texts that should stay together."""
    return Kept(name, labels, kept_together(labels, *near), kept_together(labels, *akin))


def best_kept(candidates: Sequence[Kept]) -> Kept:
    """The best, the first where several are as good: training has to show a gain."""
    return max(candidates, key=lambda each: each.score)


def told(start: Kept, best: Kept) -> str:
    """The outcome in a sentence."""
    if best is start:
        return "fine-tuning did not help by the label-free signs: the start is returned, with the encoder as it came"
    parts = [f"neighbours kept together {start.neighbours:.3f} before, {best.neighbours:.3f} after"]
    if not np.isnan(best.words):
        parts.append(f"texts with words in common {start.words:.3f} before, {best.words:.3f} after")
    return f"fine-tuning helped by the label-free signs ({'; '.join(parts)}): the partition of {best.name} is returned"
