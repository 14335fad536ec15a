"""ClusterBERT: denoising, clustering with re-clustering, hardening."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.special import softmax
from torch import Tensor, nn

from coterie.checks import check_choice, check_number, check_whole
from coterie.clustering.assignment import target_distribution
from coterie.encoders.transformer import TransformerEncoder
from coterie.errors import InputError, SettingError
from coterie.language.denoising import NOISED, Reconstruction, SentenceDecoder, check_decoder, warming
from coterie.losses.nt_xent import weighted_mean
from coterie.methods.trained import TrainedMethod, TrainingStart
from coterie.text.augmentation.base import Augmenter
from coterie.text.augmentation.word_deletion import WordDeletion
from coterie.training.config import TrainingConfig
from coterie.training.objective import Batch, EmbedCorpus, LossTerms, Stage


class ClusterPrediction(Reconstruction):
    """Clustering (section 3.3) and, with ``hardens``, hardening (section 3.4): Eq. 4 with targets Q.

    All such stages share ``head``; a clustering stage (or hardening, where there is none) resets it to the centres of
    its own k-means.
    """

    def __init__(
        self,
        decoder: SentenceDecoder,
        head: nn.Linear,
        start: TrainingStart,
        balance: float,
        hardens: bool,
        radius: float,
        rates: tuple[float, float],
        places_head: bool = False,
    ) -> None:
        super().__init__(decoder, rates[0])
        self.head = head
        self.balance = balance
        self.hardens = hardens
        self.places_head = places_head or not hardens
        self.radius = radius
        self._start = start
        self._head_rate = rates[1]
        self.register_buffer("counts", torch.tensor(start.counts), persistent=False)
        self.register_buffer("targets", torch.zeros(len(start.counts), start.n_clusters), persistent=False)
        self.counts: Tensor
        self.targets: Tensor

    def own_rates(self) -> Mapping[str, float]:
        return {**super().own_rates(), "head": self._head_rate}

    @torch.no_grad()
    def start(self, embed_corpus: EmbedCorpus) -> None:
        """Set k-means labels as targets and the head to the centres of that k-means."""
        if self.places_head:
            partition = self._start.recluster(embed_corpus())
            labels = torch.from_numpy(partition.labels).to(self.targets.device)
            self.targets = nn.functional.one_hot(labels, self._start.n_clusters).to(self.targets.dtype)
            place_head(self.head, self.radius * torch.from_numpy(partition.centers))

    @torch.no_grad()
    def refresh(self, embed_corpus: EmbedCorpus) -> None:
        """Set the targets of hardening: the head's sharpened predictions for the unchanged texts, once per epoch."""
        if self.hardens:
            self.targets = target_distribution(self.head_probabilities(embed_corpus()), self.counts)  # Eq. 5

    def head_probabilities(self, embeddings: Tensor) -> Tensor:
        return self.head(self.radius * embeddings).softmax(dim=-1)  # Eq. 2

    def loss(self, batch: Batch) -> LossTerms:
        logits = self.head(self.radius * batch.embeddings[0])
        cluster = soft_cross_entropy(logits, self.targets[batch.rows], batch.weights)  # Eq. 3
        if self.balance == 1:
            return LossTerms(cluster, cluster=cluster)
        reconstruction = self.reconstruct(batch)
        total = self.balance * cluster + (1 - self.balance) * reconstruction  # Eq. 4
        return LossTerms(total, cluster=cluster, reconstruction=reconstruction)


def soft_cross_entropy(logits: Tensor, targets: Tensor, weights: Tensor) -> Tensor:
    """Return the mean over texts of the cross entropy with soft targets (Eq. 3)."""
    return weighted_mean(-(targets * logits.log_softmax(dim=-1)).sum(dim=-1), weights)


@torch.no_grad()
def place_head(head: nn.Linear, centers: Tensor) -> None:
    """Set a linear head so that its argmax is the nearest centre: w_k = mu_k, b_k = -|mu_k|^2 / 2."""
    head.weight.copy_(centers)
    head.bias.copy_(-centers.square().sum(dim=1) / 2)


