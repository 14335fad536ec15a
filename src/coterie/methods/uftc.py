"""UFTC: masked language modelling and clustering, trained together."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from coterie.checks import check_choice, check_number, check_whole
from coterie.clustering.assignment import student_t, student_t_from_distances, target_distribution
from coterie.clustering.partition import Partition
from coterie.encoders.transformer import TransformerEncoder
from coterie.language.masked_head import MaskedHead, check_mask_token
from coterie.language.masked_training import HeadTraining, MaskedWords
from coterie.losses.kl_divergence import kl_divergence
from coterie.methods.results import Learned
from coterie.methods.trained import TrainedMethod, TrainingStart
from coterie.training.config import TrainingConfig
from coterie.training.objective import ORIGINAL, Batch, EmbedCorpus, LossTerms, Objective, Stage

# Epochs: one for the masked-language head, and the paper's ten.
EPOCHS = 11


class UFTCObjective(Objective):
    """Eq. 1: the masked-language loss and the clustering loss, from one pass over masked texts."""

    views = (ORIGINAL,)
    needs_token_states = True

    def __init__(
        self, centers: Tensor, counts: Tensor, alpha: float, radius: float, masked: MaskedWords | None
    ) -> None:
        super().__init__()
        self.centers = nn.Parameter(radius * centers)
        self.alpha = alpha
        self.radius = radius
        self.masked = masked
        self.register_buffer("counts", counts, persistent=False)
        self.register_buffer("targets", torch.zeros(len(counts), len(centers)), persistent=False)
        self.counts: Tensor
        self.targets: Tensor

    def corrupt(self, ids: Tensor, mask: Tensor) -> Tensor:
        return ids if self.masked is None else self.masked.mask(ids)

    def refresh(self, embed_corpus: EmbedCorpus) -> None:
        """Recompute the targets P once per epoch, over the whole corpus without masks (section 2.2)."""
        with torch.no_grad():
            self.targets = target_distribution(self.head_probabilities(embed_corpus()), self.counts)  # Eq. 5

    def head_probabilities(self, embeddings: Tensor) -> Tensor:
        return student_t(self.radius * embeddings, self.centers, self.alpha)  # Eq. 3

    def loss(self, batch: Batch) -> LossTerms:
        q = self.head_probabilities(batch.embeddings[0])  # Eq. 3
        cluster = kl_divergence(self.targets[batch.rows], q, batch.weights)  # Eq. 2
        if self.masked is None:
            return LossTerms(cluster, cluster=cluster)
        language = self.masked.loss(batch.token_views[0], batch.weights)
        return LossTerms(language + cluster, language=language, cluster=cluster)  # Eq. 1


@dataclass(kw_only=True, eq=False, repr=False)
class UFTC(TrainedMethod):
    """Unsupervised Fine-tuning for Text Clustering (Huang et al., COLING 2020).

    The encoder continues its pretraining, predicting masked words of the corpus, while a clustering loss pulls each
    sentence vector towards its nearest cluster (Eq. 1-3). The targets are computed once per epoch from the unmasked
    texts (Eq. 5). The result is the cluster of the highest assignment (Eq. 4); k-means on the trained
    embeddings is kept as ``kmeans_labels_``.

    Parameters
    ----------
    n_clusters:
        How many clusters to make.
    alpha:
        Degrees of freedom of Eq. 3.
    radius:
        For encoders that normalise: length of the embeddings that the clustering loss gets.
    masked_loss:
        ``False`` omits the masked-language loss (Table 2, "w/o masked LM loss"); nothing is masked then.
    mask_ratio:
        Share of the tokens that are masked.
    head_epochs:
        Epochs to train the masked-language head, with the encoder frozen, where the model has none.
    encoder, pooling, normalize, max_length, device:
        The pretrained encoder: see :class:`~coterie.methods.encoder_method.EncoderMethod`. ``pooling="cls"`` is the
        paper's "w/o average pooling".
    training:
        Batch size, learning rates, step cap, stop: see :class:`~coterie.training.config.TrainingConfig`;
        ``max_epochs`` counts ``head_epochs`` too, whether or not a head must be trained. A configuration of your own
        replaces all of the method's; ``set_params(training__max_steps=4)`` changes one.
    random_state:
        Seed of everything.

    Attributes
    ----------
    labels_, confidence_, center_distance_, cluster_centers_, history_, notes_:
        See :class:`~coterie.methods.base.ClusteringMethod`; the centres are the trained ones of Eq. 3.
    head_labels_, kmeans_labels_, initial_labels_:
        Eq. 4 (the same as ``labels_``), k-means on the trained embeddings, k-means before training.
    snapshots_, timings_:
        The snapshots of ``training.snapshot_every``, and seconds per phase.

    Differs from the paper
    ----------------------
    - Backbone all-MiniLM-L6-v2, not bert-base-uncased. It has no masked-language head: one (dense, norm, tied to
      the word embeddings) is trained for ``head_epochs`` with the encoder frozen. A model with a head keeps it.
    - On unit vectors Eq. 3 with alpha 1 is nearly uniform, so the loss gets them scaled to ``radius``, with a larger
      ``alpha``. ``normalize=False, alpha=1`` is the paper's form.
    - Eq. 2 is a mean over the batch, not a sum over the corpus. One masked pass serves both losses, and a masked
      token always becomes the mask token.
    - Adam (the paper does not say) at the paper's rate, centres at 5e-4; batches of 128, not 16, and at most 1,000
      steps, for time; length 64. The label-free stop follows the labels of Eq. 4.
    - Duplicate texts are used once, weighted by their count in every mean and in Eq. 5.
    The experiments/ folder holds the paper's own settings.

    Examples
    --------
    >>> from coterie import UFTC
    >>> texts = ["late parcel", "parcel is late", "parcel late again", "forgot my password", "password reset"]
    >>> model = UFTC(n_clusters=2).set_params(training__max_steps=4).fit(texts)
    >>> model.labels_
    array([0, 0, 0, 1, 1])
    """

    alpha: float = 10.0
    radius: float = 6.0
    masked_loss: bool = True
    mask_ratio: float = 0.1
    head_epochs: int = 1
    training: TrainingConfig = TrainingConfig(
        max_epochs=EPOCHS, max_steps=1000, batch_size=128, learning_rate=3e-5, tolerance=0.001
    )

    def _check_settings(self) -> None:
        super()._check_settings()
        for name in ("alpha", "radius"):
            check_number(name, getattr(self, name), above=0)
        check_choice("masked_loss", self.masked_loss, (True, False))
        check_number("mask_ratio", self.mask_ratio, above=0, below=1)
        check_whole("head_epochs", self.head_epochs, least=0)

    def _check_backbone(self, encoder: TransformerEncoder) -> None:
        if self.masked_loss:
            check_mask_token(encoder)

    def _stages(self, start: TrainingStart) -> list[Stage]:
        stages = []
        masked = None
        if self.masked_loss:
            head, trained = MaskedHead.for_encoder(start.encoder, start.generator)
            masked = MaskedWords(start.encoder, head, self.mask_ratio)
            if not trained and self.head_epochs:
                self._note(f"the encoder has no masked-language head: one is trained for {self.head_epochs} epoch(s)")
                stages.append(Stage("masked_head", HeadTraining(masked), epochs=self.head_epochs, stops=False))
        counts = torch.tensor(start.counts)
        joint = UFTCObjective(start.centers, counts, self.alpha, self._radius, masked)
        # The joint stage has the same length with and without a head to train.
        rest = max(1, (self.training.max_epochs or EPOCHS) - self.head_epochs)
        return [*stages, Stage("joint", joint, epochs=rest, by_head=True)]

    def _conclude(self, start: TrainingStart, objective: Objective, embeddings: Tensor, final: Partition) -> Learned:
        if not isinstance(objective, UFTCObjective):  # interrupted while the head was being trained
            return super()._conclude(start, objective, embeddings, final)
        centers = (objective.centers.detach() / objective.radius).cpu().numpy()
        features = embeddings.cpu().numpy()
        return Learned(
            features, centers, initial_labels=start.labels, kmeans_labels=final.labels
        )  # Eq. 4: nearest centre

    def _probabilities(self, distances: NDArray[np.float64]) -> NDArray[np.float64]:
        return student_t_from_distances(self._radius**2 * distances, self.alpha)  # Eq. 3
