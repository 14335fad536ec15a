"""Ward and average linkage, which keep all pairwise distances and so have a size limit."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from coterie.clustering.kmeans import unit_rows
from coterie.errors import InputError, SettingError

LINKAGES = ("ward", "average")
# 25,000 rows are 2.5 GB of distances and two to three times that while the tree is built; beyond, a laptop gives up.
LARGEST = 25_000


def linkage_labels(features: Any, n_clusters: int, linkage: str, counts: NDArray[np.int64]) -> NDArray[np.int64]:
    """Cut the tree of ``linkage`` (Ward on Euclidean, average on cosine distances) at ``n_clusters``.

    ``counts`` says how often each row occurs: rows are repeated, since copies at distance zero merge first and
    then weigh what they should.
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
    """Refuse more rows than all pairwise distances can be held of, before any is computed."""
    if n_rows > LARGEST:
        raise InputError(
            f"{who} holds all pairwise distances and is limited to {LARGEST:,} texts; received {n_rows:,}. "
            "Use k-means, or learn on a sample and assign the rest: fit(..., sample=20000), --sample 20000"
        )


def cut(tree: NDArray[np.float64], n_rows: int, n_clusters: int) -> NDArray[np.int64]:
    """Labels after the first ``n_rows - n_clusters`` merges: exactly ``n_clusters``, also where heights tie."""
    from scipy.sparse import coo_matrix
    from scipy.sparse.csgraph import connected_components

    merges = tree[: n_rows - n_clusters, :2].astype(np.int64)
    parents = np.repeat(n_rows + np.arange(len(merges)), 2)
    nodes = n_rows + len(merges)
    graph = coo_matrix((np.ones(parents.size), (parents, merges.ravel())), shape=(nodes, nodes))
    _, labels = connected_components(graph, directed=False)
    return np.unique(labels[:n_rows], return_inverse=True)[1].astype(np.int64)
