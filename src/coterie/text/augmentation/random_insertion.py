"""Views by putting in synonyms of the words that are there."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from coterie.text.augmentation.base import draw_below
from coterie.text.augmentation.synonyms import WithSynonyms
from coterie.text.augmentation.wordnet import English, look_up
from coterie.text.word_segmentation import SplitText


@dataclass(frozen=True)
class RandomInsertion(WithSynonyms):
    """Put a synonym of one of the text's words in at a random place, at least once.

    This happens as many times as ``ratio`` of the number of words; English stop words are not taken. A text none of
    whose words has a synonym (in another language, for one) stays as it is; a text of one word gets a second.

    Parameters
    ----------
    ratio: between 0 and 1.
    candidates: how many of a word's synonyms, the commonest senses first, one is drawn from; None for all.
    """

    def _change(self, split: SplitText, n: int, generator: np.random.Generator) -> str | None:
        return insert_synonyms(split, n, generator, self.candidates)


def insert_synonyms(split: SplitText, n: int, generator: np.random.Generator, candidates: int | None) -> str | None:
    """The text with ``n`` synonyms put in; None if no word of it has any."""
    known = [entry for entry in map(look_up, split.words) if entry is not None]
    if not known:
        return None
    sources = draw_below(len(known), n, generator)
    places = draw_below(len(split.words) + 1, n, generator)
    additions = [
        (place, _drawn(known[source], candidates, generator)) for source, place in zip(sources, places, strict=True)
    ]
    return split.inserted(additions)


def _drawn(entry: English, candidates: int | None, generator: np.random.Generator) -> str:
    synonyms = entry.synonyms[:candidates]
    return synonyms[int(generator.integers(len(synonyms)))]
