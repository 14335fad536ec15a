"""The label-free criteria by which partitions are compared. A new criterion is added here, to ``CRITERIA``.

A criterion is a function of a partition and of evidence about the texts that does not depend on it: vectors,
neighbours, words. These modules select criteria from it by name:

- :data:`coterie.selection.guard.CRITERIA` compares the partitions before and after training;
- :class:`coterie.selection.k_criteria.TreeCriteria` compares numbers of clusters.

Two more need other clusterings of the same texts and are computed where those are made: ``stability``
and ``gap`` (both in :mod:`coterie.selection.k_criteria`). ``information``, which decides on the number of clusters, is
computed there too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from coterie.metrics.internal.likelihood import gaussian_likelihood, word_likelihood_gain
from coterie.metrics.internal.modularity import NeighbourPairs, modularity, normalised_modularity
from coterie.metrics.internal.silhouette import cosine_silhouette

Labels = NDArray[np.int64]
UNKNOWN = float("nan")
# Smallest value (of a share, or in nats per word) that a relative change is computed against: small criteria are noisy,
# and noise would be a large share of them.
SMALLEST_BASE = 0.5


class Evidence(Protocol):
    """The evidence that criteria are computed from. Where a part is ``None``, its criteria are NaN.

    :class:`~coterie.selection.neighbour_graphs.NeighbourGraphs` provides all parts.
    """

    @property
    def units(self) -> NDArray[np.float32]:
        """Vectors of length one, one row per text."""

    @property
    def points(self) -> NDArray[np.float64] | None:
        """Coordinates in few dimensions, in which clusters are compared with spherical Gaussians."""

    @property
    def semantic_pairs(self) -> NeighbourPairs:
        """Pairs of each text and its nearest texts by the encoder."""

    @property
    def lexical_pairs(self) -> NeighbourPairs | None:
        """Pairs of each text and its nearest texts by TF-IDF."""

    @property
    def word_presence(self) -> Any | None:
        """Which words each text has (:func:`~coterie.metrics.internal.likelihood.word_presence`)."""


@dataclass(frozen=True)
class Criterion:
    """A label-free criterion; larger is better.

    Attributes
    ----------
    description:
        What the number measures, as a user reads it before "0.61 before, 0.64 after".
    compute:
        The criterion of a partition (labels from 0) on the evidence; NaN where the evidence is missing.
    """

    description: str
    compute: Callable[[Labels, Evidence], float]


def _semantic_modularity(labels: Labels, evidence: Evidence) -> float:
    return modularity(labels, *evidence.semantic_pairs)


def _normalised_semantic_modularity(labels: Labels, evidence: Evidence) -> float:
    return normalised_modularity(labels, *evidence.semantic_pairs)


def _lexical_modularity(labels: Labels, evidence: Evidence) -> float:
    return UNKNOWN if evidence.lexical_pairs is None else modularity(labels, *evidence.lexical_pairs)


def _word_likelihood_gain(labels: Labels, evidence: Evidence) -> float:
    return UNKNOWN if evidence.word_presence is None else word_likelihood_gain(evidence.word_presence, labels)


def _silhouette(labels: Labels, evidence: Evidence) -> float:
    return cosine_silhouette(evidence.units, labels)


def _gaussian_likelihood(labels: Labels, evidence: Evidence) -> float:
    return UNKNOWN if evidence.points is None else gaussian_likelihood(evidence.points, labels)


CRITERIA: Mapping[str, Criterion] = {
    "semantic_modularity": Criterion("semantic neighbours in one cluster, beyond chance", _semantic_modularity),
    # Modularity favours clusters of equal size, the normalised form uneven ones; their mean favours neither.
    "normalised_semantic_modularity": Criterion(
        "semantic neighbours in one cluster, as a share of what cluster sizes allow", _normalised_semantic_modularity
    ),
    "lexical_modularity": Criterion("lexical neighbours in one cluster, beyond chance", _lexical_modularity),
    "word_likelihood_gain": Criterion("words predicted by their cluster, in nats per word", _word_likelihood_gain),
    "silhouette": Criterion("mean silhouette by cosine distance", _silhouette),
    "gaussian_likelihood": Criterion("log-likelihood of the vectors as spherical Gaussians", _gaussian_likelihood),
}


def compute_criteria(names: Iterable[str], labels: Labels, evidence: Evidence) -> dict[str, float]:
    """Return the named criteria of a partition, by name."""
    return {name: CRITERIA[name].compute(labels, evidence) for name in names}


def relative_change(before: float, after: float) -> float:
    """Return how far a criterion rose, as a share of its value before, or of ``SMALLEST_BASE`` if that is larger."""
    return (after - before) / max(abs(before), SMALLEST_BASE)
