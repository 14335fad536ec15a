"""Where texts lie among the centres: block by block, so that no table of all texts and all clusters is ever kept."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
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

# Texts embedded at a time: enough to keep a device busy and to sort by length, few enough to forget.
ENCODED_AT_A_TIME = 65_536


@dataclass(frozen=True)
class Block:
    """Some texts among all centres.

    Attributes
    ----------
    places:
        Where they stand among all texts.
    distances:
        Squared, near ties settled; ``None`` where a head decides and nobody asked for distances.
    probabilities:
        Of each cluster.
    labels:
        What a head or the caller says, ``None`` where the nearest centre decides.
    blank:
        Which vectors are zero.
    """

    places: NDArray[np.int64]
    distances: NDArray[np.float64] | None
    probabilities: NDArray[np.float64]
    labels: NDArray[np.int64] | None
    blank: NDArray[np.bool_]

    @property
    def answer(self) -> NDArray[np.int64]:
        """The cluster of each text, the first of several that are equally near."""
        if self.labels is not None:
            return self.labels
        assert self.distances is not None
        return self.distances.argmin(axis=1)

    def confidence(self, labels: NDArray[np.int64]) -> NDArray[np.float64]:
        """How far ``labels`` are ahead. A vector of zeros is near nothing, whatever the distances say."""
        return np.where(self.blank, 0.0, lead(self.probabilities, labels))


class Placer:
    """Puts texts among the centres of a method.

    Parameters
    ----------
    method:
        Its encoder, probabilities and head are asked.
    centers:
        In the order the head knows.
    given:
        Whether vectors are the user's: then a near tie cannot be settled by embedding the text again.
    """

    def __init__(self, method: ClusteringMethod, centers: NDArray[np.float32], given: bool) -> None:
        self._method = method
        self._centers = centers
        self._given = given
        self.truncated = 0

    @cached_property
    def _gaps(self) -> NDArray[np.float64]:
        """Distances between the centres."""
        return np.sqrt(squared_distances(self._centers, self._centers))

    def new(
        self,
        texts: Sequence[str],
        vectors: NDArray[np.float32] | None,
        places: NDArray[np.int64] | None = None,
        *,
        measure: bool = False,
    ) -> Iterator[Block]:
        """Blocks of the texts at ``places`` (or all) whose vectors are still to be made, as ``predict`` does.

        ``vectors`` are the user's, one a text; ``measure`` asks for distances also where a head decides.
        """
        places = np.arange(len(texts)) if places is None else places
        for begin in range(0, len(places), ENCODED_AT_A_TIME):
            here = places[begin : begin + ENCODED_AT_A_TIME]
            some = [texts[i] for i in here.tolist()]
            method = self._method
            encoded = method._encode(some) if vectors is None else Encoded(method._prepare(vectors[here]))
            if encoded.features.shape[1] != self._centers.shape[1]:
                raise InputError(
                    f"embeddings have {encoded.features.shape[1]} dimensions, "
                    f"the model was fitted on {self._centers.shape[1]}"
                )
            self.truncated += encoded.truncated
            for rows, features in self._cut(encoded.features):
                told = method._head_probabilities(some[rows], features)
                labels = None if told is None else told.argmax(axis=1)
                settle = told is None or measure
                distances = self._settled(some[rows], features, encoded.noise) if settle else None
                yield self._block(here[rows], features, distances, told, labels)

    def learned(self, texts: Sequence[str], places: NDArray[np.int64], learned: Learned) -> Iterator[Block]:
        """Blocks of the texts a method was fitted on, with what it says of them where it is not "nearest centre"."""
        for rows, features in self._cut(learned.features):
            told = None if learned.probabilities is None else learned.probabilities[rows]
            labels = None if learned.labels is None else learned.labels[rows]
            if told is not None:
                labels = told.argmax(axis=1)
            distances = self._settled(texts[rows], features, learned.noise)
            yield self._block(places[rows], features, distances, told, labels)

    def _block(
        self,
        places: NDArray[np.int64],
        features: Any,
        distances: NDArray[np.float64] | None,
        told: NDArray[np.float64] | None,
        labels: NDArray[np.int64] | None,
    ) -> Block:
        if told is None:
            assert distances is not None
            told = self._method._probabilities(distances)
        return Block(places, distances, told, labels, blank_rows(features))

    def _cut(self, features: Any) -> Iterator[tuple[slice, Any]]:
        size = rows_at_a_time(len(self._centers))
        features = features if isinstance(features, np.ndarray) else features.tocsr()
        for begin in range(0, features.shape[0], size):
            rows = slice(begin, begin + size)
            yield rows, features[rows]

    def _settled(self, texts: Sequence[str], features: Any, noise: float) -> NDArray[np.float64]:
        """Squared distances to the centres; where the vectors' noise could decide, from exact vectors instead, and near
        ties from the text alone: labels are those of exact vectors, whatever stood beside a text.
        """
        distances = squared_distances(features, self._centers)
        doubtful = np.zeros(0, dtype=np.int64)
        if noise and not self._given:
            doubtful = within_noise(distances, features, self._gaps, noise)
        if len(doubtful):
            exact = self._method._encode_exactly([texts[i] for i in doubtful.tolist()])
            distances[doubtful] = squared_distances(exact, self._centers)
        ties = near_ties(distances)
        if len(ties):
            alone = features[ties] if self._given else self._method._encode_alone([texts[i] for i in ties.tolist()])
            distances[ties] = exact_squared_distances(alone, self._centers)
        return distances


class Places:
    """What is kept of each text of a fit while the clusters have no order yet.

    Attributes
    ----------
    squared:
        Squared distance to the own centre.
    confidence:
        See ``ClusteringMethod.confidence_``.
    blank:
        Whether the vector is zero.
    """

    def __init__(self, n_texts: int, n_clusters: int) -> None:
        self.squared = np.empty(n_texts)
        self.confidence = np.empty(n_texts)
        self.blank = np.empty(n_texts, dtype=bool)
        self._n_clusters = n_clusters
        self._nearest = np.empty(n_texts, dtype=np.int64)
        # -1 where the nearest centre decides.
        self._labels = np.full(n_texts, -1, dtype=np.int64)
        # Texts equally near to several centres, and to which: many texts share few such sets.
        self._tied: list[tuple[NDArray[np.int64], NDArray[np.int64]]] = []
        self._sets: dict[bytes, int] = {}

    def add(self, block: Block) -> None:
        """Keep what is needed of ``block``."""
        places, distances, answer = block.places, block.distances, block.answer
        assert distances is not None
        self._nearest[places] = distances.argmin(axis=1)
        if block.labels is not None:
            self._labels[places] = block.labels
        self.squared[places] = distances[np.arange(len(answer)), answer]
        self.confidence[places] = block.confidence(answer)
        self.blank[places] = block.blank
        nearest = distances == distances.min(axis=1, keepdims=True)
        tied = np.flatnonzero(nearest.sum(axis=1) > 1)
        if len(tied):
            keys = [row.tobytes() for row in nearest[tied]]
            which = np.array([self._sets.setdefault(key, len(self._sets)) for key in keys])
            self._tied.append((places[tied], which))

    def order(self, counts: NDArray[np.int64]) -> NDArray[np.int64]:
        """Centres from the largest cluster to the smallest, by the answers given in that very order.

        A text equally near to two centres goes to the first, so the order decides ties and ties decide the order;
        ties only ever move to the larger cluster, which makes this end.
        """
        k, (rows, which), sets = self._n_clusters, self._ties(), self._set_members()
        by_tie = np.zeros(len(counts), dtype=bool)
        by_tie[rows] = True
        by_tie &= self._labels < 0
        sure = np.where(self._labels < 0, self._nearest, self._labels)[~by_tie]
        sizes = np.bincount(sure, weights=counts[~by_tie], minlength=k)
        open_ties = self._labels[rows] < 0
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
        """The nearest centre of each text, named by its place in ``order``; the first of several."""
        rank = np.argsort(order)
        result = rank[self._nearest]
        rows, which = self._ties()
        if len(rows):
            result[rows] = rank[_first_of(self._set_members(), order)][which]
        return result

    def labels(self, order: NDArray[np.int64]) -> NDArray[np.int64]:
        """The cluster of each text, named by its place in ``order``."""
        return np.where(self._labels < 0, self.nearest(order), np.argsort(order)[self._labels])

    def _ties(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        nothing = np.zeros(0, dtype=np.int64)
        rows = np.concatenate([nothing, *(rows for rows, _ in self._tied)])
        return rows, np.concatenate([nothing, *(which for _, which in self._tied)])

    def _set_members(self) -> NDArray[np.bool_]:
        return np.array([np.frombuffer(key, dtype=bool) for key in self._sets]).reshape(-1, self._n_clusters)


def _first_of(sets: NDArray[np.bool_], order: NDArray[np.int64]) -> NDArray[np.int64]:
    """Of each set of centres the one that comes first in ``order``."""
    return order[sets[:, order].argmax(axis=1)] if len(sets) else np.zeros(0, dtype=np.int64)
