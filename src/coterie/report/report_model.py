"""What is shown of a run, each part computed when it is first asked for."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from coterie.describe.cards import (
    N_BORDERLINE,
    ClusterCard,
    build_cards,
    runner_ups,
    weakest_rows,
    with_borderline,
)
from coterie.describe.clusters import describe_clusters
from coterie.describe.geometry import as_dense, cluster_means
from coterie.describe.language_model_names import KnownNames, with_names
from coterie.metrics.internal.stability import cluster_stability
from coterie.report.curves import loss_curves
from coterie.report.projection import Kind, project, project_together
from coterie.runs.edited_clusters import changed_clusters
from coterie.runs.map_file import StoredMap
from coterie.runs.saved_run import Run, read_told_clusters
from coterie.types import ClusterSummary

# Texts on the map unless told otherwise; of more, as many are drawn.
MOST_POINTS = 20_000
# Texts of maps side by side, and how many such maps.
SHARED_TEXTS, MOST_PANELS = 1_500, 6


@dataclass(frozen=True)
class Panel:
    """A map of some of the shown texts, as one of several side by side.

    Attributes
    ----------
    title:
        The moment it shows.
    chosen:
        Which of the shown texts they are.
    places, clusters:
        Their places, and the cluster of each.
    """

    title: str
    chosen: NDArray[np.int64]
    places: NDArray[np.float32]
    clusters: NDArray[np.int64]


class Shown:
    """The parts of a report and of pictures.

    Parameters
    ----------
    labels:
        True labels, row for row, where they are known; ``None`` for a row without one.
    kind:
        How maps are made: see :func:`~coterie.report.projection.project`.
    points:
        Texts on the map at most; of more, as many are drawn.

    Attributes
    ----------
    rows, texts, clusters, confidence:
        The first row of every distinct text that was fitted into a cluster, or of as many as are shown; its text,
        confidence and the cluster it is in now, -1 where a person took it out of all.
    vectors, places:
        Where the method puts them, and their places on the map.
    runner_up:
        The second best cluster of each.
    frozen:
        What the encoder said of them before training; ``None`` where it was not trained, or cannot be loaded.
    cards:
        All clusters, described, the largest first.
    centers:
        The mean vector of every cluster, by id, NaN for one without a text.
    """

    def __init__(
        self,
        run: Run,
        *,
        labels: Sequence[object] | None = None,
        kind: Kind = "auto",
        points: int = MOST_POINTS,
    ) -> None:
        self.run = run
        self.labels = labels
        self._kind = kind
        self._points = points
        self.seed = run.model.seed_

    @cached_property
    def rows(self) -> NDArray[np.int64]:
        first = np.unique(self.run.corpus.distinct_index, return_index=True)[1]
        rows = np.sort(first[self.run.model.labels_[first] >= 0])
        if len(rows) > self._points:
            rows = np.sort(np.random.default_rng(self.seed).permutation(rows)[: self._points])
        return rows

    @cached_property
    def texts(self) -> list[str]:
        return [self.run.corpus.texts[row] for row in self.rows]

    @cached_property
    def clusters(self) -> NDArray[np.int64]:
        return self.run.labels[self.rows]

    @cached_property
    def confidence(self) -> NDArray[np.float64]:
        return self.run.confidence[self.rows]

    @cached_property
    def vectors(self) -> NDArray[np.float32]:
        return self._reduced[0]

    @cached_property
    def _reduced(self) -> tuple[NDArray[np.float32], Callable[[Any], NDArray[np.float32]]]:
        """The vectors, and what makes the same of other ones."""
        return _dense(self.run.model.transform(self.texts), self.seed)

    @cached_property
    def places(self) -> NDArray[np.float32]:
        return project(self.vectors, kind=self._kind, seed=self.seed)

    @cached_property
    def stored_map(self) -> StoredMap:
        """The map and the vectors behind it, to keep in the run folder."""
        from scipy.sparse import issparse

        # Word counts are reduced before they are projected: their vectors are not those of ``transform``.
        exact = not issparse(self.run.model.transform(self.texts[:1]))
        return StoredMap(self.rows, self.places, self.vectors, exact)

    @cached_property
    def centers(self) -> NDArray[np.float32]:
        return cluster_means(self.vectors, self.clusters, self.run.n_ids)

    @cached_property
    def runner_up(self) -> NDArray[np.int64]:
        return runner_ups(self.vectors, self.centers, self.clusters)

    @cached_property
    def frozen(self) -> NDArray[np.float32] | None:
        from coterie.errors import CoterieError
        from coterie.methods.encoder_method import EncoderMethod

        model = self.run.model
        if self.run.initial_labels is None or not isinstance(model, EncoderMethod):
            return None
        try:
            return np.asarray(model.load_encoder().encode(self.texts), dtype=np.float32)
        except (CoterieError, OSError):
            return None

    @cached_property
    def names(self) -> list[str]:
        """Of the clusters, by id, empty for one that is gone; told without the vectors."""
        if self.run.edited is not None:
            return [self.run.edited.names.get(k, "") for k in range(self.run.n_ids)]
        cards = build_cards(self._summaries, self.texts, self.clusters, vectors=None)
        return [card.name for card in with_names(cards, self._given_names)]

    @cached_property
    def fitted_names(self) -> list[str]:
        """Of the clusters as they were fitted, by id: as they are called now, or were when they were there."""
        if self.run.edited is None:
            return self.names
        told = [each["name"] for each in read_told_clusters(self.run.folder)]
        return [now or before for now, before in zip(self.names, told, strict=False)]

    @cached_property
    def cards(self) -> list[ClusterCard]:
        # Many clusters take long each time, and their mean is as good from fewer.
        repeats = int(np.clip(2_000 // max(1, len(self._summaries)), 3, 10))
        stability = cluster_stability(self.vectors, self.clusters, self.run.n_ids, runs=repeats, seed=self.seed)
        cards = build_cards(
            self._summaries,
            self.texts,
            self.clusters,
            vectors=self.vectors,
            confidence=self.confidence,
            runner_up=self.runner_up,
            stability=stability[[summary.id for summary in self._summaries]],
        )
        repeated, edited = self._repeated, self.run.edited
        counted = [replace(card, duplicates=float(repeated[card.summary.id])) for card in self._with_weakest(cards)]
        if edited is None:
            return with_names(counted, self._given_names)
        # Ids go by size only where nobody has changed it.
        counted.sort(key=lambda card: -card.summary.size)
        now = [(card, edited.names[card.summary.id]) for card in counted]
        return [replace(card, name=name, keyword_name=None if card.name == name else card.name) for card, name in now]

    def _with_weakest(self, cards: list[ClusterCard]) -> list[ClusterCard]:
        """Borderline texts of all texts, also of those that are not shown: these few are embedded for it."""
        run = self.run
        if len(self.rows) == len(run.corpus.distinct):
            return cards
        rows = weakest_rows(run.corpus.distinct_index, run.labels, run.confidence, N_BORDERLINE)
        texts = [run.corpus.texts[row] for row in rows]
        others = runner_ups(self._reduced[1](run.model.transform(texts)), self.centers, run.labels[rows])
        return with_borderline(cards, texts, run.labels[rows], run.confidence[rows], others)

    @property
    def _given_names(self) -> dict[int, str]:
        """Those that a language model gave."""
        return KnownNames.read(self.run.folder).clusters

    @cached_property
    def _summaries(self) -> Sequence[ClusterSummary]:
        run, model = self.run, self.run.model
        if run.edited is None:
            return run.summaries or describe_clusters(
                run.corpus.texts,
                model.labels_,
                confidence=run.confidence,
                center_distance=model.center_distance_,
                topics=model.cluster_topics(),
            )
        found = describe_clusters(
            run.corpus.texts, run.labels, confidence=run.confidence, center_distance=self._distance_now
        )
        topics, changed = model.cluster_topics(), changed_clusters(run.edited, model.labels_)
        return [
            # Topics were learned of the texts that the fit put together.
            summary if topics is None or summary.id in changed else replace(summary, topics=tuple(topics[summary.id]))
            for summary in found
            if summary.size
        ]

    @property
    def _distance_now(self) -> NDArray[np.float64]:
        """How far each row is from the middle of its cluster as it is now; texts that are not shown are far."""
        far = np.full(len(self.run.corpus.distinct) + 1, np.inf)
        here = np.where(self.clusters >= 0, self.clusters, 0)
        apart = np.linalg.norm(self.vectors - self.centers[here], axis=1)
        index = self.run.corpus.distinct_index
        far[index[self.rows]] = apart
        # An empty text has the index -1, which is the last place.
        return far[index]

    @property
    def _repeated(self) -> NDArray[np.float64]:
        """Which share of each cluster's rows repeats the text of an earlier row; a text is in one cluster alone."""
        labels, index = self.run.labels, self.run.corpus.distinct_index
        inside, n_clusters = labels >= 0, self.run.n_ids
        rows = np.bincount(labels[inside], minlength=n_clusters)
        first = np.unique(index[inside], return_index=True)[1]
        distinct = np.bincount(labels[inside][first], minlength=n_clusters)
        return np.asarray(1 - distinct / np.maximum(rows, 1))

    @cached_property
    def before_and_after(self) -> list[Panel]:
        """Maps of the same texts by the frozen encoder and by the trained one; none where there was no training.

        Coloured as they were fitted: what people changed afterwards says nothing about the training.
        """
        before = self.run.initial_labels
        if before is None or self.frozen is None:
            return []
        chosen = self._drawn
        maps = project_together([self.frozen[chosen], self.vectors[chosen]], kind=self._kind, seed=self.seed)
        first, last = before[self.rows][chosen], self.run.model.labels_[self.rows][chosen]
        return [Panel("before", chosen, maps[0], first), Panel("after", chosen, maps[1], last)]

    @cached_property
    def stages(self) -> list[Panel]:
        """Maps of the same texts at stored moments of the training, coloured as they ended."""
        if self.run.initial_labels is None:
            return []
        chosen = self._drawn
        found = self.run.snapshots(self.rows[chosen])
        if len(found) < 2:
            return []
        picked = np.unique(np.linspace(0, len(found) - 1, min(MOST_PANELS, len(found))).round().astype(int))
        maps = project_together([found[place][1] for place in picked], kind=self._kind, seed=self.seed)
        clusters = self.clusters[chosen]
        return [Panel(found[at][0], chosen, places, clusters) for at, places in zip(picked, maps, strict=True)]

    @property
    def _drawn(self) -> NDArray[np.int64]:
        """Some of the shown texts that were learned on."""
        assert self.run.initial_labels is not None
        learned = np.flatnonzero(self.run.initial_labels[self.rows] >= 0)
        return np.sort(np.random.default_rng(self.seed).permutation(learned)[:SHARED_TEXTS])

    @cached_property
    def curves(self) -> dict[str, Any] | None:
        """Every loss term over the steps, in means of some steps each, and where the stages begin."""
        return loss_curves(self.run.about["history"])


def _dense(vectors: Any, seed: int) -> tuple[NDArray[np.float32], Callable[[Any], NDArray[np.float32]]]:
    """Word counts are reduced: a map of thousands of dimensions is none. And what reduces others in the same way."""
    from scipy import sparse

    if not sparse.issparse(vectors):
        return as_dense(vectors), as_dense
    from sklearn.decomposition import TruncatedSVD

    reducer = TruncatedSVD(max(1, min(100, min(vectors.shape) - 1)), random_state=seed)
    return as_dense(reducer.fit_transform(vectors)), lambda others: as_dense(reducer.transform(others))
