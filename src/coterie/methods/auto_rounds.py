"""The rounds of the default method: what is taught, what is learned, and clusters anew after each."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional

from coterie.clustering.kmeans import centroids, kmeans, unit_rows
from coterie.methods.auto_guard import Kept, weigh
from coterie.methods.auto_losses import neighbour_contrast, taught
from coterie.methods.auto_teaching import drawn_neighbours, graph_of_pairs, transported, two_views, with_oneself
from coterie.methods.training import Start
from coterie.starts.candidates import Start as Clustering
from coterie.starts.candidates import without_gaps
from coterie.starts.choice import ChosenStart, Seen, choose_among, judge, see
from coterie.text.corpus import Corpus
from coterie.training.objective import AUGMENTED, ORIGINAL, Batch, EmbedCorpus, LossTerms, Objective
from coterie.validity.neighbourhoods import Pairs, by_words_in_turn

if TYPE_CHECKING:
    from coterie.methods.auto import Coterie


class Teacher(nn.Module):
    """What all rounds share: the clusters held for true, the neighbours that vote, and the head that learns them."""

    def __init__(self, start: Start, akin: Pairs | None, settings: Coterie) -> None:
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
        self._lexical = None if akin is None else graph_of_pairs(n_texts, akin)
        self._semantic: Any = None
        self._shares: NDArray[np.float64] | None = None

    def logits(self, embeddings: Tensor) -> Tensor:
        """The head: cosines to the centres over a temperature."""
        centers = functional.normalize(self.centers, dim=1)
        return functional.normalize(embeddings.float(), dim=1) @ centers.T / self._settings.head_temperature

    @torch.no_grad()
    def hold(self, seen: Seen, found: ChosenStart) -> None:
        """Clusters to teach from now on, and the neighbours that vote on them; the head starts at their means."""
        k = len(self.centers)
        self._semantic = with_oneself(seen.graph)
        labels = found.best.labels
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
            size_penalty=s.size_penalty,
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
    """Clusters before training and after every round, and the pairs by which the guard judges them.

    Attributes
    ----------
    frozen, start:
        The vectors before training with their neighbours, and their clusterings.
    akin:
        Texts with words in common, for the teacher.
    candidates:
        The start and what each round ended with.
    """

    def __init__(self, corpus: Corpus, frozen: Seen, settings: Coterie) -> None:
        self.frozen = frozen
        self.candidates: list[Kept] = []
        self._corpus = corpus
        self._settings = settings
        # The guard does not judge by the nearest, which are taught, but by those next to them.
        self.akin, self._not_taught = by_words_in_turn(corpus.distinct, 2)
        self.start = self._kept("start", self._first())

    def _first(self) -> ChosenStart:
        """The best of several clusterings, or k-means."""
        s, counts = self._settings, self._corpus.counts
        if s.start == "chosen":
            return choose_among(self.frozen, s.n_clusters, counts, self.akin, s.seed_)
        labels = kmeans(self.frozen.units, s.n_clusters, weights=counts, seed=s.seed_).labels
        return judge([Clustering("k-means", without_gaps(labels))], self.frozen, self.akin)

    def end(self, number: int, embeddings: Tensor, teacher: Teacher) -> None:
        """After a round: cluster anew, the head's own answer among the clusterings, and teach the best from now on."""
        s = self._settings
        head = Clustering("head", without_gaps(teacher.logits(embeddings).argmax(dim=1).cpu().numpy()))
        seen = see(embeddings.float().cpu().numpy())
        found = choose_among(seen, s.n_clusters, self._corpus.counts, self.akin, s.seed_, [head])
        teacher.hold(seen, self._kept(f"round {number}", found))

    def _kept(self, name: str, found: ChosenStart) -> ChosenStart:
        self.candidates.append(weigh(name, found.best.labels, self.frozen.pairs, self._not_taught))
        return found
