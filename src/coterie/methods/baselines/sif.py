"""SIF: weighted means of word vectors, then a clustering."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from coterie.methods.baselines.features import FeatureMethod
from coterie.methods.baselines.partition import PartitionMixin
from coterie.methods.results import Encoded, Learned
from coterie.text.corpus import Corpus


@dataclass(kw_only=True, eq=False, repr=False)
class SIF(PartitionMixin, FeatureMethod):
    """Smooth inverse frequency (Arora et al., ICLR 2017), then k-means, spherical k-means, Ward or average linkage.

    A text is the mean of its words' vectors, each weighted by ``a / (a + p(w))``, where p(w) is the relative frequency
    of the word; the first principal component of all texts' vectors, which they have in common, is removed from each.

    Parameters
    ----------
    n_clusters:
        How many clusters to make.
    clusterer:
        ``"kmeans"``, ``"spherical"``, ``"ward"`` or ``"average"``.
    vectors:
        A file of word vectors as word2vec and GloVe write them as text: a word and its numbers on every line. ``None``
        takes the encoder's own table of word pieces, and its tokenizer.
    smoothing:
        The paper's a.
    encoder, max_length, device:
        Whose word pieces: see :class:`~coterie.methods.encoder_method.EncoderMethod`. Texts are cut at ``max_length``
        pieces.
    random_state:
        Seed; the same seed gives the same clusters.

    Differs from the paper
    ----------------------
    - Word frequencies are those of the texts given (repeats counted), not of a large corpus.
    - The default word vectors are a sentence encoder's input embeddings, not GloVe or PSL.
    - The component is computed exactly, on the texts of ``fit``; the same one is removed from new texts.
    - A word that occurs only in a new text has weight 1 where the encoder knows it. It is ignored with a file of
      vectors, of which only the words of the texts are stored.

    Examples
    --------
    >>> from coterie import SIF
    >>> texts = ["late parcel", "parcel is late", "parcel late again", "parcel lost"]
    >>> texts += ["forgot my password", "password reset", "reset the password"]
    >>> SIF(n_clusters=2).fit(texts).labels_
    array([0, 0, 0, 0, 1, 1, 1])
    """

    # Other methods over word vectors have these as parameters; SIF does not.
    features: str = field(default="sif", init=False)
    max_features: int = field(default=2000, init=False)
    pooling: str = field(default="auto", init=False)
    normalize: bool | str = field(default="auto", init=False)

    smoothing: float = 1e-3

    def _accepts_embeddings(self) -> str | None:
        return f"{type(self).__name__} makes its own vectors"

    def _learn(self, corpus: Corpus, vectors: NDArray[np.float32] | None) -> Learned:
        return self._partition(self._fit_features(corpus), corpus.counts)

    def _encode(self, texts: Sequence[str]) -> Encoded:
        encoded = super()._encode(texts)
        return Encoded(self._prepare(encoded.features), encoded.truncated)

    def _encode_one_by_one(self, texts: Sequence[str]) -> NDArray[np.float32]:
        return self._prepare(super()._encode_one_by_one(texts))
