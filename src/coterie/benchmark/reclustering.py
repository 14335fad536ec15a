"""Other clusterings of what a fitted method makes of its texts: ClusterBERT's Table 3."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from coterie.text.corpus import Corpus

# In tables, after the title of the row.
TITLES = {
    "kmeans": "k-means",
    "ward": "Ward",
    "average": "average linkage",
    "umap": "UMAP + k-means",
    "idec": "IDEC",
    "umap-idec": "UMAP + IDEC",
}
# The paper's IDEC and UMAP have one dimension more than there are clusters.
LAYERS = "500-500-2000-{}"


def recluster(name: str, corpus: Corpus, vectors: Any, n_clusters: int, seed: int, device: str) -> NDArray[np.int64]:
    """Labels of all rows by the clustering ``name`` of the vectors of the rows, dense or sparse."""
    from coterie.clustering.umap_reduction import umap_reduced
    from coterie.methods.baselines.frozen import FrozenEncoder
    from coterie.methods.baselines.idec import IDEC

    if hasattr(vectors, "toarray"):
        vectors = vectors.toarray()
    common: dict[str, Any] = {"device": device, "random_state": seed}
    if name.endswith("idec"):
        if name == "umap-idec":
            vectors = umap_reduced(vectors, n_clusters + 1, seed)
        layers = LAYERS.format(n_clusters + 1)
        return IDEC(n_clusters, layers=layers, **common).fit(corpus, embeddings=vectors).labels_
    return FrozenEncoder(n_clusters, clusterer=name, **common).fit(corpus, embeddings=vectors).labels_
