"""DECCRL: contrastive learning, soft clustering, and a topic model whose topics depend on the cluster centres."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional

from coterie.checks import check_choice, check_number, check_whole
from coterie.clustering.assignment import student_t, student_t_from_distances, target_distribution
from coterie.clustering.partition import Partition
from coterie.errors import SettingError
from coterie.language.word_vectors import check_word2vec, encoder_word_vectors, word2vec_vectors
from coterie.losses.kl_divergence import kl_divergence
from coterie.losses.nt_xent import nt_xent, weighted_mean
from coterie.methods.contrastive import ContrastiveMethod
from coterie.methods.deccrl.topics import EmbeddedTopics, LatentReconstruction, TopicsAlone, WordCounts
from coterie.methods.networks import Projector, principal_components
from coterie.methods.results import Learned
from coterie.methods.trained import TrainingStart, head_labels
from coterie.training.config import TrainingConfig
from coterie.training.objective import AUGMENTED, ORIGINAL, Batch, LossTerms, Objective, Stage
from coterie.training.trainer import Trainer
from coterie.training.views import Views
from coterie.types import Topic

VARIANTS = ("topics", "latent", "none")
WORD_VECTORS = ("encoder", "learned", "word2vec")
# Width of the latent space, the paper's L.
LATENT = 150
# Width of the word vectors rho where they are not the encoder's.
WORD_WIDTH = 300


def printed_contrast(first: Tensor, second: Tensor, temperature: float, weights: Tensor) -> Tensor:
    """Return Eq. 2-4 as printed: negatives from the other view alone, the positive not in the denominator.

    A batch of one text has nothing to contrast: 0.
    """
    if len(first) < 2:
        return (first.sum() + second.sum()) * 0
    first, second = functional.normalize(first, dim=-1), functional.normalize(second, dim=-1)
    similarity = first @ second.T / temperature
    negatives = similarity.masked_fill(torch.eye(len(first), dtype=torch.bool, device=first.device), float("-inf"))
    own = similarity.diagonal()
    losses = negatives.logsumexp(dim=1) - own + negatives.T.logsumexp(dim=1) - own  # Eq. 2-3
    return weighted_mean(losses, weights)  # Eq. 4


class DECCRLObjective(Objective):
    """Eq. 16: contrast, cluster selection and the cluster-level representation. Embeddings are h (Eq. 1)."""

    def __init__(self, settings: DECCRL, centers: Tensor, projector: Projector, guide: nn.Module | None) -> None:
        super().__init__()
        self.projector = projector
        self.centers = nn.Parameter(centers)
        self.guide = guide
        self._settings = settings
        self.views = (ORIGINAL, ORIGINAL) if settings._virtual else (ORIGINAL, *AUGMENTED)
        # FC_e sits behind the encoder and learns as fast as the other heads.
        self.latent = settings.encoder_.projection

    def own_rates(self) -> Mapping[str, float]:
        rates = {"latent": self._settings.training.head_learning_rate}
        return rates if self.guide is None else {**rates, "guide": self._settings.topic_learning_rate}

    def head_probabilities(self, embeddings: Tensor) -> Tensor:
        return student_t(embeddings, self.centers, self._settings.alpha)  # Eq. 5

    def loss(self, batch: Batch) -> LossTerms:
        s, weights = self._settings, batch.weights
        anchor, *views = batch.embeddings  # Eq. 1: the encoder ends in FC_e
        first, second = (self.projector(view) for view in ((anchor, *views) if s._virtual else views))
        if s.printed_contrast:
            contrast = printed_contrast(first, second, s.temperature, weights)  # Eq. 2-4
        else:
            contrast = 2 * nt_xent(first, second, s.temperature, weights)  # Eq. 2-4 with all negatives, a sum of two
        o = self.head_probabilities(anchor)  # Eq. 5
        t = target_distribution(o, weights).detach()  # Eq. 7
        cluster = kl_divergence(t, o, weights)  # Eq. 8-9
        total = contrast + s.lambda_c * cluster
        if isinstance(self.guide, EmbeddedTopics):
            topics = self.guide.loss(o, self.centers, batch.rows, weights)  # Eq. 10-15
            return LossTerms(total + s.lambda_r * topics, contrast=contrast, cluster=cluster, topics=topics)  # Eq. 16
        if isinstance(self.guide, LatentReconstruction):
            latent = self.guide.loss(anchor, weights)
            return LossTerms(total + s.lambda_l * latent, contrast=contrast, cluster=cluster, latent=latent)
        return LossTerms(total, contrast=contrast, cluster=cluster)


@dataclass(kw_only=True, eq=False, repr=False)
class DECCRL(ContrastiveMethod):
    """Deep Embedded Clustering with Cluster-level Representation Learning (Yin et al., COLING 2022).

    A linear layer behind the encoder gives each text a latent vector h (Eq. 1). Contrastive learning brings two views
    of a text together (Eq. 2-4), soft clustering brings each text towards its cluster (Eq. 5-9), and the centres must
    explain the words of their texts: an embedded topic model, whose topics are computed from the centres, reconstructs
    every text (Eq. 10-15). The result is the likeliest cluster (Eq. 5); every cluster comes with its topics.

    Parameters
    ----------
    n_clusters:
        How many clusters to make.
    temperature, alpha:
        tau of Eq. 2-3 and the degrees of freedom of Eq. 5.
    lambda_c, lambda_r:
        Weights of the clustering loss and of the topics in Eq. 16.
    lambda_l:
        Weight of the latent reconstruction (``variant="latent"``).
    variant:
        ``"topics"``; ``"none"``, "w/o CRL" of Table 3; ``"latent"``, "w/o CRL w LSR".
    n_topics:
        Topics per cluster (T).
    word_vectors:
        rho of Eq. 11: the ``"encoder"``'s own word embeddings, ``"learned"``, or ``"word2vec"`` trained on the
        corpus (needs the extra ``coterie[word2vec]``).
    min_df, max_df:
        The vocabulary: words in at least ``min_df`` texts and in at most a share ``max_df`` of them.
    stop_words:
        ``"english"`` excludes English stop words from the vocabulary; ``None`` excludes none.
    topic_learning_rate:
        Learning rate of the topic model.
    topic_steps:
        Steps in which the topic model is trained alone at the end, for readable ``topics_``; clusters do not change.
    printed_contrast:
        Eq. 2-3 as printed, whose denominator lacks the positive and half of the negatives.
    radius:
        Initial length of the latent vectors of unit vectors.
    augmentation, augmentation_ratio:
        Where the two views come from: see :class:`~coterie.methods.contrastive.ContrastiveMethod`.
    encoder, pooling, normalize, max_length, device:
        The pretrained encoder: see :class:`~coterie.methods.encoder_method.EncoderMethod`.
    training:
        Batch size, learning rates, step cap, stop: see :class:`~coterie.training.config.TrainingConfig`.
    random_state:
        Seed of everything.

    Attributes
    ----------
    labels_, confidence_, center_distance_, cluster_centers_, history_, notes_:
        See :class:`~coterie.methods.base.ClusteringMethod`; vectors and centres are in the latent space.
    topics_:
        For each cluster its topics, the most common first (Table 4): see
        :class:`~coterie.types.Topic`. Only with ``variant="topics"``.
    head_labels_, kmeans_labels_, initial_labels_:
        Eq. 5 (the same as ``labels_``), k-means on the trained h, k-means before training.
    snapshots_, timings_:
        The snapshots of ``training.snapshot_every``, and seconds per phase.

    Differs from the paper
    ----------------------
    - Misprints: Eq. 2-3 leave the positive out (``printed_contrast``; the default is NT-Xent with 2M - 2 negatives);
      Eq. 6, a softmax over probabilities, is nearly uniform, so a text is assigned to the largest o; the denominator
      of Eq. 7 sums o_ik'^2 / f_k'; Eq. 13 is log(beta_k theta_i).
    - Open in the paper: FC_e is linear to L = 150, started from the principal components of the frozen embeddings;
      a text is decoded by the mixture of the clusters' topics, weighted by o, which lets Eq. 15 reach the encoder;
      Eq. 15 is divided by the text's number of words; sigma is a log-variance; one hidden layer of 800.
    - Backbone all-MiniLM-L6-v2. On its unit vectors Eq. 5 with alpha 1 is nearly uniform: FC_e scales them to
      ``radius``, and ``alpha`` is larger.
    - Not printed: lambda_c 1, lambda_r 0.1, the topic model's rate of 1e-3, the vocabulary's limits (words of at least
      3 texts and at most half of them, without English stop words; Table 1's counts suggest hardly any limit).
    - rho from the encoder by default, centred and of unit length; word2vec is an extra. T is 5 for all data: the
      paper's 20 for Biomedical was read off labelled curves.
    - The topic model is trained alone for another ``topic_steps``: within the few hundred steps of training here, a
      cluster's topics hardly differ. This changes ``topics_`` and nothing else.
    - Views by word deletion, not by two masked language models; learning rate, epochs, length and batches
      (up to 400, not 200) as SCCL here.
    - Duplicate texts are used once, weighted by their count in every mean, in Eq. 7 and in document frequencies.
    The experiments/ folder holds the paper's own settings.

    Examples
    --------
    >>> from coterie import DECCRL, TrainingConfig
    >>> texts = ["late parcel", "parcel is late", "parcel late again", "forgot my password", "password reset"]
    >>> model = DECCRL(n_clusters=2, n_topics=1, min_df=2, max_df=0.9, training=TrainingConfig(max_steps=2)).fit(texts)
    >>> model.labels_
    array([0, 0, 0, 1, 1])
    >>> sorted(model.topics_[0][0].words)
    ['late', 'parcel', 'password']
    """

    temperature: float = 0.5
    alpha: float = 10.0
    lambda_c: float = 1.0
    lambda_r: float = 0.1
    lambda_l: float = 1.0
    variant: str = "topics"
    n_topics: int = 5
    word_vectors: str = "encoder"
    min_df: int = 3
    max_df: float = 0.5
    stop_words: str | None = "english"
    topic_learning_rate: float = 1e-3
    topic_steps: int = 1000
    printed_contrast: bool = False
    radius: float = 6.0
    training: TrainingConfig = TrainingConfig()

    topics_: list[list[Topic]] = field(init=False)

    def _check_settings(self) -> None:
        super()._check_settings()
        for name in ("temperature", "alpha", "radius", "topic_learning_rate"):
            check_number(name, getattr(self, name), above=0)
        for name in ("lambda_c", "lambda_r", "lambda_l"):
            check_number(name, getattr(self, name), least=0)
        check_choice("variant", self.variant, VARIANTS)
        check_choice("word_vectors", self.word_vectors, WORD_VECTORS)
        if self.word_vectors == "word2vec" and self.variant == "topics":
            check_word2vec()
        check_choice("stop_words", self.stop_words, (None, "english"))
        check_choice("printed_contrast", self.printed_contrast, (True, False))
        for name in ("n_topics", "min_df"):
            check_whole(name, getattr(self, name), least=1)
        check_whole("topic_steps", self.topic_steps, least=0)
        check_number("max_df", self.max_df, above=0)
        if self.max_df > 1:
            raise SettingError(f"max_df={self.max_df!r} must be a share, at most 1")

    def _attach(self, start: TrainingStart) -> TrainingStart:
        """Add FC_e, initialised with the principal components of the embeddings; return the state in its space."""
        layer = principal_components(start.embeddings, start.counts, LATENT)
        scale = self.radius if start.encoder.settings.normalize else 1.0
        with torch.no_grad():
            for parameter in layer.parameters():
                parameter.mul_(scale)
            latent = layer(torch.from_numpy(start.embeddings)).numpy()
            centers = layer(start.centers)
        start.encoder.project(layer)
        return replace(start, embeddings=latent, centers=centers)

    def _stages(self, start: TrainingStart) -> list[Stage]:
        latent = start.encoder.dimension
        projector = Projector(latent, start.generator)
        guide: nn.Module | None = None
        if self.variant == "topics":
            guide = self._topic_model(start, latent)
        elif self.variant == "latent":
            guide = LatentReconstruction(latent, start.generator)
        return [Stage("deccrl", DECCRLObjective(self, start.centers, projector, guide), by_head=True)]

    def _topic_model(self, start: TrainingStart, latent: int) -> EmbeddedTopics:
        counts = WordCounts.of(
            start.corpus.distinct, start.counts, min_df=self.min_df, max_df=self.max_df, stop_words=self.stop_words
        )
        without = float(start.counts[counts.counts.sum(axis=1) == 0].sum() / start.counts.sum())
        if without:
            self._note(f"{without:.1%} of the texts hold no word of the vocabulary and are not used to learn topics")
        if self.word_vectors == "encoder":
            vectors = torch.from_numpy(encoder_word_vectors(start.encoder, counts.vocabulary))
        elif self.word_vectors == "word2vec":
            vectors = torch.from_numpy(word2vec_vectors(counts.sentences, counts.vocabulary, WORD_WIDTH, start.seed))
        else:
            vectors = torch.randn(len(counts.vocabulary), WORD_WIDTH, generator=start.generator) * WORD_WIDTH**-0.5
        return EmbeddedTopics(counts, vectors, self.word_vectors == "learned", latent, self.n_topics, start.generator)

    def _conclude(self, start: TrainingStart, objective: Objective, embeddings: Tensor, final: Partition) -> Learned:
        assert isinstance(objective, DECCRLObjective)
        if isinstance(objective.guide, EmbeddedTopics):
            self._train_topics(start, objective, objective.guide, embeddings)
            labels = torch.tensor(head_labels(objective, embeddings), device=embeddings.device)  # in place of Eq. 6
            weights = torch.tensor(start.counts, device=embeddings.device)
            self.topics_ = objective.guide.topics(objective.centers, labels, weights)
        centers = objective.centers.detach().cpu().numpy()
        features = embeddings.cpu().numpy()
        return Learned(features, centers, initial_labels=start.labels, kmeans_labels=final.labels)

    def _train_topics(
        self, start: TrainingStart, objective: DECCRLObjective, guide: EmbeddedTopics, embeddings: Tensor
    ) -> None:
        """Train the topic model alone for some seconds: the run ends long before a cluster's topics differ."""
        if not self.topic_steps or self.history_.interrupted:
            return
        with torch.no_grad():
            assignments = objective.head_probabilities(embeddings)
        alone = TopicsAlone(guide, objective.centers, assignments, self.topic_learning_rate)
        views = Views(start.encoder, start.corpus.distinct, start.tokens, {}, start.seed)
        trainer = Trainer(start.encoder, views, start.tokens, start.counts, self.training, None, start.seed)
        trainer.run([Stage("topics", alone)], cap=self.topic_steps)

    def cluster_topics(self) -> list[list[Topic]] | None:
        return vars(self).get("topics_")

    def _probabilities(self, distances: NDArray[np.float64]) -> NDArray[np.float64]:
        return student_t_from_distances(distances, self.alpha)  # Eq. 5

    def _reorder_head(self, order: NDArray[np.int64]) -> None:
        if "topics_" in vars(self):
            self.topics_ = [self.topics_[k] for k in order]

    def _save_parts(self, folder: Path) -> dict[str, Any]:
        parts = super()._save_parts(folder)
        if "topics_" not in vars(self):
            return parts
        return {**parts, "topics": [[asdict(topic) for topic in cluster] for cluster in self.topics_]}

    def _restore_parts(
        self, folder: Path, state: Mapping[str, NDArray[Any]], extra: Mapping[str, Any], device: str
    ) -> None:
        super()._restore_parts(folder, state, extra, device)
        if "topics" in extra:
            self.topics_ = [
                [Topic(tuple(t["words"]), tuple(t["probabilities"]), t["share"]) for t in cluster]
                for cluster in extra["topics"]
            ]
