"""Results of methods: the outcome of fitting, encoded texts, predictions and their confidence."""

from __future__ import annotations

import os
from dataclasses import asdict, dataclass, is_dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class Learned:
    """The outcome of a method's own fitting; one row per distinct text.

    Attributes
    ----------
    features:
        The vectors that are clustered.
    centers:
        One row per cluster.
    labels:
        The partition; ``None`` where the nearest centre or a head gives it.
    probabilities:
        Probabilities of a head that is not "nearest centre", where it gives the partition.
    initial_labels:
        The partition before training, for methods that train.
    head_labels, kmeans_labels:
        The partitions by a trained clustering head and by k-means on the final features, where they differ from the
        main one.
    head_centers:
        Centres of a trained clustering head that assigns each text to the nearest of them.
    noise:
        Noise of ``features``: see :class:`Encoded`.
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
    """Vectors of texts, dense or sparse.

    Attributes
    ----------
    features:
        One row per text.
    truncated:
        How many texts were cut at the length limit.
    noise:
        Largest distance of a vector from the exact one, relative to its length; 0 for exact vectors.
    """

    features: Any
    truncated: int = 0
    noise: float = 0.0


@dataclass(frozen=True)
class Prediction:
    """Cluster and confidence of each text, and how many distinct texts were cut at the length limit."""

    labels: NDArray[np.int64]
    confidence: NDArray[np.float64]
    n_truncated: int


def blank_rows(features: Any) -> NDArray[np.bool_]:
    """Return which rows hold only zeros (dense or sparse): texts without any known word."""
    return np.asarray(abs(features).sum(axis=1)).ravel() == 0


def lead(probabilities: NDArray[np.float64], labels: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return the margin of each label over the best other cluster: ``1 - q2 / q1``, at least 0."""
    rows = np.arange(len(labels))
    chosen = probabilities[rows, labels]
    # Overwritten and restored: a copy of the array would take longer than the rest of this function.
    probabilities[rows, labels] = -np.inf
    runner_up = probabilities.max(axis=1, initial=0.0)
    probabilities[rows, labels] = chosen
    return np.clip(1 - runner_up / np.maximum(chosen, 1e-300), 0, 1)


def plain(value: Any) -> Any:
    """Return a parameter's value in a form that JSON can hold."""
    if is_dataclass(value) and not isinstance(value, type):
        return {name: plain(each) for name, each in asdict(value).items()}
    if isinstance(value, np.generic):
        return value.item()
    return os.fspath(value) if isinstance(value, os.PathLike) else value
