"""EDA: easy data augmentation."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from coterie.checks import check_choice, check_number, check_whole
from coterie.errors import SettingError
from coterie.text.augmentation.base import Augmenter, words_to_change
from coterie.text.augmentation.random_insertion import insert_synonyms
from coterie.text.augmentation.random_swap import swap_words
from coterie.text.augmentation.synonyms import replace_by_synonyms
from coterie.text.augmentation.word_deletion import delete_words
from coterie.text.word_segmentation import SplitText, split_text

# The four operations of the paper.
OPERATIONS = ("synonyms", "insertion", "swap", "deletion")
_Operation = Callable[[SplitText, int], str | None]


@dataclass(frozen=True)
class EDA(Augmenter):
    """Apply one of four operations, drawn for each text, to a share of ``alpha`` of its words, at least one.

    J. Wei and K. Zou, EDA: Easy Data Augmentation Techniques for Boosting Performance on Text Classification Tasks,
    EMNLP-IJCNLP 2019. Synonyms are those of WordNet, in English; stop words have none.

    Differs from the paper: an operation that can change nothing (a word without synonyms, a single word) is replaced by
    another; deletion removes the same number of words as the other operations change, while the paper removes each with
    probability alpha, which mostly leaves a short text unchanged. A text of one word without a synonym stays unchanged.

    Parameters
    ----------
    alpha: share of the words to change, between 0 and 1.
    operations: the operations to draw from: ``synonyms``, ``insertion``, ``swap`` and ``deletion``.
    candidates: how many synonyms of a word, most frequent senses first, one is drawn from; None for all, as in the
        paper.
    """

    alpha: float = 0.1
    operations: tuple[str, ...] = OPERATIONS
    candidates: int | None = None

    def check(self) -> None:
        check_number("alpha", self.alpha, above=0, below=1)
        check_operations(self.operations, OPERATIONS)
        if self.candidates is not None:
            check_whole("candidates", self.candidates, least=1)

    def augment(self, texts: Sequence[str], generator: np.random.Generator) -> list[str]:
        self.check()
        make = self._operations(generator)
        result = []
        for text in texts:
            split = split_text(text)
            n = words_to_change(self.alpha, len(split.words))
            left = list(self.operations) if n else []
            other = None
            while left and other is None:
                other = make[left.pop(int(generator.integers(len(left))))](split, n)
            result.append(text if other is None else other)
        return result

    def _operations(self, generator: np.random.Generator) -> dict[str, _Operation]:
        return {
            "synonyms": lambda split, n: replace_by_synonyms(split, n, generator, self.candidates),
            "insertion": lambda split, n: insert_synonyms(split, n, generator, self.candidates),
            "swap": lambda split, n: swap_words(split, n, generator),
            "deletion": lambda split, n: delete_words(split, n, generator),
        }


def check_operations(operations: Sequence[str], known: tuple[str, ...]) -> None:
    """Raise unless there is at least one operation, each of ``known`` and named once."""
    if not isinstance(operations, tuple) or not operations or len(set(operations)) < len(operations):
        raise SettingError(f"operations={operations!r} must be a tuple of some of {', '.join(known)}")
    for operation in operations:
        check_choice("operations", operation, known)
