"""What is shown of a run, each part computed when it is first asked for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import groupby
from typing import Any

import numpy as np
from numpy.typing import NDArray

from coterie.clustering.kmeans import centroids
from coterie.report.cards import ClusterCard, build_cards, runner_ups
from coterie.report.content import describe_clusters
from coterie.report.language_names import KnownNames, with_names
from coterie.report.projection import Kind, project, project_together
from coterie.report.run import Run
from coterie.types import ClusterSummary
from coterie.validity.stability import cluster_stability

# Texts on the map unless told otherwise; of more, as many are drawn.
MOST_POINTS = 20_000
# Texts of maps side by side, and how many such maps.
SHARED_TEXTS, MOST_PANELS = 1_500, 6
# Points of a curve.
CURVE_POINTS = 200


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
        The first row of every distinct text that is in a cluster, or of as many as are shown; its text, cluster and
        confidence.
    vectors, places:
        Where the method puts them, and their places on the map.
    runner_up:
        The second best cluster of each.
    frozen:
        What the encoder said of them before training; ``None`` where it was not trained, or cannot be loaded.
    cards:
        All clusters, described.
    centers:
        The mean vector of every cluster, zeros for one without a text.
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
        return self.run.model.labels_[self.rows]

    @cached_property
    def confidence(self) -> NDArray[np.float64]:
        return self.run.confidence[self.rows]

    @cached_property
    def vectors(self) -> NDArray[np.float32]:
        return _dense(self.run.model.transform(self.texts), self.seed)

    @cached_property
    def places(self) -> NDArray[np.float32]:
        return project(self.vectors, kind=self._kind, seed=self.seed)

    @cached_property
    def centers(self) -> NDArray[np.float32]:
        n_clusters = len(self.run.model.cluster_centers_)
        return centroids(self.vectors, self.clusters, n_clusters).astype(np.float32)

    @cached_property
    def runner_up(self) -> NDArray[np.int64]:
        return runner_ups(self.vectors, self.centers, self.clusters)

    @cached_property
    def frozen(self) -> NDArray[np.float32] | None:
        from coterie.errors import CoterieError
        from coterie.methods.encoding import EncoderMethod

        model = self.run.model
        if self.run.initial_labels is None or not isinstance(model, EncoderMethod):
            return None
        try:
            return np.asarray(model._load_encoder().encode(self.texts), dtype=np.float32)
        except (CoterieError, OSError):
            return None

    @cached_property
    def names(self) -> list[str]:
        """Of the clusters; told without the vectors."""
        cards = build_cards(self._summaries, self.texts, self.clusters, vectors=None)
        return [card.name for card in with_names(cards, self._given_names)]

    @cached_property
    def cards(self) -> list[ClusterCard]:
        # Many clusters take long each time, and their mean is as good from fewer.
        repeats = int(np.clip(2_000 // len(self.centers), 3, 10))
        cards = build_cards(
            self._summaries,
            self.texts,
            self.clusters,
            vectors=self.vectors,
            confidence=self.confidence,
            runner_up=self.runner_up,
            stability=cluster_stability(self.vectors, self.clusters, len(self.centers), runs=repeats, seed=self.seed),
        )
        counted = [replace(card, duplicates=share) for card, share in zip(cards, self._repeated, strict=True)]
        return with_names(counted, self._given_names)

    @property
    def _given_names(self) -> dict[int, str]:
        """Those that a language model gave."""
        return KnownNames.read(self.run.folder).clusters

    @cached_property
    def _summaries(self) -> Sequence[ClusterSummary]:
        model = self.run.model
        return self.run.summaries or describe_clusters(
            self.run.corpus.texts,
            model.labels_,
            confidence=self.run.confidence,
            center_distance=model.center_distance_,
            topics=model.cluster_topics(),
        )

    @property
    def _repeated(self) -> list[float]:
        """Which share of each cluster's rows repeats the text of an earlier row; a text is in one cluster alone."""
        labels, index = self.run.model.labels_, self.run.corpus.distinct_index
        inside, n_clusters = labels >= 0, len(self._summaries)
        rows = np.bincount(labels[inside], minlength=n_clusters)
        first = np.unique(index[inside], return_index=True)[1]
        distinct = np.bincount(labels[inside][first], minlength=n_clusters)
        return [float(share) for share in 1 - distinct / np.maximum(rows, 1)]

    @cached_property
    def before_and_after(self) -> list[Panel]:
        """Maps of the same texts by the frozen encoder and by the trained one; none where there was no training."""
        before = self.run.initial_labels
        if before is None or self.frozen is None:
            return []
        chosen = self._drawn
        maps = project_together([self.frozen[chosen], self.vectors[chosen]], kind=self._kind, seed=self.seed)
        first, last = before[self.rows][chosen], self.clusters[chosen]
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


def loss_curves(history: Mapping[str, Any]) -> dict[str, Any] | None:
    """Every loss term over the steps, in means of some steps each, and where the stages begin."""
    steps: list[dict[str, Any]] = history["steps"]
    if not steps:
        return None
    known = ("stage", "epoch", "step")
    names = list(dict.fromkeys(name for step in steps for name in step if name not in known))
    width = -(-len(steps) // CURVE_POINTS)
    terms: dict[str, list[list[float]]] = {}
    for name in names:
        there = [(step["step"], step[name]) for step in steps if name in step]
        parts = [there[begin : begin + width] for begin in range(0, len(there), width)]
        terms[name] = [[_mean([x for x, _ in part]), _mean([y for _, y in part])] for part in parts]
    stages = [(stage, next(of_stage)["step"]) for stage, of_stage in groupby(steps, key=lambda step: step["stage"])]
    return {"terms": terms, "stages": [{"name": name, "step": step} for name, step in stages]}


def _dense(vectors: Any, seed: int) -> NDArray[np.float32]:
    """Word counts are reduced: a map of thousands of dimensions is none."""
    from scipy import sparse

    if not sparse.issparse(vectors):
        return np.asarray(vectors, dtype=np.float32)
    from sklearn.decomposition import TruncatedSVD

    width = max(1, min(100, min(vectors.shape) - 1))
    return np.asarray(TruncatedSVD(width, random_state=seed).fit_transform(vectors), dtype=np.float32)


def _mean(values: Sequence[float]) -> float:
    return float(f"{sum(values) / len(values):.6g}")
