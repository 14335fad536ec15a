"""Views by leaving words out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from coterie.checks import check_number
from coterie.text.augmentation.base import Augmenter
from coterie.text.words import SplitText, split_text, split_words


@dataclass(frozen=True)
class WordDeletion(Augmenter):
    """Leave out each word with probability ``ratio``; at least one word stays.

    A text of one word stays as it is. Where words go, one space is left of the white space between the others.

    Parameters
    ----------
    ratio: the probability, between 0 and 1.

    Examples
    --------
    >>> WordDeletion(0.4).augment(["where is my parcel now"], np.random.default_rng(0))
    ['where now']
    """

    ratio: float = 0.2

    def check(self) -> None:
        check_number("ratio", self.ratio, above=0, below=1)

    def augment(self, texts: Sequence[str], generator: np.random.Generator) -> list[str]:
        self.check()
        result = []
        for text in texts:
            n_words = len(split_words(text))
            kept = generator.random(n_words) >= self.ratio
            if n_words and not kept.any():
                kept[generator.integers(n_words)] = True
            result.append(text if kept.all() else split_text(text).kept(np.flatnonzero(kept).tolist()))
        return result


def delete_words(split: SplitText, n: int, generator: np.random.Generator) -> str | None:
    """The text without ``n`` of its words, drawn at random; None if it has but one."""
    n_words = len(split.words)
    n = min(n, n_words - 1)
    if n < 1:
        return None
    gone = set(generator.permutation(n_words)[:n].tolist())
    return split.kept([place for place in range(n_words) if place not in gone])
