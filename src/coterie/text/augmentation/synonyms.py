"""Replace words by synonyms."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from coterie.checks import check_number, check_whole
from coterie.text.augmentation.base import Augmenter, words_to_change
from coterie.text.augmentation.wordnet import look_up
from coterie.text.word_segmentation import SplitText, split_text


@dataclass(frozen=True)
class WithSynonyms(Augmenter):
    """Share the settings of substitution and insertion of synonyms: the share of words, and the synonyms to draw from.

    ``ratio`` is the share of the words. ``candidates`` is the number of synonyms of a word; None for all.
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
            other = self._change(split, words_to_change(self.ratio, len(split.words)), generator)
            result.append(text if other is None else other)
        return result

    @abstractmethod
    def _change(self, split: SplitText, n: int, generator: np.random.Generator) -> str | None:
        """Return the text with ``n`` synonyms; None if none of its words has any."""


@dataclass(frozen=True)
class Synonyms(WithSynonyms):
    """Replace a share of ``ratio`` of the words by synonyms, at least one.

    Synonyms are those of WordNet 3.0, which is English. Stop words are never replaced. An inflected word gets synonyms
    of its base form, which are not inflected: "errors" may become "mistake". Capitals and the punctuation around a word
    stay. A text without any word that has a synonym, such as most texts in other languages, is left unchanged.

    Parameters
    ----------
    ratio: share of the words to replace, between 0 and 1.
    candidates: how many synonyms of a word, most frequent senses first, one is drawn from; None for all.

    Examples
    --------
    >>> Synonyms(0.2).augment(["Where are the Queries?"], np.random.default_rng(1))
    ['Where are the Inquiry?']
    """

    def _change(self, split: SplitText, n: int, generator: np.random.Generator) -> str | None:
        return replace_by_synonyms(split, n, generator, self.candidates)


def replace_by_synonyms(split: SplitText, n: int, generator: np.random.Generator, candidates: int | None) -> str | None:
    """Return the text with synonyms in ``n`` places; None if none of its words has any."""
    entries = [look_up(word) for word in split.words]
    places = [place for place, entry in enumerate(entries) if entry is not None]
    if not places:
        return None
    words = list(split.words)
    for chosen in generator.permutation(len(places))[:n].tolist():
        entry = entries[places[chosen]]
        assert entry is not None
        synonyms = entry.synonyms[:candidates]
        words[places[chosen]] = entry.in_place(synonyms[int(generator.integers(len(synonyms)))])
    return split.replace_words(words)
