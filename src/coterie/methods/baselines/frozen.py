"""The encoder as it comes, then a clustering: what every trained method must beat."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from coterie.encoders.weights import DEFAULT_MODEL
from coterie.errors import SettingError
from coterie.methods.base import Learned
from coterie.methods.baselines.partition import PartitionMixin
from coterie.methods.encoding import EncoderMethod
from coterie.text.corpus import Corpus


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
    >>> texts = ["late parcel", "parcel is late", "forgot my password", "password reset", "late again", "new password"]
    >>> FrozenEncoder(n_clusters=2).fit(texts).labels_
    array([0, 0, 1, 1, 0, 1])
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
            tokens = self.encoder_.tokenize(corpus.distinct)
            self._note_truncated(tokens.truncated, corpus)
            vectors = self.encoder_.encode_tokens(tokens).cpu().numpy()
        return self._partition(vectors, corpus.counts)

    def _accepts_embeddings(self) -> str | None:
        return None

    def _encode(self, texts: Sequence[str]) -> Any:
        if self.from_embeddings_:
            raise SettingError("this model was fitted on given embeddings and has no encoder; pass embeddings=")
        return self._prepare(super()._encode(texts))

    def _encode_alone(self, texts: Sequence[str]) -> Any:
        return self._prepare(super()._encode_alone(texts))

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
