"""Assign texts to centres, block by block, so that no array of all texts times all clusters is needed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from coterie.clustering.assignment import (
    exact_squared_distances,
    near_ties,
    rows_at_a_time,
    squared_distances,
    within_noise,
)
from coterie.errors import InputError
from coterie.methods.results import Encoded, Learned, blank_rows, lead

if TYPE_CHECKING:
    from coterie.methods.base import ClusteringMethod
    from coterie.methods.fitted_texts import FittedTexts

# Texts that are embedded together: enough to use the whole device and to sort by length, few enough for the memory.
TEXTS_PER_BLOCK = 65_536
# Factor that makes one of two equal probabilities the larger one, and survives the division by their sum.
BARELY_MORE = 1 + 1e-12


@dataclass(frozen=True)
class Block:
    """The assignment of some texts.

    Attributes
    ----------
    rows:
        Indices of these texts among all texts.
    distances:
        Squared distances to all centres, near ties computed exactly; ``None`` where a head decides and no distances
        were asked for.
    probabilities:
        Probability of each cluster, ``texts x clusters``.
    own_labels:
        Clusters that a head, the method's own partition or the fit gives, ``None`` where the nearest centre decides.
    blank:
        Which texts have a vector of zeros.
    """

    rows: NDArray[np.int64]
    distances: NDArray[np.float64] | None
    probabilities: NDArray[np.float64]
    own_labels: NDArray[np.int64] | None
    blank: NDArray[np.bool_]

    @property
    def labels(self) -> NDArray[np.int64]:
        """The cluster of each text; the first of several that are equally near."""
        if self.own_labels is not None:
            return self.own_labels
        assert self.distances is not None
        return self.distances.argmin(axis=1)

    def confidence(self, labels: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return how far ``labels`` are ahead of the runner-up; 0 for a vector of zeros, which is near no centre."""
        return np.where(self.blank, 0.0, lead(self.probabilities, labels))


class Assigner:
    """Assigns texts to the clusters of a method.

    Parameters
    ----------
    method:
        Gives vectors, probabilities and the answers of a head.
    centers:
        One row per cluster, in the order that the head uses.
    precomputed:
        Whether the user gave the vectors; a near tie cannot be resolved by embedding the text again then.
    """

    def __init__(self, method: ClusteringMethod, centers: NDArray[np.float32], precomputed: bool) -> None:
        self._method = method
        self._centers = centers
        self._precomputed = precomputed
        self.truncated = 0

    @cached_property
    def _center_distances(self) -> NDArray[np.float64]:
        return np.sqrt(squared_distances(self._centers, self._centers))

    def new_texts(
        self,
        texts: Sequence[str],
        vectors: NDArray[np.float32] | None,
        rows: NDArray[np.int64] | None = None,
        *,
        with_distances: bool = False,
    ) -> Iterator[Block]:
        """Yield blocks of the texts ``rows`` (default: all) as ``predict`` assigns them.

        ``vectors`` are the user's, one row per text; ``with_distances`` computes distances even where a head decides.
        """
        method = self._method
        rows = np.arange(len(texts)) if rows is None else rows
        for begin in range(0, len(rows), TEXTS_PER_BLOCK):
            here = rows[begin : begin + TEXTS_PER_BLOCK]
            some = [texts[i] for i in here.tolist()]
            encoded = method._encode(some) if vectors is None else Encoded(method._prepare(vectors[here]))
            if encoded.features.shape[1] != self._centers.shape[1]:
                raise InputError(
                    f"embeddings have {encoded.features.shape[1]} dimensions, "
                    f"the model was fitted on {self._centers.shape[1]}"
                )
            self.truncated += encoded.truncated
            for part, features in self._parts(encoded.features):
                probabilities = method._head_probabilities(some[part], features)
                own_labels = None if probabilities is None else probabilities.argmax(axis=1)
                needed = probabilities is None or with_distances
                distances = self._distances(some[part], features, encoded.noise) if needed else None
                block = self._block(here[part], features, distances, probabilities, own_labels)
                yield _keep_fitted_labels(block, method.fitted_texts_, some[part])

    def fitted_texts(self, texts: Sequence[str], rows: NDArray[np.int64], learned: Learned) -> Iterator[Block]:
        """Yield blocks of the texts a method was fitted on, with its own partition where it has one."""
        for part, features in self._parts(learned.features):
            probabilities = None if learned.probabilities is None else learned.probabilities[part]
            own_labels = None if learned.labels is None else learned.labels[part]
            if probabilities is not None and own_labels is None:
                own_labels = probabilities.argmax(axis=1)
            distances = self._distances(texts[part], features, learned.noise)
            yield self._block(rows[part], features, distances, probabilities, own_labels)

    def _block(
        self,
        rows: NDArray[np.int64],
        features: Any,
        distances: NDArray[np.float64] | None,
        probabilities: NDArray[np.float64] | None,
        own_labels: NDArray[np.int64] | None,
    ) -> Block:
        if probabilities is None:
            assert distances is not None
            probabilities = self._method._probabilities(distances)
        return Block(rows, distances, probabilities, own_labels, blank_rows(features))

    def _parts(self, features: Any) -> Iterator[tuple[slice, Any]]:
        """Yield the features in parts whose distances to all centres fit into memory."""
        size = rows_at_a_time(len(self._centers))
        features = features if isinstance(features, np.ndarray) else features.tocsr()
        for begin in range(0, features.shape[0], size):
            part = slice(begin, begin + size)
            yield part, features[part]

    def _distances(self, texts: Sequence[str], features: Any, noise: float) -> NDArray[np.float64]:
        """Return squared distances to the centres that give the labels of exact vectors.

        Where the noise of a vector could decide between two centres, the text is embedded exactly; a near tie is
        resolved by embedding the text alone, so that the other texts of a batch cannot change its cluster.
        """
        distances = squared_distances(features, self._centers)
        doubtful = np.zeros(0, dtype=np.int64)
        if noise and not self._precomputed:
            doubtful = within_noise(distances, features, self._center_distances, noise)
        if len(doubtful):
            exact = self._method._encode_exactly([texts[i] for i in doubtful.tolist()])
            distances[doubtful] = squared_distances(exact, self._centers)
        ties = near_ties(distances)
        if len(ties):
            if self._precomputed:
                alone = features[ties]
            else:
                alone = self._method._encode_one_by_one([texts[i] for i in ties.tolist()])
            distances[ties] = exact_squared_distances(alone, self._centers)
        return distances


