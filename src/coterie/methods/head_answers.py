"""What a trained head says of texts, the same in any company."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from coterie.clustering.assignment import near_ties

# Rows of the head's answer computed at a time.
BLOCK = 4_096
# Two clusters whose probabilities are this near, as logarithms, could swap by the rounding of a batch.
TIE = 1e-3


def answers_in_any_company(
    answer: Callable[[NDArray[np.float32]], NDArray[np.float64]],
    texts: Sequence[str],
    features: NDArray[np.float32],
    encode_one_by_one: Callable[[Sequence[str]], Any],
) -> NDArray[np.float64]:
    """Probabilities by ``answer``, block by block; a text near a tie is embedded again, alone."""
    result = np.concatenate([answer(features[i : i + BLOCK]) for i in range(0, len(features), BLOCK)])
    ties = near_ties(-np.log(np.maximum(result, 1e-300)), TIE)
    alone = encode_one_by_one([texts[i] for i in ties])
    for row, vector in zip(ties, alone, strict=True):
        result[row] = answer(vector[None])[0]
    return result
