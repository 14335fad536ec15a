"""Which of several clusterings to trust, told without labels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from coterie.checks import check_whole
from coterie.clustering.kmeans import unit_rows
from coterie.clustering.nearest import nearest
from coterie.errors import InputError
from coterie.starts.candidates import Start, followed, make_starts
from coterie.starts.graph import neighbour_graph
from coterie.validity.neighbourhoods import Pairs, cosine_silhouette, kept_together, nearest_by_words, pairs_of

# Of more texts so many are drawn, clustered and judged, and the others follow those most like them: to look for the
# neighbours of each among all takes as long as the square of their number.
LOOKED_AT = 30_000
# Neighbours in the graph, and how many of them (the nearest) have to stay together.
NEIGHBOURS, KEPT = 15, 10
SIGNS = ("neighbours", "words", "silhouette", "agreement")


@dataclass(frozen=True)
class Judged:
    """A clustering and what speaks for it; more is better.

    Attributes
    ----------
    name, labels:
        Which clustering.
    neighbours, words:
        The share of nearest neighbours, by vectors and by TF-IDF, that are in one cluster, less what chance gives
        clusters of these sizes (modularity); NaN where no text has such a neighbour.
    silhouette:
        By cosine distance.
    agreement:
        With the other clusterings: the mean adjusted Rand index.
    score:
        The mean rank among all, from 0 to 1, over the signs that are known.
    """

    name: str
    labels: NDArray[np.int64]
    neighbours: float
    words: float
    silhouette: float
    agreement: float
    score: float


@dataclass(frozen=True)
class ChosenStart:
    """What :func:`choose_start` found: the best clustering, and all of them, the best first."""

    best: Judged
    judged: tuple[Judged, ...]


def choose_start(
    texts: Sequence[str] | None,
    n_clusters: int,
    *,
    vectors: Any,
    weights: NDArray[Any] | None = None,
    seed: int = 0,
) -> ChosenStart:
    """The clustering of ``vectors`` that the signs speak for, of eight by k-means and linkage, smoothed or not.

    Parameters
    ----------
    texts:
        Distinct texts, for the sign of their words; ``None`` leaves it out.
    n_clusters:
        How many clusters.
    vectors:
        One row a text.
    weights:
        How often each text occurs; k-means counts it so often.
    seed:
        For k-means, for draws from many texts, and for the graph's waves.

    Examples
    --------
    >>> import numpy as np
    >>> from coterie.starts import choose_start
    >>> corners = np.repeat(np.eye(4), 30, axis=0)
    >>> found = choose_start(None, 4, vectors=corners + np.random.default_rng(0).normal(scale=0.05, size=corners.shape))
    >>> np.bincount(found.best.labels).tolist()
    [30, 30, 30, 30]
    """
    check_whole("n_clusters", n_clusters, least=2)
    units = np.asarray(unit_rows(np.asarray(vectors)), dtype=np.float32)
    if len(units) <= n_clusters + 1:
        raise InputError(f"{n_clusters} clusters of {len(units)} texts leave nothing to choose between")
    weights = np.ones(len(units), dtype=np.int64) if weights is None else np.asarray(weights)
    drawn = np.sort(np.random.default_rng(seed).permutation(len(units))[: max(LOOKED_AT, n_clusters + 2)])
    akin = None if texts is None else nearest_by_words([texts[row] for row in drawn.tolist()])
    found = choose_among(see(units[drawn]), n_clusters, weights[drawn], akin, seed)
    if len(drawn) == len(units):
        return found
    judged = tuple(replace(each, labels=followed(units, drawn, each.labels)) for each in found.judged)
    return ChosenStart(judged[0], judged)


@dataclass(frozen=True)
class Seen:
    """Vectors of length one and their neighbours: as a graph, and the nearest rows of each."""

    units: NDArray[np.float32]
    graph: Any
    near: NDArray[np.int64]

    @property
    def pairs(self) -> Pairs:
        """Each row with each of its nearest."""
        return pairs_of(self.near)


def see(vectors: Any) -> Seen:
    """The neighbours of vectors of any length."""
    units = np.asarray(unit_rows(np.asarray(vectors)), dtype=np.float32)
    rows, cosines = nearest(units, min(NEIGHBOURS, len(units) - 1))
    return Seen(units, neighbour_graph(rows, cosines), rows[:, :KEPT])


def choose_among(
    seen: Seen,
    n_clusters: int,
    weights: NDArray[Any],
    akin: Pairs | None,
    seed: int,
    others: Sequence[Start] = (),
) -> ChosenStart:
    """The clusterings that are made of what is seen, and ``others`` of the same rows, judged together."""
    return judge([*make_starts(seen.units, seen.graph, n_clusters, weights, seed), *others], seen, akin)


def judge(starts: Sequence[Start], seen: Seen, akin: Pairs | None) -> ChosenStart:
    """Rank the clusterings by every sign; the best mean rank wins, the first named where two tie.

    ``akin`` are pairs of rows that share words, if the texts are known.
    """
    from sklearn.metrics import adjusted_rand_score

    alike = np.eye(len(starts))
    for i, one in enumerate(starts):
        for j in range(i):
            alike[i, j] = alike[j, i] = adjusted_rand_score(one.labels, starts[j].labels)
    table = {
        "neighbours": [kept_together(each.labels, *seen.pairs) for each in starts],
        "words": [float("nan") if akin is None else kept_together(each.labels, *akin) for each in starts],
        "silhouette": [cosine_silhouette(seen.units, each.labels) for each in starts],
        "agreement": ((alike.sum(axis=1) - 1) / max(len(starts) - 1, 1)).tolist(),
    }
    ranks = [_ranks(table[sign]) for sign in SIGNS if not np.isnan(table[sign]).any()]
    scores = np.mean(ranks, axis=0)
    judged = [
        Judged(each.name, each.labels, **{sign: float(table[sign][i]) for sign in SIGNS}, score=float(scores[i]))
        for i, each in enumerate(starts)
    ]
    ordered = sorted(judged, key=lambda each: -each.score)
    return ChosenStart(ordered[0], tuple(ordered))


def _ranks(values: Sequence[float]) -> NDArray[np.float64]:
    """From 0 for the lowest to 1 for the highest; equal ones share."""
    from scipy.stats import rankdata

    return np.asarray((rankdata(values) - 1) / max(len(values) - 1, 1))
