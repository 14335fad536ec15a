"""SCCL: contrastive learning and clustering, trained together."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from coterie.clustering.assignment import squared_distances, student_t, target_distribution
from coterie.clustering.kmeans import kmeans
from coterie.encoders.weights import DEFAULT_MODEL
from coterie.errors import SettingError
from coterie.losses.kl_divergence import kl_divergence
from coterie.losses.nt_xent import nt_xent
from coterie.methods.training import TrainedMethod
from coterie.training.config import TrainingConfig
from coterie.training.objective import ORIGINAL, Batch, EmbedCorpus, LossTerms, Objective, Stage

VARIANTS = ("joint", "instance", "cluster", "sequential", "alternative_1", "alternative_2")
PAIR = ("augmented_1", "augmented_2")


class Projector(nn.Sequential):
    """The head g: one hidden layer of the encoder's width, 128 outputs (section 4, Implementation)."""

    def __init__(self, dimension: int, generator: torch.Generator, output: int = 128) -> None:
        layers = nn.Linear(dimension, dimension), nn.Linear(dimension, output)
        for layer in layers:
            # As nn.Linear does, from our own generator.
            bound = dimension**-0.5
            nn.init.uniform_(layer.weight, -bound, bound, generator=generator)
            nn.init.uniform_(layer.bias, -bound, bound, generator=generator)
        super().__init__(layers[0], nn.ReLU(), layers[1])


class InstanceCL(Objective):
    """Instance-CL alone (Eq. 1-2)."""

    views: tuple[str, ...] = PAIR

    def __init__(self, projector: Projector, temperature: float, eta: float) -> None:
        super().__init__()
        self.projector = projector
        self.temperature = temperature
        self.eta = eta

    def contrast(self, first: Tensor, second: Tensor, weights: Tensor) -> Tensor:
        return nt_xent(self.projector(first), self.projector(second), self.temperature, weights)  # Eq. 1-2

    def loss(self, batch: Batch) -> LossTerms:
        first, second = batch.embeddings
        instance = self.contrast(first, second, batch.weights)
        return LossTerms(total=self.eta * instance, instance=instance)


class Clustering(Objective):
    """The clustering loss alone (Eq. 3-6), on the original texts."""

    views: tuple[str, ...] = (ORIGINAL,)

    def __init__(self, centers: Tensor, alpha: float, refit_seed: int | None = None) -> None:
        super().__init__()
        self.centers = nn.Parameter(centers.clone())
        self.alpha = alpha
        self._refit_seed = refit_seed

    def start(self, embed_corpus: EmbedCorpus) -> None:
        """SCCL-Seq places the centres anew on what Instance-CL has learned."""
        if self._refit_seed is not None:
            embeddings = embed_corpus().cpu().numpy()
            partition = kmeans(embeddings, len(self.centers), seed=self._refit_seed)
            self.centers.data.copy_(torch.from_numpy(partition.centers))

    def assign(self, embeddings: Tensor) -> Tensor:
        return student_t(embeddings, self.centers, self.alpha)  # Eq. 3

    def cluster_loss(self, embeddings: Tensor, weights: Tensor) -> Tensor:
        q = self.assign(embeddings)
        p = target_distribution(q, weights).detach()  # Eq. 4
        return kl_divergence(p, q, weights)  # Eq. 5-6

    def loss(self, batch: Batch) -> LossTerms:
        cluster = self.cluster_loss(batch.embeddings[0], batch.weights)
        return LossTerms(total=cluster, cluster=cluster)


