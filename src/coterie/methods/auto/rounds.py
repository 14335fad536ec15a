"""The rounds of the default method: targets from neighbours, losses, and a new clustering after each round."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional

from coterie.clustering.kmeans import centroids, kmeans, unit_rows
from coterie.methods.auto.losses import neighbour_contrast, soft_cross_entropy
from coterie.methods.auto.targets import combine_votes, sample_neighbours, transport_targets
from coterie.methods.trained import TrainingStart
from coterie.selection.candidates import Clustering, make_clusterings, renumber
from coterie.selection.graph import normalise_rows, with_self_loops
from coterie.selection.guard import Candidate, score_candidate
from coterie.selection.neighbour_graphs import NeighbourGraphs, build_graphs
from coterie.selection.refinement import refine_assignment
from coterie.selection.start_choice import EQUAL_SIZE_PENALTY, balance_sizes, choose_among
from coterie.text.corpus import Corpus
from coterie.training.objective import AUGMENTED, ORIGINAL, Batch, EmbedCorpus, LossTerms, Objective

if TYPE_CHECKING:
    from coterie.methods.auto.method import Coterie


# Smallest difference of the guard's gain by which a new clustering replaces the head's clusters: smaller differences
# are noise, and a change of the targets costs a round of training.
LEAST_LEAD = 0.03


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
        self._size_penalty = EQUAL_SIZE_PENALTY if rounds.equal_sizes else settings.size_penalty
        self._semantic: Any = None
        self._partition: NDArray[np.float64] | None = None

    def logits(self, embeddings: Tensor) -> Tensor:
        """Return the logits of the head: cosines to the centres over a temperature."""
        centers = functional.normalize(self.centers, dim=1)
        return functional.normalize(embeddings.float(), dim=1) @ centers.T / self._settings.head_temperature

    @torch.no_grad()
    def set_partition(self, graphs: NeighbourGraphs, labels: NDArray[np.int64]) -> None:
        """Set the partition that the next targets come from and the graph that votes; move the centres to its means."""
        k = len(self.centers)
        self._semantic = with_self_loops(graphs.semantic_graph)
        self._partition = np.eye(k)[labels]
        means = unit_rows(centroids(graphs.units, labels, k, self._counts))
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
    """Collect the partitions before training and after every round, all scored on the graphs before training.

    Attributes
    ----------
    frozen:
        The texts and their neighbours before training.
    start:
        The clustering before training.
    equal_sizes:
        Whether cluster sizes are balanced.
    candidates:
        The start, and the partition after each round.
    """

    def __init__(self, corpus: Corpus, frozen: NeighbourGraphs, settings: Coterie) -> None:
        self.frozen = frozen
        self.candidates: list[Candidate] = []
        self._counts = corpus.counts
        self._settings = settings
        self.start, self.equal_sizes = self._make_start()
        self.candidates.append(score_candidate("start", self.start.labels, frozen))

    def _make_start(self) -> tuple[Clustering, bool]:
        """Return the best of several clusterings, or k-means, and whether sizes are balanced."""
        s, equal_sizes = self._settings, False
        if s.start == "chosen":
            found = choose_among(self.frozen, s.n_clusters, self._counts, s.seed_)
            equal_sizes = found.equal_sizes and s.sizes != "free"
            best = found.best if equal_sizes else found.ranking[0]
            name, labels = best.name, best.labels
        else:
            partition = kmeans(self.frozen.units, s.n_clusters, weights=self._counts, seed=s.seed_)
            name, labels = "k-means", renumber(partition.labels)
        if s.sizes == "equal" and not equal_sizes:
            equal_sizes, labels = True, balance_sizes(self.frozen, labels, self._counts)
        return Clustering(name, labels), equal_sizes

    def finish_round(self, number: int, embeddings: Tensor, teacher: Teacher) -> None:
        """Cluster the embeddings after a round, by the head and by the start's algorithm, and add the better partition.

        It becomes a candidate, and the next targets come from it.
        """
        s, start = self._settings, self.candidates[0]
        head = renumber(teacher.logits(embeddings).argmax(dim=1).cpu().numpy())
        vectors = embeddings.float().cpu().numpy()
        graphs = build_graphs(vectors, self.frozen.lexical, s.n_clusters, labels=head, device=self.frozen.device)
        (again,) = make_clusterings(graphs, s.n_clusters, self._counts, s.seed_, [self.start.name])
        partitions = [refine_assignment(graphs, head, int(head.max()) + 1, self._counts), again.labels]
        if self.equal_sizes:
            partitions = [balance_sizes(graphs, each, self._counts) for each in partitions]
        best, reclustered = (score_candidate(f"round {number}", each, self.frozen) for each in partitions)
        if reclustered.gain_over(start) > best.gain_over(start) + LEAST_LEAD:
            best = reclustered
        self.candidates.append(best)
        teacher.set_partition(graphs, best.labels)
