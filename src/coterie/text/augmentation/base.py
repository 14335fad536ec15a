"""What an augmenter is, and whether one did anything."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import ClassVar

import numpy as np

from coterie.errors import InputError

# An array of draws costs about as much as this many single ones.
SINGLE_DRAWS = 4


@dataclass(frozen=True)
class Augmenter(ABC):
    """Makes another wording of each text; the generator alone decides which.

    A text without words (empty, or white space alone) stays as it is.

    Attributes
    ----------
    slow: whether making texts takes a language model, so that they are made once and kept, not every epoch.
    """

    slow: ClassVar[bool] = False

    @abstractmethod
    def augment(self, texts: Sequence[str], generator: np.random.Generator) -> list[str]:
        """One new text for each of ``texts``, in their order."""

    def check(self) -> None:
        """Raise for a setting that cannot work. ``augment`` does so by itself; this is for asking before."""
        return  # not every augmenter has settings

    def describe(self) -> str:
        """The augmenter with all that decides what it makes; the same words mean the same texts."""
        values = ", ".join(f"{field.name}={getattr(self, field.name)!r}" for field in fields(self))
        return f"{type(self).__name__}({values})"


def words_to_change(share: float, n_words: int) -> int:
    """How many words a share of a text is: at least one of a text that has any."""
    # The small number keeps 0.1 of 30 words at three, where the product of the floats may fall short of it.
    return min(n_words, max(1, int(share * n_words + 1e-9)))


def draw_below(bound: int, n: int, generator: np.random.Generator) -> list[int]:
    """What ``generator.integers(bound, size=n).tolist()`` gives; single draws are quicker while there are few."""
    if n > SINGLE_DRAWS:
        return generator.integers(bound, size=n).tolist()
    return [int(generator.integers(bound)) for _ in range(n)]


def unchanged_share(texts: Sequence[str], augmented: Sequence[str]) -> float:
    """The share of texts that came back as they were, among those that have words; 0 if none has."""
    pairs = [(text, other) for text, other in zip(texts, augmented, strict=True) if text.strip()]
    return sum(text == other for text, other in pairs) / len(pairs) if pairs else 0.0


def check_changes(name: str, texts: Sequence[str], augmented: Sequence[str]) -> None:
    """Raise if the augmenter ``name`` changed no text at all: two equal views teach nothing."""
    if any(text.strip() for text in texts) and unchanged_share(texts, augmented) == 1:
        raise InputError(
            f"the augmenter {name} changed no text (of {len(texts):,}): choose another that suits the language "
            "and length of the texts, such as char_swap, or a larger ratio"
        )
