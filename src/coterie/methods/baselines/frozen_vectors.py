"""Base of methods on fixed vectors, which come from a pretrained encoder or from the user."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from coterie.errors import SettingError
from coterie.methods.base import ClusteringMethod
from coterie.methods.encoder_method import EncoderMethod
from coterie.methods.results import Encoded, Learned
from coterie.text.corpus import Corpus


class FrozenVectorsMethod(EncoderMethod):
    """Clusters of sentence embeddings without training.

    ``fit(texts, embeddings=vectors)`` clusters given vectors instead; ``predict`` then needs vectors too.
    """

    from_embeddings_: bool

    @abstractmethod
    def _cluster(self, features: NDArray[np.float32], corpus: Corpus) -> Learned:
        """Cluster the vectors of ``corpus.distinct``."""

    def _learn(self, corpus: Corpus, vectors: NDArray[np.float32] | None) -> Learned:
        self.from_embeddings_ = vectors is not None
        if vectors is None:
            self.encoder_ = self.load_encoder()
            self._measured_noise = None
            encoded = super()._encode(corpus.distinct)
            self._note_truncated(encoded.truncated, corpus)
            return replace(self._cluster(encoded.features, corpus), noise=encoded.noise)
        return self._cluster(self._prepare(vectors), corpus)

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
