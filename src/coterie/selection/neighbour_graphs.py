"""Neighbour graphs of texts: semantic (by the encoder), lexical (by TF-IDF), and both combined."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from coterie.clustering.kmeans import kmeans, unit_rows
from coterie.clustering.nearest import nearest
from coterie.metrics.internal.likelihood import word_presence
from coterie.metrics.internal.modularity import NEIGHBOURS, NeighbourPairs, modularity, neighbour_pairs, tfidf_rows
from coterie.metrics.internal.reference_cloud import principal_coordinates
from coterie.selection.graph import neighbour_graph, smooth_vectors

if TYPE_CHECKING:
    import torch

# Neighbours of each text in a graph: UMAP's default.
GRAPH_NEIGHBOURS = 15
# Nearest semantic neighbours of each text that the criteria count.
COUNTED_NEIGHBOURS = 10
# Times that vectors are averaged with their neighbours before they are clustered.
SMOOTHING_STEPS = 3
# Times that vectors are averaged before they are compared with Gaussians: more would contract clusters to points.
LIGHT_SMOOTHING_STEPS = 1
# Principal dimensions in which clusters are compared with Gaussians: the others are mostly noise.
DIMENSIONS = 20
# Restarts of the k-means whose clusters weight the lexical graph; only the mean over clusters matters.
RESTARTS = 3


@dataclass(frozen=True)
class LexicalGraph:
    """Neighbours of texts by the words they share.

    Attributes
    ----------
    tfidf:
        Sparse TF-IDF rows of length one.
    word_presence:
        Which words each text has (:func:`~coterie.metrics.internal.likelihood.word_presence`).
    graph:
        Weights from 0 to 1 between texts that share words.
    pairs:
        Pairs of each text and its nearest texts: the lexical neighbours that the criteria count.
    device:
        Where neighbours are searched.
    """

    tfidf: Any
    word_presence: Any
    graph: Any
    pairs: NeighbourPairs
    device: torch.device | str

    @classmethod
    def build(cls, texts: Sequence[str], device: torch.device | str = "cpu") -> LexicalGraph | None:
        """Return the graph of ``texts``, or ``None`` where no two of them share a word."""
        tfidf, words = tfidf_rows(texts), word_presence(texts)
        return None if tfidf is None or words is None else cls._of_rows(tfidf, words, device)

    @classmethod
    def _of_rows(cls, tfidf: Any, words: Any, device: torch.device | str) -> LexicalGraph | None:
        count = min(GRAPH_NEIGHBOURS, tfidf.shape[0] - 1)
        if count < 1:
            return None
        near, cosines = nearest(tfidf, count, device)
        graph = neighbour_graph(near, cosines)
        if not graph.nnz:
            return None
        pairs = neighbour_pairs(near[:, :NEIGHBOURS], cosines[:, :NEIGHBOURS] > 0)
        return cls(tfidf, words, graph, pairs, device)

    def subset(self, rows: NDArray[np.int64]) -> LexicalGraph | None:
        """Return the graph of some of the texts, with their neighbours among each other."""
        return self._of_rows(self.tfidf[rows], self.word_presence[rows], self.device)


@dataclass(frozen=True)
class NeighbourGraphs:
    """Texts with their semantic and lexical neighbours.

    Attributes
    ----------
    units:
        Vectors of length one, one row per text.
    semantic_graph:
        Weights from 0 to 1 between texts whose vectors are near.
    nearest_rows:
        The nearest rows of each row by cosine, the nearest first: one row per text.
    lexical:
        The lexical graph; ``None`` without one.
    lexical_weight:
        Weight of the lexical graph beside the semantic one, from 0 to 1: see :func:`build_graphs`.
    device:
        Where to compute.
    """

    units: NDArray[np.float32]
    semantic_graph: Any
    nearest_rows: NDArray[np.int64]
    lexical: LexicalGraph | None
    lexical_weight: float
    device: torch.device | str

    @property
    def semantic_pairs(self) -> NeighbourPairs:
        """Pairs of each text and its nearest texts by the encoder."""
        return neighbour_pairs(self.nearest_rows)

    @property
    def lexical_pairs(self) -> NeighbourPairs | None:
        """Pairs of each text and its nearest texts by TF-IDF; ``None`` without a lexical graph."""
        return None if self.lexical is None else self.lexical.pairs

    @property
    def word_presence(self) -> Any | None:
        """Which words each text has; ``None`` without a lexical graph."""
        return None if self.lexical is None else self.lexical.word_presence

    @cached_property
    def combined(self) -> Any:
        """The semantic graph plus the weighted lexical one."""
        if self.lexical is None or not self.lexical_weight:
            return self.semantic_graph
        return (self.semantic_graph + self.lexical_weight * self.lexical.graph).tocsr()

    @cached_property
    def smoothed(self) -> NDArray[np.float64]:
        """The vectors, averaged several times with their neighbours in the combined graph."""
        return self.smooth(SMOOTHING_STEPS)

    def smooth(self, steps: int) -> NDArray[np.float64]:
        """Return the vectors, averaged ``steps`` times with their neighbours in the combined graph."""
        return smooth_vectors(self.units, self.combined, steps, self.device)

    @cached_property
    def points(self) -> NDArray[np.float64]:
        """Leading principal coordinates of the vectors, averaged once with their neighbours."""
        smoothed = self.smooth(LIGHT_SMOOTHING_STEPS)
        return principal_coordinates(smoothed.astype(np.float32), DIMENSIONS)

    def centre(self, n_clusters: int, seed: int) -> NeighbourGraphs:
        """Return the graphs of the same texts after the mean vector is subtracted, scaled to length one again.

        All vectors of an encoder share a direction, and cosines are large because of it; without it, neighbours and
        clusters are partly others.
        """
        centred = self.units - self.units.mean(axis=0)
        return build_graphs(centred, self.lexical, n_clusters, device=self.device, seed=seed)

    def subset(self, rows: NDArray[np.int64]) -> NeighbourGraphs:
        """Return the graphs of some of the texts, with neighbours among each other and the same lexical weight."""
        lexical = None if self.lexical is None else self.lexical.subset(rows)
        units = self.units[rows]
        return NeighbourGraphs(units, *_semantic_graph(units, self.device), lexical, self.lexical_weight, self.device)


def build_graphs(
    vectors: Any,
    lexical: LexicalGraph | None = None,
    n_clusters: int = 2,
    *,
    labels: NDArray[np.int64] | None = None,
    device: torch.device | str = "cpu",
    seed: int = 0,
) -> NeighbourGraphs:
    """Build the semantic graph of vectors and compute the weight of the lexical graph.

    The lexical graph is weighted by how well semantic clusters preserve lexical neighbours: the modularity of a
    partition on the lexical neighbours, divided by its modularity on the semantic ones, between 0 and 1. Words that
    are unrelated to the semantic clusters get weight 0.

    Parameters
    ----------
    vectors:
        One row per text, of any length.
    lexical:
        The lexical graph of the same texts.
    n_clusters:
        How many semantic clusters to make for the weight, by k-means of smoothed vectors.
    labels:
        The partition to use for the weight in place of that k-means.
    device:
        Where to search for neighbours and to cluster: a CUDA device, or the CPU.
    seed:
        Seed of the k-means.
    """
    units = np.asarray(unit_rows(np.asarray(vectors)), dtype=np.float32)
    graph, nearest_rows = _semantic_graph(units, device)
    weight = 0.0
    if lexical is not None:
        if labels is None:
            smoothed = to_device(smooth_vectors(units, graph, SMOOTHING_STEPS, device), device)
            labels = kmeans(smoothed, n_clusters, n_init=RESTARTS, seed=seed).labels
        on_lexical = modularity(labels, *lexical.pairs)
        on_semantic = modularity(labels, *neighbour_pairs(nearest_rows))
        weight = float(np.clip(on_lexical / max(on_semantic, 1e-9), 0, 1))
    return NeighbourGraphs(units, graph, nearest_rows, lexical, weight, device)


def _semantic_graph(units: NDArray[np.float32], device: torch.device | str) -> tuple[Any, NDArray[np.int64]]:
    rows, cosines = nearest(units, min(GRAPH_NEIGHBOURS, len(units) - 1), device)
    return neighbour_graph(rows, cosines), rows[:, :COUNTED_NEIGHBOURS]


def to_device(vectors: NDArray[Any], device: torch.device | str) -> Any:
    """Return the vectors as a tensor on a CUDA device, or unchanged for any other device."""
    if not str(device).startswith("cuda"):
        return vectors
    import torch

    return torch.from_numpy(np.asarray(vectors, dtype=np.float32)).to(device)
