"""What methods hand to one another and to their users, and how far an answer is trusted."""

from __future__ import annotations

import os
from dataclasses import asdict, dataclass, is_dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class Learned:
    """What a method's own fitting hands to the base: everything is per distinct text.

    Attributes
    ----------
    features:
        The vectors the final partition lives in.
    centers:
        One centre a cluster.
    labels:
        The partition, or ``None`` where it is "nearest centre" or the head's.
    probabilities:
        What a head that is not "nearest centre" says of each text, where it decides the partition.
    initial_labels:
        The partition training started from, where there was training.
    head_labels, kmeans_labels:
        The answers of a trained clustering head and of k-means on the final features, where they are not the
        partition itself.
    head_centers:
        Centres of a trained clustering head, where there is one; its own answer is "nearest of these".
    noise:
        Of ``features``: see :class:`Encoded`.
    """

    features: Any
    centers: NDArray[np.float32]
    labels: NDArray[np.int64] | None = None
    probabilities: NDArray[np.float64] | None = None
    initial_labels: NDArray[np.int64] | None = None
    head_labels: NDArray[np.int64] | None = None
    kmeans_labels: NDArray[np.int64] | None = None
    head_centers: NDArray[np.float32] | None = None
    noise: float = 0.0


@dataclass(frozen=True)
class Encoded:
    """Vectors of texts, dense or sparse, and how many of the texts were cut at the length limit.

    ``noise`` is how far a vector may be from the exact one, as a share of its length; 0 for exact ones.
    """

    features: Any
    truncated: int = 0
    noise: float = 0.0


@dataclass(frozen=True)
class Prediction:
    """Answers for rows of texts: cluster, confidence, and how many distinct texts were cut at the length limit."""

    labels: NDArray[np.int64]
    confidence: NDArray[np.float64]
    n_truncated: int


def blank_rows(features: Any) -> NDArray[np.bool_]:
    """Rows of nothing but zeros, dense or sparse: texts without any known word."""
    return np.asarray(abs(features).sum(axis=1)).ravel() == 0


def lead(probabilities: NDArray[np.float64], labels: NDArray[np.int64]) -> NDArray[np.float64]:
    """How far the chosen cluster is ahead of the best other one: ``1 - q2 / q1``, at least 0."""
    rows = np.arange(len(labels))
    chosen = probabilities[rows, labels]
    # Taken out and put back: a copy of the table would cost more than all the rest.
    probabilities[rows, labels] = -np.inf
    runner_up = probabilities.max(axis=1, initial=0.0)
    probabilities[rows, labels] = chosen
    return np.clip(1 - runner_up / np.maximum(chosen, 1e-300), 0, 1)


def plain(value: Any) -> Any:
    """A setting as JSON takes it."""
    if is_dataclass(value) and not isinstance(value, type):
        return {name: plain(each) for name, each in asdict(value).items()}
    if isinstance(value, np.generic):
        return value.item()
    return os.fspath(value) if isinstance(value, os.PathLike) else value
