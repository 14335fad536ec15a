"""Views by leaving words out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from coterie.errors import SettingError
from coterie.text.augmentation.base import Augmenter


@dataclass(frozen=True)
class WordDeletion(Augmenter):
    """Leave out each word with probability ``ratio``; at least one word stays.

    Words are what white space separates. A text of one word stays as it is.
    """

    ratio: float = 0.2

    def augment(self, texts: Sequence[str], generator: np.random.Generator) -> list[str]:
        if not 0 < self.ratio < 1:
            raise SettingError(f"ratio={self.ratio} is not a share of words; use a number between 0 and 1")
        result = []
        for text in texts:
            words = text.split()
            kept = generator.random(len(words)) >= self.ratio
            if not kept.any():
                kept[generator.integers(len(words))] = True
            result.append(text if kept.all() else " ".join(w for w, keep in zip(words, kept, strict=True) if keep))
        return result
