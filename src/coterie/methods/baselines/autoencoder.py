"""AE: an auto-encoder over fixed vectors, then k-means on its latent vectors."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from coterie.clustering.partition import Partition
from coterie.methods.baselines.deep import NetworkMethod, Pretrained
from coterie.methods.results import Learned


class AutoEncoder(NetworkMethod):
    """A stacked denoising auto-encoder, then k-means on its latent vectors: the initial state of DEC, IDEC and DCN.

    Parameters
    ----------
    n_clusters:
        How many clusters to make.
    features:
        ``"embedding"`` (the frozen encoder's), ``"tfidf"`` or ``"sif"``; ``fit(texts, embeddings=...)`` uses others.
    max_features:
        For TF-IDF: how many of the most frequent words to count.
    vectors:
        For SIF: a text file of word vectors; ``None`` uses the encoder's own table of word pieces.
    layers:
        Widths of the network behind the vectors; the last is that of the latent vector.
    pretrain_steps:
        Steps of pretraining the whole auto-encoder; before that, each layer alone is trained for half as many.
    batch_size:
        Texts per step.
    encoder, pooling, normalize, max_length, device:
        The pretrained encoder: see :class:`~coterie.methods.encoder_method.EncoderMethod`.
    random_state:
        Seed of everything.

    Attributes
    ----------
    labels_, confidence_, center_distance_, cluster_centers_, history_, notes_, timings_:
        See :class:`~coterie.methods.base.ClusteringMethod`; the centres are means of latent vectors.
    initial_labels_, kmeans_labels_, head_labels_:
        ``initial_labels_`` is k-means on the vectors before the network; the others are ``labels_``.

    Differs from the paper
    ----------------------
    - Each layer and the whole auto-encoder are trained by Adam at 1e-3 for ``pretrain_steps``, not by SGD for 50,000
      and 100,000 steps. The reconstruction error of held-out texts then no longer falls: on 1,200 titles of DBLP it
      is as low after 100 steps as after 200, and higher after 400.
    - Vectors of any source are scaled to the length sqrt(d), as Xie et al. scale REUTERS.
    - Duplicate texts are used once, weighted by their count in every mean and in k-means.

    Examples
    --------
    >>> from coterie import AutoEncoder
    >>> texts = ["late parcel", "parcel is late", "parcel late again", "forgot my password", "password reset"]
    >>> AutoEncoder(n_clusters=2, layers="16-4", pretrain_steps=40).fit(texts).labels_
    array([0, 0, 0, 1, 1])
    """

    _initial_labels_from: ClassVar[str] = "k-means on the vectors before the network"

    def _refine(self, begun: Pretrained) -> None:
        return None

    def _conclude(
        self,
        features: NDArray[np.float32],
        latents: NDArray[np.float32],
        start: Partition,
        centers: NDArray[np.float32] | None,
        counts: NDArray[np.int64],
    ) -> Learned:
        return Learned(latents, start.centers, initial_labels=self._kmeans(features, counts).labels)