class SCCLObjective(InstanceCL):
    """Both at once (Eq. 7), with the clustering loss of section 3.2 or of appendix A.3."""

    def __init__(
        self, projector: Projector, clustering: Clustering, temperature: float, eta: float, variant: str, virtual: bool
    ) -> None:
        super().__init__(projector, temperature, eta)
        self.clustering = clustering
        self.variant = variant
        self.virtual = virtual
        pair = (ORIGINAL, ORIGINAL) if virtual else PAIR
        # A dropout view of the original is an original: the virtual joint form needs no third pass.
        has_anchor = variant == "alternative_2" or (variant == "joint" and not virtual)
        self.views = (ORIGINAL, *pair) if has_anchor else pair

    def loss(self, batch: Batch) -> LossTerms:
        weights = batch.weights
        *anchors, first, second = batch.embeddings
        instance = self.contrast(first, second, weights)  # Eq. 1-2
        if self.variant == "alternative_1":
            cluster = self._swapped(first, second, weights)  # Eq. 8
        elif self.variant == "alternative_2":
            cluster = self._anchored(anchors[0], first, second, weights)  # Eq. 9
        elif self.virtual:
            cluster = self.clustering.cluster_loss(first, weights) / 2  # Eq. 3-6, halved as in the public code
        else:
            cluster = self.clustering.cluster_loss(anchors[0], weights)  # Eq. 3-6
        return LossTerms(total=self.eta * instance + cluster, instance=instance, cluster=cluster)  # Eq. 7

    def _swapped(self, first: Tensor, second: Tensor, weights: Tensor) -> Tensor:
        q1, q2 = self.clustering.assign(first), self.clustering.assign(second)  # Eq. 3
        p1, p2 = target_distribution(q1, weights).detach(), target_distribution(q2, weights).detach()  # Eq. 4
        return kl_divergence(p1, q2, weights) + kl_divergence(p2, q1, weights)  # Eq. 8

    def _anchored(self, anchor: Tensor, first: Tensor, second: Tensor, weights: Tensor) -> Tensor:
        p0 = target_distribution(self.clustering.assign(anchor), weights).detach()  # Eq. 3-4
        q1, q2 = self.clustering.assign(first), self.clustering.assign(second)  # Eq. 3
        return kl_divergence(p0, q1, weights) + kl_divergence(p0, q2, weights)  # Eq. 9


