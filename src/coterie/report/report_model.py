"""What reports and plots show of a run; each part is computed when it is first used."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from coterie.describe.cards import N_BORDERLINE, ClusterCard, build_cards, weakest_rows, with_borderline
from coterie.describe.clusters import describe_clusters
from coterie.describe.geometry import as_dense, cluster_means, find_runner_ups
from coterie.describe.language_model_names import with_names
from coterie.metrics.internal.stability import cluster_stability
from coterie.report.loss_curves import average_loss_curves
from coterie.report.map_panels import MapPanel, before_after_panels, snapshot_panels
from coterie.report.projection import ProjectionKind, project
from coterie.runs.edited_clusters import changed_clusters
from coterie.runs.map_file import StoredMap
from coterie.runs.saved_run import SavedRun
from coterie.types import ClusterSummary

# Texts on the map by default: with more, points cover each other and the page grows by megabytes.
MAX_POINTS = 20_000
# Texts of maps side by side, which are a third as wide as the map.
MAX_PANEL_POINTS = 1_500
# Dimensions that word counts are reduced to before they are projected.
REDUCED_DIMENSIONS = 100


class ReportModel:
    """The parts of a report and of plots.

    Parameters
    ----------
    run:
        The saved run.
    labels:
        True labels, one per row, where they are known; ``None`` for a row without one.
    kind:
        How maps are made: see :func:`~coterie.report.projection.project`.
    points:
        The largest number of texts on the map. If there are more, a sample is shown.

    Attributes
    ----------
    rows, texts, clusters, confidence:
        The first row of every distinct text that was fitted into a cluster (or of a sample of them), with its text, its
        current cluster (-1 where an edit took it out of all clusters) and its confidence.
    vectors, coordinates:
        The embeddings of these texts, and their coordinates on the map.
    runner_ups:
        The runner-up cluster of each.
    pretrained_vectors:
        Embeddings by the encoder before training; ``None`` where there was no training or it cannot be loaded.
    cards:
        All clusters, described, the largest first.
    centers:
        The mean vector of every cluster, by id; NaN for one without a text.
    """

    def __init__(
        self,
        run: SavedRun,
        *,
        labels: Sequence[object] | None = None,
        kind: ProjectionKind = "auto",
        points: int = MAX_POINTS,
    ) -> None:
        self.run = run
        self.labels = labels
        self._kind = kind
        self._max_points = points
        self.seed = run.model.seed_

    @cached_property
    def rows(self) -> NDArray[np.int64]:
        first = np.unique(self.run.corpus.distinct_index, return_index=True)[1]
        rows = np.sort(first[self.run.model.labels_[first] >= 0])
        if len(rows) > self._max_points:
            rows = np.sort(np.random.default_rng(self.seed).permutation(rows)[: self._max_points])
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
        return self._reduction[0]

    @cached_property
    def _reduction(self) -> tuple[NDArray[np.float32], Callable[[Any], NDArray[np.float32]]]:
        """The vectors, and the function that reduces further ones in the same way."""
        return _reduce(self.run.model.transform(self.texts), self.seed)

    @cached_property
    def coordinates(self) -> NDArray[np.float32]:
        return project(self.vectors, kind=self._kind, seed=self.seed)

    @cached_property
    def stored_map(self) -> StoredMap:
        """The map and the vectors behind it, to keep in the run folder."""
        from scipy.sparse import issparse

        # Word counts are reduced before they are projected: their vectors are not those of ``transform``.
        exact = not issparse(self.run.model.transform(self.texts[:1]))
        return StoredMap(self.rows, self.coordinates, self.vectors, exact)

    @cached_property
    def centers(self) -> NDArray[np.float32]:
        return cluster_means(self.vectors, self.clusters, self.run.n_ids)

    @cached_property
    def runner_ups(self) -> NDArray[np.int64]:
        return find_runner_ups(self.vectors, self.centers, self.clusters)

    @cached_property
    def pretrained_vectors(self) -> NDArray[np.float32] | None:
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
        """Names of the clusters by id, empty for one that was merged away; computed without the vectors."""
        if self.run.edited is not None:
            return [self.run.edited.names.get(k, "") for k in range(self.run.n_ids)]
        cards = build_cards(self._summaries, self.texts, self.clusters, vectors=None)
        return [card.name for card in with_names(cards, self._language_model_names)]

    @cached_property
    def fitted_names(self) -> list[str]:
        """Names of the clusters as fitted, by id: the current name, or the last one of a cluster merged away."""
        if self.run.edited is None:
            return self.names
        fitted = [cluster["name"] for cluster in self.run.card_dicts]
        return [current or before for current, before in zip(self.names, fitted, strict=False)]

    @cached_property
    def cards(self) -> list[ClusterCard]:
        # With many clusters each repetition takes long, and their mean is as good from fewer.
        repeats = int(np.clip(2_000 // max(1, len(self._summaries)), 3, 10))
        stability = cluster_stability(self.vectors, self.clusters, self.run.n_ids, runs=repeats, seed=self.seed)
        cards = build_cards(
            self._summaries,
            self.texts,
            self.clusters,
            vectors=self.vectors,
            confidence=self.confidence,
            runner_up=self.runner_ups,
            stability=stability[[summary.id for summary in self._summaries]],
        )
        duplicates, edited = self._duplicate_shares, self.run.edited
        cards = [replace(card, duplicates=float(duplicates[card.summary.id])) for card in self._with_borderline(cards)]
        if edited is None:
            return with_names(cards, self._language_model_names)
        # A fit numbers clusters by size; edits change sizes and keep the ids.
        cards.sort(key=lambda card: -card.summary.size)
        named = [(card, edited.names[card.summary.id]) for card in cards]
        return [replace(card, name=name, keyword_name=None if card.name == name else card.name) for card, name in named]

    def _with_borderline(self, cards: list[ClusterCard]) -> list[ClusterCard]:
        """Add the borderline texts of all texts; those that are not on the map are embedded for it."""
        run = self.run
        if len(self.rows) == len(run.corpus.distinct):
            return cards
        rows = weakest_rows(run.corpus.distinct_index, run.labels, run.confidence, N_BORDERLINE)
        texts = [run.corpus.texts[row] for row in rows]
        runner_ups = find_runner_ups(self._reduction[1](run.model.transform(texts)), self.centers, run.labels[rows])
        return with_borderline(cards, texts, run.labels[rows], run.confidence[rows], runner_ups)

    @property
    def _language_model_names(self) -> dict[int, str]:
        return self.run.known_names.clusters

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
        summaries = describe_clusters(
            run.corpus.texts, run.labels, confidence=run.confidence, center_distance=self._current_distances
        )
        topics, changed = model.cluster_topics(), changed_clusters(run.edited, model.labels_)
        return [
            # Topics belong to the texts that were in the cluster when it was fitted.
            summary if topics is None or summary.id in changed else replace(summary, topics=tuple(topics[summary.id]))
            for summary in summaries
            if summary.size
        ]

    @property
    def _current_distances(self) -> NDArray[np.float64]:
        """The distance of each row to the mean of its current cluster; infinite for texts that are not on the map."""
        distances = np.full(len(self.run.corpus.distinct) + 1, np.inf)
        own = np.where(self.clusters >= 0, self.clusters, 0)
        index = self.run.corpus.distinct_index
        distances[index[self.rows]] = np.linalg.norm(self.vectors - self.centers[own], axis=1)
        # An empty text has the index -1, which is the last entry.
        return distances[index]

    @property
    def _duplicate_shares(self) -> NDArray[np.float64]:
        """The share of each cluster's rows that repeat the text of an earlier row; a text is in one cluster only."""
        labels, index = self.run.labels, self.run.corpus.distinct_index
        inside, n_clusters = labels >= 0, self.run.n_ids
        rows = np.bincount(labels[inside], minlength=n_clusters)
        first = np.unique(index[inside], return_index=True)[1]
        distinct = np.bincount(labels[inside][first], minlength=n_clusters)
        return np.asarray(1 - distinct / np.maximum(rows, 1))

    @cached_property
    def before_after_panels(self) -> list[MapPanel]:
        """Maps of the same texts by the encoder before and after training; empty where there was no training.

        Coloured by the fitted clusters: later edits say nothing about the training.
        """
        initial = self.run.initial_labels
        if initial is None or self.pretrained_vectors is None:
            return []
        chosen = self._panel_points
        vectors = (self.pretrained_vectors[chosen], self.vectors[chosen])
        clusters = (initial[self.rows][chosen], self.run.model.labels_[self.rows][chosen])
        return before_after_panels(chosen, vectors, clusters, kind=self._kind, seed=self.seed)

    @cached_property
    def snapshot_panels(self) -> list[MapPanel]:
        """Maps of the same texts at the snapshots of the training, coloured by their cluster at the end."""
        if self.run.initial_labels is None:
            return []
        chosen = self._panel_points
        snapshots = self.run.snapshots(self.rows[chosen])
        return snapshot_panels(chosen, snapshots, self.clusters[chosen], kind=self._kind, seed=self.seed)

    @property
    def _panel_points(self) -> NDArray[np.int64]:
        """A sample of the points whose texts were trained on."""
        assert self.run.initial_labels is not None
        trained = np.flatnonzero(self.run.initial_labels[self.rows] >= 0)
        return np.sort(np.random.default_rng(self.seed).permutation(trained)[:MAX_PANEL_POINTS])

    @cached_property
    def loss_curves(self) -> dict[str, Any] | None:
        """See :func:`~coterie.report.loss_curves.average_loss_curves`."""
        return average_loss_curves(self.run.about["history"])


def _reduce(vectors: Any, seed: int) -> tuple[NDArray[np.float32], Callable[[Any], NDArray[np.float32]]]:
    """Return dense vectors of few dimensions, and the function that treats further ones in the same way."""
    from scipy import sparse

    if not sparse.issparse(vectors):
        return as_dense(vectors), as_dense
    from sklearn.decomposition import TruncatedSVD

    n_dimensions = max(1, min(REDUCED_DIMENSIONS, min(vectors.shape) - 1))
    reducer = TruncatedSVD(n_dimensions, random_state=seed)
    return as_dense(reducer.fit_transform(vectors)), lambda others: as_dense(reducer.transform(others))