def _keep_fitted_labels(block: Block, fitted: FittedTexts | None, texts: Sequence[str]) -> Block:
    """Return the block with the texts of the fit in their clusters of the fit.

    Where another cluster is more probable, the text's own cluster gets the same probability, so its confidence is 0.
    """
    if fitted is None:
        return block
    labels, found = block.labels, fitted.find(texts)
    rows = np.flatnonzero((found >= 0) & (found != labels))
    if not len(rows):
        return block
    probabilities, labels = block.probabilities.copy(), labels.copy()
    labels[rows] = found[rows]
    probabilities[rows, found[rows]] = probabilities[rows].max(axis=1) * BARELY_MORE
    probabilities[rows] /= probabilities[rows].sum(axis=1, keepdims=True)
    return replace(block, probabilities=probabilities, own_labels=labels)


class Assignment:
    """The assignment of all texts of a fit, before the clusters are ordered by size.

    Attributes
    ----------
    squared:
        Squared distance of each text to its cluster's centre.
    most_probable:
        The most probable cluster of each text.
    confidence:
        See ``ClusteringMethod.confidence_``.
    blank:
        Whether a text's vector is zero.
    """

    def __init__(self, n_texts: int, n_clusters: int) -> None:
        self.squared = np.empty(n_texts)
        self.most_probable = np.empty(n_texts, dtype=np.int64)
        self.confidence = np.empty(n_texts)
        self.blank = np.empty(n_texts, dtype=bool)
        self._n_clusters = n_clusters
        self._nearest = np.empty(n_texts, dtype=np.int64)
        # -1 where the nearest centre decides.
        self._own_labels = np.full(n_texts, -1, dtype=np.int64)
        # Texts equally near to several centres, and the number of their set of centres: many texts share few sets.
        self._tied: list[tuple[NDArray[np.int64], NDArray[np.int64]]] = []
        self._sets: dict[bytes, int] = {}

    def add(self, block: Block) -> None:
        """Store what is needed of ``block``."""
        rows, distances, labels = block.rows, block.distances, block.labels
        assert distances is not None
        self._nearest[rows] = distances.argmin(axis=1)
        if block.own_labels is not None:
            self._own_labels[rows] = block.own_labels
        self.squared[rows] = distances[np.arange(len(labels)), labels]
        self.most_probable[rows] = block.probabilities.argmax(axis=1)
        self.confidence[rows] = block.confidence(labels)
        self.blank[rows] = block.blank
        nearest = distances == distances.min(axis=1, keepdims=True)
        tied = np.flatnonzero(nearest.sum(axis=1) > 1)
        if len(tied):
            keys = [row.tobytes() for row in nearest[tied]]
            which = np.array([self._sets.setdefault(key, len(self._sets)) for key in keys])
            self._tied.append((rows[tied], which))

    def order(self, counts: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the centres from the largest cluster to the smallest, sizes counted in this very order.

        A text equally near to two centres is assigned to the first, so the order decides ties and ties decide the
        order; ties only ever move to the larger cluster, so the loop ends.
        """
        k, (rows, which), sets = self._n_clusters, self._ties(), self._set_members()
        by_tie = np.zeros(len(counts), dtype=bool)
        by_tie[rows] = True
        by_tie &= self._own_labels < 0
        sure = np.where(self._own_labels < 0, self._nearest, self._own_labels)[~by_tie]
        sizes = np.bincount(sure, weights=counts[~by_tie], minlength=k)
        open_ties = self._own_labels[rows] < 0
        masses = np.bincount(which[open_ties], weights=counts[rows[open_ties]], minlength=len(sets))
        order = np.arange(k)
        for _ in range(k + 1):
            total = sizes.copy()
            np.add.at(total, _first_of(sets, order), masses)
            again = np.argsort(-total[order], kind="stable")
            if np.array_equal(again, np.arange(k)):
                break
            order = order[again]
        return order

    def nearest(self, order: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the nearest centre of each text as an index into ``order``; the first of several."""
        rank = np.argsort(order)
        result = rank[self._nearest]
        rows, which = self._ties()
        if len(rows):
            result[rows] = rank[_first_of(self._set_members(), order)][which]
        return result

    def labels(self, order: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the cluster of each text as an index into ``order``."""
        return np.where(self._own_labels < 0, self.nearest(order), np.argsort(order)[self._own_labels])

    def _ties(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        nothing = np.zeros(0, dtype=np.int64)
        rows = np.concatenate([nothing, *(rows for rows, _ in self._tied)])
        return rows, np.concatenate([nothing, *(which for _, which in self._tied)])

    def _set_members(self) -> NDArray[np.bool_]:
        return np.array([np.frombuffer(key, dtype=bool) for key in self._sets]).reshape(-1, self._n_clusters)


def _first_of(sets: NDArray[np.bool_], order: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the centre of each set that comes first in ``order``."""
    return order[sets[:, order].argmax(axis=1)] if len(sets) else np.zeros(0, dtype=np.int64)
