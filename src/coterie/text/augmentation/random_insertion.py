"""Views by putting in synonyms of the words that are there."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from coterie.checks import check_number, check_whole
from coterie.text.augmentation.base import Augmenter, words_to_change
from coterie.text.augmentation.wordnet import English, look_up
from coterie.text.words import SplitText, split_text


@dataclass(frozen=True)
class RandomInsertion(Augmenter):
    """Put a synonym of one of the text's words in at a random place, at least once.

    This happens as many times as ``ratio`` of the number of words; English stop words are not taken. A text none of
    whose words has a synonym (in another language, for one) stays as it is; a text of one word gets a second.

    Parameters
    ----------
    ratio: between 0 and 1.
    candidates: how many of a word's synonyms, the commonest senses first, one is drawn from; None for all.
    """

    ratio: float = 0.2
    candidates: int | None = 10

    def check(self) -> None:
        check_number("ratio", self.ratio, above=0, below=1)
        if self.candidates is not None:
            check_whole("candidates", self.candidates, least=1)

    def augment(self, texts: Sequence[str], generator: np.random.Generator) -> list[str]:
        self.check()
        result = []
        for text in texts:
            split = split_text(text)
            n = words_to_change(self.ratio, len(split.words))
            longer = insert_synonyms(split, n, generator, self.candidates)
            result.append(text if longer is None else longer)
        return result


def insert_synonyms(split: SplitText, n: int, generator: np.random.Generator, candidates: int | None) -> str | None:
    """The text with ``n`` synonyms put in; None if no word of it has any."""
    known = [entry for entry in map(look_up, split.words) if entry is not None]
    if not known:
        return None
    sources = generator.integers(len(known), size=n).tolist()
    places = generator.integers(len(split.words) + 1, size=n).tolist()
    additions = [
        (place, _drawn(known[source], candidates, generator)) for source, place in zip(sources, places, strict=True)
    ]
    return split.inserted(additions)


def _drawn(entry: English, candidates: int | None, generator: np.random.Generator) -> str:
    synonyms = entry.synonyms[:candidates]
    return synonyms[int(generator.integers(len(synonyms)))]
