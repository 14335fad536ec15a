"""Whether there is anything to cluster: more than one subject, and neighbours that a cloud would not keep together."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from coterie.clustering.kmeans import kmeans, unit_rows
from coterie.metrics.internal.cloud import cloud_of_units
from coterie.metrics.internal.neighbourhoods import kept_together, pairs_of
from coterie.selection.candidates import RESTARTS
from coterie.selection.neighbour_graphs import see

# Rows that are looked at, and clouds that they are compared with.
ROWS, CLOUDS = 3_000, 2
# The nearest of each that have to stay together: few, or small clusters could not hold them.
KEPT = 5
# Texts of words drawn at random have up to 0.09; the tuning sets 0.29 to 0.94, two hundred of their texts 0.16 and
# more; a hundred texts in 20 clusters cannot be told from chance (benchmarks/results/structure.json).
FOUND_FROM = 0.12
# Sentences about different things, by which an encoder tells how alike it finds texts that are not.
UNLIKE = (
    "The parcel was left at the wrong door.",
    "She plays the violin in a small orchestra.",
    "Interest rates rose for the third time this year.",
    "How do I sort a list of numbers?",
    "The striker scored twice in the second half.",
    "Boil the rice and add the onions.",
    "A comet will be visible tonight.",
    "My tooth hurts when I drink something cold.",
    "The train to the coast leaves at noon.",
    "They voted against the new law.",
    "Wolves hunt in packs during the winter.",
    "This jacket comes in three colours.",
)
# Any two texts more alike than so, beyond what the encoder finds in those: one subject. The tuning sets have 0.03 to
# 0.39, variations of one message 0.75 to 0.9.
ONE_SUBJECT_FROM = 0.65


def structure(vectors: NDArray[Any], n_clusters: int, seed: int = 0) -> float:
    """How far clusters of ``vectors`` are ahead of those that k-means cuts out of a cloud without clusters.

    Each is cut by k-means of the smoothed vectors, and judged by the share of neighbours that stay together less what
    chance gives (modularity). 0: no more than in the cloud, which is as wide in every direction; 1: as much as is
    possible with so many clusters. A cloud that is very long in one direction, cut into two or four, may have up to
    0.5: on the sphere it falls into opposite caps.
    """
    generator = np.random.default_rng(seed)
    drawn = np.sort(generator.permutation(len(vectors))[:ROWS])
    units = np.asarray(unit_rows(vectors[drawn]), dtype=np.float32)
    clouds = [cloud_of_units(units, generator) for _ in range(CLOUDS)]
    found, *by_chance = (_kept(each, n_clusters, seed) for each in (units, *clouds))
    expected = float(np.mean(by_chance))
    return (found - expected) / max(1 - 1 / n_clusters - expected, 1e-12)


def likeness(vectors: NDArray[Any], unlike: NDArray[Any]) -> float:
    """How alike any two of ``vectors`` are, from 0 for as little as those of ``unlike`` to 1 for all the same."""
    usual = _mean_cosine(unlike)
    return (_mean_cosine(vectors) - usual) / max(1 - usual, 1e-12)


def _mean_cosine(vectors: NDArray[Any]) -> float:
    units = np.asarray(unit_rows(np.asarray(vectors, dtype=np.float64)))
    total = units.sum(axis=0)
    return float((total @ total - len(units)) / max(len(units) * (len(units) - 1), 1))


def _kept(vectors: NDArray[np.float32], n_clusters: int, seed: int) -> float:
    seen = see(vectors)
    labels = kmeans(seen.smooth, n_clusters, n_init=RESTARTS, seed=seed).labels
    return kept_together(labels, *pairs_of(seen.near[:, :KEPT]))
