"""Coterie's own method: several starts, rounds of training on the votes of neighbours, and a guard."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from coterie.checks import check_choice, check_number, check_whole
from coterie.clustering.kmeans import centroids, kmeans
from coterie.clustering.partition import Partition
from coterie.encoders.tokenization import TokenArrays
from coterie.encoders.transformer import TransformerEncoder
from coterie.methods.auto.rounds import Round, Rounds, Teacher
from coterie.methods.auto.targets import SIZES
from coterie.methods.contrastive import ContrastiveMethod
from coterie.methods.results import Learned
from coterie.methods.trained import Clock, TrainingStart
from coterie.selection.guard import Candidate, best_candidate
from coterie.selection.neighbour_graphs import LexicalGraph, build_graphs
from coterie.selection.structure import (
    LEAST_STRUCTURE,
    ONE_SUBJECT_SIMILARITY,
    UNRELATED_SENTENCES,
    mean_similarity,
    structure_beyond_chance,
)
from coterie.selection.training_verdict import TrainingVerdict, compare_candidates
from coterie.text.corpus import Corpus
from coterie.text.language_identification import find_language_split
from coterie.training.config import TrainingConfig
from coterie.training.objective import Objective, Stage

# Most distinct texts for training; others are assigned afterwards. The time of the neighbour search grows with the
# square of their number.
SAMPLE_SIZE = 30_000
# Values of ``start``.
STARTS = ("chosen", "kmeans")


@dataclass(kw_only=True, eq=False, repr=False)
class Coterie(ContrastiveMethod):
    """Coterie's own method, the default: several starts, training on the votes of neighbours, and a guard.

    It clusters the vectors of the pretrained encoder, fine-tunes the encoder towards those clusters in a few rounds,
    and returns the best of the partitions, judged without labels.

    *Start.* The texts are clustered by six algorithms: k-means and linkage, on the vectors of the pretrained encoder
    and on vectors smoothed over their neighbours, and k-means on the spectral embedding of the neighbour graph. That
    graph joins semantic neighbours (nearest by the encoder) and lexical neighbours (nearest by TF-IDF). The lexical
    graph is weighted by how well semantic clusters preserve lexical neighbours. Each clustering is refined: a text
    moves to the cluster that its vector and its neighbours favour. Label-free criteria select one clustering
    (:mod:`coterie.selection`). If equal cluster sizes cost little modularity, the sizes are balanced. If the clusters
    are not more modular than clusters of random vectors, or if they only separate languages, nothing is trained, the
    start is returned, and a note gives the reason.

    *Rounds.* The semantic and lexical neighbours of each text vote on its cluster. The lexical votes are weighted by
    their agreement with the semantic ones, and a text on which the two disagree gets less weight. Optimal transport
    turns the votes into soft targets and keeps every cluster from becoming empty. A head on the encoder is trained on
    these targets, together with a contrastive loss: the positives of a text are its augmented view and one of its
    neighbours, its negatives are texts of other clusters. After each round the trained vectors are clustered again by
    the algorithm of the start; the targets of the next round come from that clustering if it is clearly better than the
    clusters of the head.

    *Guard.* The start and the partition after each round are compared by criteria that training cannot influence:
    how many neighbours by the pretrained encoder share a cluster, how many lexical neighbours do, and how well words
    are predicted from a text's cluster. The best one is returned. If training did not help, the start is returned, with
    the pretrained encoder unchanged.

    Of more than 30,000 distinct texts, 30,000 are sampled for training and the others are assigned afterwards;
    ``fit(sample=N)`` sets another number.

    Parameters
    ----------
    n_clusters:
        How many clusters to make.
    start:
        ``"chosen"``, or ``"kmeans"`` for k-means of the pretrained encoder's vectors.
    rounds:
        How many times the texts are clustered and the encoder is trained on the result.
    words:
        Whether lexical neighbours are used, in the start, as voters and as positives.
    view_weight, neighbour_weight:
        Weights of the contrastive losses with the augmented view and with a neighbour.
    sizes:
        Cluster sizes: ``"found"`` from the data, and equal if that costs little modularity; ``"equal"``; or ``"free"``,
        without any constraint.
    guard:
        ``False`` always returns the partition after the last round.
    temperature, head_temperature:
        Temperatures of the contrastive losses and of the head.
    epsilon, size_penalty:
        Optimal transport: the weight of the entropy (larger gives softer targets) and the penalty for small clusters.
    augmentation, augmentation_ratio:
        How the augmented view is made: see :class:`~coterie.methods.contrastive.ContrastiveMethod`.
    encoder, pooling, normalize, max_length, device:
        Which encoder and how: see :class:`~coterie.methods.encoder_method.EncoderMethod`.
    training:
        Batch size, learning rates, step cap: see :class:`~coterie.training.config.TrainingConfig`.
    random_state:
        Seed of everything.

    Attributes
    ----------
    labels_, confidence_, center_distance_, cluster_centers_, history_, notes_:
        See :class:`~coterie.methods.base.ClusteringMethod`.
    initial_labels_:
        The start.
    candidates_:
        The start and the partition after every round, with the criteria of the guard.
    start_:
        Which algorithm made the start.
    training_verdict_:
        Whether fine-tuning helped, judged without labels.
    kmeans_labels_, snapshots_, timings_:
        k-means of the embeddings after training, the snapshots of ``training.snapshot_every``, seconds per phase.

    Examples
    --------
    >>> from coterie import Coterie
    >>> texts = ["late parcel", "parcel is late", "parcel late again", "forgot my password", "password reset"]
    >>> model = Coterie(n_clusters=2).fit(texts)
    >>> model.labels_
    array([0, 0, 0, 1, 1])
    """

    candidates_: tuple[Candidate, ...] = field(init=False)
    start_: str = field(init=False)
    usual_sample: ClassVar[int | None] = SAMPLE_SIZE

    start: str = "chosen"
    rounds: int = 3
    words: bool = True
    view_weight: float = 1.0
    neighbour_weight: float = 1.0
    sizes: str = "found"
    guard: bool = True
    temperature: float = 0.1
    head_temperature: float = 0.1
    epsilon: float = 0.5
    size_penalty: float = 0.05
    training: TrainingConfig = TrainingConfig(
        max_epochs=6, learning_rate=5e-5, head_learning_rate=1e-3, trainable_layers="auto", check_every=0
    )

    def _check_settings(self) -> None:
        super()._check_settings()
        check_choice("start", self.start, STARTS)
        check_choice("sizes", self.sizes, SIZES)
        check_whole("rounds", self.rounds, least=1)
        for name in ("words", "guard"):
            check_choice(name, getattr(self, name), (True, False))
        for name in ("view_weight", "neighbour_weight"):
            check_number(name, getattr(self, name), least=0)
        for name in ("temperature", "head_temperature", "epsilon", "size_penalty"):
            check_number(name, getattr(self, name), above=0)

    def _begin(self, encoder: TransformerEncoder, corpus: Corpus, tokens: TokenArrays, clock: Clock) -> TrainingStart:
        progress = "embedding" if self.training.progress else None
        frozen = encoder.encode_tokens(tokens, self._quick_dtype(len(tokens)), progress=progress)
        vectors = frozen.float().cpu().numpy()
        clock.lap("embedding")
        labels = self._first_clusters(frozen, vectors, corpus)
        centers = centroids(vectors, labels, self.n_clusters, corpus.counts).astype(np.float32)
        clock.lap("starts")
        generator = torch.Generator().manual_seed(self.seed_)
        return TrainingStart(encoder, corpus, tokens, vectors, labels, torch.from_numpy(centers), generator, self.seed_)

    def _first_clusters(self, frozen: Tensor, vectors: NDArray[np.float32], corpus: Corpus) -> NDArray[np.int64]:
        """Return the start, and set ``_reason`` to the reason why nothing is trained; it is empty without one."""
        self._reason, self.candidates_ = "", ()
        self._rounds: Rounds | None = None
        if len(vectors) <= self.n_clusters + 1:
            self.start_ = "k-means"
            self._reason = f"{len(vectors)} distinct texts in {self.n_clusters} clusters leave nothing to learn"
            return kmeans(frozen, self.n_clusters, weights=corpus.counts, seed=self.seed_).labels
        device = frozen.device
        lexical = LexicalGraph.build(corpus.distinct, device) if self.words else None
        graphs = build_graphs(vectors, lexical, self.n_clusters, device=device, seed=self.seed_)
        self._rounds = Rounds(corpus, graphs, self)
        self.start_ = self._rounds.start.name
        labels = self._rounds.start.labels
        if not self.guard:
            return labels
        similarity = mean_similarity(vectors, self.encoder_.encode(list(UNRELATED_SENTENCES)))
        structure = structure_beyond_chance(vectors, self.n_clusters, self.seed_)
        languages = find_language_split(corpus.distinct, labels)
        if similarity >= ONE_SUBJECT_SIMILARITY:
            self._reason = (
                "no structure was found: all texts are about one subject (to the encoder, any two are "
                f"{similarity:.0%} similar)"
            )
        elif structure < LEAST_STRUCTURE:
            self._reason = (
                "no structure was found beyond chance: neighbours share clusters hardly more often than in random "
                f"vectors ({structure:.2f} on a scale from 0 to 1; {LEAST_STRUCTURE} is needed)"
            )
        elif languages:
            self._reason = f"the clusters are languages ({', '.join(languages)}), not subjects"
        return labels

    def _stages(self, start: TrainingStart) -> list[Stage]:
        rounds = self._rounds
        if rounds is not None:
            self.candidates_ = tuple(rounds.candidates)
            why = ", selected from several clusterings by label-free criteria" if self.start == "chosen" else ""
            balanced = "; cluster sizes are balanced, which costs little modularity"
            sizes = balanced if rounds.equal_sizes and self.sizes == "found" else ""
            self._note(f"the start is {self.start_}{why}{sizes}")
        if self._reason:
            self._note(f"{self._reason}: the start is returned, with the pretrained encoder unchanged")
            self.training_verdict_ = TrainingVerdict.unknown(f"Nothing was fine-tuned: {self._reason}.")
            self._rounds = None
            return []
        assert rounds is not None
        self._frozen_weights = {name: value.detach().clone() for name, value in start.encoder.state_dict().items()}
        teacher = Teacher(start, rounds, self)
        teacher.set_partition(rounds.frozen, start.labels)
        return [
            Stage(f"round {number + 1}", Round(number, teacher, rounds, self), stops=False)
            for number in range(self.rounds)
        ]

    def _conclude(self, start: TrainingStart, objective: Objective, embeddings: Tensor, final: Partition) -> Learned:
        assert isinstance(objective, Round) and self._rounds is not None
        self._rounds.finish_round(objective.number + 1, embeddings, objective.teacher)
        self.candidates_ = tuple(self._rounds.candidates)
        before, *trained = self.candidates_
        best = self._select(before, trained)
        features = embeddings.float().cpu().numpy()
        if best is before:
            start.encoder.load_state_dict(self._frozen_weights)
            features = start.embeddings
        # A fitted model does not keep the state of the training.
        self._rounds = None
        del self._frozen_weights
        centers = centroids(features, best.labels, self.n_clusters, start.counts).astype(np.float32)
        first = start.labels
        return Learned(features, centers, best.labels, initial_labels=first, kmeans_labels=final.labels)

    def _select(self, start: Candidate, trained: list[Candidate]) -> Candidate:
        """Select the partition to return, and judge whether training helped."""
        if not self.guard:
            self.training_verdict_ = compare_candidates(start, trained[-1])
            self._note("no guard: the last round's partition is returned")
            return trained[-1]
        best = best_candidate([start, *trained])
        # Where the start is returned, the verdict shows the best trained partition: it is not better.
        candidate = max(trained, key=lambda each: each.gain_over(start)) if best is start else best
        self.training_verdict_ = compare_candidates(start, candidate)
        returned = (
            "the start is returned, with the pretrained encoder unchanged"
            if best is start
            else f"the partition of {best.name} is returned"
        )
        sentence = self.training_verdict_.sentence
        self._note(f"{sentence[0].lower()}{sentence[1:].rstrip('.')}: {returned}")
        return best

    def _probabilities(self, distances: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return probabilities as the head does, with the cluster means as centres."""
        from scipy.special import softmax

        return np.asarray(softmax(-distances / (2 * self.head_temperature), axis=1))
