"""Base of bag of words and TF-IDF: a vocabulary, and how it is saved."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from coterie.checks import check_choice, check_whole
from coterie.methods.baselines.partition import PartitionMixin
from coterie.methods.results import Encoded, Learned
from coterie.text.corpus import Corpus

if TYPE_CHECKING:
    from coterie.encoders.bag_of_words import BagOfWordsEncoder


@dataclass(kw_only=True, eq=False, repr=False)
class WordMethod(PartitionMixin):
    """Clusters of word counts.

    Parameters
    ----------
    max_features:
        How many of the most frequent words to count.
    stop_words:
        ``"english"`` excludes English function words.
    """

    weighting: ClassVar[str]
    words_: BagOfWordsEncoder = field(init=False)

    max_features: int = 1500
    stop_words: str | None = None

    def _check_settings(self) -> None:
        super()._check_settings()
        check_whole("max_features", self.max_features, least=1)
        check_choice("stop_words", self.stop_words, (None, "english"))

    def _learn(self, corpus: Corpus, vectors: NDArray[np.float32] | None) -> Learned:
        from coterie.encoders.bag_of_words import BagOfWordsEncoder

        self.words_ = BagOfWordsEncoder.fit(
            corpus.distinct,
            corpus.counts,
            max_features=self.max_features,
            stop_words=self.stop_words,
            weighting=self.weighting,
        )
        features = self.words_.encode(corpus.distinct)
        n_blank = int((features.getnnz(axis=1) == 0).sum())
        if n_blank:
            self._note(f"{n_blank:,} distinct texts hold none of the {self.words_.dimension:,} words counted")
        return self._partition(features, corpus.counts)

    def _encode(self, texts: Sequence[str]) -> Encoded:
        return Encoded(self._prepare(self.words_.encode(texts)))

    def _state(self) -> dict[str, NDArray[Any]]:
        return {} if self.words_.idf is None else {"idf": self.words_.idf}

    def _save_parts(self, folder: Path) -> dict[str, Any]:
        return {"vocabulary": self.words_.vocabulary}

    def _restore_parts(
        self, folder: Path, state: Mapping[str, NDArray[Any]], extra: Mapping[str, Any], device: str
    ) -> None:
        from coterie.encoders.bag_of_words import BagOfWordsEncoder

        self.words_ = BagOfWordsEncoder(dict(extra["vocabulary"]), state.get("idf"))
