"""Exchange words of a text."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from coterie.checks import check_number
from coterie.text.augmentation.base import Augmenter, draw_below, words_to_change
from coterie.text.word_segmentation import SplitText, split_text


@dataclass(frozen=True)
class RandomSwap(Augmenter):
    """Exchange two words at random, as often as ``ratio`` of the number of words, at least once.

    A text of one word, or of one word repeated, is left unchanged. White space keeps its place.

    Parameters
    ----------
    ratio: exchanges per word, between 0 and 1.
    """

    ratio: float = 0.2

    def check(self) -> None:
        check_number("ratio", self.ratio, above=0, below=1)

    def augment(self, texts: Sequence[str], generator: np.random.Generator) -> list[str]:
        self.check()
        result = []
        for text in texts:
            split = split_text(text)
            swapped = swap_words(split, words_to_change(self.ratio, len(split.words)), generator)
            result.append(text if swapped is None else swapped)
        return result


def swap_words(split: SplitText, n: int, generator: np.random.Generator) -> str | None:
    """Return the text after ``n`` exchanges of two words; None if all its words are the same."""
    words = list(split.words)
    if len(set(words)) < 2:
        return None
    firsts = draw_below(len(words), n, generator)
    steps = draw_below(len(words) - 1, n, generator)
    for first, step in zip(firsts, steps, strict=True):
        second = (first + 1 + step) % len(words)
        words[first], words[second] = words[second], words[first]
    if tuple(words) == split.words:  # undone by a second exchange, or the same word twice
        first = int(generator.integers(len(words)))
        others = [place for place, word in enumerate(words) if word != words[first]]
        second = others[int(generator.integers(len(others)))]
        words[first], words[second] = words[second], words[first]
    return split.replace_words(words)
