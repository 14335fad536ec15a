"""What speaks for a number of clusters, told without labels.

Clusters are cuts of Ward's tree: one tree answers for every number of clusters, so that a draw of the texts costs one
tree however many numbers are tried.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from coterie.clustering.agglomerative import cut
from coterie.clustering.kmeans import unit_rows

# Trees are grown in so many of the vectors' principal directions: the others are mostly noise, and cost time.
DIRECTIONS = 50
# Pairs of draws that are compared, and the share of the texts in each: half of the texts are then in both.
PAIRS, SHARE = 5, 0.7
# Draws of the reference without clusters.
REFERENCES = 2
# Neighbours of a text, by its vector and by its words.
NEIGHBOURS = 5


class Evidence:
    """The signs of every number of clusters of some texts.

    Parameters
    ----------
    vectors:
        One row a text.
    texts:
        The texts themselves, for the sign of their words; without them it is NaN.
    """

    def __init__(self, vectors: NDArray[Any], texts: Sequence[str] | None, seed: int) -> None:
        generator = np.random.default_rng(seed)
        self._units = np.asarray(unit_rows(vectors), dtype=np.float32)
        points = principal(self._units, DIRECTIONS)
        n_texts = len(points)
        self._tree = ward_tree(points)
        self._within = _log_within(self._tree)
        self._references = [_log_within(ward_tree(_blob(points, generator))) for _ in range(REFERENCES)]
        self._pairs = []
        for _ in range(PAIRS):
            size = int(SHARE * n_texts)
            one, other = (np.sort(generator.choice(n_texts, size, replace=False)) for _ in range(2))
            _, in_one, in_other = np.intersect1d(one, other, assume_unique=True, return_indices=True)
            self._pairs.append((ward_tree(points[one]), in_one, ward_tree(points[other]), in_other))
        self._near = nearest_by_vector(self._units)
        self._akin = None if texts is None else nearest_by_words(texts)

    def labels(self, k: int) -> NDArray[np.int64]:
        """The clusters that are judged: the tree of all texts, cut."""
        return cut(self._tree, len(self._units), k)

    def of(self, k: int) -> dict[str, float]:
        """Every sign of ``k`` clusters; more is better, though gap rises with k nearly always."""
        labels = self.labels(k)
        return {
            "stability": float(np.mean([_agreement(pair, k) for pair in self._pairs])),
            "silhouette": cosine_silhouette(self._units, labels),
            "gap": self._gap(k),
            "neighbours": kept_together(labels, *self._near),
            "words": float("nan") if self._akin is None else kept_together(labels, *self._akin),
        }

    def _gap(self, k: int) -> float:
        """Gap statistic (Tibshirani, Walther and Hastie, 2001): how much tighter clusters are than parts of a cloud."""
        place = len(self._units) - k - 1
        return float(np.mean([each[place] for each in self._references]) - self._within[place])


def principal(units: NDArray[np.float32], directions: int) -> NDArray[np.float64]:
    """Coordinates in the first principal directions."""
    centred = units.astype(np.float64) - units.mean(axis=0, dtype=np.float64)
    values, axes = np.linalg.eigh(centred.T @ centred)
    kept = axes[:, np.argsort(values)[::-1][:directions]]
    return centred @ kept


def ward_tree(points: NDArray[np.float64]) -> NDArray[np.float64]:
    from scipy.cluster.hierarchy import linkage

    return np.asarray(linkage(points, "ward"))


def cosine_silhouette(units: NDArray[np.float32], labels: NDArray[np.int64]) -> float:
    """The mean silhouette by cosine distance, exactly: the mean distance to a cluster is the distance to its mean."""
    n_clusters, rows = int(labels.max()) + 1, np.arange(len(labels))
    sizes = np.bincount(labels, minlength=n_clusters)
    sums = np.zeros((n_clusters, units.shape[1]))
    np.add.at(sums, labels, units)
    likeness = units @ sums.T
    others = sizes[labels] - 1
    # A text's likeness with itself, 1 (0 for a vector of zeros), is none of its cluster's.
    itself = np.einsum("ij,ij->i", units, units)
    inside = 1 - (likeness[rows, labels] - itself) / np.maximum(others, 1)
    outside = 1 - likeness / sizes
    outside[rows, labels] = np.inf
    nearest = outside.min(axis=1)
    larger = np.maximum(inside, nearest)
    defined = (others > 0) & (larger > 1e-9)
    return float(np.where(defined, (nearest - inside) / np.where(defined, larger, 1), 0).mean())


def kept_together(labels: NDArray[np.int64], first: NDArray[np.int64], second: NDArray[np.int64]) -> float:
    """The share of neighbours in one cluster, less what chance would give clusters of these sizes: modularity.

    NaN where no text has a neighbour.
    """
    if not len(first):
        return float("nan")
    n_clusters = int(labels.max()) + 1
    starts = np.bincount(labels[first], minlength=n_clusters) / len(first)
    ends = np.bincount(labels[second], minlength=n_clusters) / len(second)
    return float((labels[first] == labels[second]).mean() - starts @ ends)


def nearest_by_vector(units: NDArray[np.float32]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Each text with each of its nearest texts."""
    n_texts = len(units)
    count = min(NEIGHBOURS, n_texts - 1)
    found = []
    for begin in range(0, n_texts, 1_024):
        likeness = units[begin : begin + 1_024] @ units.T
        likeness[np.arange(len(likeness)), begin + np.arange(len(likeness))] = -np.inf
        found.append(np.argpartition(-likeness, count - 1, axis=1)[:, :count])
    return np.repeat(np.arange(n_texts), count), np.concatenate(found).ravel()


