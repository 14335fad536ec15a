"""The rounds of the default method: targets from neighbours, losses, and a new clustering after each round."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional

from coterie.clustering.kmeans import centroids, kmeans, unit_rows
from coterie.losses.soft_cross_entropy import soft_cross_entropy
from coterie.methods.auto.losses import neighbour_contrast
from coterie.methods.auto.targets import combine_votes, sample_neighbours, transport_targets
from coterie.methods.lexical.ensemble import LexicalEnsemble
from coterie.methods.lexical.view import PseudoLabels
from coterie.methods.trained import TrainingStart
from coterie.selection.candidates import AVERAGE_LINKAGE, Clustering, balance_sizes, make_clusterings, renumber
from coterie.selection.cluster_sizes import PENALTIES, UNEVEN, estimate_sizes
from coterie.selection.consensus import find_consensus
from coterie.selection.graph import normalise_rows, with_self_loops
from coterie.selection.guard import Candidate, score_candidate
from coterie.selection.joined_vectors import LARGEST_SHARE, lexical_share
from coterie.selection.neighbour_graphs import NeighbourGraphs, build_graphs
from coterie.selection.refinement import refine_assignment
from coterie.selection.start_choice import ChosenStart, balance_all, choose_among, combine, join_views, vote_weights
from coterie.text.corpus import Corpus
from coterie.training.objective import AUGMENTED, ORIGINAL, Batch, EmbedCorpus, LossTerms, Objective

if TYPE_CHECKING:
    from coterie.methods.auto.method import Coterie


# Seed of all clusterings and of the lexical view before training, whatever the seed of a fit: the same texts have one
# start.
START_SEED = 0
# Weight of the clusterings after training where there are no words to agree with.
WEIGHT_WITHOUT_WORDS = 0.5
# Algorithms that cluster the vectors after each round: fewer than before training, to save time.
ROUND_ALGORITHMS = ("k-means", "smoothed k-means", "smoothed Ward", AVERAGE_LINKAGE)


class Teacher(nn.Module):
    """Hold the current targets, the neighbour graphs behind them, and the head that learns them.

    All rounds share one instance.

    Attributes
    ----------
    centers:
        ``K x D``, the trainable centres of the head.
    targets, trust, labels:
        For each text: target probabilities, how much they are trusted, and their most probable cluster.
    near:
        For each text the embedding of a sampled neighbour in its cluster.
    lexical_trust:
        Agreement of the lexical with the semantic votes at each update of the targets.
    """

    def __init__(self, start: TrainingStart, rounds: Rounds, settings: Coterie) -> None:
        super().__init__()
        n_texts, k = len(start.labels), start.n_clusters
        self.centers = nn.Parameter(functional.normalize(start.centers.float(), dim=1))
        for name, value in (
            ("targets", torch.zeros(n_texts, k)),
            ("trust", torch.ones(n_texts)),
            ("labels", torch.from_numpy(start.labels.copy())),
            ("near", torch.from_numpy(start.embeddings.copy()).float()),
        ):
            self.register_buffer(name, value, persistent=False)
        self.targets: Tensor
        self.trust: Tensor
        self.labels: Tensor
        self.near: Tensor
        self.lexical_trust: list[float] = []
        self._settings = settings
        self._counts = start.counts
        self._generator = np.random.default_rng(start.seed)
        lexical = rounds.frozen.lexical
        self._lexical = normalise_rows(lexical.graph) if lexical is not None and settings.words else None
        self._size_penalty = rounds.size_penalty
        self._semantic: Any = None
        self._partition: NDArray[np.float64] | None = None

    def logits(self, embeddings: Tensor) -> Tensor:
        """Return the logits of the head: cosines to the centres over a temperature."""
        centers = functional.normalize(self.centers, dim=1)
        return functional.normalize(embeddings.float(), dim=1) @ centers.T / self._settings.head_temperature

    @torch.no_grad()
    def set_partition(self, units: NDArray[np.float32], graphs: NeighbourGraphs, labels: NDArray[np.int64]) -> None:
        """Set the partition that the next targets come from and the graph that votes; move the centres to its means.

        ``units`` are the encoder's vectors; the graph may be of joined ones.
        """
        k = len(self.centers)
        self._semantic = with_self_loops(graphs.semantic_graph)
        self._partition = np.eye(k)[labels]
        means = unit_rows(centroids(units, labels, k, self._counts))
        self.centers.copy_(torch.from_numpy(means))

    @torch.no_grad()
    def update_targets(self, embeddings: Tensor) -> None:
        """Compute new targets: from the partition at the beginning of a round, and from the head afterwards."""
        s, probabilities = self._settings, self._partition
        if probabilities is None:
            probabilities = self.logits(embeddings).softmax(dim=1).double().cpu().numpy()
        self._partition = None
        logs, trust, lexical_trust = combine_votes(probabilities, self._semantic, self._lexical)
        targets = transport_targets(
            logs,
            self._counts,
            sizes=s.sizes,
            epsilon=s.epsilon,
            size_penalty=self._size_penalty,
            # In float64, which not every device has.
            device=self.targets.device if self.targets.is_cuda else "cpu",
        )
        labels = targets.argmax(axis=1)
        graphs = [each for each in (self._semantic, self._lexical) if each is not None]
        near = torch.from_numpy(sample_neighbours(graphs, labels, self._generator)).to(embeddings.device)
        self.targets.copy_(torch.from_numpy(targets))
        self.trust.copy_(torch.from_numpy(trust))
        self.labels.copy_(torch.from_numpy(labels))
        self.near.copy_(embeddings[near])
        self.lexical_trust.append(lexical_trust)


class Round(Objective):
    """The objective of one round: the targets for both views, and contrastive losses of views and neighbours."""

    recordable = True

    def __init__(self, number: int, teacher: Teacher, rounds: Rounds, settings: Coterie) -> None:
        super().__init__()
        self.number = number
        self.teacher = teacher
        self.views = (ORIGINAL, ORIGINAL) if settings._virtual else (ORIGINAL, AUGMENTED[0])
        self._rounds = rounds
        self._settings = settings

    def start(self, embed_corpus: EmbedCorpus) -> None:
        """Cluster the embeddings of the previous round; the first round uses the start."""
        if self.number:
            self._rounds.finish_round(self.number, embed_corpus(), self.teacher)

    def refresh(self, embed_corpus: EmbedCorpus) -> None:
        self.teacher.update_targets(embed_corpus())

    def head_probabilities(self, embeddings: Tensor) -> Tensor:
        return self.teacher.logits(embeddings).softmax(dim=1)

    def loss(self, batch: Batch) -> LossTerms:
        s, t, weights = self._settings, self.teacher, batch.weights
        targets, trust, labels = t.targets[batch.rows], t.trust[batch.rows], t.labels[batch.rows]
        first, second = batch.embeddings
        near = t.near[batch.rows]
        cluster = sum(soft_cross_entropy(t.logits(view), targets, trust, weights) for view in (first, second)) / 2
        views = sum(
            neighbour_contrast(one, other, labels, s.temperature, weights)
            for one, other in ((first, second), (second, first))
        )
        neighbours = sum(neighbour_contrast(view, near, labels, s.temperature, weights) for view in (first, second))
        assert isinstance(cluster, Tensor) and isinstance(views, Tensor) and isinstance(neighbours, Tensor)
        total = cluster + s.view_weight * views / 2 + s.neighbour_weight * neighbours / 2
        return LossTerms(total, cluster=cluster, views=views / 2, neighbours=neighbours / 2)


class Rounds:
    """Make the start, and collect the clusterings after every round; all are scored on the graphs before training.

    Attributes
    ----------
    frozen:
        The texts and their neighbours before training.
    start:
        The start, with the clusterings that it is made of.
    candidates:
        The start, and the partition after each round, scored.
    lexical:
        The lexical view as it is now; ``None`` without one, or where it has no share in the joined vectors.
    """

    def __init__(
        self, corpus: Corpus, frozen: NeighbourGraphs, settings: Coterie, lexical: LexicalEnsemble | None = None
    ) -> None:
        self.frozen = frozen
        self.candidates: list[Candidate] = []
        self._corpus = corpus
        self._counts = corpus.counts
        self._settings = settings
        self._trained: list[Clustering] = []
        vectors = None if lexical is None else lexical.encode(corpus.distinct)
        self.start = self._make_start(vectors)
        self.lexical = self.first_lexical = lexical if self.start.lexical_share else None
        self.graphs = self._views(frozen, vectors)["joined" if self.lexical else "semantic"]
        self.candidates.append(score_candidate("start", self.start.labels, frozen))

    @property
    def size_penalty(self) -> float:
        """The penalty on the sizes of targets: the larger, the more the candidates with equal sizes count."""
        s = self._settings
        return s.size_penalty * (PENALTIES["equal"] / s.size_penalty) ** self.start.sizes.weight("equal")

    def _make_start(self, lexical_vectors: NDArray[np.float32] | None) -> ChosenStart:
        """Return the consensus of many clusterings, or k-means."""
        s = self._settings
        only = "" if s.sizes == "found" else s.sizes
        if s.start == "chosen":
            return choose_among(self.frozen, s.n_clusters, self._counts, START_SEED, lexical_vectors, only)
        labels = renumber(kmeans(self.frozen.units, s.n_clusters, weights=self._counts, seed=s.seed_).labels)
        free = Clustering("k-means", labels)
        equal = balance_sizes(self.frozen, free, self._counts)
        graphs = self.frozen
        estimate = estimate_sizes([labels], [equal.labels], (), graphs.nearest_rows, graphs.lexical_pairs)
        sizes = replace(estimate, only=only)
        return combine([equal if s.sizes == "equal" else free], sizes, s.n_clusters, self._counts)

    def _views(
        self, semantic: NeighbourGraphs, lexical_vectors: NDArray[np.float32] | None
    ) -> dict[str, NeighbourGraphs]:
        s = self._settings
        return join_views(semantic, lexical_vectors, self.start.lexical_share, s.n_clusters, START_SEED)

    def finish_round(self, number: int, embeddings: Tensor, teacher: Teacher) -> None:
        """Train the lexical view further, cluster both views, and add the consensus as a candidate.

        The next targets come from it.
        """
        s, sizes = self._settings, self.start.sizes
        head = renumber(teacher.logits(embeddings).argmax(dim=1).cpu().numpy())
        vectors = embeddings.float().cpu().numpy()
        semantic = build_graphs(vectors, self.frozen.lexical, s.n_clusters, labels=head, device=self.frozen.device)
        lexical_vectors = None
        if self.lexical is not None:
            learned = PseudoLabels(teacher.targets.cpu().numpy(), teacher.trust.cpu().numpy())
            seed = (s.rounds + 1) * s.seed_ + number
            self.lexical = self.lexical.train_on(
                self._corpus.distinct, self._counts, semantic.nearest_rows, learned, seed=seed
            )
            lexical_vectors = self.lexical.encode(self._corpus.distinct)
        views = self._views(semantic, lexical_vectors)
        algorithms = [each for each in ROUND_ALGORITHMS if each != AVERAGE_LINKAGE or sizes.weight(UNEVEN)]
        free = [
            each
            for view, graphs in views.items()
            for each in make_clusterings(graphs, s.n_clusters, self._counts, START_SEED, algorithms, view)
        ]
        free.append(Clustering("head", refine_assignment(semantic, head, int(head.max()) + 1, self._counts)))
        self._trained = [*free, *balance_all(free, views, self._counts, sizes)]
        found = combine(self._trained, sizes, s.n_clusters, self._counts)
        self.candidates.append(score_candidate(f"round {number}", found.labels, self.frozen))
        self.graphs = views["joined" if self.lexical else "semantic"]
        teacher.set_partition(semantic.units, self.graphs, found.labels)

    @property
    def trained_weight(self) -> float:
        """Weight of the clusterings after training beside those before: the agreement of the views.

        Training draws texts towards the clusters they have. Where clusters by meaning and by words agree, these are
        real, and training sharpens them; where they do not, it hardens mistakes.
        """
        if self.start.view_agreement is None:
            return WEIGHT_WITHOUT_WORDS
        return lexical_share(self.start.view_agreement) / LARGEST_SHARE

    def unite(self) -> Candidate:
        """Return the consensus of the clusterings before training and after the last round.

        A single clustering before training has no vote: it would outvote all others, whatever training finds.
        """
        sizes = self.start.sizes
        before = [each.clustering for each in self.start.candidates]
        if len(before) == 1:
            before = []
        weights = []
        for some, share in ((before, 1.0), (self._trained, self.trained_weight)):
            by_size = np.array(vote_weights(some, sizes))
            weights.extend((share * by_size / by_size.sum()).tolist())
        labels = [each.labels for each in (*before, *self._trained)]
        found = find_consensus(labels, weights, self._settings.n_clusters, self._counts)
        return score_candidate("before and after training", found.labels, self.frozen)
