"""Score the snapshots of a training after the run, with or without labels."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from coterie.metrics.external.scores import evaluate
from coterie.metrics.internal.distances import cluster_distances
from coterie.metrics.internal.dunn import dunn
from coterie.metrics.internal.silhouette import silhouette
from coterie.text.sampling import labels_by_row

# Most texts that are scored by measures that compare all pairs: enough to compare snapshots.
SAMPLE_SIZE = 2_000


class ClusteredSnapshot(Protocol):
    """Embeddings and clusters of the same texts at one moment of the training.

    :class:`~coterie.training.history.Snapshot` has these attributes.
    """

    @property
    def stage(self) -> str:
        """Name of the stage of training."""

    @property
    def epoch(self) -> int:
        """Epochs of the whole training so far."""

    @property
    def step(self) -> int:
        """Steps of the whole training so far."""

    @property
    def embeddings(self) -> NDArray[np.float32]:
        """One row per text."""

    @property
    def labels(self) -> NDArray[np.int64]:
        """One cluster per text."""


def score_snapshots(
    snapshots: Sequence[ClusteredSnapshot], rows: NDArray[np.int64], labels_true: Sequence[Any] | None = None
) -> list[dict[str, Any]]:
    """Score each snapshot by label-free measures, and with labels also by ACC, NMI and ARI.

    Without labels: silhouette, Dunn index, mean distance inside and between clusters. A measure that is not defined is
    ``None``; with one cluster, only the distance inside is defined. Of more than 2,000 texts a sample is scored. The
    silhouette of a sample estimates that of all texts. The Dunn index of a sample does not, because it depends on
    single texts: it is computed on the same texts in every snapshot and comparable only between snapshots.

    Parameters
    ----------
    snapshots:
        All of the same texts, in order.
    rows:
        For every row of the input, the row of its text in the snapshots; -1 for empty texts.
    labels_true:
        One true label per row of the input.
    """
    scores = []
    for snapshot in snapshots:
        distances = cluster_distances(snapshot.embeddings, snapshot.labels)
        found: dict[str, Any] = {
            "stage": snapshot.stage,
            "epoch": snapshot.epoch,
            "step": snapshot.step,
            "silhouette": _silhouette(snapshot),
            "dunn": _dunn(snapshot),
            "intra": distances.mean_intra,
            "inter": _finite(distances.mean_inter),
        }
        if labels_true is not None:
            outcome = evaluate(labels_true, labels_by_row(snapshot.labels, rows))
            found |= {"accuracy": outcome.accuracy, "nmi": outcome.nmi, "ari": outcome.ari}
        scores.append(found)
    return scores


def _silhouette(snapshot: ClusteredSnapshot) -> float | None:
    if len(np.unique(snapshot.labels)) < 2:
        return None
    return silhouette(snapshot.embeddings, snapshot.labels, sample_size=SAMPLE_SIZE)


def _dunn(snapshot: ClusteredSnapshot) -> float | None:
    sampled = sample_rows(len(snapshot.labels), SAMPLE_SIZE)
    if len(np.unique(snapshot.labels[sampled])) < 2:
        return None
    return _finite(dunn(snapshot.embeddings[sampled], snapshot.labels[sampled]))


def sample_rows(n_rows: int, most: int, seed: int = 0) -> NDArray[np.int64]:
    """Return at most ``most`` of the rows, sampled by the seed, in ascending order."""
    if n_rows <= most:
        return np.arange(n_rows)
    return np.sort(np.random.default_rng(seed).choice(n_rows, most, replace=False))


def _finite(value: float) -> float | None:
    """Return ``None`` for infinity and NaN, which JSON does not have."""
    return value if math.isfinite(value) else None
