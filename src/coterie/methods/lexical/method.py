"""Lexical clusters: a trained network over TF-IDF rows, then a clustering; no pretrained encoder."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import torch
from numpy.typing import NDArray

from coterie.checks import check_number, check_whole
from coterie.encoders.device import resolve_device
from coterie.methods.array_groups import of_part, with_prefix
from coterie.methods.baselines.partition import PartitionMixin
from coterie.methods.lexical.network import LexicalConfig
from coterie.methods.lexical.view import MAX_WORDS, LexicalView
from coterie.methods.results import Encoded, Learned, blank_rows
from coterie.methods.trained import Clock
from coterie.text.corpus import Corpus

# Most distinct texts for training; others are assigned afterwards. The time of the neighbour search grows with the
# square of their number.
SAMPLE_SIZE = 30_000


@dataclass(kw_only=True, eq=False, repr=False)
class LexicalClusters(PartitionMixin):
    """Clusters by words alone: a small network is trained on the TF-IDF rows of the texts, then k-means.

    TF-IDF has no notion of related words: two texts without a common word are unrelated. A variational auto-encoder
    learns which words occur in the same texts, and a contrastive loss draws each text towards one of its nearest texts
    by TF-IDF. The vector of a text is the mean of its latent distribution, scaled to unit length. No pretrained model
    is needed, and training takes some seconds on a laptop. It is at its best on texts with telling words, such as
    titles, names and technical terms; where the same words serve several classes, a pretrained encoder is better.

    On 3,000 texts of each of five tuning sets its mean accuracy is 47.2 % (three seeds); k-means of TF-IDF rows with
    the same words has 34.4 %. Most of the settings below change that mean by less than one point
    (benchmarks/results/lexical_trials.json).

    The idea is the first stage of COTC (Li et al., EMNLP 2024), which trains such a network together with a sentence
    encoder. Of more than 30,000 distinct texts, 30,000 are sampled for training and the others are assigned
    afterwards; ``fit(sample=N)`` sets another number.

    Parameters
    ----------
    n_clusters:
        How many clusters to make.
    clusterer:
        ``"kmeans"``, ``"spherical"``, ``"ward"``, ``"average"`` or ``"umap"``: see
        :class:`~coterie.methods.baselines.tfidf.TfIdf`.
    max_features:
        How many of the most frequent words to use. English function words are left out, unless there are no others.
    hidden, dimension:
        Widths of the hidden layer and of the vectors.
    neighbours:
        Nearest texts by TF-IDF of which one is a text's positive at each step.
    epochs, min_steps, max_steps:
        Epochs of training, and fewest and most steps: a small corpus gets more epochs, a large one fewer.
    batch_size, learning_rate:
        Texts per step, each with one neighbour, and the rate of Adam.
    dropout:
        Share of the hidden layer that is dropped at every step.
    kl_weight, contrast_weight:
        Weights of the divergence and of the contrastive loss in Eq. 10.
    temperature:
        Temperature of the contrastive loss.
    device:
        Where the network is trained and k-means runs: ``"auto"``, ``"cuda"``, ``"cpu"``.
    random_state:
        Seed; the same seed gives the same clusters.

    Attributes
    ----------
    labels_, confidence_, center_distance_, cluster_centers_, history_, notes_, timings_:
        See :class:`~coterie.methods.base.ClusteringMethod`.
    view_:
        The words and the trained network.

    Equations
    ---------
    For a text i with TF-IDF row ``x_i`` of unit length and occurrences ``w_i``:

    - Eq. 1: ``p_i = x_i / sum_v x_iv``, the shares of its words.
    - Eq. 2: ``h_i = dropout(relu(A x_i + a))``, the hidden layer.
    - Eq. 3: ``mu_i = 3 tanh((M h_i + m) / 3)``, the mean of the latent vector.
    - Eq. 4: ``log s_i^2 = S h_i + s``, its log variance.
    - Eq. 5: ``z_i = mu_i + s_i eps``, a sample, with ``eps`` from the standard Gaussian.
    - Eq. 6: ``r_i = - sum_v p_iv log q_iv`` with ``q_i = softmax(D z_i + d)``, the cross entropy of the decoded words.
    - Eq. 7: ``L_rec``, the mean of ``r_i`` over the texts of a batch and their neighbours.
    - Eq. 8: ``L_KL``, the mean of ``1/2 sum_d (mu_id^2 + s_id^2 - 1 - log s_id^2)`` over the same texts.
    - Eq. 9: ``L_con``, the normalised temperature-scaled cross entropy of ``mu`` of each text and ``mu`` of its
      neighbour, with the other texts and neighbours of the batch as negatives.
    - Eq. 10: ``L = L_rec + kl_weight L_KL + contrast_weight L_con``.

    Where the network is trained together with a sentence encoder (:class:`~coterie.methods.auto.method.Coterie`), the
    encoder's clusters are pseudo-labels ``P_ik``, each trusted by ``t_i``, and

    - Eq. 11: ``L_lab = - sum_i w_i t_i sum_k P_ik log Q_ik / sum_i w_i t_i``, with
      ``Q_i = softmax_k(cos(mu_i, c_k) / 0.1)`` and trained centres ``c_k``, is added to ``L``.

    All means are weighted by ``w_i``; a neighbour has the weight of its text. A text without a known word is not
    trained on, and its vector is zero.

    Examples
    --------
    >>> from coterie import LexicalClusters
    >>> texts = ["late parcel", "parcel is late", "parcel late again", "forgot my password", "password reset"]
    >>> LexicalClusters(n_clusters=2, min_steps=50).fit(texts).labels_
    array([0, 0, 0, 1, 1])
    """

    view_: LexicalView = field(init=False)
    usual_sample: ClassVar[int | None] = SAMPLE_SIZE

    max_features: int = MAX_WORDS
    hidden: int = LexicalConfig.hidden
    dimension: int = LexicalConfig.dimension
    neighbours: int = LexicalConfig.neighbours
    epochs: int = LexicalConfig.epochs
    min_steps: int = LexicalConfig.min_steps
    max_steps: int = LexicalConfig.max_steps
    batch_size: int = LexicalConfig.batch_size
    learning_rate: float = LexicalConfig.learning_rate
    dropout: float = LexicalConfig.dropout
    kl_weight: float = LexicalConfig.kl_weight
    contrast_weight: float = LexicalConfig.contrast_weight
    temperature: float = LexicalConfig.temperature
    device: str = "auto"

    def _check_settings(self) -> None:
        super()._check_settings()
        for name in (
            "max_features",
            "hidden",
            "dimension",
            "neighbours",
            "epochs",
            "min_steps",
            "max_steps",
            "batch_size",
        ):
            check_whole(name, getattr(self, name), least=1)
        for name in ("learning_rate", "temperature"):
            check_number(name, getattr(self, name), above=0)
        for name in ("kl_weight", "contrast_weight"):
            check_number(name, getattr(self, name), least=0)
        check_number("dropout", self.dropout, least=0, below=1)
        resolve_device(self.device)

    def _learn(self, corpus: Corpus, vectors: NDArray[np.float32] | None) -> Learned:
        clock = Clock(self.timings_)
        self.view_ = LexicalView.fit(
            corpus.distinct,
            corpus.counts,
            seed=self.seed_,
            device=resolve_device(self.device),
            max_words=self.max_features,
            config=LexicalConfig(**{each.name: getattr(self, each.name) for each in fields(LexicalConfig)}),
            history=self.history_,
        )
        clock.lap("training")
        if self.history_.interrupted:
            self._note(f"training was interrupted after {len(self.history_.steps)} steps; this is the model so far")
        features = self.view_.encode(corpus.distinct)
        if n_blank := int(blank_rows(features).sum()):
            self._note(f"{n_blank:,} distinct texts hold none of the {self.view_.words.dimension:,} words counted")
        learned = self._partition(features, corpus.counts)
        clock.lap("clustering")
        return learned

    def _on_device(self, features: Any) -> Any:
        return torch.from_numpy(features).to(self.view_.device)

    def _encode(self, texts: Sequence[str]) -> Encoded:
        return Encoded(self._prepare(self.view_.encode(texts)))

    def _encode_one_by_one(self, texts: Sequence[str]) -> NDArray[np.float32]:
        rows: NDArray[np.float32] = self._prepare(self.view_.encode(texts, at_a_time=1))
        return rows

    def provenance(self) -> dict[str, str | None]:
        return {**super().provenance(), "device": str(self.view_.device)}

    def _state(self) -> dict[str, NDArray[Any]]:
        return with_prefix("view", self.view_.state())

    def _restore_parts(
        self, folder: Path, state: Mapping[str, NDArray[Any]], extra: Mapping[str, Any], device: str
    ) -> None:
        own = of_part("view", state)
        self.view_ = LexicalView.restore(own, resolve_device(device))
