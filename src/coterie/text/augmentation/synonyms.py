"""Views by putting synonyms in the place of words."""

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
    """What substitution and insertion of synonyms share: how many words, and from how many synonyms."""

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
        """The text with ``n`` synonyms; None if no word of it has any."""


@dataclass(frozen=True)
class Synonyms(WithSynonyms):
    """Put synonyms in the place of ``ratio`` of the words, at least of one.

    Synonyms are those of WordNet 3.0, which is English. Stop words are spared. An inflected word gets synonyms of its
    base form, which are not inflected in turn: "errors" may become "mistake". Capitals and the punctuation around a
    word stay. A text none of whose words has a synonym stays as it is; that includes texts in other languages.

    Parameters
    ----------
    ratio: between 0 and 1.
    candidates: how many of a word's synonyms, the commonest senses first, one is drawn from; None for all.

    Examples
    --------
    >>> Synonyms(0.2).augment(["Where are the Queries?"], np.random.default_rng(1))
    ['Where are the Inquiry?']
    """

    def _change(self, split: SplitText, n: int, generator: np.random.Generator) -> str | None:
        return replace_by_synonyms(split, n, generator, self.candidates)


def replace_by_synonyms(split: SplitText, n: int, generator: np.random.Generator, candidates: int | None) -> str | None:
    """The text with synonyms in ``n`` places; None if no word of it has any."""
    entries = [look_up(word) for word in split.words]
    places = [place for place, entry in enumerate(entries) if entry is not None]
    if not places:
        return None
    words = list(split.words)
    for chosen in generator.permutation(len(places))[:n].tolist():
        entry = entries[places[chosen]]
        assert entry is not None
        synonyms = entry.synonyms[:candidates]
        words[places[chosen]] = entry.dressed(synonyms[int(generator.integers(len(synonyms)))])
    return split.replaced(words)
