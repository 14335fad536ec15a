"""Apply several augmenters one after another."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from coterie.errors import SettingError
from coterie.text.augmentation.base import Augmenter


@dataclass(frozen=True, init=False)
class Composition(Augmenter):
    """Apply each augmenter to the output of the one before it.

    Parameters
    ----------
    augmenters: one or more, in the order in which they are applied.

    Examples
    --------
    >>> from coterie.text.augmentation.random_swap import RandomSwap
    >>> from coterie.text.augmentation.word_deletion import WordDeletion
    >>> Composition(WordDeletion(0.4), RandomSwap(0.1)).describe()
    'WordDeletion(ratio=0.4)+RandomSwap(ratio=0.1)'
    """

    augmenters: tuple[Augmenter, ...]

    def __init__(self, *augmenters: Augmenter) -> None:
        object.__setattr__(self, "augmenters", augmenters)
        # One slow augmenter makes the composition slow: this attribute overrides that of the class.
        object.__setattr__(self, "slow", any(augmenter.slow for augmenter in augmenters))

    def check(self) -> None:
        if not self.augmenters:
            raise SettingError("Composition() must have at least one augmenter")
        for augmenter in self.augmenters:
            augmenter.check()

    def augment(self, texts: Sequence[str], generator: np.random.Generator) -> list[str]:
        self.check()
        result = list(texts)
        for augmenter in self.augmenters:
            result = augmenter.augment(result, generator)
        return result

    def describe(self) -> str:
        return "+".join(augmenter.describe() for augmenter in self.augmenters)
