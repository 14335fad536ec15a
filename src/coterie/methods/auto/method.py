"""Coterie's own method: two views, a consensus of many clusterings, rounds of training, and a guard."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from coterie.checks import check_choice, check_number, check_whole
from coterie.clustering.kmeans import centroids, kmeans
from coterie.clustering.partition import Partition
from coterie.encoders.device import resolve_device
from coterie.encoders.tokenization import TokenArrays
from coterie.encoders.transformer import TransformerEncoder
from coterie.methods.array_groups import of_part, with_prefix
from coterie.methods.auto.cluster_parts import ClusterParts
from coterie.methods.auto.notes import describe_result, describe_start, find_disagreement
from coterie.methods.auto.rounds import START_SEED, Round, Rounds, Teacher
from coterie.methods.auto.targets import SIZES
from coterie.methods.contrastive import ContrastiveMethod
from coterie.methods.head_probabilities import batch_independent_probabilities
from coterie.methods.lexical.ensemble import LexicalEnsemble
from coterie.methods.lexical.view import TEXTS_AT_A_TIME
from coterie.methods.results import Encoded, Learned
from coterie.methods.trained import Clock, TrainingStart
from coterie.selection.guard import Candidate
from coterie.selection.joined_vectors import join_vectors
from coterie.selection.neighbour_graphs import LexicalGraph, build_graphs
from coterie.selection.start_choice import ChosenStart
from coterie.selection.structure import UNRELATED_SENTENCES, missing_structure
from coterie.selection.training_verdict import TrainingVerdict, compare_candidates
from coterie.text.corpus import Corpus
from coterie.training.config import TrainingConfig
from coterie.training.objective import Objective, Stage

# Most distinct texts for training; others are assigned afterwards. The time of the neighbour search grows with the
# square of their number.
SAMPLE_SIZE = 30_000
# Largest loss by the guard's criteria (see :meth:`~coterie.selection.guard.Candidate.gain_over`) for which trained
# clusterings still count.
LARGEST_LOSS = 0.1
# Values of ``start``.
STARTS = ("chosen", "kmeans")


@dataclass(kw_only=True, eq=False, repr=False)
class Coterie(ContrastiveMethod):
    """Coterie's own method, the default: two views, a consensus of many clusterings, training, and a guard.

    It clusters the texts in many ways, by meaning and by words, fine-tunes the encoder towards the consensus in a few
    rounds, and returns the consensus of the clusterings before and after training.

    *Views.* The semantic view is the pretrained encoder. The lexical view is a small network over TF-IDF rows
    (:class:`~coterie.methods.lexical.method.LexicalClusters`), trained on the texts, with the semantic neighbours
    of a text as further positives. Joined vectors have the cosines of both views in one. The share of the lexical view
    depends on how well the clusters of each view preserve the neighbours of the other; where they do not, it is 0.

    *Start.* The semantic and the joined vectors, as they are and centred, are clustered by six algorithms, each with
    free, penalised and equal sizes. The start is their consensus, by a vote of their clusters, and is the same for
    every seed. How much clusterings of each size count depends on how much modularity is lost when sizes are made
    equal: nothing is decided on a threshold (:mod:`coterie.selection`). If the clusters only separate languages, or if
    the two views disagree, nothing is trained, the start is returned, and a note gives the reason. If clusters of the
    texts are not more modular than clusters of random vectors, k-means of the pretrained encoder's vectors is returned.

    *Rounds.* The joined and the lexical neighbours of each text vote on its cluster. The lexical votes are weighted by
    their agreement with the others, and a text on which the two disagree gets less weight. Optimal transport turns the
    votes into soft targets and keeps every cluster from becoming empty. A head on the encoder is trained on these
    targets, together with a contrastive loss: the positives of a text are its augmented view and one of its neighbours
    in either view, its negatives are texts of other clusters. After each round the lexical view is trained further,
    with the encoder's neighbours as positives and its clusters as pseudo-labels; both views are clustered again as at
    the start, and the consensus gives the next targets.

    *Guard.* The result is the consensus of the clusterings before training and after the last round. Those after
    training count by the agreement of the two views before training, which training cannot influence: on the tuning
    sets training helps where the views agree and does harm where they do not. If training lowered the modularity and
    the word likelihood of the clusters clearly, by the pretrained encoder's neighbours, the start is returned, with the
    pretrained encoder unchanged.

    *New texts.* A new text gets the cluster whose mean, and the most similar of whose parts, are most similar to it.
    The texts of the fit keep their clusters. Of more than 30,000 distinct texts, 30,000 are sampled for training and
    the others are assigned like new ones; ``fit(sample=N)`` sets another number.

    Parameters
    ----------
    n_clusters:
        How many clusters to make.
    start:
        ``"chosen"``, or ``"kmeans"`` for k-means of the pretrained encoder's vectors.
    rounds:
        How many times the encoder is trained and the texts are clustered again; with 0, the start is returned.
    words:
        Whether words are used: the lexical view, and lexical neighbours as evidence, voters and positives.
    view_weight, neighbour_weight:
        Weights of the contrastive losses with the augmented view and with a neighbour.
    sizes:
        Cluster sizes: ``"found"`` weights clusterings with free, equal and uneven sizes by what equal sizes cost;
        ``"equal"`` or ``"free"`` uses only those.
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
        Seed of the training, and of the sample of many texts. The start does not depend on it, so that a fit with
        another seed differs by its training alone.

    Attributes
    ----------
    labels_, confidence_, center_distance_, cluster_centers_, history_, notes_:
        See :class:`~coterie.methods.base.ClusteringMethod`.
    initial_labels_:
        The start.
    candidates_:
        The start, the partition after every round, and the consensus of before and after, with the guard's criteria.
    start_:
        The start, with all clusterings that it is the consensus of; ``None`` for a loaded model.
    lexical_, lexical_share_:
        The lexical view, and its share in the vectors, from 0 to 1; ``None`` where the share is 0.
    parts_:
        The means by which ``predict`` assigns new texts; ``None`` where k-means was returned, and cluster means decide.
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
    start_: ChosenStart | None = field(default=None, init=False)
    lexical_share_: float = field(default=0.0, init=False)
    lexical_: LexicalEnsemble | None = field(default=None, init=False)
    parts_: ClusterParts | None = field(default=None, init=False)
    usual_sample: ClassVar[int | None] = SAMPLE_SIZE

    start: str = "chosen"
    rounds: int = 2
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
        check_whole("rounds", self.rounds, least=0)
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
        self._reason, self.candidates_, self.start_ = "", (), None
        self.lexical_, self.lexical_share_ = None, 0.0
        self._rounds: Rounds | None = None
        checked = self.guard and self.rounds > 0
        if len(vectors) <= self.n_clusters + 1:
            self._reason = f"{len(vectors)} distinct texts in {self.n_clusters} clusters leave nothing to learn"
        elif checked:
            unrelated = self.encoder_.encode(list(UNRELATED_SENTENCES))
            self._reason = missing_structure(vectors, unrelated, self.n_clusters, START_SEED)
        if self._reason:
            # The plain answer: neighbours and words that follow no structure would only mislead.
            return kmeans(frozen, self.n_clusters, weights=corpus.counts, seed=START_SEED).labels
        device, texts, counts = frozen.device, corpus.distinct, corpus.counts
        lexical = LexicalGraph.build(texts, device) if self.words else None
        graphs = build_graphs(vectors, lexical, self.n_clusters, device=device, seed=START_SEED)
        by_words = None
        if lexical is not None and self.start == "chosen":
            by_words = LexicalEnsemble.fit(texts, counts, graphs.nearest_rows, seed=START_SEED, device=device)
        self._rounds = Rounds(corpus, graphs, self, by_words)
        self.start_ = self._rounds.start
        self.lexical_, self.lexical_share_ = self._rounds.lexical, self.start_.lexical_share
        if not self.rounds:
            self._reason = "no rounds of training were asked for"
        elif checked:
            self._reason = find_disagreement(texts, self.start_, self._rounds.trained_weight)
        return self.start_.labels

    def _stages(self, start: TrainingStart) -> list[Stage]:
        rounds = self._rounds
        if rounds is not None:
            self.candidates_ = tuple(rounds.candidates)
            self._note(describe_start(rounds.start, self))
        if self._reason:
            returned = "the start" if rounds is not None else "k-means of the pretrained encoder's vectors"
            self._note(f"{self._reason}: {returned} is returned, with the pretrained encoder unchanged")
            self.training_verdict_ = TrainingVerdict.unknown(f"Nothing was fine-tuned: {self._reason}.")
            self._rounds = None
            return []
        assert rounds is not None
        self._frozen_weights = {name: value.detach().clone() for name, value in start.encoder.state_dict().items()}
        teacher = Teacher(start, rounds, self)
        teacher.set_partition(rounds.frozen.units, rounds.graphs, start.labels)
        return [
            Stage(f"round {number + 1}", Round(number, teacher, rounds, self), stops=False)
            for number in range(self.rounds)
        ]

    def _conclude(self, start: TrainingStart, objective: Objective, embeddings: Tensor, final: Partition) -> Learned:
        assert isinstance(objective, Round) and self._rounds is not None
        rounds = self._rounds
        rounds.finish_round(objective.number + 1, embeddings, objective.teacher)
        before, *trained = rounds.candidates
        united = rounds.unite()
        self.candidates_ = (*rounds.candidates, united)
        best = self._select(before, trained[-1], united)
        vectors, self.lexical_ = embeddings.float().cpu().numpy(), rounds.lexical
        if best is before:
            start.encoder.load_state_dict(self._frozen_weights)
            vectors, self.lexical_ = start.embeddings, rounds.first_lexical
        # A fitted model does not keep the state of the training.
        self._rounds = None
        del self._frozen_weights
        return self._learned(vectors, best.labels, start, kmeans_labels=final.labels)

    def _initial_outcome(self, start: TrainingStart, clock: Clock) -> Learned:
        learned = super()._initial_outcome(start, clock)
        return replace(self._learned(start.embeddings, start.labels, start), noise=learned.noise)

    def _learned(
        self,
        vectors: NDArray[np.float32],
        labels: NDArray[np.int64],
        start: TrainingStart,
        kmeans_labels: NDArray[np.int64] | None = None,
    ) -> Learned:
        """Return a partition with the joined vectors and their means."""
        texts = start.corpus.distinct
        features = self._join(vectors, texts)
        centers = centroids(features, labels, self.n_clusters, start.counts).astype(np.float32)
        self.parts_ = None
        if self.start_ is not None:
            self.parts_ = ClusterParts.fit(features, labels, self.n_clusters, start.counts, START_SEED)
        probabilities = self._head_probabilities(texts, features)
        return Learned(features, centers, labels, probabilities, start.labels, kmeans_labels=kmeans_labels)

    def _join(
        self, vectors: NDArray[np.float32], texts: Sequence[str], at_a_time: int = TEXTS_AT_A_TIME
    ) -> NDArray[np.float32]:
        """Return the encoder's vectors of ``texts``, joined with their lexical vectors where these have a share."""
        if self.lexical_ is None:
            return vectors
        return join_vectors(vectors, self.lexical_.encode(texts, at_a_time), self.lexical_share_)

    def _encode(self, texts: Sequence[str]) -> Encoded:
        encoded = super()._encode(texts)
        return replace(encoded, features=self._join(encoded.features, texts))

    def _encode_exactly(self, texts: Sequence[str]) -> NDArray[np.float32]:
        return self._join(super()._encode_exactly(texts), texts)

    def _encode_one_by_one(self, texts: Sequence[str]) -> NDArray[np.float32]:
        return self._join(super()._encode_one_by_one(texts), texts, at_a_time=1)

    def _head_probabilities(self, texts: Sequence[str], features: Any) -> NDArray[np.float64] | None:
        if self.parts_ is None:
            return None
        head = partial(self.parts_.probabilities, temperature=self.head_temperature)
        return batch_independent_probabilities(head, texts, features, self._encode_one_by_one)

    def _quick_dtype(self, n_texts: int) -> torch.dtype:
        return torch.float32  # a small error of a vector may change the nearest part

    def _reorder_head(self, order: NDArray[np.int64]) -> None:
        if self.parts_ is not None:
            self.parts_ = self.parts_.reorder(order)

    def _state(self) -> dict[str, NDArray[Any]]:
        found = super()._state()
        if self.lexical_ is not None:
            found |= with_prefix("lexical", self.lexical_.state())
        if self.parts_ is not None:
            found |= with_prefix("parts", self.parts_.state())
        return found

    def _save_parts(self, folder: Path) -> dict[str, Any]:
        return {**super()._save_parts(folder), "lexical_share": self.lexical_share_}

    def _restore_parts(
        self, folder: Path, state: Mapping[str, NDArray[Any]], extra: Mapping[str, Any], device: str
    ) -> None:
        super()._restore_parts(folder, state, extra, device)
        # Folders of earlier versions have no lexical view and no parts.
        self.lexical_share_ = float(extra.get("lexical_share", 0.0))
        lexical, parts = of_part("lexical", state), of_part("parts", state)
        self.lexical_ = LexicalEnsemble.restore(lexical, resolve_device(device)) if lexical else None
        self.parts_ = ClusterParts.restore(parts) if parts else None

    def _select(self, start: Candidate, trained: Candidate, united: Candidate) -> Candidate:
        """Select the partition to return, and judge whether training helped."""
        self.training_verdict_ = compare_candidates(start, trained)
        if not self.guard:
            self._note("no guard: the last round's partition is returned")
            return trained
        best = start if trained.gain_over(start) < -LARGEST_LOSS else united
        returned = describe_result(best is not start, None if self.start_ is None else self.start_.view_agreement)
        sentence = self.training_verdict_.sentence
        self._note(f"{sentence[0].lower()}{sentence[1:].rstrip('.')}: {returned}")
        return best

    def _probabilities(self, distances: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return probabilities as the head does, with the cluster means as centres."""
        from scipy.special import softmax

        return np.asarray(softmax(-distances / (2 * self.head_temperature), axis=1))