def nearest_by_words(texts: Sequence[str]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Each text with each of those nearest by TF-IDF that share a word with it."""
    from coterie.encoders.words import WordSpace
    from coterie.errors import InputError

    once = np.ones(len(texts), dtype=np.int64)
    try:
        space = WordSpace.fit(texts, once, max_features=20_000, stop_words=None, weighting="tfidf")
    except InputError:
        return np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64)
    table = space.encode(texts)
    first, second = [], []
    for begin in range(0, len(texts), 512):
        likeness = (table[begin : begin + 512] @ table.T).toarray()
        rows = np.arange(len(likeness))
        likeness[rows, begin + rows] = 0
        count = min(NEIGHBOURS, len(texts) - 1)
        nearest = np.argpartition(-likeness, count - 1, axis=1)[:, :count]
        shares = np.take_along_axis(likeness, nearest, axis=1) > 0
        first.append(begin + np.repeat(rows, count)[shares.ravel()])
        second.append(nearest[shares])
    return np.concatenate(first), np.concatenate(second)


def adjusted_rand(first: NDArray[np.int64], second: NDArray[np.int64]) -> float:
    """How far two clusterings of the same texts agree beyond chance (Hubert and Arabie, 1985); 1 is fully."""
    from sklearn.metrics import adjusted_rand_score

    return float(adjusted_rand_score(first, second))


def _agreement(
    pair: tuple[NDArray[np.float64], NDArray[np.int64], NDArray[np.float64], NDArray[np.int64]], k: int
) -> float:
    """Of the clusters of two draws, on the texts that are in both."""
    tree, rows, other_tree, other_rows = pair
    return adjusted_rand(cut(tree, len(tree) + 1, k)[rows], cut(other_tree, len(other_tree) + 1, k)[other_rows])


def _log_within(tree: NDArray[np.float64]) -> NDArray[np.float64]:
    """The logarithm of the squared distances to the clusters' means after each merge, of which each adds its part."""
    return np.log(np.maximum(np.cumsum(tree[:, 2] ** 2 / 2), 1e-12))


def _blob(points: NDArray[np.float64], generator: np.random.Generator) -> NDArray[np.float64]:
    """As many points of one cloud: as wide in every principal direction as ``points``, and as far from its middle.

    Vectors of one length lie on a sphere, where even a cloud without clusters is no normal distribution.
    """
    drawn = generator.normal(size=points.shape) * points.std(axis=0)
    lengths = np.linalg.norm(drawn, axis=1)
    wanted = np.sort(np.linalg.norm(points, axis=1))[np.argsort(np.argsort(lengths))]
    return drawn * (wanted / np.maximum(lengths, 1e-12))[:, None]
