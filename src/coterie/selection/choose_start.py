"""Which of several clusterings to trust, told without labels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from coterie.checks import check_whole
from coterie.clustering.kmeans import unit_rows
from coterie.errors import InputError
from coterie.metrics.internal.likelihood import clouds_likelihood
from coterie.metrics.internal.neighbourhoods import cosine_silhouette, kept_of_possible, kept_together
from coterie.selection.candidates import Start, followed, make_starts
from coterie.selection.neighbour_graphs import Seen, Words, see
from coterie.selection.refinement import settled

if TYPE_CHECKING:
    import torch

# Of more texts so many are drawn, clustered and judged, and the others follow those most like them: to look for the
# neighbours of each among all takes as long as the square of their number.
LOOKED_AT = 30_000
SIGNS = ("words", "neighbours", "silhouette", "likelihood", "stability")
# Draws that are clustered again: how many, which share of the texts, and how many at most.
DRAWS, SHARE, DRAWN = 4, 0.7, 2_000
# How much it costs a cluster to be small where sizes may be even; the clustering that is asked whether they may; and
# how much neighbours that it keeps together, by words and by vectors, may become fewer in all when it is drawn to one
# size, as shares of what they were. On sets made of the tuning sets, classes of one size lose up to 4.8 %, uneven ones
# (1:20 and more) from 8.5 %.
EVEN_PENALTY, ASKED, MAY_FALL = 5.0, "smoothed k-means", 0.05
# Chance moves smaller signs by large shares of what they are.
LEAST_SIGN = 0.5


@dataclass(frozen=True)
class Judged:
    """A clustering and what speaks for it; more is better.

    Attributes
    ----------
    name, labels:
        Which clustering.
    words:
        The share of nearest neighbours by TF-IDF that are in one cluster, less what chance gives clusters of these
        sizes (modularity); NaN without words.
    neighbours:
        The same for nearest neighbours by vectors, of what clusters of these sizes could have
        (:func:`~coterie.metrics.internal.neighbourhoods.kept_of_possible`). Modularity favours clusters of one size,
        this one uneven sizes; their mean favours neither.
    silhouette:
        By cosine distance.
    likelihood:
        Of the vectors, each cluster a round cloud (:func:`~coterie.metrics.internal.likelihood.clouds_likelihood`).
    stability:
        How far parts of the texts, clustered the same way, agree (adjusted Rand index); NaN where nobody asked.
    score:
        The mean over the signs that are known, each less its mean and divided by its deviation among all clusterings.
    """

    name: str
    labels: NDArray[np.int64]
    words: float
    neighbours: float
    silhouette: float
    likelihood: float
    stability: float
    score: float


@dataclass(frozen=True)
class ChosenStart:
    """What :func:`choose_start` found.

    Attributes
    ----------
    best:
        The best clustering; where sizes may be even, the best of those drawn to one size.
    judged:
        All of them as they were judged, the best first.
    even:
        Whether sizes may be even: neighbours speak next to no less for clusters that are drawn to one size.
    """

    best: Judged
    judged: tuple[Judged, ...]
    even: bool


def choose_start(
    texts: Sequence[str] | None,
    n_clusters: int,
    *,
    vectors: Any,
    weights: NDArray[Any] | None = None,
    seed: int = 0,
    device: torch.device | str = "cpu",
) -> ChosenStart:
    """The clustering of ``vectors`` that the signs speak for, of six by k-means and linkage, smoothed or not.

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
    device:
        Where to look for neighbours and to cluster: a CUDA device, or the CPU.

    Examples
    --------
    >>> import numpy as np
    >>> from coterie.selection import choose_start
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
    words = None if texts is None else Words.of([texts[row] for row in drawn.tolist()], device)
    seen = see(units[drawn], words, n_clusters, device=device, seed=seed)
    found = choose_among(seen, n_clusters, weights[drawn], seed)
    if len(drawn) == len(units):
        return found
    best, *judged = (
        replace(each, labels=followed(units, drawn, each.labels, device)) for each in (found.best, *found.judged)
    )
    return ChosenStart(best, tuple(judged), found.even)


