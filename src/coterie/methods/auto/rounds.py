"""The rounds of the default method: what is taught, what is learned, and clusters anew after each."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional

from coterie.clustering.kmeans import centroids, kmeans, unit_rows
from coterie.methods.auto.losses import neighbour_contrast, taught
from coterie.methods.auto.targets import drawn_neighbours, transported, two_views
from coterie.methods.trained import TrainingStart
from coterie.selection.candidates import Start as Clustering
from coterie.selection.candidates import make_starts, without_gaps
from coterie.selection.choose_start import EVEN_PENALTY, choose_among, drawn_to_one_size
from coterie.selection.graph import by_rows, with_oneself
from coterie.selection.guard import Candidate, score_candidate
from coterie.selection.neighbour_graphs import Seen, see
from coterie.selection.refinement import settled
from coterie.text.corpus import Corpus
from coterie.training.objective import AUGMENTED, ORIGINAL, Batch, EmbedCorpus, LossTerms, Objective

if TYPE_CHECKING:
    from coterie.methods.auto.method import Coterie


# Clusters made anew have to be so much better than those of the head, by the guard's gain.
AHEAD = 0.03


class Teacher(nn.Module):
    """What all rounds share: the clusters held for true, the neighbours that vote, and the head that learns them."""

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
        words = rounds.frozen.words
        self._lexical = by_rows(words.graph) if words is not None and settings.words else None
        self._size_penalty = EVEN_PENALTY if rounds.even else settings.size_penalty
        self._semantic: Any = None
        self._shares: NDArray[np.float64] | None = None

    def logits(self, embeddings: Tensor) -> Tensor:
        """The head: cosines to the centres over a temperature."""
        centers = functional.normalize(self.centers, dim=1)
        return functional.normalize(embeddings.float(), dim=1) @ centers.T / self._settings.head_temperature

    @torch.no_grad()
    def hold(self, seen: Seen, labels: NDArray[np.int64]) -> None:
        """Clusters to teach from now on, and the neighbours that vote on them; the head starts at their means."""
        k = len(self.centers)
        self._semantic = with_oneself(seen.meaning)
        self._shares = np.eye(k)[labels]
        means = unit_rows(centroids(seen.units, labels, k, self._counts))
        self.centers.copy_(torch.from_numpy(means))

    @torch.no_grad()
    def teach(self, embeddings: Tensor) -> None:
        """A new lesson: from the clusters that a round begins with, and from the head afterwards."""
        s, shares = self._settings, self._shares
        if shares is None:
            shares = self.logits(embeddings).softmax(dim=1).double().cpu().numpy()
        self._shares = None
        logs, trust, lexical_trust = two_views(shares, self._semantic, self._lexical)
        targets = transported(
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
        near = torch.from_numpy(drawn_neighbours(graphs, labels, self._generator)).to(embeddings.device)
        self.targets.copy_(torch.from_numpy(targets))
        self.trust.copy_(torch.from_numpy(trust))
        self.labels.copy_(torch.from_numpy(labels))
        self.near.copy_(embeddings[near])
        self.lexical_trust.append(lexical_trust)


class Round(Objective):
    """One round: both views learn the clusters held for true, beside contrast with each other and with a neighbour."""

    recordable = True

    def __init__(self, number: int, teacher: Teacher, rounds: Rounds, settings: Coterie) -> None:
        super().__init__()
        self.number = number
        self.teacher = teacher
        self.views = (ORIGINAL, ORIGINAL) if settings._virtual else (ORIGINAL, AUGMENTED[0])
        self._rounds = rounds
        self._settings = settings

    def start(self, embed_corpus: EmbedCorpus) -> None:
        """Every round but the first begins with clusters of what was learned."""
        if self.number:
            self._rounds.end(self.number, embed_corpus(), self.teacher)

    def refresh(self, embed_corpus: EmbedCorpus) -> None:
        self.teacher.teach(embed_corpus())

    def head_probabilities(self, embeddings: Tensor) -> Tensor:
        return self.teacher.logits(embeddings).softmax(dim=1)

    def loss(self, batch: Batch) -> LossTerms:
        s, t, weights = self._settings, self.teacher, batch.weights
        targets, trust, labels = t.targets[batch.rows], t.trust[batch.rows], t.labels[batch.rows]
        first, second = batch.embeddings
        near = t.near[batch.rows]
        cluster = sum(taught(t.logits(view), targets, trust, weights) for view in (first, second)) / 2
        views = sum(
            neighbour_contrast(one, other, labels, s.temperature, weights)
            for one, other in ((first, second), (second, first))
        )
        neighbours = sum(neighbour_contrast(view, near, labels, s.temperature, weights) for view in (first, second))
        assert isinstance(cluster, Tensor) and isinstance(views, Tensor) and isinstance(neighbours, Tensor)
        total = cluster + s.view_weight * views / 2 + s.neighbour_weight * neighbours / 2
        return LossTerms(total, cluster=cluster, views=views / 2, neighbours=neighbours / 2)


class Rounds:
    """Clusters before training and after every round, all judged by the texts as they were before training.

    Attributes
    ----------
    frozen, start:
        The texts before training with their neighbours, and their clusters.
    even:
        Whether clusters are drawn to one size.
    candidates:
        The start and what each round ended with.
    """

    def __init__(self, corpus: Corpus, frozen: Seen, settings: Coterie) -> None:
        self.frozen = frozen
        self.candidates: list[Candidate] = []
        self._counts = corpus.counts
        self._settings = settings
        self.start, self.even = self._first()
        self.candidates.append(score_candidate("start", self.start.labels, frozen))

    def _first(self) -> tuple[Clustering, bool]:
        """The best of several clusterings, or k-means; and whether clusters are drawn to one size."""
        s, even = self._settings, False
        if s.start == "chosen":
            found = choose_among(self.frozen, s.n_clusters, self._counts, s.seed_)
            even = found.even and s.sizes != "free"
            best = found.best if even else found.judged[0]
            name, labels = best.name, best.labels
        else:
            partition = kmeans(self.frozen.units, s.n_clusters, weights=self._counts, seed=s.seed_)
            name, labels = "k-means", without_gaps(partition.labels)
        if s.sizes == "equal" and not even:
            even, labels = True, drawn_to_one_size(self.frozen, labels, self._counts)
        return Clustering(name, labels), even

    def end(self, number: int, embeddings: Tensor, teacher: Teacher) -> None:
        """After a round: cluster anew as the start was made, and teach that, or the head's own answer, from now on."""
        s, first = self._settings, self.candidates[0]
        head = without_gaps(teacher.logits(embeddings).argmax(dim=1).cpu().numpy())
        vectors = embeddings.float().cpu().numpy()
        seen = see(vectors, self.frozen.words, s.n_clusters, labels=head, device=self.frozen.device)
        (again,) = make_starts(seen, s.n_clusters, self._counts, s.seed_, [self.start.name])
        both = [settled(seen, head, int(head.max()) + 1, self._counts), again.labels]
        if self.even:
            both = [drawn_to_one_size(seen, each, self._counts) for each in both]
        best, anew = (score_candidate(f"round {number}", each, self.frozen) for each in both)
        if anew.gain_over(first) > best.gain_over(first) + AHEAD:
            best = anew
        self.candidates.append(best)
        teacher.hold(seen, best.labels)
