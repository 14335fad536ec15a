"""The pretrained encoder, unchanged, then a clustering: the baseline that every trained method must beat."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from numpy.typing import NDArray

from coterie.methods.baselines.frozen_vectors import FrozenVectorsMethod
from coterie.methods.baselines.partition import CLUSTERERS, PartitionMixin
from coterie.methods.results import Learned
from coterie.text.corpus import Corpus

if TYPE_CHECKING:
    import torch

    from coterie.encoders.transformer import TransformerEncoder


CHOSEN = "chosen"


@dataclass(kw_only=True, eq=False, repr=False)
class FrozenEncoder(PartitionMixin, FrozenVectorsMethod):
    """Embeddings without training, then k-means, a linkage, UMAP and k-means, or the best by label-free criteria.

    Parameters
    ----------
    n_clusters:
        How many clusters to make.
    clusterer:
        ``"kmeans"``, ``"spherical"``, ``"ward"``, ``"average"``, ``"umap"`` (k-means in five dimensions made by UMAP:
        ``pip install 'coterie[umap]'``) or ``"chosen"``: the consensus of many clusterings, by k-means and linkage, of
        the vectors as they are and centred, plain and smoothed over their neighbours, with several kinds of sizes
        (:func:`coterie.selection.choose_start`). After the last four, ``predict`` assigns to the nearest mean.
    encoder, pooling, normalize, max_length, device:
        The pretrained encoder: see :class:`~coterie.methods.encoder_method.EncoderMethod`.
    random_state:
        Seed; the same seed gives the same clusters.

    ``fit(texts, embeddings=vectors)`` clusters given vectors instead; ``predict`` then needs vectors too.

    Examples
    --------
    >>> from coterie import FrozenEncoder
    >>> texts = ["late parcel", "parcel is late", "parcel late again", "forgot my password", "password reset"]
    >>> FrozenEncoder(n_clusters=2).fit(texts).labels_
    array([0, 0, 0, 1, 1])
    """

    _clusterers: ClassVar[tuple[str, ...]] = (*CLUSTERERS, CHOSEN)

    def _cluster(self, features: NDArray[np.float32], corpus: Corpus) -> Learned:
        if self.clusterer == CHOSEN and len(features) > self.n_clusters + 1:
            return self._with_centroids(features, self._chosen(features, corpus), corpus.counts)
        return self._partition(features, corpus.counts)

    def _chosen(self, features: NDArray[np.float32], corpus: Corpus) -> NDArray[np.int64]:
        from coterie.encoders.device import resolve_device
        from coterie.selection import choose_start

        texts, counts = corpus.distinct, corpus.counts
        device = resolve_device(self.device)
        found = choose_start(texts, self.n_clusters, vectors=features, weights=counts, seed=self.seed_, device=device)
        voters = sum(each.weight > 0 for each in found.candidates)
        self._note(f"the clusters are the consensus of {voters} clusterings")
        return found.labels

    def _on_device(self, features: NDArray[np.float32]) -> torch.Tensor:
        import torch

        from coterie.encoders.device import resolve_device

        return torch.from_numpy(features).to(resolve_device(self.device))

    def load_encoder(self) -> TransformerEncoder:
        encoder = super().load_encoder()
        if self.clusterer == "spherical":
            # The vectors have unit length then, also those of the saved folder.
            encoder.settings = replace(encoder.settings, normalize=True)
        return encoder