@dataclass(kw_only=True, eq=False, repr=False)
class ClusterBERT(TrainedMethod):
    """ClusterBERT (anonymous, under review 2022): three stages that turn an encoder into a cluster encoder.

    First the encoder adapts to the corpus as a denoising auto-encoder (Eq. 1): words are deleted, and a decoder
    reconstructs the text from the sentence vector alone. Then a linear head learns k-means labels from the noised text,
    beside the reconstruction (Eq. 2-4), with new k-means labels several times. Last, the targets are the head's own
    sharpened predictions (Eq. 5). The result is k-means on the trained embeddings, as in the
    paper; the head's own answer is kept as ``head_labels_``.

    Parameters
    ----------
    n_clusters:
        How many clusters to make.
    decoder_epochs:
        Epochs before the first stage in which only the decoder's own parameters learn, with the encoder frozen.
    adaptation_epochs, clustering_epochs, hardening_epochs:
        Epochs of the three stages; those of clustering apply to each re-clustering. 0 skips a stage. Where ``training``
        limits the run further, all stages shrink in proportion.
    reclusterings:
        How often k-means is run in the clustering stage.
    clustering_lambda, hardening_lambda:
        Share of the clustering loss in Eq. 4, in each of the two stages.
    reconstruction:
        ``False`` sets both shares to 1 (section 4.4, "without reconstruction"); the first stage is unchanged.
    noise:
        Share of the words that are deleted.
    radius:
        For encoders that normalise: length of the embeddings that the head gets.
    pretrain_corpus:
        A file of general sentences, one per row, for a first stage of adaptation (the paper's backbone was adapted to a
        million sentences of Wikipedia). ``None``: no such stage. Its steps are not part of ``history_``.
    final_kmeans:
        ``"continued"`` starts the final k-means from the centres before training, ``"fresh"`` from ten random starts;
        ``"best"`` takes the one of lower inertia.
    encoder, pooling, normalize, max_length, device:
        The pretrained encoder: see :class:`~coterie.methods.encoder_method.EncoderMethod`.
    training:
        Batch size, learning rates, step cap: see :class:`~coterie.training.config.TrainingConfig`. The stages have
        fixed lengths: the label-free stop is not used. A configuration of your own replaces all of the method's;
        ``set_params(training__max_steps=4)`` changes one.
    random_state:
        Seed of everything.

    Attributes
    ----------
    labels_, confidence_, center_distance_, cluster_centers_, history_, notes_:
        See :class:`~coterie.methods.base.ClusteringMethod`.
    kmeans_labels_, head_labels_, initial_labels_:
        k-means on the final embeddings (the same as ``labels_``), the trained head's answer, k-means before training.
    snapshots_, timings_:
        The snapshots of ``training.snapshot_every`` and of the end of each stage, and seconds per phase.

    Differs from the paper
    ----------------------
    - Backbone all-MiniLM-L6-v2 with its own pooling, not CLS of a roberta-base that TSDAE had trained on Wikipedia;
      ``pretrain_corpus`` adds that stage.
    - The decoder's own parts (attention to the sentence, output layer) have random initial weights: they learn alone
      for ``decoder_epochs`` first, so that their first errors do not change the encoder.
    - The head starts from the k-means centres (the paper does not say), with a learning rate of its own
      (``training.head_learning_rate``), and gets unit vectors scaled to ``radius``.
    - A rate of 5e-6, not 2e-5: the more this encoder changes, the more it forgets of its pretraining
      (benchmarks/results/papers_trials.json). Batches of 128, not 8, and at most 1,000 steps, for time. Every stage
      has an optimiser of its own. Eq. 1 is a mean over tokens, not over texts. Numbers of epochs are fixed for all
      data, where the paper reports the best result on the labelled training set. Length 64.
    - Duplicate texts are used once, weighted by their count in every mean and in Eq. 5.
    The experiments/ folder holds the paper's own settings.

    Examples
    --------
    >>> from coterie import ClusterBERT
    >>> texts = ["late parcel", "parcel is late", "parcel late again", "forgot my password", "password reset"]
    >>> model = ClusterBERT(n_clusters=2).set_params(training__max_steps=5).fit(texts)
    >>> model.labels_
    array([0, 0, 0, 1, 1])
    """

    decoder_epochs: int = 1
    adaptation_epochs: int = 2
    clustering_epochs: int = 2
    hardening_epochs: int = 2
    reclusterings: int = 2
    clustering_lambda: float = 0.8
    hardening_lambda: float = 0.75
    reconstruction: bool = True
    noise: float = 0.6
    radius: float = 6.0
    pretrain_corpus: str | None = None
    final_kmeans: str = "best"
    training: TrainingConfig = TrainingConfig(
        max_epochs=9, max_steps=1000, batch_size=128, learning_rate=5e-6, head_learning_rate=1e-3
    )

    def _check_settings(self) -> None:
        super()._check_settings()
        for name in ("decoder_epochs", "adaptation_epochs", "clustering_epochs", "hardening_epochs"):
            check_whole(name, getattr(self, name), least=0)
        check_whole("reclusterings", self.reclusterings, least=1)
        for name in ("clustering_lambda", "hardening_lambda"):
            check_number(name, getattr(self, name), least=0)
            if getattr(self, name) > 1:
                raise SettingError(f"{name}={getattr(self, name)!r} must be a number from 0 to 1")
        check_choice("reconstruction", self.reconstruction, (True, False))
        check_number("noise", self.noise, above=0, below=1)
        check_number("radius", self.radius, above=0)
        if self.pretrain_corpus is not None and not isinstance(self.pretrain_corpus, str):
            raise SettingError(f"pretrain_corpus={self.pretrain_corpus!r} must be the path of a file, or None")
        if self.pretrain_corpus is not None and not Path(self.pretrain_corpus).is_file():
            raise InputError(f"pretrain_corpus={self.pretrain_corpus!r}: no such file")
        if not self.adaptation_epochs + self.clustering_epochs + self.hardening_epochs:
            raise SettingError("adaptation_epochs, clustering_epochs and hardening_epochs are all 0: nothing to train")

    def _check_backbone(self, encoder: TransformerEncoder) -> None:
        check_decoder(encoder)

    def _augmenters(self) -> dict[str, Augmenter]:
        return {NOISED: WordDeletion(self.noise)}

    def _stages(self, start: TrainingStart) -> list[Stage]:
        decoder = SentenceDecoder(start.encoder, start.seed)
        rates = (self.training.learning_rate, self.training.head_learning_rate)
        self._train_on_general_corpus(start, decoder)
        head = nn.utils.skip_init(nn.Linear, start.encoder.dimension, start.n_clusters)
        place_head(head, self._radius * start.centers)

        def prediction(balance: float, hardens: bool) -> ClusterPrediction:
            share = balance if self.reconstruction else 1.0
            unplaced = not self.clustering_epochs
            return ClusterPrediction(decoder, head, start, share, hardens, self._radius, rates, places_head=unplaced)

        stages = [self._warming(decoder)]
        stages += [Stage("adaptation", Reconstruction(decoder, rates[0]), epochs=self.adaptation_epochs, stops=False)]
        for _ in range(self.reclusterings):
            clustering = prediction(self.clustering_lambda, hardens=False)
            stages.append(Stage("clustering", clustering, epochs=self.clustering_epochs, stops=False))
        hardening = prediction(self.hardening_lambda, hardens=True)
        stages.append(Stage("hardening", hardening, epochs=self.hardening_epochs, stops=False))
        return [stage for stage in stages if stage.epochs]

    def _warming(self, decoder: SentenceDecoder) -> Stage:
        """Return the stage in which the decoder's own parts learn alone."""
        return warming(decoder, self.training.head_learning_rate, self.decoder_epochs)

    def _train_on_general_corpus(self, start: TrainingStart, decoder: SentenceDecoder) -> None:
        """Train one epoch of Eq. 1 on the general sentences of ``pretrain_corpus``, if it is given."""
        from coterie.text.reading import read_corpus
        from coterie.training.trainer import Trainer
        from coterie.training.views import Views

        if self.pretrain_corpus is None:
            self._note("no general TSDAE stage: pretrain_corpus is None")
            return
        corpus = read_corpus(self.pretrain_corpus)
        tokens = start.encoder.tokenize(corpus.distinct)
        views = Views(start.encoder, corpus.distinct, tokens, self._augmenters(), start.seed)
        trainer = Trainer(start.encoder, views, tokens, corpus.counts, self.training, None, start.seed)
        general = Stage("general", Reconstruction(decoder, self.training.learning_rate), epochs=1)
        stages = [stage for stage in (self._warming(decoder), general) if stage.epochs]
        history = trainer.run(stages, cap=trainer.steps_per_epoch * len(stages))
        if history.interrupted:
            raise KeyboardInterrupt  # nothing is learned from the texts themselves yet
        self._note(f"general TSDAE stage: {len(history.steps)} steps over {len(corpus.distinct):,} sentences")

    def _probabilities(self, distances: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return Eq. 2 with the head set to the final centres: its argmax is the nearest centre."""
        return np.asarray(softmax(-(self._radius**2) * distances / 2, axis=-1))
