"""Reduce dimensions by UMAP, in which near texts stay near. Needs the package umap-learn."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from coterie.errors import require_extra

# Neighbours of each row in UMAP's graph: its default.
NEIGHBORS = 15


def umap_reduced(features: Any, n_components: int, seed: int) -> NDArray[np.float32]:
    """Reduce ``features``, dense or sparse, to ``n_components`` dimensions (cosine, 15 neighbours, ``min_dist`` 0).

    The same seed gives the same vectors on the same machine. Few rows get fewer dimensions: UMAP starts from
    eigenvectors of their graph, of which there are at most ``n_rows - 2``. Two rows are returned unchanged.
    """
    umap = require_extra("umap", "umap")
    n_rows = features.shape[0]
    if n_rows < 3:
        return np.asarray(features if isinstance(features, np.ndarray) else features.todense(), dtype=np.float32)
    model = umap.UMAP(
        n_neighbors=min(NEIGHBORS, n_rows - 1),
        n_components=min(n_components, n_rows - 2),
        min_dist=0.0,
        metric="cosine",
        random_state=seed,
        n_jobs=1,  # a seed requires it; UMAP warns otherwise
    )
    return np.asarray(model.fit_transform(features), dtype=np.float32)
