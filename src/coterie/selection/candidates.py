"""Candidates: clusterings of the same texts by several algorithms, of several views, with several kinds of sizes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from coterie.clustering.agglomerative import cut
from coterie.clustering.kmeans import kmeans, unit_rows
from coterie.selection.cluster_sizes import PENALTIES, UNEVEN
from coterie.selection.graph import spectral_embedding
from coterie.selection.neighbour_graphs import NeighbourGraphs, to_device
from coterie.selection.refinement import refine_assignment

if TYPE_CHECKING:
    import torch

# k-means and linkage of the vectors, of the vectors smoothed over their neighbours, and k-means of the graph's spectral
# embedding. Average linkage of the plain vectors and of the spectral embedding is left out: on the tuning sets it was
# best on ATIS alone, which is one large class, and often the worst.
ALGORITHMS = ("k-means", "Ward", "smoothed k-means", "smoothed Ward", "smoothed average", "graph k-means")
AVERAGE_LINKAGE = "smoothed average"
# How often vectors are averaged with their neighbours before average linkage, one clustering for each: its result
# depends on it more than that of other algorithms.
AVERAGE_SMOOTHING = (1, 2, 3)
# Most eigenvectors in a spectral embedding, which bounds the time where there are many clusters.
EIGENVECTORS = 60
# Restarts of k-means: few, as several runs of it vote, and runs that differ correct each other.
RESTARTS = 3
# Most rows for linkage, because it holds all pairwise distances (100 MB in float64). Every other row gets the cluster
# of the nearest of these rows.
LINKAGE_ROWS = 5_000
# Rows per block of similarities with the linkage rows: a block takes 80 MB in float64.
BLOCK_ROWS = 2_048


@dataclass(frozen=True, eq=False)
class Clustering:
    """A clustering of one view of the texts.

    Attributes
    ----------
    algorithm:
        One of ``ALGORITHMS``.
    labels:
        Cluster of each text; they run from 0 without gaps.
    view:
        Which vectors are clustered: ``"semantic"``, or ``"joined"`` with lexical ones; ``"centred semantic"`` and
        ``"centred joined"`` without their mean.
    sizes:
        How much cluster sizes are balanced: a kind of :data:`~coterie.selection.cluster_sizes.PENALTIES`.
    share:
        Share of the weight of its kind: several runs of one algorithm share the weight of one.
    """

    algorithm: str
    labels: NDArray[np.int64]
    view: str = "semantic"
    sizes: str = "free"
    share: float = 1.0

    @property
    def name(self) -> str:
        """View, algorithm and sizes in words."""
        return f"{self.view}, {self.algorithm}, {self.sizes} sizes"

    @property
    def size_kind(self) -> str:
        """The kind of sizes by which it is weighted: average linkage makes uneven ones, unless they are balanced."""
        return UNEVEN if self.algorithm == AVERAGE_LINKAGE and self.sizes == "free" else self.sizes


def make_clusterings(
    graphs: NeighbourGraphs,
    n_clusters: int,
    weights: NDArray[Any],
    seed: int,
    algorithms: Sequence[str] = ALGORITHMS,
    view: str = "semantic",
    kmeans_runs: int = 1,
) -> list[Clustering]:
    """Cluster by each algorithm and refine (:func:`~coterie.selection.refinement.refine_assignment`); sizes are free.

    k-means, whose result depends on its seed, is run ``kmeans_runs`` times, each time as a clustering of its own.

    ``weights`` has the number of occurrences of each text; linkage counts each distinct text once.
    """
    spaces: dict[str, Callable[[], NDArray[Any]]] = {
        "": lambda: graphs.units,
        "smoothed": lambda: graphs.smoothed,
        "graph": lambda: spectral_embedding(graphs.combined, min(n_clusters, EIGENVECTORS), seed, graphs.device),
    }
    found = []
    for name in algorithms:
        space, _, algorithm = name.rpartition(" ")
        vectors = spaces[space]()
        partitions: list[NDArray[np.int64]]
        if algorithm == "k-means":
            on_device = to_device(vectors, graphs.device)
            partitions = [
                kmeans(on_device, n_clusters, weights=weights, n_init=RESTARTS, seed=each).labels
                for each in _seeds_of_runs(seed, kmeans_runs)
            ]
        else:
            tables = [graphs.smooth(steps) for steps in AVERAGE_SMOOTHING] if name == AVERAGE_LINKAGE else [vectors]
            partitions = [
                cluster_by_linkage(np.asarray(rows, dtype=np.float64), n_clusters, algorithm.lower(), graphs.device)
                for rows in tables
            ]
        for labels in map(renumber, partitions):
            refined = refine_assignment(graphs, labels, int(labels.max()) + 1, weights)
            found.append(Clustering(name, refined, view, share=1 / len(partitions)))
    return found


def _seeds_of_runs(seed: int, count: int) -> list[int]:
    """Return one seed per run, such that fits with other seeds share none, within what scikit-learn accepts."""
    return [(count * seed + run) % 2**32 for run in range(count)]


def balance_sizes(
    graphs: NeighbourGraphs, clustering: Clustering, weights: NDArray[Any], sizes: str = "equal"
) -> Clustering:
    """Refine a clustering under the penalty of a kind of sizes."""
    labels = clustering.labels
    balanced = refine_assignment(graphs, labels, int(labels.max()) + 1, weights, PENALTIES[sizes])
    return replace(clustering, labels=balanced, sizes=sizes)


def renumber(labels: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the same clusters, numbered from 0 without gaps."""
    return np.unique(labels, return_inverse=True)[1].astype(np.int64)


