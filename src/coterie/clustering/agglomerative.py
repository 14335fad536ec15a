"""Ward and average linkage, limited in size because they hold all pairwise distances in memory."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from coterie.clustering.kmeans import unit_rows
from coterie.errors import InputError, SettingError

LINKAGES = ("ward", "average")
# Most rows. The distances of 25,000 rows take 2.5 GB, and two to three times that while the tree is built: about the
# memory of a laptop.
LARGEST = 25_000


def linkage_labels(features: Any, n_clusters: int, linkage: str, counts: NDArray[np.int64]) -> NDArray[np.int64]:
    """Cluster rows by linkage: Ward on Euclidean distances, or average on cosine distances.

    Parameters
    ----------
    features:
        Dense or sparse, one row per text.
    n_clusters:
        The number of clusters: the tree is cut there.
    linkage:
        ``"ward"`` or ``"average"``.
    counts:
        Occurrences of each row. Rows are repeated: copies at distance zero merge first, and the merged row then has
        their weight.
    """
    from scipy.cluster.hierarchy import linkage as build_tree
    from scipy.sparse import issparse
    from scipy.spatial.distance import pdist

    if linkage not in LINKAGES:
        raise SettingError(f"linkage={linkage!r} is unknown; use one of {', '.join(LINKAGES)}")
    total = int(counts.sum())
    check_size(f"{linkage} linkage", total)
    dense = np.asarray(features.todense()) if issparse(features) else np.asarray(features)
    if linkage == "average":
        # On unit rows, half the squared Euclidean distance is the cosine distance, and zero rows do no harm.
        distances = pdist(np.repeat(unit_rows(dense), counts, axis=0), metric="sqeuclidean")
        distances /= 2
    else:
        distances = pdist(np.repeat(dense, counts, axis=0))
    tree = build_tree(distances, method=linkage)
    firsts = np.concatenate([[0], np.cumsum(counts)[:-1]])
    return cut(tree, total, n_clusters)[firsts]


def check_size(who: str, n_rows: int) -> None:
    """Raise if there are too many rows to hold all pairwise distances; ``who`` begins the message."""
    if n_rows > LARGEST:
        raise InputError(
            f"{who} holds all pairwise distances and is limited to {LARGEST:,} texts; received {n_rows:,}. "
            "Use k-means, or learn on a sample and assign the rest: fit(..., sample=20000), --sample 20000"
        )


def cut(tree: NDArray[np.float64], n_rows: int, n_clusters: int) -> NDArray[np.int64]:
    """Cut a tree after ``n_rows - n_clusters`` merges, which gives exactly ``n_clusters`` even if heights are equal."""
    from scipy.sparse import coo_matrix
    from scipy.sparse.csgraph import connected_components

    merges = tree[: n_rows - n_clusters, :2].astype(np.int64)
    parents = np.repeat(n_rows + np.arange(len(merges)), 2)
    nodes = n_rows + len(merges)
    graph = coo_matrix((np.ones(parents.size), (parents, merges.ravel())), shape=(nodes, nodes))
    _, labels = connected_components(graph, directed=False)
    return np.unique(labels[:n_rows], return_inverse=True)[1].astype(np.int64)
