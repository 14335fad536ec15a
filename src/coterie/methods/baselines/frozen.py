"""The encoder as it comes, then a clustering: what every trained method must beat."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from coterie.encoders.weights import DEFAULT_MODEL
from coterie.errors import SettingError
from coterie.methods.base import ClusteringMethod
from coterie.methods.baselines.partition import PartitionMixin
from coterie.methods.encoding import EncoderMethod
from coterie.methods.results import Encoded, Learned
from coterie.text.corpus import Corpus

if TYPE_CHECKING:
    from coterie.encoders.transformer import TransformerEncoder


class FrozenEncoder(PartitionMixin, EncoderMethod):
    """Sentence embeddings without training, then k-means, spherical k-means, Ward or average linkage.

    Parameters
    ----------
    n_clusters:
        How many clusters to make.
    clusterer:
        ``"kmeans"``, ``"spherical"``, ``"ward"`` or ``"average"``.
    encoder, pooling, normalize, max_length, device:
        Which encoder and how: see :class:`~coterie.methods.encoding.EncoderMethod`.
    random_state:
        Seed; the same seed gives the same clusters.

    ``fit(texts, embeddings=vectors)`` clusters given vectors instead; ``predict`` then wants vectors too.

    Examples
    --------
    >>> from coterie import FrozenEncoder
    >>> texts = ["late parcel", "parcel is late", "parcel late again", "forgot my password", "password reset"]
    >>> FrozenEncoder(n_clusters=2).fit(texts).labels_
    array([0, 0, 0, 1, 1])
    """

    def __init__(
        self,
        n_clusters: int,
        *,
        clusterer: str = "kmeans",
        encoder: str = DEFAULT_MODEL,
        pooling: str = "auto",
        normalize: bool | str = "auto",
        max_length: int = 64,
        device: str = "auto",
        random_state: int | None = 0,
    ) -> None:
        self.n_clusters = n_clusters
        self.clusterer = clusterer
        self.encoder = encoder
        self.pooling = pooling
        self.normalize = normalize
        self.max_length = max_length
        self.device = device
        self.random_state = random_state

    def _learn(self, corpus: Corpus, vectors: NDArray[np.float32] | None) -> Learned:
        self.from_embeddings_ = vectors is not None
        if vectors is None:
            self.encoder_ = self._load_encoder()
            self._measured_noise = None
            encoded = super()._encode(corpus.distinct)
            self._note_truncated(encoded.truncated, corpus)
            return replace(self._partition(encoded.features, corpus.counts), noise=encoded.noise)
        return self._partition(self._prepare(vectors), corpus.counts)

    def _accepts_embeddings(self) -> str | None:
        return None

    def _encode(self, texts: Sequence[str]) -> Encoded:
        self._check_has_encoder()
        return super()._encode(texts)

    def _encode_exactly(self, texts: Sequence[str]) -> NDArray[np.float32]:
        self._check_has_encoder()
        return super()._encode_exactly(texts)

    def _check_has_encoder(self) -> None:
        if self.from_embeddings_:
            raise SettingError("this model was fitted on given embeddings and has no encoder; pass embeddings=")

    def _load_encoder(self) -> TransformerEncoder:
        encoder = super()._load_encoder()
        if self.clusterer == "spherical":
            # Unit length belongs to the vectors then, also in the saved folder.
            encoder.settings = replace(encoder.settings, normalize=True)
        return encoder

    def provenance(self) -> dict[str, str | None]:
        return ClusteringMethod.provenance(self) if self.from_embeddings_ else super().provenance()

    def _save_parts(self, folder: Path) -> dict[str, Any]:
        if not self.from_embeddings_:
            super()._save_parts(folder)
        return {"from_embeddings": self.from_embeddings_}

    def _restore_parts(
        self, folder: Path, state: Mapping[str, NDArray[Any]], extra: Mapping[str, Any], device: str
    ) -> None:
        self.from_embeddings_ = bool(extra["from_embeddings"])
        if not self.from_embeddings_:
            super()._restore_parts(folder, state, extra, device)