def cluster_by_linkage(
    vectors: NDArray[np.float64], n_clusters: int, method: str, device: torch.device | str = "cpu"
) -> NDArray[np.int64]:
    """Cluster rows by linkage; of more than ``LINKAGE_ROWS``, a sample, and assign the others to the nearest of it.

    The sample depends on the number of rows alone, so that the seed of a fit does not change the result.
    """
    from scipy.cluster.hierarchy import linkage

    n_rows = len(vectors)
    sampled = np.arange(n_rows)
    if n_rows > LINKAGE_ROWS:
        sampled = np.sort(np.random.default_rng(n_rows).permutation(n_rows)[: max(LINKAGE_ROWS, n_clusters)])
    rows = unit_rows(vectors[sampled])
    labels = cut(np.asarray(linkage(_distances(rows, device), method)), len(rows), n_clusters)
    return labels if len(sampled) == n_rows else follow_nearest(vectors, sampled, labels, device)


def _distances(rows: NDArray[np.float64], device: torch.device | str) -> NDArray[np.float64]:
    """Return all Euclidean distances of rows of length one, condensed for linkage, by one matrix product."""
    import torch
    from scipy.spatial.distance import squareform

    tensor = torch.from_numpy(rows).to(_cuda_or_cpu(device))
    between = (2 - 2 * (tensor @ tensor.T)).clamp_min_(0).sqrt_().cpu().numpy()
    return np.asarray(squareform(between, checks=False))


def _cuda_or_cpu(device: torch.device | str) -> torch.device | str:
    """Return the device if it is a CUDA device, otherwise the CPU: not every accelerator has float64."""
    return device if str(device).startswith("cuda") else "cpu"


def follow_nearest(
    vectors: NDArray[Any], sampled: NDArray[np.int64], labels: NDArray[np.int64], device: torch.device | str = "cpu"
) -> NDArray[np.int64]:
    """Return labels of all rows, from ``labels`` of the ``sampled`` rows: each row gets that of the nearest of them."""
    import torch

    rows = torch.from_numpy(unit_rows(vectors[sampled])).to(_cuda_or_cpu(device))
    found = np.empty(len(vectors), dtype=np.int64)
    for begin in range(0, len(vectors), BLOCK_ROWS):
        # The length of a row does not change which sampled row is nearest to it.
        similarity = torch.from_numpy(vectors[begin : begin + BLOCK_ROWS]).to(rows) @ rows.T
        found[begin : begin + BLOCK_ROWS] = labels[similarity.argmax(dim=1).cpu().numpy()]
    found[sampled] = labels
    return found
