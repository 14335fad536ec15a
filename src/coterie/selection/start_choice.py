"""Select one of several clusterings of the same vectors, without labels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from coterie.checks import check_whole
from coterie.clustering.kmeans import unit_rows
from coterie.errors import InputError
from coterie.metrics.internal.modularity import normalised_modularity
from coterie.selection.candidates import Clustering, follow_nearest, make_clusterings
from coterie.selection.criteria import UNKNOWN, compute_criteria, relative_change
from coterie.selection.neighbour_graphs import LexicalGraph, NeighbourGraphs, build_graphs
from coterie.selection.refinement import refine_assignment

if TYPE_CHECKING:
    import torch

# Most distinct texts that are clustered and compared: the time of the neighbour search grows with the square of their
# number. A larger set is sampled, and every other text gets the cluster of the nearest sampled text.
MOST_TEXTS = 30_000
# The criteria of a clustering (see :mod:`coterie.selection.criteria`) apart from its stability.
CRITERIA = ("lexical_modularity", "normalised_semantic_modularity", "silhouette", "gaussian_likelihood")
# Subsamples that are clustered again to measure stability.
SUBSAMPLES = 4
# Share of the texts in a subsample: any two subsamples then share most of their texts.
SUBSAMPLE_SHARE = 0.7
# Most texts in a subsample: each takes six clusterings.
LARGEST_SUBSAMPLE = 2_000
# Size penalty (see :func:`~coterie.selection.refinement.refine_assignment`) under which clusters become equal.
EQUAL_SIZE_PENALTY = 5.0
# The clustering on which it is tested whether sizes look equal.
SIZE_TEST_CLUSTERING = "smoothed k-means"
# Largest fall of lexical plus semantic modularity (relative) under balancing for which sizes look equal. On sets made
# from the tuning sets, classes of equal size lose up to 4.8 %, uneven ones (1:20 and more) at least 8.5 %.
LARGEST_FALL = 0.05


@dataclass(frozen=True)
class ScoredClustering:
    """A clustering with its criteria; larger is better.

    Attributes
    ----------
    name, labels:
        The algorithm and its clusters.
    criteria:
        By name: those of ``CRITERIA``, and ``"stability"``, the agreement (adjusted Rand index) with clusterings of
        subsamples by the same algorithm. NaN where a criterion is unknown: lexical ones without texts, stability where
        it was not computed.
    score:
        Mean over the known criteria, each standardised over all clusterings.
    """

    name: str
    labels: NDArray[np.int64]
    criteria: Mapping[str, float]
    score: float


@dataclass(frozen=True)
class ChosenStart:
    """The result of :func:`choose_start`.

    Attributes
    ----------
    best:
        The best clustering; where sizes look equal, the best of those with balanced sizes.
    ranking:
        All clusterings before any balancing, the best first.
    equal_sizes:
        Whether sizes look equal: balancing them costs little modularity.
    """

    best: ScoredClustering
    ranking: tuple[ScoredClustering, ...]
    equal_sizes: bool


def choose_start(
    texts: Sequence[str] | None,
    n_clusters: int,
    *,
    vectors: Any,
    weights: NDArray[Any] | None = None,
    seed: int = 0,
    device: torch.device | str = "cpu",
) -> ChosenStart:
    """Cluster ``vectors`` by six algorithms and select one clustering by label-free criteria.

    Parameters
    ----------
    texts:
        Distinct texts, for the lexical criteria; ``None`` leaves them out.
    n_clusters:
        How many clusters.
    vectors:
        One row per text.
    weights:
        How often each text occurs, for k-means; by default once.
    seed:
        Seed of k-means, of the sample of many texts, and of the spectral embedding.
    device:
        Where to search for neighbours and to cluster: a CUDA device, or the CPU.

    Examples
    --------
    >>> import numpy as np
    >>> from coterie.selection import choose_start
    >>> corners = np.repeat(np.eye(4), 30, axis=0)
    >>> found = choose_start(None, 4, vectors=corners + np.random.default_rng(0).normal(scale=0.05, size=corners.shape))
    >>> np.bincount(found.best.labels).tolist()
    [30, 30, 30, 30]
    """
    check_whole("n_clusters", n_clusters, least=2)
    units = np.asarray(unit_rows(np.asarray(vectors)), dtype=np.float32)
    if len(units) <= n_clusters + 1:
        raise InputError(f"{n_clusters} clusters of {len(units)} texts leave nothing to choose between")
    weights = np.ones(len(units), dtype=np.int64) if weights is None else np.asarray(weights)
    sampled = np.sort(np.random.default_rng(seed).permutation(len(units))[: max(MOST_TEXTS, n_clusters + 2)])
    lexical = None if texts is None else LexicalGraph.build([texts[row] for row in sampled.tolist()], device)
    graphs = build_graphs(units[sampled], lexical, n_clusters, device=device, seed=seed)
    found = choose_among(graphs, n_clusters, weights[sampled], seed)
    if len(sampled) == len(units):
        return found
    best, *ranking = (
        replace(each, labels=follow_nearest(units, sampled, each.labels, device))
        for each in (found.best, *found.ranking)
    )
    return ChosenStart(best, tuple(ranking), found.equal_sizes)


def choose_among(graphs: NeighbourGraphs, n_clusters: int, weights: NDArray[Any], seed: int) -> ChosenStart:
    """Make the clusterings on these graphs and select one; where sizes look equal, one with balanced sizes."""
    clusterings = make_clusterings(graphs, n_clusters, weights, seed)
    if sizes_look_equal(clusterings, graphs, n_clusters, weights):
        # Without stability: balanced clusterings are much alike, and stability takes the longest to compute.
        balanced = [Clustering(each.name, balance_sizes(graphs, each.labels, weights)) for each in clusterings]
        return ChosenStart(score_clusterings(balanced, graphs)[0], score_clusterings(clusterings, graphs), True)
    stability = stability_of(clusterings, graphs, n_clusters, weights, seed)
    ranking = score_clusterings(clusterings, graphs, stability)
    return ChosenStart(ranking[0], ranking, False)


def sizes_look_equal(
    clusterings: Sequence[Clustering], graphs: NeighbourGraphs, n_clusters: int, weights: NDArray[Any]
) -> bool:
    """Return whether balancing the sizes costs little modularity; ``False`` without lexical neighbours to compare."""
    (labels,) = (each.labels for each in clusterings if each.name == SIZE_TEST_CLUSTERING)
    if graphs.lexical is None or int(labels.max()) + 1 < n_clusters:
        return False
    balanced = balance_sizes(graphs, labels, weights)
    neighbours = graphs.lexical.pairs, graphs.semantic_pairs
    change = sum(
        relative_change(normalised_modularity(labels, *pairs), normalised_modularity(balanced, *pairs))
        for pairs in neighbours
    )
    return change >= -LARGEST_FALL


def balance_sizes(graphs: NeighbourGraphs, labels: NDArray[np.int64], weights: NDArray[Any]) -> NDArray[np.int64]:
    """Refine the assignment under a penalty that makes cluster sizes nearly equal."""
    return refine_assignment(graphs, labels, int(labels.max()) + 1, weights, EQUAL_SIZE_PENALTY)


def score_clusterings(
    clusterings: Sequence[Clustering], graphs: NeighbourGraphs, stability: Sequence[float] | None = None
) -> tuple[ScoredClustering, ...]:
    """Compute the criteria of all clusterings and rank them: the best first, equal ones in their order."""
    stabilities = [UNKNOWN] * len(clusterings) if stability is None else stability
    table = [
        compute_criteria(CRITERIA, each.labels, graphs) | {"stability": value}
        for each, value in zip(clusterings, stabilities, strict=True)
    ]
    columns = [np.array([row[name] for row in table]) for name in (*CRITERIA, "stability")]
    known = [_standardise(column) for column in columns if not np.isnan(column).any()]
    scores = np.mean(known, axis=0)
    scored = [
        ScoredClustering(each.name, each.labels, row, float(score))
        for each, row, score in zip(clusterings, table, scores, strict=True)
    ]
    return tuple(sorted(scored, key=lambda each: -each.score))


def stability_of(
    clusterings: Sequence[Clustering], graphs: NeighbourGraphs, n_clusters: int, weights: NDArray[Any], seed: int
) -> list[float] | None:
    """Return for each clustering its mean agreement with clusterings of subsamples; ``None`` for too few texts."""
    from sklearn.metrics import adjusted_rand_score

    n_texts = len(graphs.units)
    size = min(LARGEST_SUBSAMPLE, int(SUBSAMPLE_SHARE * n_texts))
    if size <= n_clusters + 1:
        return None
    agreements = []
    for number in range(SUBSAMPLES):
        rows = np.sort(np.random.default_rng((seed, number)).permutation(n_texts)[:size])
        again = make_clusterings(graphs.subset(rows), n_clusters, weights[rows], seed)
        pairs = zip(clusterings, again, strict=True)
        agreements.append([adjusted_rand_score(one.labels[rows], other.labels) for one, other in pairs])
    return [float(each) for each in np.mean(agreements, axis=0)]


def _standardise(values: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.asarray((values - values.mean()) / max(float(values.std()), 1e-12))