class SCCL(TrainedMethod):
    """Supporting Clustering with Contrastive Learning (Zhang et al., NAACL 2021).

    The encoder learns from two losses at once: an instance-wise contrastive loss on two views of each text
    spreads texts apart (Eq. 1-2), and a clustering loss on the originals pulls each text towards the centre it is
    already nearest to (Eq. 3-6); their sum is Eq. 7. The result is k-means on the trained embeddings, as in the
    paper (A.1); the clustering head's own answer is kept as ``head_labels_``.

    Parameters
    ----------
    n_clusters:
        How many clusters to make.
    temperature, eta, alpha:
        tau of Eq. 1, the weight of the contrastive term in Eq. 7, the degrees of freedom of Eq. 3.
    variant:
        ``"joint"`` (Eq. 7); ``"instance"`` and ``"cluster"``, one loss alone; ``"sequential"`` (SCCL-Seq:
        half the steps each, centres placed anew in between); ``"alternative_1"`` and ``"alternative_2"``, the
        clustering losses of A.3 (Eq. 8 and 9).
    augmentation:
        Where the two views come from: ``"word_deletion"``, or ``"virtual"`` (dropout alone).
    augmentation_ratio:
        Share of words that word deletion leaves out.
    final_kmeans:
        ``"continued"`` starts the last k-means from the centres followed through training; ``"fresh"`` restarts
        it ten times from random centres.
    encoder, pooling, normalize, max_length, device:
        Which encoder and how: see :class:`~coterie.methods.encoding.EncoderMethod`.
    training:
        Batch size, learning rates, step cap, stop: see :class:`~coterie.training.config.TrainingConfig`.
    random_state:
        Seed of everything; the same seed gives the same clusters.

    Attributes
    ----------
    labels_, confidence_, cluster_centers_, history_, notes_:
        See :class:`~coterie.methods.base.ClusteringMethod`.
    kmeans_labels_, head_labels_:
        k-means on the final embeddings (the same as ``labels_``), and argmax of Eq. 3 with the trained centres.
    initial_labels_:
        k-means on the embeddings before training: the start, and the frozen baseline.
    head_centers_:
        The trained centres of Eq. 3.

    Differs from the paper
    ----------------------
    - Backbone all-MiniLM-L6-v2 with its own normalisation, not distilbert-base-nli-stsb-mean-tokens: smaller,
      better, and available offline. Texts are cut at 64 tokens, not 32, which would cut a quarter of AgNews.
    - Views by word deletion (drawn anew every epoch) instead of contextual substitution; virtual views are not in
      the paper and came with its public code, whose halved clustering term is kept for them.
    - Training stops when labels settle; the paper trains for a number of epochs it does not tie to anything
      observable without labels.
    - Duplicate texts are used once, weighted by their count, in both losses, in Eq. 4 and in k-means.

    Examples
    --------
    >>> from coterie import SCCL, TrainingConfig
    >>> texts = ["late parcel", "parcel is late", "forgot my password", "password reset", "late again", "new password"]
    >>> model = SCCL(n_clusters=2, training=TrainingConfig(max_steps=2, batch_size=6)).fit(texts)
    >>> model.labels_
    array([0, 0, 1, 1, 0, 1])
    >>> int(model.predict(["my parcel"])[0])
    0
    """

    def __init__(
        self,
        n_clusters: int,
        *,
        temperature: float = 0.5,
        eta: float = 10.0,
        alpha: float = 1.0,
        variant: str = "joint",
        augmentation: str = "word_deletion",
        augmentation_ratio: float = 0.2,
        final_kmeans: str = "continued",
        encoder: str = DEFAULT_MODEL,
        pooling: str = "auto",
        normalize: bool | str = "auto",
        max_length: int = 64,
        device: str = "auto",
        training: TrainingConfig = TrainingConfig(),  # noqa: B008 (immutable)
        random_state: int | None = 0,
    ) -> None:
        self.n_clusters = n_clusters
        self.temperature = temperature
        self.eta = eta
        self.alpha = alpha
        self.variant = variant
        self.augmentation = augmentation
        self.augmentation_ratio = augmentation_ratio
        self.final_kmeans = final_kmeans
        self.encoder = encoder
        self.pooling = pooling
        self.normalize = normalize
        self.max_length = max_length
        self.device = device
        self.training = training
        self.random_state = random_state

    def _check_settings(self) -> None:
        super()._check_settings()
        if self.variant not in VARIANTS:
            raise SettingError(f"variant={self.variant!r} is unknown; use one of {', '.join(VARIANTS)}")
        for name in ("temperature", "alpha"):
            if not getattr(self, name) > 0:
                raise SettingError(f"{name}={getattr(self, name)} must be above 0")
        if self.eta < 0:
            raise SettingError(f"eta={self.eta} must not be below 0")

    def _stages(self, centers: Tensor, generator: torch.Generator) -> list[Stage]:
        dimension = centers.shape[1]
        virtual = self.augmentation == "virtual"
        if self.variant == "cluster":
            return [Stage("cluster", Clustering(centers, self.alpha))]
        projector = Projector(dimension, generator)
        if self.variant in {"instance", "sequential"}:
            instance = InstanceCL(projector, self.temperature, self.eta)
            if virtual:
                instance.views = (ORIGINAL, ORIGINAL)
            if self.variant == "instance":
                return [Stage("instance", instance)]
            clustering = Clustering(centers, self.alpha, refit_seed=self.seed)
            return [Stage("instance", instance, share=0.5), Stage("cluster", clustering, share=0.5)]
        joint = SCCLObjective(
            projector, Clustering(centers, self.alpha), self.temperature, self.eta, self.variant, virtual
        )
        return [Stage("sccl", joint)]

    def _head_centers(self, objective: Objective) -> NDArray[np.float32] | None:
        for module in objective.modules():
            if isinstance(module, Clustering):
                return module.centers.detach().cpu().numpy()
        return None  # Instance-CL alone has no clustering head

    def _head_labels(self, embeddings: NDArray[np.float32], centers: NDArray[np.float32]) -> NDArray[np.int64]:
        return squared_distances(embeddings, centers).argmin(axis=1)  # argmax of Eq. 3

    def _state(self) -> dict[str, NDArray[Any]]:
        return {} if self.head_centers_ is None else {"head_centers": self.head_centers_}

    def _restore_state(self, state: Mapping[str, NDArray[Any]]) -> None:
        self.head_centers_ = state.get("head_centers")
