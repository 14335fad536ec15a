"""Test whether texts have clusters: more than one subject, and more structure than random vectors have."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from coterie.clustering.kmeans import kmeans, unit_rows
from coterie.metrics.internal.modularity import modularity, neighbour_pairs
from coterie.metrics.internal.reference_cloud import reference_units
from coterie.selection.candidates import RESTARTS
from coterie.selection.neighbour_graphs import build_graphs

# Most texts that are clustered. A larger set is sampled, which bounds the time.
MOST_TEXTS = 3_000
# Reference clouds that the vectors are compared with.
REFERENCE_CLOUDS = 2
# Nearest neighbours of each text that should share its cluster: few, because small clusters cannot hold more.
COUNTED_NEIGHBOURS = 5
# Smallest structure (see :func:`structure_beyond_chance`) of texts that are worth training on. Texts of random words
# have up to 0.09, the tuning sets 0.29 to 0.94, and samples of 200 texts from the tuning sets at least 0.16. A hundred
# texts in 20 clusters cannot be distinguished from chance (benchmarks/results/structure.json).
LEAST_STRUCTURE = 0.12
# Smallest similarity (see :func:`mean_similarity`) of texts that are all about one subject. The tuning sets have 0.03
# to 0.39, variations of one message 0.75 to 0.9.
ONE_SUBJECT_SIMILARITY = 0.65
# Sentences about different subjects: their similarity is what an encoder gives to unrelated texts.
UNRELATED_SENTENCES = (
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


def missing_structure(vectors: NDArray[Any], unrelated: NDArray[Any], n_clusters: int, seed: int = 0) -> str:
    """Return why texts are not worth training on, as a sentence; empty if they are.

    Parameters
    ----------
    vectors:
        One row per text.
    unrelated:
        Vectors of ``UNRELATED_SENTENCES`` by the same encoder.
    n_clusters:
        How many clusters the texts are divided into.
    seed:
        Seed of the sample of many texts, of the random vectors and of k-means.
    """
    similarity = mean_similarity(vectors, unrelated)
    if similarity >= ONE_SUBJECT_SIMILARITY:
        return (
            "no structure was found: all texts are about one subject (to the encoder, any two are "
            f"{similarity:.0%} similar)"
        )
    structure = structure_beyond_chance(vectors, n_clusters, seed)
    if structure < LEAST_STRUCTURE:
        return (
            "no structure was found beyond chance: neighbours share clusters hardly more often than in random "
            f"vectors ({structure:.2f} on a scale from 0 to 1; {LEAST_STRUCTURE} is needed)"
        )
    return ""


def structure_beyond_chance(vectors: NDArray[Any], n_clusters: int, seed: int = 0) -> float:
    """Return how much more modular clusters of ``vectors`` are than clusters of a cloud without structure.

    Both are clustered by k-means of the smoothed vectors, and compared by the modularity of the clusters on the nearest
    neighbours. 0: as modular as the clusters of the cloud, which has the same width in every direction. 1: as modular
    as ``n_clusters`` clusters can be. A cloud that is very long in one direction reaches up to 0.5 with two or four
    clusters, because it lies in opposite caps of the sphere.
    """
    generator = np.random.default_rng(seed)
    sampled = np.sort(generator.permutation(len(vectors))[:MOST_TEXTS])
    units = np.asarray(unit_rows(vectors[sampled]), dtype=np.float32)
    clouds = [reference_units(units, generator) for _ in range(REFERENCE_CLOUDS)]
    found, *by_chance = (_modularity_of_kmeans(each, n_clusters, seed) for each in (units, *clouds))
    expected = float(np.mean(by_chance))
    return (found - expected) / max(1 - 1 / n_clusters - expected, 1e-12)


def mean_similarity(vectors: NDArray[Any], unrelated: NDArray[Any]) -> float:
    """Return the mean cosine between ``vectors``, rescaled: 0 as between ``unrelated`` texts, 1 if all are equal."""
    usual = _mean_cosine(unrelated)
    return (_mean_cosine(vectors) - usual) / max(1 - usual, 1e-12)


def _mean_cosine(vectors: NDArray[Any]) -> float:
    units = np.asarray(unit_rows(np.asarray(vectors, dtype=np.float64)))
    total = units.sum(axis=0)
    return float((total @ total - len(units)) / max(len(units) * (len(units) - 1), 1))


def _modularity_of_kmeans(vectors: NDArray[np.float32], n_clusters: int, seed: int) -> float:
    graphs = build_graphs(vectors)
    labels = kmeans(graphs.smoothed, n_clusters, n_init=RESTARTS, seed=seed).labels
    return modularity(labels, *neighbour_pairs(graphs.nearest_rows[:, :COUNTED_NEIGHBOURS]))