def choose_among(seen: Seen, n_clusters: int, weights: NDArray[Any], seed: int) -> ChosenStart:
    """The clusterings that are made of what is seen, judged together: as drawn to one size, where that may be."""
    starts = make_starts(seen, n_clusters, weights, seed)
    if may_be_even(starts, seen, n_clusters, weights):
        # Clusterings of one size are much alike, and how stable they are takes the longest to find out.
        evened = [Start(each.name, drawn_to_one_size(seen, each.labels, weights)) for each in starts]
        return ChosenStart(judge(evened, seen)[0], judge(starts, seen), True)
    judged = judge(starts, seen, stability_of(starts, seen, n_clusters, weights, seed))
    return ChosenStart(judged[0], judged, False)


def may_be_even(starts: Sequence[Start], seen: Seen, n_clusters: int, weights: NDArray[Any]) -> bool:
    """Whether neighbours speak next to no less for clusters of one size; not where there are no words to ask."""
    (labels,) = (each.labels for each in starts if each.name == ASKED)
    if seen.words is None or int(labels.max()) + 1 < n_clusters:
        return False
    evened = drawn_to_one_size(seen, labels, weights)
    views = seen.words.akin, seen.pairs
    gain = sum(relative(kept_of_possible(labels, *view), kept_of_possible(evened, *view)) for view in views)
    return gain >= -MAY_FALL


def drawn_to_one_size(seen: Seen, labels: NDArray[np.int64], weights: NDArray[Any]) -> NDArray[np.int64]:
    """The clusters after they have settled at a price for small ones."""
    return settled(seen, labels, int(labels.max()) + 1, weights, EVEN_PENALTY)


def judge(starts: Sequence[Start], seen: Seen, stability: Sequence[float] | None = None) -> tuple[Judged, ...]:
    """The best by all signs first, the first named where two tie."""
    again = [float("nan")] * len(starts) if stability is None else stability
    table = [signs_of(each.labels, seen) | {"stability": value} for each, value in zip(starts, again, strict=True)]
    columns = [np.array([row[sign] for row in table]) for sign in SIGNS]
    known = [_standardised(column) for column in columns if not np.isnan(column).any()]
    scores = np.mean(known, axis=0)
    judged = [
        Judged(each.name, each.labels, **row, score=float(score))
        for each, row, score in zip(starts, table, scores, strict=True)
    ]
    return tuple(sorted(judged, key=lambda each: -each.score))


def signs_of(labels: NDArray[np.int64], seen: Seen) -> dict[str, float]:
    """Every sign of one clustering but its stability."""
    unknown = float("nan")
    return {
        "words": unknown if seen.words is None else kept_together(labels, *seen.words.akin),
        "neighbours": kept_of_possible(labels, *seen.pairs),
        "silhouette": cosine_silhouette(seen.units, labels),
        "likelihood": clouds_likelihood(seen.points, labels),
    }


def stability_of(
    starts: Sequence[Start], seen: Seen, n_clusters: int, weights: NDArray[Any], seed: int
) -> list[float] | None:
    """For each clustering, how far draws of the texts agree with it when they are clustered the same way."""
    from sklearn.metrics import adjusted_rand_score

    n_texts = len(seen.units)
    size = min(DRAWN, int(SHARE * n_texts))
    if size <= n_clusters + 1:
        return None
    agreements = []
    for draw in range(DRAWS):
        rows = np.sort(np.random.default_rng((seed, draw)).permutation(n_texts)[:size])
        again = make_starts(seen.part(rows), n_clusters, weights[rows], seed)
        pairs = zip(starts, again, strict=True)
        agreements.append([adjusted_rand_score(one.labels[rows], other.labels) for one, other in pairs])
    return [float(each) for each in np.mean(agreements, axis=0)]


def relative(before: float, after: float) -> float:
    """How far a sign has risen, as a share of what it was, or of ``LEAST_SIGN`` if that is more."""
    return (after - before) / max(abs(before), LEAST_SIGN)


def _standardised(values: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.asarray((values - values.mean()) / max(float(values.std()), 1e-12))
