"""Insert synonyms of a text's own words."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from coterie.text.augmentation.base import draw_below
from coterie.text.augmentation.synonyms import WithSynonyms
from coterie.text.augmentation.wordnet import EnglishWord, look_up
from coterie.text.word_segmentation import SplitText


@dataclass(frozen=True)
class RandomInsertion(WithSynonyms):
    """Insert a synonym of one of the text's words at a random place, at least once.

    The number of insertions is ``ratio`` of the number of words; English stop words have no synonyms. A text without
    any word that has a synonym (in another language, for example) is left unchanged; a text of one word gets a second.

    Parameters
    ----------
    ratio: insertions per word, between 0 and 1.
    candidates: how many synonyms of a word, most frequent senses first, one is drawn from; None for all.
    """

    def _change(self, split: SplitText, n: int, generator: np.random.Generator) -> str | None:
        return insert_synonyms(split, n, generator, self.candidates)


def insert_synonyms(split: SplitText, n: int, generator: np.random.Generator, candidates: int | None) -> str | None:
    """Return the text with ``n`` synonyms inserted; None if none of its words has any."""
    known = [entry for entry in map(look_up, split.words) if entry is not None]
    if not known:
        return None
    sources = draw_below(len(known), n, generator)
    places = draw_below(len(split.words) + 1, n, generator)
    additions = [
        (place, _draw_synonym(known[source], candidates, generator))
        for source, place in zip(sources, places, strict=True)
    ]
    return split.insert_words(additions)


def _draw_synonym(entry: EnglishWord, candidates: int | None, generator: np.random.Generator) -> str:
    synonyms = entry.synonyms[:candidates]
    return synonyms[int(generator.integers(len(synonyms)))]
