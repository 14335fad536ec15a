"""Other clusterings of the embeddings of a fitted method: ClusterBERT's Table 3."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from coterie.benchmark.partitions import ON
from coterie.errors import InputError, MissingExtraError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from coterie.text.corpus import Corpus

# Printed in tables after the title of the row.
TITLES = {
    "kmeans": "k-means",
    "ward": "Ward",
    "average": "average linkage",
    "umap": "UMAP + k-means",
    "idec": "IDEC",
    "umap-idec": "UMAP + IDEC",
}
# Sizes of IDEC's layers. The last, as UMAP's dimension, is the number of clusters plus one, as in the paper.
LAYERS = "500-500-2000-{}"
# As in the paper.
IDEC_EPOCHS = 150
# Texts per batch, as in the paper.
IDEC_BATCH = 256
# Learning rate, as in the paper.
IDEC_RATE = 1e-4


@dataclass(frozen=True)
class Reclustered:
    """Labels of all rows and seconds by the name of the partition (``on_umap``), and notes on what was left out."""

    partitions: dict[str, NDArray[np.int64]] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)


def recluster(
    names: Sequence[str], corpus: Corpus, vectors: Any, n_clusters: int, seed: int, device: str
) -> Reclustered:
    """Cluster the vectors of the rows, dense or sparse, by each of ``names``.

    One that lacks its package, or for which the data set is too large, is left out with a note.
    """
    found = Reclustered()
    clusterings = _Clusterings(corpus, vectors, n_clusters, {"device": device, "random_state": seed})
    for name in names:
        began = time.perf_counter()
        try:
            found.partitions[f"{ON}{name}"] = clusterings.labels(name)
        except (MissingExtraError, InputError) as error:
            found.notes.append(f"{TITLES[name]} was left out: {error}")
        else:
            found.seconds[f"{ON}{name}"] = time.perf_counter() - began
    return found


class _Clusterings:
    """Clusterings of the same vectors; UMAP runs once for all that need it."""

    def __init__(self, corpus: Corpus, vectors: Any, n_clusters: int, common: dict[str, Any]) -> None:
        from scipy.sparse import issparse

        self._corpus, self._n_clusters, self._common = corpus, n_clusters, common
        self._vectors = vectors.toarray() if issparse(vectors) else vectors
        self._small: NDArray[np.float32] | None = None

    def labels(self, name: str) -> NDArray[np.int64]:
        from coterie.methods.baselines.frozen import FrozenEncoder
        from coterie.methods.baselines.idec import IDEC

        reduced = name.startswith("umap")
        vectors = self._reduced() if reduced else self._vectors
        k, corpus = self._n_clusters, self._corpus
        if not name.endswith("idec"):
            clusterer = "kmeans" if reduced else name
            return FrozenEncoder(k, clusterer=clusterer, **self._common).fit(corpus, embeddings=vectors).labels_
        steps = IDEC_EPOCHS * -(-len(corpus.distinct) // IDEC_BATCH)
        paper: dict[str, Any] = {"max_steps": steps, "batch_size": IDEC_BATCH, "learning_rate": IDEC_RATE}
        model = IDEC(k, layers=LAYERS.format(k + 1), **paper, **self._common)
        return model.fit(corpus, embeddings=vectors).labels_

    def _reduced(self) -> NDArray[np.float32]:
        import torch
        from threadpoolctl import threadpool_limits

        from coterie.clustering.umap_reduction import umap_reduced
        from coterie.encoders.precomputed_embeddings import embeddings_by_text

        if self._small is None:
            distinct = embeddings_by_text(self._vectors, self._corpus)
            # UMAP sets the process to use all cores, and IDEC after it would compete with other runs for them.
            with threadpool_limits(torch.get_num_threads(), user_api="openmp"):
                small = umap_reduced(distinct, self._n_clusters + 1, self._common["random_state"])
            self._small = self._corpus.expand(small, 0.0)
        return self._small
