"""BERTopic on Coterie's embeddings, for comparison; needs the package bertopic."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from coterie.clustering.kmeans import centroids, kmeans
from coterie.clustering.partition import Partition
from coterie.clustering.umap_reduction import umap_reduced
from coterie.errors import require_extra
from coterie.methods.baselines.frozen_vectors import FrozenVectorsMethod
from coterie.methods.results import Learned
from coterie.text.corpus import Corpus

# Dimensions of UMAP: BERTopic's default.
UMAP_DIMENSIONS = 5


class _SeededUmap:
    """UMAP with BERTopic's settings and a seed, with the method that BERTopic calls."""

    def __init__(self, seed: int) -> None:
        self._seed = seed

    def fit_transform(self, features: NDArray[np.float32], y: Any = None) -> NDArray[np.float32]:
        return umap_reduced(features, UMAP_DIMENSIONS, self._seed)


class _WeightedKMeans:
    """k-means in the form that BERTopic's documentation passes it, started once, weighted by counts."""

    labels_: NDArray[np.int64]

    def __init__(self, n_clusters: int, counts: NDArray[np.int64], seed: int) -> None:
        self._n_clusters = n_clusters
        self._counts = counts
        self._seed = seed

    def fit(self, features: NDArray[np.float32], y: Any = None) -> Partition:
        found = kmeans(features, self._n_clusters, weights=self._counts, n_init=1, seed=self._seed)
        self.labels_ = found.labels
        return found


class BERTopicClusters(FrozenVectorsMethod):
    """The topics of the package BERTopic as clusters, for comparison.

    BERTopic with its defaults (UMAP to five dimensions), Coterie's embeddings and, as its documentation advises for a
    known number of topics, k-means instead of HDBSCAN. Its words per topic are not stored: a run has keywords. Since
    the number of clusters is given, words change no label, and the clusters are nearly those of
    ``FrozenEncoder(clusterer="umap")``: both are UMAP and k-means, which here starts once instead of ten times.

    Parameters
    ----------
    n_clusters:
        How many clusters to make.
    encoder, pooling, normalize, max_length, device:
        The pretrained encoder: see :class:`~coterie.methods.encoder_method.EncoderMethod`.
    random_state:
        Seed; the same seed gives the same clusters on the same machine.

    ``fit(texts, embeddings=vectors)`` clusters given vectors instead; ``predict`` then needs vectors too.

    Differs from the package
    ------------------------
    - UMAP has a seed, and with six texts or fewer less than five dimensions, where the package would fail.
    - Repeated texts are one document each, weighted by their count in k-means.
    - ``predict`` assigns to the nearest cluster mean in the space of the embeddings; ``predict_agreement_`` is the
      share of rows on which it agrees with ``labels_``.

    Examples
    --------
    >>> from coterie import BERTopicClusters
    >>> BERTopicClusters(n_clusters=8)  # fit() needs: pip install 'coterie[bertopic]'
    BERTopicClusters(n_clusters=8)
    """

    def _check_settings(self) -> None:
        super()._check_settings()
        require_extra("bertopic", "bertopic")

    def _cluster(self, features: NDArray[np.float32], corpus: Corpus) -> Learned:
        package = require_extra("bertopic", "bertopic")
        k, counts = self.n_clusters, corpus.counts
        clusterer = _WeightedKMeans(k, counts, self.seed_)
        model = package.BERTopic(umap_model=_SeededUmap(self.seed_), hdbscan_model=clusterer)
        topics, _ = model.fit_transform(list(corpus.distinct), embeddings=features)
        labels = np.asarray(topics, dtype=np.int64)
        return Learned(features, centroids(features, labels, k, counts).astype(np.float32), labels)
