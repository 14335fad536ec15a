"""AECL: contrastive learning guided by attention between texts, with a clustering head and pseudo-labels."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from coterie.checks import check_choice, check_number, check_whole
from coterie.clustering.kmeans import centroids
from coterie.clustering.partition import Partition
from coterie.losses.nt_xent import weighted_mean
from coterie.methods.aecl.losses import (
    balance_penalty,
    cluster_contrast,
    confidence_contrast,
    mean_entropy,
    pseudo_label_loss,
    similarity_guided,
)
from coterie.methods.aecl.networks import ATTENTIONS, AttentionHead, PseudoLabels
from coterie.methods.contrastive import ContrastiveMethod
from coterie.methods.head_probabilities import batch_independent_probabilities
from coterie.methods.results import Learned
from coterie.methods.trained import TrainingStart, head_labels
from coterie.training.config import TrainingConfig
from coterie.training.objective import AUGMENTED, ORIGINAL, Batch, EmbedCorpus, LossTerms, Objective, Stage

CONTRASTS = ("similarity", "instance", "confidence", "plain")


class AECLObjective(Objective):
    """The objective of one stage: Eq. 9 (stage 1), Eq. 9 and 12 (Eq. 14, stage 2), or all terms (Eq. 15, stage 3)."""

    recordable = True

    def __init__(
        self,
        head: AttentionHead,
        settings: AECL,
        stage: int,
        kmeans_labels: Callable[[Tensor], Tensor],
        pseudo_labels: PseudoLabels,
    ) -> None:
        super().__init__()
        self.head = head
        self.stage = stage
        self.views = (ORIGINAL, ORIGINAL) if settings._virtual else (ORIGINAL, AUGMENTED[0])
        self._settings = settings
        self._kmeans_labels = kmeans_labels
        self.pseudo_labels = pseudo_labels

    def refresh(self, embed_corpus: EmbedCorpus) -> None:
        """Recompute the k-means labels every epoch of stage 1; stage 2 keeps the last ones."""
        if self.stage == 1:
            self.pseudo_labels.labels.copy_(self._kmeans_labels(embed_corpus()))

    def head_probabilities(self, embeddings: Tensor) -> Tensor | None:
        """Return the probabilities in batches like those of training; ``None`` before the head has had a step."""
        if not self.head.learned:
            return None
        return self.head.in_batches(embeddings, self._settings.training.batch_size_for(len(embeddings)))

    @torch.no_grad()
    def _pseudo_labels(self, embeddings: Tensor) -> tuple[Tensor, Tensor]:
        """Return the head's labels without dropout, and whether they are confident enough to be used."""
        probabilities = self.head.probabilities_without_dropout(embeddings)
        return probabilities.argmax(dim=1), probabilities.amax(dim=1) >= self._settings.threshold  # Eq. 4

    def loss(self, batch: Batch) -> LossTerms:
        s, weights = self._settings, batch.weights
        v0, v1 = batch.embeddings
        z0, z1 = self.head.projector(v0), self.head.projector(v1)
        (h0, s0), (h1, s1) = self.head.attention(z0), self.head.attention(z1)  # Eq. 1-3
        if self.stage == 3:
            labels, trusted = self._pseudo_labels(v0)  # Eq. 4
        else:
            labels = self.pseudo_labels.labels[batch.rows]
            trusted = torch.ones_like(labels, dtype=torch.bool)
        if s.contrast in {"similarity", "instance"}:
            guide = ((h0, s0), (h1, s1)) if s.contrast == "similarity" else None
            instance = similarity_guided(z0, z1, labels, s.tau_instance, weights, guide)  # Eq. 6-9
        else:
            head_labels, confident = self._pseudo_labels(v0)
            alike = confident if s.contrast == "confidence" else torch.zeros_like(confident)
            instance = confidence_contrast(z0, z1, head_labels, alike, s.tau_instance, weights)
        if self.stage == 1:
            return LossTerms(total=instance, instance=instance)
        self.head.learned = True
        logits1 = self.head.classifier(h1)
        pseudo = pseudo_label_loss(logits1, labels, trusted, weights)  # Eq. 12
        if self.stage == 2:
            return LossTerms(s.lambda1 * instance + s.lambda2 * pseudo, instance=instance, pseudo=pseudo)  # Eq. 14
        p0, p1 = self.head.classifier(h0).softmax(dim=1), logits1.softmax(dim=1)
        cluster = cluster_contrast(p0, p1, s.tau_cluster, weights, s.positive_in_denominator)  # Eq. 10-11
        entropy = mean_entropy(p0, weights)  # Eq. 5
        balance = balance_penalty(p0, p1, weights)  # Eq. 13
        total = (
            cluster + s.lambda1 * instance + s.lambda2 * pseudo - s.lambda3 * entropy + s.lambda4 * balance
        )  # Eq. 15
        return LossTerms(
            total,
            instance=instance,
            cluster=cluster,
            pseudo=pseudo,
            entropy=entropy,
            balance=balance,
            confident=weighted_mean(trusted.float(), weights),
        )


