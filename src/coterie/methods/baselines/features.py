"""Base of methods that learn a network over fixed vectors, which come from one of three sources."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from coterie.checks import check_choice, check_number, check_whole
from coterie.errors import InputError, SettingError
from coterie.methods.encoder_method import EncoderMethod
from coterie.methods.results import Encoded, blank_rows
from coterie.text.corpus import Corpus

if TYPE_CHECKING:
    from coterie.encoders.bag_of_words import BagOfWordsEncoder
    from coterie.encoders.sif import SifEncoder

FEATURES = ("embedding", "tfidf", "sif")


@dataclass(kw_only=True, eq=False, repr=False)
class FeatureMethod(EncoderMethod):
    """A method over fixed dense vectors.

    Parameters
    ----------
    features:
        ``"embedding"``: the frozen encoder's; ``"tfidf"``: TF-IDF rows of unit length; ``"sif"``: smooth inverse
        frequency (see :class:`~coterie.methods.baselines.sif.SIF`).
    max_features:
        For TF-IDF: how many of the most frequent words to count.
    vectors:
        For SIF: a file of word vectors as word2vec and GloVe write them as text; ``None`` uses the encoder's own table
        of word pieces.
    encoder, pooling, normalize, max_length, device:
        See :class:`~coterie.methods.encoder_method.EncoderMethod`.

    A subclass calls :meth:`_fit_features` once in ``_learn`` and :meth:`_features` for new texts. ``fit(texts,
    embeddings=vectors)`` learns on given vectors instead; ``predict`` then needs vectors too. A subclass's ``_state``,
    ``_save_parts`` and ``_restore_parts`` add to those of ``super()``.
    """

    features: str = "embedding"
    max_features: int = 2_000
    vectors: str | os.PathLike[str] | None = None

    from_embeddings_: bool = field(init=False)
    words_: BagOfWordsEncoder = field(init=False)
    sif_: SifEncoder = field(init=False)
    n_features_: int = field(init=False)

    # The a of Arora et al.; a parameter of SIF alone.
    smoothing = 1e-3
    _can_be_tried: ClassVar[bool] = False

    def _check_settings(self) -> None:
        super()._check_settings()
        check_choice("features", self.features, FEATURES)
        check_whole("max_features", self.max_features, least=1)
        check_number("smoothing", self.smoothing, above=0)
        if self.vectors is not None:
            if not isinstance(self.vectors, (str, os.PathLike)):
                raise SettingError(f"vectors={self.vectors!r} must be a file of word vectors, or None")
            if not Path(self.vectors).is_file():
                raise SettingError(f"vectors={os.fspath(self.vectors)!r}: no such file")

    def _accepts_embeddings(self) -> str | None:
        return None

    @property
    def _has_encoder(self) -> bool:
        """Whether the vectors come from an encoder, directly or from its word embeddings."""
        if self.from_embeddings_:
            return False
        return self.features == "embedding" or (self.features == "sif" and self.vectors is None)

    # Vectors.

    def _fit_features(self, corpus: Corpus, vectors: NDArray[np.float32] | None = None) -> NDArray[np.float32]:
        """Fit the source of the vectors and return one row per distinct text; ``vectors`` are the user's own."""
        self.from_embeddings_ = vectors is not None
        if vectors is not None:
            self.n_features_ = vectors.shape[1]
            return vectors
        if self._has_encoder:
            self.encoder_ = self.load_encoder()
        if self.features == "tfidf":
            self._fit_words(corpus)
        elif self.features == "sif":
            self._fit_sif(corpus)
        encoded = self._encoded_features(corpus.distinct)
        if self._has_encoder:
            self._note_truncated(encoded.truncated, corpus)
        n_blank = int(blank_rows(encoded.features).sum())
        if n_blank:
            self._note(f"{n_blank:,} distinct texts hold none of the words known")
        self.n_features_ = encoded.features.shape[1]
        rows: NDArray[np.float32] = encoded.features
        return rows

    def _fit_words(self, corpus: Corpus) -> None:
        from coterie.encoders.bag_of_words import BagOfWordsEncoder

        self.words_ = BagOfWordsEncoder.fit(
            corpus.distinct, corpus.counts, max_features=self.max_features, stop_words=None, weighting="tfidf"
        )

    def _fit_sif(self, corpus: Corpus) -> None:
        from coterie.encoders.sif import SifEncoder, encoder_words
        from coterie.encoders.word_vector_file import WordVectorVocabulary

        ignored: list[int] = []
        if self.vectors is None:
            tokenize = self.encoder_.tokenize
            table, ignored = encoder_words(self.encoder_)
        else:
            words, table = WordVectorVocabulary.read(Path(self.vectors), corpus.distinct)
            self.sif_words_ = words.words
            tokenize = words.tokenize
        self.sif_ = SifEncoder.fit(tokenize, table, corpus.distinct, corpus.counts, a=self.smoothing, ignored=ignored)

    def _features(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return one row per text, from the fitted source."""
        rows: NDArray[np.float32] = self._encoded_features(texts).features
        return rows

    def _features_one_by_one(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return one row per text, independent of the batch; word counts always are."""
        if self.features == "embedding" and not self.from_embeddings_:
            return self.encoder_.encode_one_by_one(texts)
        return self._features(texts)

    def _encoded_features(self, texts: Sequence[str]) -> Encoded:
        """Return vectors with the number of texts cut; always in float32, since a network may amplify noise."""
        if self.from_embeddings_:
            raise SettingError("this model was fitted on given embeddings and has no encoder; pass embeddings=")
        if self.features == "tfidf":
            return Encoded(self.words_.encode(texts).toarray().astype(np.float32))
        source = self.sif_ if self.features == "sif" else self.encoder_
        return Encoded(*source.encode_and_count_truncated(texts))

    def _check_width(self, vectors: NDArray[np.float32]) -> None:
        """Raise an error for vectors of another width than those of the fit."""
        if vectors.shape[1] != self.n_features_:
            raise InputError(
                f"embeddings have {vectors.shape[1]} dimensions, the model was fitted on {self.n_features_}"
            )

    def _encode(self, texts: Sequence[str]) -> Encoded:
        return self._encoded_features(texts)

    def _encode_exactly(self, texts: Sequence[str]) -> NDArray[np.float32]:
        rows: NDArray[np.float32] = self._encode(texts).features
        return rows

    def _encode_one_by_one(self, texts: Sequence[str]) -> NDArray[np.float32]:
        return self._features_one_by_one(texts)

    # Saving.

    def provenance(self) -> dict[str, str | None]:
        if self._has_encoder:
            return super().provenance()
        return {"device": "cpu", "encoder_from": None}

    def _state(self) -> dict[str, NDArray[Any]]:
        if self.from_embeddings_:
            return {}
        if self.features == "tfidf":
            assert self.words_.idf is not None
            return {"idf": self.words_.idf}
        if self.features == "sif":
            arrays: dict[str, NDArray[Any]] = {"sif_weights": self.sif_.weights, "sif_component": self.sif_.component}
            return arrays if self.vectors is None else arrays | {"sif_table": self.sif_.table}
        return {}

    def _save_parts(self, folder: Path) -> dict[str, Any]:
        if self._has_encoder:
            super()._save_parts(folder)
        extra: dict[str, Any] = {"from_embeddings": self.from_embeddings_, "n_features": self.n_features_}
        if not self.from_embeddings_ and self.features == "tfidf":
            extra["vocabulary"] = self.words_.vocabulary
        if not self.from_embeddings_ and self.features == "sif" and self.vectors is not None:
            extra["sif_words"] = self.sif_words_
        return extra

    def _restore_parts(
        self, folder: Path, state: Mapping[str, NDArray[Any]], extra: Mapping[str, Any], device: str
    ) -> None:
        from coterie.encoders.bag_of_words import BagOfWordsEncoder
        from coterie.encoders.sif import SifEncoder, encoder_words
        from coterie.encoders.word_vector_file import WordVectorVocabulary

        self.from_embeddings_ = bool(extra["from_embeddings"])
        self.n_features_ = int(extra["n_features"])
        if self.from_embeddings_:
            return
        if self._has_encoder:
            super()._restore_parts(folder, state, extra, device)
        if self.features == "tfidf":
            self.words_ = BagOfWordsEncoder(dict(extra["vocabulary"]), state["idf"])
        elif self.features == "sif":
            weights, component = state["sif_weights"], state["sif_component"]
            if self.vectors is None:
                self.sif_ = SifEncoder(self.encoder_.tokenize, encoder_words(self.encoder_)[0], weights, component)
            else:
                self.sif_words_ = list(extra["sif_words"])
                self.sif_ = SifEncoder(
                    WordVectorVocabulary(self.sif_words_).tokenize, state["sif_table"], weights, component
                )
