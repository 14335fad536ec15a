"""What methods hand to one another and to their users, and how clusters are ordered and trusted."""

from __future__ import annotations

import os
from dataclasses import asdict, dataclass, is_dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from coterie.clustering.assignment import order_by_size


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
    """

    features: Any
    centers: NDArray[np.float32]
    labels: NDArray[np.int64] | None = None
    probabilities: NDArray[np.float64] | None = None
    initial_labels: NDArray[np.int64] | None = None
    head_labels: NDArray[np.int64] | None = None
    kmeans_labels: NDArray[np.int64] | None = None
    head_centers: NDArray[np.float32] | None = None


@dataclass(frozen=True)
class Encoded:
    """Vectors of texts, dense or sparse, and how many of the texts were cut at the length limit."""

    features: Any
    truncated: int = 0


@dataclass(frozen=True)
class Placed:
    """Where distinct texts belong: cluster, probability of each, which vectors are zero, how many texts were cut."""

    labels: NDArray[np.int64]
    probabilities: NDArray[np.float64]
    blank: NDArray[np.bool_]
    truncated: int = 0


@dataclass(frozen=True)
class Prediction:
    """Answers for rows of texts: cluster, confidence, and how many distinct texts were cut at the length limit."""

    labels: NDArray[np.int64]
    confidence: NDArray[np.float64]
    n_truncated: int


def order_of_centers(distances: NDArray[np.float64], counts: NDArray[np.int64]) -> NDArray[np.int64]:
    """Centres from the largest cluster to the smallest, by nearest centre in that very order.

    A text equally near to two centres goes to the first, so the order decides ties and ties decide the order;
    ties only ever move to the larger cluster, which makes this end.
    """
    k = distances.shape[1]
    order = np.arange(k)
    for _ in range(k + 1):
        again = order_by_size(distances[:, order].argmin(axis=1), k, counts)
        if np.array_equal(again, np.arange(k)):
            break
        order = order[again]
    return order


def blank_rows(features: Any) -> NDArray[np.bool_]:
    """Rows of nothing but zeros, dense or sparse: texts without any known word."""
    return np.asarray(abs(features).sum(axis=1)).ravel() == 0


def lead(probabilities: NDArray[np.float64], labels: NDArray[np.int64]) -> NDArray[np.float64]:
    """How far the chosen cluster is ahead of the best other one: ``1 - q2 / q1``, at least 0."""
    rows = np.arange(len(labels))
    chosen = probabilities[rows, labels]
    others = probabilities.copy()
    others[rows, labels] = -np.inf
    return np.clip(1 - others.max(axis=1, initial=0.0) / np.maximum(chosen, 1e-300), 0, 1)


def plain(value: Any) -> Any:
    """A setting as JSON takes it."""
    if is_dataclass(value) and not isinstance(value, type):
        return {name: plain(each) for name, each in asdict(value).items()}
    if isinstance(value, np.generic):
        return value.item()
    return os.fspath(value) if isinstance(value, os.PathLike) else value
