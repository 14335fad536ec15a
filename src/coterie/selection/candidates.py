"""Clusterings of the same vectors by different eyes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from coterie.clustering.agglomerative import cut
from coterie.clustering.kmeans import kmeans, unit_rows
from coterie.selection.graph import spectral
from coterie.selection.neighbour_graphs import Seen, on
from coterie.selection.refinement import settled

if TYPE_CHECKING:
    import torch

# k-means and linkage of the vectors as they are, drawn to their neighbours', and k-means of the graph's own waves.
# Average linkage of vectors as they are, and of waves, is left out: on the tuning sets it was best on ATIS alone, which
# is one large class, and often the worst.
WAYS = ("k-means", "Ward", "smoothed k-means", "smoothed Ward", "smoothed average", "graph k-means")
# The most waves of the graph that are looked at.
WAVES = 60
# Restarts of k-means.
RESTARTS = 5
# Linkage holds all pairs: of more rows so many are linked, and the others follow their nearest.
LINKED = 5_000
# Rows whose likeness with the linked ones is held at a time.
AT_A_TIME = 2_048


@dataclass(frozen=True)
class Start:
    """A clustering by its name; ``labels`` run from 0 without a gap."""

    name: str
    labels: NDArray[np.int64]


def make_starts(
    seen: Seen, n_clusters: int, weights: NDArray[Any], seed: int, ways: Sequence[str] = WAYS
) -> list[Start]:
    """The clusterings of ``ways``, each settled (:func:`~coterie.selection.refinement.settled`).

    ``weights`` say how often each text occurs; linkage goes by distinct texts.
    """
    spaces: dict[str, Callable[[], NDArray[Any]]] = {
        "": lambda: seen.units,
        "smoothed": lambda: seen.smooth,
        "graph": lambda: spectral(seen.graph, min(n_clusters, WAVES), seed, seen.device),
    }
    found = []
    for name in ways:
        space, _, way = name.rpartition(" ")
        vectors = spaces[space]()
        if way == "k-means":
            there = on(vectors, seen.device)
            labels = kmeans(there, n_clusters, weights=weights, n_init=RESTARTS, seed=seed).labels
        else:
            labels = linked(np.asarray(vectors, dtype=np.float64), n_clusters, way.lower(), seed, seen.device)
        labels = without_gaps(labels)
        found.append(Start(name, settled(seen, labels, int(labels.max()) + 1, weights)))
    return found


def without_gaps(labels: NDArray[np.int64]) -> NDArray[np.int64]:
    """The same clusters, numbered from 0 with none left out."""
    return np.unique(labels, return_inverse=True)[1].astype(np.int64)


def linked(
    vectors: NDArray[np.float64], n_clusters: int, way: str, seed: int, device: torch.device | str = "cpu"
) -> NDArray[np.int64]:
    """The tree of the rows, or of ``LINKED`` drawn ones, cut; rows that were not drawn follow the nearest drawn one."""
    from scipy.cluster.hierarchy import linkage

    n_rows = len(vectors)
    drawn = np.arange(n_rows)
    if n_rows > LINKED:
        drawn = np.sort(np.random.default_rng(seed).permutation(n_rows)[: max(LINKED, n_clusters)])
    rows = unit_rows(vectors[drawn])
    labels = cut(np.asarray(linkage(_distances(rows, device), way)), len(rows), n_clusters)
    return labels if len(drawn) == n_rows else followed(vectors, drawn, labels, device)


def _distances(rows: NDArray[np.float64], device: torch.device | str) -> NDArray[np.float64]:
    """All Euclidean distances of rows of length one, as linkage wants them: one product, not pair by pair."""
    import torch
    from scipy.spatial.distance import squareform

    there = torch.from_numpy(rows).to(_cuda_or_cpu(device))
    between = (2 - 2 * (there @ there.T)).clamp_min_(0).sqrt_().cpu().numpy()
    return np.asarray(squareform(between, checks=False))


def _cuda_or_cpu(device: torch.device | str) -> torch.device | str:
    """Not every device has float64."""
    return device if str(device).startswith("cuda") else "cpu"


def followed(
    vectors: NDArray[Any], drawn: NDArray[np.int64], labels: NDArray[np.int64], device: torch.device | str = "cpu"
) -> NDArray[np.int64]:
    """``labels`` of the rows ``drawn``, and for every other row that of the drawn one most like it."""
    import torch

    rows = torch.from_numpy(unit_rows(vectors[drawn])).to(_cuda_or_cpu(device))
    found = np.empty(len(vectors), dtype=np.int64)
    for begin in range(0, len(vectors), AT_A_TIME):
        # The length of the asking row changes nothing about which one is nearest.
        alike = torch.from_numpy(vectors[begin : begin + AT_A_TIME]).to(rows) @ rows.T
        found[begin : begin + AT_A_TIME] = labels[alike.argmax(dim=1).cpu().numpy()]
    found[drawn] = labels
    return found
