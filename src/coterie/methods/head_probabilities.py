"""Compute the probabilities of a trained head so that they do not depend on the other texts of a batch."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from coterie.clustering.assignment import near_ties

# Rows per forward pass of a head, which bounds the memory of its hidden layers.
BLOCK = 4_096
# Difference of log probabilities below which the rounding errors of a batch could swap two clusters.
TIE = 1e-3


def batch_independent_probabilities(
    head: Callable[[NDArray[np.float32]], NDArray[np.float64]],
    texts: Sequence[str],
    features: NDArray[np.float32],
    encode_one_by_one: Callable[[Sequence[str]], Any],
) -> NDArray[np.float64]:
    """Return the probabilities of ``head``, block by block; a text near a tie is embedded again on its own.

    Parameters
    ----------
    head:
        Function from vectors to probabilities, ``texts x clusters``.
    features:
        The vectors of ``texts``, computed in batches.
    encode_one_by_one:
        Function from texts to vectors that are computed without a batch.
    """
    result = np.concatenate([head(features[i : i + BLOCK]) for i in range(0, len(features), BLOCK)])
    ties = near_ties(-np.log(np.maximum(result, 1e-300)), TIE)
    if not len(ties):
        return result
    alone = encode_one_by_one([texts[i] for i in ties])
    for row, vector in zip(ties, alone, strict=True):
        result[row] = head(vector[None])[0]
    return result
