"""Make many candidates and combine them, without labels, into the clustering before training: the start."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from coterie.checks import check_whole
from coterie.clustering.kmeans import unit_rows
from coterie.errors import InputError
from coterie.selection.candidates import (
    AVERAGE_LINKAGE,
    Clustering,
    balance_sizes,
    follow_nearest,
    make_clusterings,
)
from coterie.selection.cluster_sizes import PENALTIES, UNEVEN, SizeEstimate, estimate_sizes
from coterie.selection.consensus import find_consensus
from coterie.selection.joined_vectors import join_vectors, lexical_share, view_agreement
from coterie.selection.neighbour_graphs import LexicalGraph, NeighbourGraphs, build_graphs
from coterie.selection.refinement import refine_assignment

if TYPE_CHECKING:
    import torch

# Most distinct texts that are clustered and compared: the time of the neighbour search grows with the square of their
# number. A larger set is sampled, and every other text gets the cluster of the nearest sampled text.
MOST_TEXTS = 30_000
# Runs of k-means with other seeds: one run may miss a cluster that most of them find. On the tuning sets the mean ACC
# hardly depends on their number (benchmarks/results/start_parts.json).
KMEANS_RUNS = 2
# Algorithms whose clusters tell how much equal sizes cost.
SIZE_ESTIMATE_ALGORITHMS = ("k-means", "smoothed k-means", "graph k-means")
# Algorithms whose clusters tell how well the views agree.
AGREEMENT_ALGORITHMS = ("k-means", "smoothed k-means", "smoothed Ward")
# Algorithms with a candidate of each kind of sizes; those of the other algorithms are much like these.
BALANCED_ALGORITHMS = {
    "penalised": ("smoothed k-means", "smoothed Ward", AVERAGE_LINKAGE),
    "equal": ("k-means", "smoothed k-means", "smoothed Ward", AVERAGE_LINKAGE, "graph k-means"),
}


@dataclass(frozen=True)
class Candidate:
    """A clustering that votes for the start.

    Attributes
    ----------
    clustering:
        The clustering.
    weight:
        Its weight in the vote.
    agreement:
        Its adjusted Rand index with the start.
    """

    clustering: Clustering
    weight: float
    agreement: float

    @property
    def name(self) -> str:
        return self.clustering.name

    @property
    def labels(self) -> NDArray[np.int64]:
        return self.clustering.labels


@dataclass(frozen=True)
class ChosenStart:
    """The result of :func:`choose_start`.

    Attributes
    ----------
    labels:
        Cluster of each text.
    candidates:
        All clusterings that voted, those that agree most with the result first.
    sizes:
        How much equal sizes cost.
    view_agreement:
        How well clusters by meaning and by words preserve each other's neighbours, from 0 to 1; ``None`` without
        lexical vectors.
    """

    labels: NDArray[np.int64]
    candidates: tuple[Candidate, ...]
    sizes: SizeEstimate
    view_agreement: float | None = None

    @property
    def lexical_share(self) -> float:
        """Share of the lexical vectors in the joined ones, from 0 to 1."""
        return 0.0 if self.view_agreement is None else lexical_share(self.view_agreement)


def choose_start(
    texts: Sequence[str] | None,
    n_clusters: int,
    *,
    vectors: Any,
    lexical_vectors: Any = None,
    weights: NDArray[Any] | None = None,
    seed: int = 0,
    device: torch.device | str = "cpu",
) -> ChosenStart:
    """Cluster texts in many ways and return the partition that these candidates vote for.

    Candidates are made by six algorithms, of the vectors and of those joined with lexical ones, as they are and
    centred, with free, penalised and equal sizes. How much each counts follows from how much equal sizes cost
    (:mod:`coterie.selection.cluster_sizes`).

    Parameters
    ----------
    texts:
        Distinct texts, for lexical neighbours; ``None`` leaves them out.
    n_clusters:
        How many clusters.
    vectors:
        One row per text.
    lexical_vectors:
        Vectors of the same texts by their words, one row per text; ``None`` leaves out the joined view.
    weights:
        How often each text occurs; by default once.
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
    >>> np.bincount(found.labels).tolist()
    [30, 30, 30, 30]
    """
    check_whole("n_clusters", n_clusters, least=2)
    units = np.asarray(unit_rows(np.asarray(vectors)), dtype=np.float32)
    if len(units) <= n_clusters + 1:
        raise InputError(f"{n_clusters} clusters of {len(units)} texts leave nothing to choose between")
    weights = np.ones(len(units), dtype=np.int64) if weights is None else np.asarray(weights)
    sampled = np.sort(np.random.default_rng(seed).permutation(len(units))[: max(MOST_TEXTS, n_clusters + 2)])
    lexical = None if texts is None else LexicalGraph.build([texts[row] for row in sampled.tolist()], device)
    semantic = build_graphs(units[sampled], lexical, n_clusters, device=device, seed=seed)
    by_words = None if lexical_vectors is None else np.asarray(lexical_vectors, dtype=np.float32)[sampled]
    found = choose_among(semantic, n_clusters, weights[sampled], seed, by_words)
    if len(sampled) == len(units):
        return found
    candidates = tuple(
        replace(each, clustering=replace(each.clustering, labels=follow_nearest(units, sampled, each.labels, device)))
        for each in found.candidates
    )
    return replace(found, labels=follow_nearest(units, sampled, found.labels, device), candidates=candidates)


def choose_among(
    semantic: NeighbourGraphs,
    n_clusters: int,
    weights: NDArray[Any],
    seed: int,
    lexical_vectors: NDArray[np.float32] | None = None,
    only_sizes: str = "",
) -> ChosenStart:
    """Make the candidates on these graphs, on those of joined vectors, and on both centred, and combine them.

    ``only_sizes`` is the one kind of sizes that counts; empty for all of them.
    """
    free = make_clusterings(semantic, n_clusters, weights, seed, kmeans_runs=KMEANS_RUNS)
    agreement, share = None, 0.0
    if lexical_vectors is not None:
        agreement = _compare_views(semantic, free, lexical_vectors, n_clusters, weights, seed)
        share = lexical_share(agreement)
    views = join_views(semantic, lexical_vectors, share, n_clusters, seed)
    for view in list(views)[1:]:
        free += make_clusterings(views[view], n_clusters, weights, seed, view=view, kmeans_runs=KMEANS_RUNS)
    estimated = [each for each in free if each.algorithm in SIZE_ESTIMATE_ALGORITHMS]
    equal = [balance_sizes(views[each.view], each, weights) for each in estimated]
    uneven = [each.labels for each in free if each.size_kind == UNEVEN]
    estimate = estimate_sizes(
        [each.labels for each in estimated],
        [each.labels for each in equal],
        uneven,
        semantic.nearest_rows,
        semantic.lexical_pairs,
    )
    sizes = replace(estimate, only=only_sizes)
    penalised = balance_all(estimated, views, weights, sizes, kinds=("penalised",))
    others = [each for each in free if each.algorithm not in SIZE_ESTIMATE_ALGORITHMS]
    centred = {f"centred {view}": graphs.centre(n_clusters, seed) for view, graphs in views.items()}
    for view, graphs in centred.items():
        others += make_clusterings(graphs, n_clusters, weights, seed, view=view, kmeans_runs=KMEANS_RUNS)
    balanced = balance_all(others, {**views, **centred}, weights, sizes)
    candidates = [*estimated, *equal, *penalised, *others, *balanced]
    found = combine(candidates, sizes, n_clusters, weights, agreement)
    penalty = PENALTIES.get(only_sizes)
    if not penalty:
        return found
    # The consensus of clusterings with equal sizes can have unequal ones.
    return replace(found, labels=refine_assignment(semantic, found.labels, n_clusters, weights, penalty))


def join_views(
    semantic: NeighbourGraphs, lexical_vectors: NDArray[np.float32] | None, share: float, n_clusters: int, seed: int
) -> dict[str, NeighbourGraphs]:
    """Return the graphs of the semantic view and, unless ``share`` is 0, of the joined view, by name."""
    views = {"semantic": semantic}
    if lexical_vectors is not None and share:
        joined = join_vectors(semantic.units, lexical_vectors, share)
        views["joined"] = build_graphs(joined, semantic.lexical, n_clusters, device=semantic.device, seed=seed)
    return views


def _compare_views(
    semantic: NeighbourGraphs,
    free: Sequence[Clustering],
    lexical_vectors: NDArray[np.float32],
    n_clusters: int,
    weights: NDArray[Any],
    seed: int,
) -> float:
    """Return the agreement of the views, from the clusterings ``free`` and others of the lexical vectors."""
    lexical = build_graphs(lexical_vectors, semantic.lexical, n_clusters, device=semantic.device, seed=seed)
    by_words = make_clusterings(lexical, n_clusters, weights, seed, AGREEMENT_ALGORITHMS)
    by_meaning = [each.labels for each in free if each.algorithm in AGREEMENT_ALGORITHMS]
    return view_agreement(semantic, lexical, by_meaning, [each.labels for each in by_words])


def balance_all(
    clusterings: Sequence[Clustering],
    views: Mapping[str, NeighbourGraphs],
    weights: NDArray[Any],
    sizes: SizeEstimate,
    kinds: Sequence[str] = ("penalised", "equal"),
) -> list[Clustering]:
    """Return the clusterings with other kinds of sizes, except those that would have no weight."""
    return [
        balance_sizes(views[each.view], each, weights, kind)
        for kind in kinds
        for each in clusterings
        if each.algorithm in BALANCED_ALGORITHMS[kind] and sizes.weight(replace(each, sizes=kind).size_kind)
    ]


def vote_weights(clusterings: Sequence[Clustering], sizes: SizeEstimate) -> list[float]:
    """Return the weight of each clustering in a consensus."""
    return [each.share * sizes.weight(each.size_kind) for each in clusterings]


def combine(
    clusterings: Sequence[Clustering],
    sizes: SizeEstimate,
    n_clusters: int,
    weights: NDArray[Any],
    agreement: float | None = None,
) -> ChosenStart:
    """Return the consensus of clusterings, each weighted by its sizes."""
    by_size = vote_weights(clusterings, sizes)
    found = find_consensus([each.labels for each in clusterings], by_size, n_clusters, weights)
    candidates = [
        Candidate(each, weight, agreement)
        for each, weight, agreement in zip(clusterings, by_size, found.agreement, strict=True)
    ]
    return ChosenStart(found.labels, tuple(sorted(candidates, key=lambda each: -each.agreement)), sizes, agreement)
