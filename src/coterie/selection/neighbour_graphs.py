"""Texts by their vectors and by their words: the neighbours each view names, and both as one graph."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from coterie.clustering.kmeans import kmeans, unit_rows
from coterie.clustering.nearest import nearest
from coterie.metrics.internal.cloud import principal
from coterie.metrics.internal.neighbourhoods import NEIGHBOURS, Pairs, kept_together, pairs_of, word_space
from coterie.metrics.internal.wording import words_of
from coterie.selection.graph import neighbour_graph, smoothed

if TYPE_CHECKING:
    import torch

# Neighbours in a graph, and how many of them (the nearest) have to stay together.
GRAPH_NEIGHBOURS, KEPT = 15, 10
# Steps of smoothing.
STEPS = 3
# Principal directions in which clusters are taken for round clouds, and restarts of the k-means that weighs words.
DIRECTIONS, RESTARTS = 20, 3


@dataclass(frozen=True)
class Words:
    """What texts have in common by their words.

    Attributes
    ----------
    space, table:
        TF-IDF rows of length one, and which words each text has.
    graph:
        Weights from 0 to 1 between texts that share words.
    akin:
        Each text with those nearest to it.
    device:
        Where neighbours are looked for.
    """

    space: Any
    table: Any
    graph: Any
    akin: Pairs
    device: torch.device | str

    @classmethod
    def of(cls, texts: Sequence[str], device: torch.device | str = "cpu") -> Words | None:
        """``None`` where no two texts share a word."""
        space, table = word_space(texts), words_of(texts)
        return None if space is None or table is None else cls._of_rows(space, table, device)

    @classmethod
    def _of_rows(cls, space: Any, table: Any, device: torch.device | str) -> Words | None:
        count = min(GRAPH_NEIGHBOURS, space.shape[0] - 1)
        if count < 1:
            return None
        near, cosines = nearest(space, count, device)
        graph = neighbour_graph(near, cosines)
        if not graph.nnz:
            return None
        return cls(space, table, graph, pairs_of(near[:, :NEIGHBOURS], cosines[:, :NEIGHBOURS] > 0), device)

    def part(self, rows: NDArray[np.int64]) -> Words | None:
        """Some of the texts alone, with their neighbours among themselves."""
        return self._of_rows(self.space[rows], self.table[rows], self.device)


@dataclass(frozen=True)
class Seen:
    """Texts in both views.

    Attributes
    ----------
    units:
        Vectors of length one.
    meaning, near:
        Neighbours by vectors, as a graph and as the nearest rows of each.
    words:
        The other view, where there is one.
    say_of_words:
        How much neighbours by words count in ``graph``, from 0 to 1.
    device:
        Where to compute.
    """

    units: NDArray[np.float32]
    meaning: Any
    near: NDArray[np.int64]
    words: Words | None
    say_of_words: float
    device: torch.device | str

    @property
    def pairs(self) -> Pairs:
        """Each row with each of its nearest by vectors."""
        return pairs_of(self.near)

    @cached_property
    def graph(self) -> Any:
        """Neighbours in both views."""
        if self.words is None or not self.say_of_words:
            return self.meaning
        return (self.meaning + self.say_of_words * self.words.graph).tocsr()

    @cached_property
    def smooth(self) -> NDArray[np.float64]:
        """The vectors drawn to those of their neighbours."""
        return smoothed(self.units, self.graph, STEPS, self.device)

    @cached_property
    def points(self) -> NDArray[np.float64]:
        """The vectors, drawn a little to those of their neighbours, in their principal directions."""
        return principal(smoothed(self.units, self.graph, 1, self.device).astype(np.float32), DIRECTIONS)

    def part(self, rows: NDArray[np.int64]) -> Seen:
        """Some of the texts alone, with their neighbours among themselves and the same say of words."""
        words = None if self.words is None else self.words.part(rows)
        units = self.units[rows]
        return Seen(units, *_by_vectors(units, self.device), words, self.say_of_words, self.device)


def see(
    vectors: Any,
    words: Words | None = None,
    n_clusters: int = 2,
    *,
    labels: NDArray[np.int64] | None = None,
    device: torch.device | str = "cpu",
    seed: int = 0,
) -> Seen:
    """Vectors of any length with their neighbours; words have as much say as clusters by vectors keep them together.

    Those clusters are ``labels``, or ``n_clusters`` by k-means of vectors that are smoothed over their neighbours. The
    say of words is the share of neighbours by words that are in one cluster, less what chance gives, divided by the
    same for neighbours by vectors: words that tell nothing of the clusters have no say.
    """
    units = np.asarray(unit_rows(np.asarray(vectors)), dtype=np.float32)
    meaning, near = _by_vectors(units, device)
    say = 0.0
    if words is not None:
        if labels is None:
            smooth = on(smoothed(units, meaning, STEPS, device), device)
            labels = kmeans(smooth, n_clusters, n_init=RESTARTS, seed=seed).labels
        by_words, by_vectors = kept_together(labels, *words.akin), kept_together(labels, *pairs_of(near))
        say = float(np.clip(by_words / max(by_vectors, 1e-9), 0, 1))
    return Seen(units, meaning, near, words, say, device)


def _by_vectors(units: NDArray[np.float32], device: torch.device | str) -> tuple[Any, NDArray[np.int64]]:
    rows, cosines = nearest(units, min(GRAPH_NEIGHBOURS, len(units) - 1), device)
    return neighbour_graph(rows, cosines), rows[:, :KEPT]


def on(vectors: NDArray[Any], device: torch.device | str) -> Any:
    """The vectors on a CUDA device, or as they are."""
    if not str(device).startswith("cuda"):
        return vectors
    import torch

    return torch.from_numpy(np.asarray(vectors, dtype=np.float32)).to(device)
