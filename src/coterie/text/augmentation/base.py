"""The interface of an augmenter, and the check that it changed texts."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import ClassVar

import numpy as np

from coterie.errors import InputError

# Most random numbers for which single calls of the generator are faster than one call for an array.
SINGLE_DRAWS = 4


@dataclass(frozen=True)
class Augmenter(ABC):
    """Change the wording of texts at random; only the generator decides how.

    A text without words (empty, or only white space) is left unchanged.

    Attributes
    ----------
    slow: whether it runs a language model, so that texts are augmented once and cached, not in every epoch.
    """

    slow: ClassVar[bool] = False

    @abstractmethod
    def augment(self, texts: Sequence[str], generator: np.random.Generator) -> list[str]:
        """Return one augmented text per text, in the same order."""

    def check(self) -> None:
        """Raise for a setting that is not allowed. ``augment`` calls it; call it yourself to check earlier."""
        return  # not every augmenter has settings

    def describe(self) -> str:
        """Return the name and all settings; equal descriptions make equal texts for equal seeds."""
        values = ", ".join(f"{field.name}={getattr(self, field.name)!r}" for field in fields(self))
        return f"{type(self).__name__}({values})"


def words_to_change(share: float, n_words: int) -> int:
    """Return how many words a share of a text is: at least one if it has any."""
    # Adding 1e-9 keeps 0.1 of 30 words at three: rounding can make the product of floats slightly less.
    return min(n_words, max(1, int(share * n_words + 1e-9)))


def draw_below(bound: int, n: int, generator: np.random.Generator) -> list[int]:
    """Return ``generator.integers(bound, size=n).tolist()``, by single calls while they are faster."""
    if n > SINGLE_DRAWS:
        return generator.integers(bound, size=n).tolist()
    return [int(generator.integers(bound)) for _ in range(n)]


def unchanged_share(texts: Sequence[str], augmented: Sequence[str]) -> float:
    """Return the share of texts left unchanged, among those that have words; 0 if none has."""
    pairs = [(text, other) for text, other in zip(texts, augmented, strict=True) if text.strip()]
    return sum(text == other for text, other in pairs) / len(pairs) if pairs else 0.0


def check_changes(name: str, texts: Sequence[str], augmented: Sequence[str]) -> None:
    """Raise if the augmenter ``name`` changed no text at all: contrastive learning needs two different views."""
    if any(text.strip() for text in texts) and unchanged_share(texts, augmented) == 1:
        raise InputError(
            f"the augmenter {name} changed no text (of {len(texts):,}): choose another that suits the language "
            "and length of the texts, such as char_swap, or a larger ratio"
        )
