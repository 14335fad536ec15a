"""What an augmenter is."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

import numpy as np


class Augmenter(ABC):
    """Makes another wording of each text; the generator alone decides which."""

    @abstractmethod
    def augment(self, texts: Sequence[str], generator: np.random.Generator) -> list[str]:
        """One new text for each of ``texts``, in their order."""
