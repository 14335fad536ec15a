"""Views by leaving words out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from coterie.checks import check_number
from coterie.text.augmentation.base import Augmenter


@dataclass(frozen=True)
class WordDeletion(Augmenter):
    """Leave out each word with probability ``ratio``; at least one word stays.

    Words are what white space separates: a text of one word, or in a script without spaces, stays as it is.
    """

    ratio: float = 0.2

    def augment(self, texts: Sequence[str], generator: np.random.Generator) -> list[str]:
        check_number("ratio", self.ratio, above=0, below=1)
        result = []
        for text in texts:
            words = text.split()
            kept = generator.random(len(words)) >= self.ratio
            if len(words) and not kept.any():
                kept[generator.integers(len(words))] = True
            result.append(text if kept.all() else " ".join(w for w, keep in zip(words, kept, strict=True) if keep))
        return result
