"""HAC-SD: linkage on the most significant similarities alone, then iterative classification."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from coterie.checks import check_choice, check_whole
from coterie.clustering.agglomerative import LARGEST, LINKAGES
from coterie.clustering.kmeans import centroids
from coterie.methods.baselines.frozen_vectors import FrozenVectorsMethod
from coterie.methods.baselines.hac_sd.iterative_classification import iterative_classification
from coterie.methods.baselines.hac_sd.sparse_similarity import sparse_similarity_labels
from coterie.methods.results import Learned
from coterie.text.corpus import Corpus


@dataclass(kw_only=True, eq=False, repr=False)
class HACSD(FrozenVectorsMethod):
    """Hierarchical clustering of sparsified similarities, improved by iterative classification.

    Of the N x N cosine similarities the N^2 / K highest, in standard deviations above their row's mean, are kept and
    the others become 0; a linkage of ``1 - similarity`` is cut at K. Then, in every round, an isolation forest removes
    the outliers (a tenth) of each cluster, large clusters are reduced to P percent of the average cluster (P resampled
    between 50 and 95), and a multinomial logistic classifier learns the remaining texts and assigns the removed ones.
    The rounds end when the cluster sizes converge.

    Parameters
    ----------
    n_clusters:
        How many clusters to make.
    iterative_classification:
        ``False`` ends with the linkage.
    linkage:
        ``"average"`` or ``"ward"``. On similarities this sparse, average linkage tends to clusters of very different
        sizes, which no classifier corrects; Ward's less so.
    max_rounds:
        Rounds of classification, at most. A round trains a forest per cluster, which is slow with very many clusters.
    encoder, pooling, normalize, max_length, device:
        The pretrained encoder: see :class:`~coterie.methods.encoder_method.EncoderMethod`.
    random_state:
        Seed; the same seed gives the same clusters.

    ``fit(texts, embeddings=vectors)`` clusters given vectors instead; ``predict`` then needs vectors too. All pairs
    are stored: more than 25,000 texts need ``fit(..., sample=20000)``. Repeated texts count as often as they occur.

    Differs from the paper
    ----------------------
    - The paper's text was not available. The steps are those of SCCL's description (section 4.1, A.5) and of the
      authors' published scripts, as are the settings (outliers 0.1, 100 trees, P from 50 to 95, 50 rounds). SCCL
      describes the N^2 / K largest similarities. One threshold for all rows would leave most texts of a set with dense
      and loose topics without a pair, and "SD", by the authors' abstract, is the similarity distribution of each text.
    - All vectors are the encoder's; the authors average word vectors for the similarities and use TF-IDF for forest and
      classifier.
    - Our choices: N^2 / K counts the entries of the symmetric matrix. Similarities below 0 are never kept, at least as
      many pairs are kept as the tree merges, and pairs that tie with the last one are kept. Sizes have converged when
      their changes in a round add up to at most 5 % of the rows. The surplus of a large cluster is chosen at random.
    - ``predict`` assigns to the nearest cluster mean, as after any linkage, and not by the last classifier, which
      learned only part of the texts; ``predict_agreement_`` is the share of rows on which it agrees with ``labels_``.

    Examples
    --------
    >>> from coterie import HACSD
    >>> parcels = ["late parcel", "parcel is late", "parcel late again"]
    >>> passwords = ["forgot my password", "password reset", "reset my password"]
    >>> HACSD(n_clusters=2).fit([*parcels, *passwords]).labels_
    array([0, 0, 0, 1, 1, 1])
    """

    iterative_classification: bool = True
    linkage: str = "average"
    max_rounds: int = 50

    def _check_settings(self) -> None:
        super()._check_settings()
        check_choice("iterative_classification", self.iterative_classification, (True, False))
        check_choice("linkage", self.linkage, LINKAGES)
        check_whole("max_rounds", self.max_rounds, least=1)

    def max_rows(self) -> int | None:
        return LARGEST

    def _cluster(self, features: NDArray[np.float32], corpus: Corpus) -> Learned:
        k, counts = self.n_clusters, corpus.counts
        labels = sparse_similarity_labels(features, k, counts, self.linkage)
        if self.iterative_classification:
            better = iterative_classification(features, labels, k, counts, seed=self.seed_, max_rounds=self.max_rounds)
            moved = counts[better.labels != labels].sum() / counts.sum()
            state = "the cluster sizes converged" if better.converged else "the cluster sizes did not converge"
            rounds = f"{better.rounds} round{'s' if better.rounds > 1 else ''}"
            self._note(f"iterative classification moved {moved:.1%} of the rows in {rounds}; {state}")
            labels = better.labels
        return Learned(features, centroids(features, labels, k, counts).astype(np.float32), labels)