@dataclass(kw_only=True, eq=False, repr=False)
class AECL(ContrastiveMethod):
    """Attention-Enhanced Contrastive Learning (Yao and Li, 2025).

    A small attention network over the texts of a batch mixes the representation of each text with those of similar
    texts (Eq. 1-3). Its similarities select texts that a contrastive loss does not treat as negatives (Eq. 6-9), and a
    clustering head on the mixed representation learns from confident pseudo-labels (Eq. 4, 12), from the agreement of
    its columns over two views (Eq. 10-11) and from two entropies (Eq. 5, 13). Three stages: Eq. 9 alone, Eq. 14, Eq.
    15. The result is the head's partition; k-means on the encoder's output is kept as ``kmeans_labels_``.

    Parameters
    ----------
    n_clusters:
        How many clusters to make.
    tau_instance, tau_cluster:
        Temperatures of Eq. 6-7 and Eq. 10.
    lambda1, lambda2, lambda3, lambda4:
        Weights of Eq. 15: the contrastive loss, the pseudo-labels (0 is the paper's "No PG"), the entropy of single
        assignments (0: "No RC"), and of the mean assignment.
    threshold:
        Confidence from which a pseudo-label is used (Eq. 4).
    contrast:
        ``"similarity"`` (Eq. 9); ``"instance"``, without Eq. 7 ("No IC"); ``"confidence"``, with texts of the same
        confident pseudo-label as positives (CCSSL, Fig. 5); ``"plain"``, with only a text's own views as positives.
    attention:
        ``"layer"``, a transformer layer around Eq. 1-3 as in the public code, or ``"bare"``, the equations alone.
    positive_in_denominator:
        Eq. 10 as a cross entropy (as in the public code), or, ``False``, as printed.
    stage_1, stage_2, stage_3:
        Shares of the run, in epochs of the default ``training.max_epochs``: the steps that ``training`` allows are
        divided among the stages in this proportion. 0 skips a stage ("No Stage 1", "No Stage 2").
    references:
        How many vectors of training texts (not the texts) are stored with the model, for ``predict`` to attend to.
    augmentation, augmentation_ratio:
        Where the second view comes from: see :class:`~coterie.methods.contrastive.ContrastiveMethod`.
    encoder, pooling, normalize, max_length, device:
        The pretrained encoder: see :class:`~coterie.methods.encoder_method.EncoderMethod`.
    training:
        Batch size, learning rates, step cap, stop: see :class:`~coterie.training.config.TrainingConfig`. A
        configuration of your own replaces all of the method's; ``set_params(training__max_steps=40)`` changes one.
    random_state:
        Seed of everything.

    Attributes
    ----------
    labels_, confidence_, center_distance_, cluster_centers_, history_, notes_:
        See :class:`~coterie.methods.base.ClusteringMethod`; centres are the means of the clusters' vectors.
    head_labels_, kmeans_labels_, initial_labels_:
        The head's labels (the same as ``labels_``), k-means on the trained embeddings, k-means before training.
    predict_agreement_:
        Share of the rows on which ``labels_`` agree with the head's labels inside training batches.
    snapshots_, timings_:
        The snapshots of ``training.snapshot_every``, and seconds per phase.

    Differs from the paper
    ----------------------
    - Signs of terms: as printed, Eq. 15 would sharpen single assignments (+ lambda3 Eq. 5) and collapse the clusters
      (+ lambda4 Eq. 13). Here, as in the public code and as the text says, Eq. 5 is maximised and Eq. 13 enters as
      log K minus the entropy of the mean assignment, averaged over the views.
    - tau_instance 0.5 and tau_cluster 1, the public code's values, not the paper's 1 and 0.5. lambda4 is one value
      for all data; the paper chooses it by the known balance of the classes.
    - Sets of Eq. 7: by k-means in stages 1 and 2, refitted every epoch of stage 1 (public code); by the head in
      stage 3. Similarities are taken before dropout. Pseudo-labels are read with the head's dropout off; the
      encoder's stays on, which saves a third pass.
    - ``predict`` does not depend on the other texts of a batch: a text attends to itself and to ``references``
      training texts, sampled from each cluster in proportion to its size. ``labels_`` are computed the same way.
    - 5, 15 and 30 epochs for the stages and twice the paper's learning rates, chosen on the tuning sets: a head with
      many clusters has not learned their k-means labels in fewer steps of stage 2. At most 1,500 steps, for time. Every
      stage has an optimiser of its own. Length 64. experiments/ holds the paper's own settings.
    - Duplicate texts are used once, weighted by their count in every mean; as negatives they count once.

    Examples
    --------
    >>> from coterie import AECL
    >>> texts = ["late parcel", "parcel is late", "parcel late again", "forgot my password", "password reset"]
    >>> model = AECL(n_clusters=2).set_params(training__max_steps=40).fit(texts)
    >>> model.predict_proba(["my parcel"]).shape
    (1, 2)
    """

    tau_instance: float = 0.5
    tau_cluster: float = 1.0
    lambda1: float = 10.0
    lambda2: float = 5.0
    lambda3: float = 0.01
    lambda4: float = 1.0
    threshold: float = 0.95
    contrast: str = "similarity"
    attention: str = "layer"
    positive_in_denominator: bool = True
    stage_1: int = 5
    stage_2: int = 15
    stage_3: int = 30
    references: int = 400
    augmentation: str = "eda"
    augmentation_ratio: float = 0.1
    training: TrainingConfig = TrainingConfig(
        max_epochs=50, max_steps=1500, learning_rate=1e-5, head_learning_rate=1e-3
    )

    head_: AttentionHead = field(init=False)
    references_: NDArray[np.float32] = field(init=False)

    def _check_settings(self) -> None:
        super()._check_settings()
        for name in ("tau_instance", "tau_cluster"):
            check_number(name, getattr(self, name), above=0)
        for name in ("lambda1", "lambda2", "lambda3", "lambda4"):
            check_number(name, getattr(self, name), least=0)
        check_number("threshold", self.threshold, above=0, below=1)
        check_choice("contrast", self.contrast, CONTRASTS)
        check_choice("attention", self.attention, ATTENTIONS)
        check_choice("positive_in_denominator", self.positive_in_denominator, (True, False))
        for name, least in (("stage_1", 0), ("stage_2", 0), ("stage_3", 1), ("references", 1)):
            check_whole(name, getattr(self, name), least=least)

    def _stages(self, start: TrainingStart) -> list[Stage]:
        head = AttentionHead(start.encoder.dimension, self.n_clusters, self.attention, start.generator)
        labels = PseudoLabels(torch.from_numpy(start.labels.copy()))

        def kmeans_labels(embeddings: Tensor) -> Tensor:
            return torch.from_numpy(start.recluster(embeddings, start.centers.numpy()).labels)

        # All stages share the labels: the second uses those of the first's last epoch.
        objectives = [AECLObjective(head, self, stage, kmeans_labels, labels) for stage in (1, 2, 3)]
        lengths = (self.stage_1, self.stage_2, self.stage_3)
        return [
            Stage(f"stage_{i + 1}", each, share=length, stops=i == 2, by_head=True)
            for i, (each, length) in enumerate(zip(objectives, lengths, strict=True))
            if length
        ]

    def _conclude(self, start: TrainingStart, objective: Objective, embeddings: Tensor, final: Partition) -> Learned:
        assert isinstance(objective, AECLObjective)
        features, batch_labels = embeddings.cpu().numpy(), head_labels(objective, embeddings)
        self.head_ = copy.deepcopy(objective.head).cpu().eval()
        if batch_labels is None:
            self._note("training ended before the head had learned anything: labels are k-means on the embeddings")
            self.references_ = features[:0]
            return Learned(features, final.centers, initial_labels=start.labels)
        self.references_ = features[self._draw_references(batch_labels)]
        probabilities = self._head_probabilities(start.corpus.distinct, features)
        assert probabilities is not None
        labels = probabilities.argmax(axis=1)
        self.predict_agreement_ = float(start.counts[labels == batch_labels].sum() / start.counts.sum())
        self._note(f"predict agrees with the assignments inside training batches on {self.predict_agreement_:.1%}")
        centers = centroids(features, labels, self.n_clusters, start.counts).astype(np.float32)
        first, last = start.labels, final.labels
        return Learned(features, centers, probabilities=probabilities, initial_labels=first, kmeans_labels=last)

    def _draw_references(self, labels: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the rows to attend to, each cluster in proportion to its size."""
        order = np.lexsort((np.random.default_rng(self.seed_).random(len(labels)), labels))
        places = np.linspace(0, len(order) - 1, min(self.references, len(order))).round().astype(int)
        return np.sort(order[places])

    def _head_probabilities(self, texts: Sequence[str], features: Any) -> NDArray[np.float64] | None:
        if not len(self.references_):
            return None
        return batch_independent_probabilities(
            self.head_.probability_function(self.references_), texts, features, self._encode_one_by_one
        )

    def _quick_dtype(self, n_texts: int) -> torch.dtype:
        return torch.float32  # a small error of a vector may change the head's cluster

    def attention_between(self, texts: Sequence[str]) -> NDArray[np.float64]:
        """Return the similarities S of Eq. 2 between ``texts``, as one batch; rows sum to one."""
        self._check_fitted()
        return self.head_.similarities(self._encode_exactly(list(texts)))

    def _reorder_head(self, order: NDArray[np.int64]) -> None:
        self.head_.reorder(order)

    def _state(self) -> dict[str, NDArray[Any]]:
        head = {f"head.{name}": value.numpy() for name, value in self.head_.state_dict().items()}
        return {**head, "references": self.references_}

    def _restore_parts(
        self, folder: Path, state: Mapping[str, NDArray[Any]], extra: Mapping[str, Any], device: str
    ) -> None:
        super()._restore_parts(folder, state, extra, device)
        head = AttentionHead(self.encoder_.dimension, self.n_clusters, self.attention, torch.Generator())
        weights = {name: torch.from_numpy(value) for name, value in state.items() if name.startswith("head.")}
        head.load_state_dict({name.removeprefix("head."): value for name, value in weights.items()})
        self.head_ = head.eval()
        self.references_ = state["references"]
