"""Coterie's own method: several starts, two views that teach each other, re-clustering, and a guard."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from coterie.checks import check_choice, check_number, check_whole
from coterie.clustering.kmeans import Partition, centroids, kmeans
from coterie.encoders.tokenization import TokenArrays
from coterie.encoders.transformer import TransformerEncoder
from coterie.methods.auto.rounds import Round, Rounds, Teacher
from coterie.methods.auto.targets import SIZES
from coterie.methods.contrastive import ContrastiveMethod
from coterie.methods.results import Learned
from coterie.methods.trained import Clock, TrainingStart
from coterie.selection.guard import Candidate, best_candidate
from coterie.selection.neighbour_graphs import Words, see
from coterie.selection.structure import FOUND_FROM, ONE_SUBJECT_FROM, UNLIKE, likeness, structure
from coterie.selection.training_verdict import TrainingVerdict, compare_candidates
from coterie.text.corpus import Corpus
from coterie.text.language_identification import language_split
from coterie.training.config import TrainingConfig
from coterie.training.objective import Objective, Stage

# Of more texts so many are learned on, and the others are assigned: neighbours are looked for among all of them.
LEARNED_ON = 30_000
STARTS = ("chosen", "kmeans")


@dataclass(kw_only=True, eq=False, repr=False)
class Coterie(ContrastiveMethod):
    """Coterie's own method, the default: the best start, two views that teach each other, and a guard.

    *Start.* Six clusterings of the frozen embeddings, by k-means and linkage, of the vectors as they are, smoothed
    over their neighbours, and of waves on the graph of neighbours; by meaning (the encoder's nearest) and by words
    (the nearest by TF-IDF), whose say falls by itself where clusters of vectors part them. Each settles: texts go
    where their vector and their neighbours agree. Label-free signs choose one (:mod:`coterie.selection`); where
    neighbours speak next to no less for clusters of one size, all are drawn to that first. Where neighbours stay
    together no more than in a cloud without clusters, or where the clusters are languages, that is said, and the
    start is the answer.

    *Rounds.* Every text is taught the cluster that its neighbours in both views vote for; words count as far as the
    two agree, and where they differ, a text is trusted less. Optimal transport finds the clusters' sizes and keeps
    each alive. Beside that, contrast: a text's own view and one of its neighbours are positives, texts of other
    clusters negatives. After each round the texts are clustered anew, as for the start, and if that is ahead of
    what was learned, it is taught in the next.

    *Guard.* Of the start and what each round ended with, the partition wins that keeps most neighbours of the
    encoder as it came together, and most texts with words in common, and tells words of unseen texts best. Where
    training did not help, the start is returned, and the encoder as it came.

    Of more than 30,000 distinct texts so many are drawn and learned on, and the others assigned, unless
    ``fit(sample=N)`` says otherwise.

    Parameters
    ----------
    n_clusters:
        How many clusters to make.
    start:
        ``"chosen"``, or ``"kmeans"`` for k-means of the frozen embeddings.
    rounds:
        How often the texts are clustered anew and taught.
    words:
        Whether texts with words in common vote, and are positives.
    view_weight, neighbour_weight:
        Weights of the contrast with a text's own view, and with one of its neighbours.
    sizes:
        Of the clusters: ``"found"``, and even where neighbours do not mind; ``"equal"``; or ``"free"`` of anything
        that keeps clusters alive.
    guard:
        ``False`` trains, and returns the last round's clusters, whatever the signs say.
    temperature, head_temperature:
        Of the contrast and of the head.
    epsilon, size_penalty:
        Of the transport: how soft the targets are, and how much it costs a cluster to be small.
    augmentation, augmentation_ratio:
        Where the second view comes from: see :class:`~coterie.methods.contrastive.ContrastiveMethod`.
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
        The chosen start.
    candidates_:
        The start and the partition of every round, with what the guard judged them by.
    start_:
        Which clustering the start is.
    training_verdict_:
        Whether fine-tuning helped, judged without labels.
    kmeans_labels_, snapshots_, timings_:
        k-means of the embeddings after training, what ``training.snapshot_every`` kept, seconds by phase.

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
    usual_sample: ClassVar[int | None] = LEARNED_ON

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
        """The start, and in ``_reason`` why there is nothing to learn, if so."""
        self._reason, self.candidates_ = "", ()
        self._rounds: Rounds | None = None
        if len(vectors) <= self.n_clusters + 1:
            self.start_ = "k-means"
            self._reason = f"{len(vectors)} distinct texts in {self.n_clusters} clusters leave nothing to learn"
            return kmeans(frozen, self.n_clusters, weights=corpus.counts, seed=self.seed_).labels
        device = frozen.device
        words = Words.of(corpus.distinct, device) if self.words else None
        seen = see(vectors, words, self.n_clusters, device=device, seed=self.seed_)
        self._rounds = Rounds(corpus, seen, self)
        self.start_ = self._rounds.start.name
        labels = self._rounds.start.labels
        if not self.guard:
            return labels
        alike = likeness(vectors, self.encoder_.encode(list(UNLIKE)))
        found = structure(vectors, self.n_clusters, self.seed_)
        languages = language_split(corpus.distinct, labels)
        if alike >= ONE_SUBJECT_FROM:
            self._reason = (
                f"no structure was found: all texts are about one thing (any two are {alike:.0%} alike to the encoder)"
            )
        elif found < FOUND_FROM:
            self._reason = (
                "no structure was found beyond chance: neighbours stay together as in a cloud without clusters "
                f"({found:.2f} of what is possible, {FOUND_FROM} is needed)"
            )
        elif languages:
            self._reason = f"the clusters are languages ({', '.join(languages)}), not subjects"
        return labels

    def _stages(self, start: TrainingStart) -> list[Stage]:
        rounds = self._rounds
        if rounds is not None:
            self.candidates_ = tuple(rounds.candidates)
            why = ", by the signs of several clusterings (no label was used)" if self.start == "chosen" else ""
            evened = "; clusters are drawn to one size, which neighbours do not speak against"
            sizes = evened if rounds.even and self.sizes == "found" else ""
            self._note(f"the start is {self.start_}{why}{sizes}")
        if self._reason:
            self._note(f"{self._reason}: the start is returned, with the pretrained encoder unchanged")
            self.training_verdict_ = TrainingVerdict.unknown(f"Nothing was fine-tuned: {self._reason}.")
            self._rounds = None
            return []
        assert rounds is not None
        self._frozen_weights = {name: value.detach().clone() for name, value in start.encoder.state_dict().items()}
        teacher = Teacher(start, rounds, self)
        teacher.hold(rounds.frozen, start.labels)
        return [
            Stage(f"round {number + 1}", Round(number, teacher, rounds, self), stops=False)
            for number in range(self.rounds)
        ]

    def _conclude(self, start: TrainingStart, objective: Objective, embeddings: Tensor, final: Partition) -> Learned:
        assert isinstance(objective, Round) and self._rounds is not None
        self._rounds.end(objective.number + 1, embeddings, objective.teacher)
        self.candidates_ = tuple(self._rounds.candidates)
        before, *trained = self.candidates_
        best = self._select(before, trained)
        features = embeddings.float().cpu().numpy()
        if best is before:
            start.encoder.load_state_dict(self._frozen_weights)
            features = start.embeddings
        # Nothing of the training is held by a fitted model.
        self._rounds = None
        del self._frozen_weights
        centers = centroids(features, best.labels, self.n_clusters, start.counts).astype(np.float32)
        first = start.labels
        return Learned(features, centers, best.labels, initial_labels=first, kmeans_labels=final.labels)

    def _select(self, start: Candidate, trained: list[Candidate]) -> Candidate:
        """Return the partition of the fit, and judge whether training helped."""
        if not self.guard:
            self.training_verdict_ = compare_candidates(start, trained[-1])
            self._note("no guard: the last round's partition is returned")
            return trained[-1]
        best = best_candidate([start, *trained])
        # Where the start is returned, the verdict shows why: the best that training came to is not better.
        tried = max(trained, key=lambda each: each.gain_over(start)) if best is start else best
        self.training_verdict_ = compare_candidates(start, tried)
        returned = (
            "the start is returned, with the pretrained encoder unchanged"
            if best is start
            else f"the partition of {best.name} is returned"
        )
        sentence = self.training_verdict_.sentence
        self._note(f"{sentence[0].lower()}{sentence[1:].rstrip('.')}: {returned}")
        return best

    def _probabilities(self, distances: NDArray[np.float64]) -> NDArray[np.float64]:
        """As the head has them, with the clusters' means for centres."""
        from scipy.special import softmax

        return np.asarray(softmax(-distances / (2 * self.head_temperature), axis=1))
