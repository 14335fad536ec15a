"""Calibrated confidence: the probability that an assignment is right, from margins and neighbours, without labels.

An assignment is right where the text's class is the most frequent one of its cluster. Five label-free criteria enter:
how often texts of its cluster have their nearest neighbours in it, how often all texts of the run do, how often they
have them in the cluster or in those most like it (its supercluster), how well k-means recovers the cluster on
resampled texts, and the rank of the text's own margin in the run. Their weights were fitted on the tuning sets
(benchmarks/calibrate.py); they, and the calibration error on other sets, are in benchmarks/results/calibration.json.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from coterie.clustering.agglomerative import cut
from coterie.clustering.kmeans import unit_rows
from coterie.clustering.nearest import nearest
from coterie.errors import InputError
from coterie.metrics.internal.stability import cluster_again, largest_jaccard

CALIBRATION_FILE = "calibration.json"
# Nearest neighbours of each text.
NEIGHBOURS = 10
# Texts sampled for the neighbour search: the weights suppose this many, as neighbours are nearer among more texts.
SAMPLE = 4_000
# Texts with the mean agreement of the run that are added to each cluster, so that small clusters are not extreme.
PRIOR_TEXTS = 5
# Neighbours per text, and of them inside the supercluster, that are added to each cluster for the same reason.
PRIOR_NEIGHBOURS = 6
PRIOR_NEIGHBOURS_INSIDE = 5
# Shares are clipped to this distance from 0 and 1, where log-odds are infinite.
LEAST_SHARE = 0.02
# Quantiles of the margins that are stored: half a percent apart, which is finer than any use of the rank.
KNOTS = 201
# Resamples in which clusters are searched again: their mean is steady enough after five.
RESAMPLES = 5
# Share of the texts in each resample.
RESAMPLE_SHARE = 0.8
# Fitted on the tuning sets: log-odds of being right = INTERCEPT + the sum of WEIGHTS[name] * criterion. Stored results
# call the supercluster "group".
INTERCEPT = -0.99
WEIGHTS = {"cluster": 0.24, "run": 0.37, "group": 0.34, "found_again": 0.28, "margin": 2.3}


@dataclass(frozen=True)
class Calibration:
    """The label-free criteria of a run, from which the confidence of an assignment follows.

    Attributes
    ----------
    agreement:
        Share of a text's nearest neighbours that are in its cluster, of those that could be; mean over the run.
    by_cluster:
        The same for each cluster, shrunk towards the run's where the cluster has few texts.
    by_group:
        For each cluster, the share of its texts' neighbours that are in its supercluster. Average linkage joins the
        clusters into as many superclusters as the square root of their number. Low where a cluster is a mixture; high
        for a class that was cut in two, which keeps its neighbours near.
    found_again:
        For each cluster, how much of it k-means recovers on resampled texts (Jaccard index, mean over the resamples).
    margins:
        Quantiles of the run's margins, rising.
    """

    agreement: float
    by_cluster: tuple[float, ...]
    by_group: tuple[float, ...]
    found_again: tuple[float, ...]
    margins: tuple[float, ...]

    def criteria(self, labels: NDArray[np.int64], margins: NDArray[np.floating[Any]]) -> dict[str, NDArray[np.float64]]:
        """Return the criteria of each text: log-odds of the shares, and the rank of its margin from -0.5 to 0.5."""
        knots = np.asarray(self.margins)
        # Equal margins get their middle rank.
        below, upto = (np.searchsorted(knots, margins, side=side) for side in ("left", "right"))
        rank = (below + upto) / (2 * len(knots))
        return {
            "cluster": _log_odds(np.asarray(self.by_cluster))[labels],
            "run": np.full(len(labels), float(_log_odds(np.array(self.agreement)))),
            "group": _log_odds(np.asarray(self.by_group))[labels],
            "found_again": _log_odds(np.asarray(self.found_again))[labels],
            "margin": rank - 0.5,
        }

    def confidence(self, labels: NDArray[np.int64], margins: NDArray[np.floating[Any]]) -> NDArray[np.float64]:
        """Return the probability that each assignment is right; 0 for a text in no cluster."""
        criteria = self.criteria(np.maximum(labels, 0), margins)
        odds = INTERCEPT + sum(weight * criteria[name] for name, weight in WEIGHTS.items())
        return np.where(labels >= 0, 1 / (1 + np.exp(-odds)), 0.0)

    def write(self, folder: Path) -> None:
        """Write ``calibration.json`` into the folder of a model."""
        from coterie.files import write_json

        write_json(folder / CALIBRATION_FILE, asdict(self))

    @classmethod
    def read(cls, folder: Path) -> Calibration | None:
        """Read the calibration of a run folder or of the model in it.

        ``None`` where there is none: the model was saved from Python, or by an earlier version.
        """
        path = next(
            (path for path in (folder / "model" / CALIBRATION_FILE, folder / CALIBRATION_FILE) if path.is_file()), None
        )
        if path is None:
            return None
        try:
            content = json.loads(path.read_text(encoding="utf-8"))
            # Earlier versions stored fewer criteria, whose weights alone are others.
            return None if "agreement" in content and "by_group" not in content else cls.from_dict(content)
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise InputError(f"{path} cannot be read: {error}") from error

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> Calibration:
        """Read what :meth:`write` wrote."""
        lists = {
            name: tuple(map(float, content[name])) for name in ("by_cluster", "by_group", "found_again", "margins")
        }
        if not lists["margins"] or len({len(lists[name]) for name in lists if name != "margins"}) != 1:
            raise ValueError("it has no margins, or not one value per cluster in each list")
        if not lists["by_cluster"]:
            raise ValueError("it has no clusters")
        return cls(float(content["agreement"]), **lists)


def calibrate(
    labels: NDArray[np.int64], margins: NDArray[np.floating[Any]], vectors: Any, n_clusters: int | None = None
) -> Calibration:
    """Return the calibration of a clustering.

    Parameters
    ----------
    labels, margins:
        The cluster of each distinct text (rows with -1 are left out) and its margin (``confidence_``).
    vectors:
        One row per text, for the neighbour search; at most ``SAMPLE`` rows. They must not have been trained with these
        clusters, with which such vectors always agree.
    n_clusters:
        How many clusters there are, where the last ones may have no text here.
    """
    from scipy.sparse import issparse

    inside = np.flatnonzero(labels >= 0)
    if not len(inside):
        raise InputError("no text is in a cluster: there is nothing to calibrate")
    labels, margins = labels[inside], np.asarray(margins, dtype=np.float64)[inside]
    n_clusters = max(n_clusters or 0, int(labels.max()) + 1)
    units = vectors[inside]
    units = unit_rows(units if issparse(units) else np.asarray(units, dtype=np.float32))
    count = min(NEIGHBOURS, len(labels) - 1)
    near = nearest(units, count)[0] if count else np.zeros((len(labels), 0), dtype=np.int64)
    # A cluster may have fewer texts than a text has neighbours.
    possible = np.clip(np.bincount(labels)[labels] - 1, 1, max(count, 1))
    found = (labels[near] == labels[:, None]).sum(axis=1)
    agreement = np.minimum(found / possible, 1.0) if count else np.ones(len(labels))
    mean = float(agreement.mean())
    supercluster = _superclusters(units, labels, n_clusters)[labels]
    inside_it = (supercluster[near] == supercluster[:, None]).sum(axis=1)
    knots = np.quantile(margins, np.linspace(0, 1, KNOTS))
    return Calibration(
        mean,
        _by_cluster(agreement, np.ones(len(labels)), labels, n_clusters, PRIOR_TEXTS * mean, PRIOR_TEXTS),
        _by_cluster(
            inside_it, np.full(len(labels), count), labels, n_clusters, PRIOR_NEIGHBOURS_INSIDE, PRIOR_NEIGHBOURS
        ),
        tuple(_recovered_shares(units, labels, n_clusters).tolist()),
        tuple(knots.tolist()),
    )


def _by_cluster(
    values: NDArray[Any], of: NDArray[Any], labels: NDArray[np.int64], n_clusters: int, more: float, of_more: float
) -> tuple[float, ...]:
    """Return the share of ``values`` in ``of`` for each cluster, with ``more`` of ``of_more`` added as a prior."""
    sums, wholes = (np.bincount(labels, weights=each, minlength=n_clusters) for each in (values, of))
    shares: NDArray[np.float64] = (sums + more) / (wholes + of_more)
    return tuple(shares.tolist())


def _superclusters(units: Any, labels: NDArray[np.int64], n_clusters: int) -> NDArray[np.int64]:
    """Return the supercluster of each cluster, by average linkage of the clusters' mean vectors.

    There are as many as the square root of the number of clusters, at least two.
    """
    from scipy.cluster.hierarchy import linkage
    from scipy.sparse import csr_matrix, issparse

    if n_clusters < 3:
        return np.arange(n_clusters)
    members = csr_matrix((np.ones(len(labels)), (labels, np.arange(len(labels)))), shape=(n_clusters, len(labels)))
    sums = members @ units
    means = unit_rows(sums.toarray() if issparse(sums) else np.asarray(sums))
    return cut(np.asarray(linkage(means, "average")), n_clusters, max(2, round(n_clusters**0.5)))


def _recovered_shares(units: Any, labels: NDArray[np.int64], n_clusters: int) -> NDArray[np.float64]:
    """Return how much of each cluster k-means recovers on resampled texts; 1 where there is nothing to recover."""
    n_texts, asked = len(labels), len(np.unique(labels))
    size = max(int(RESAMPLE_SHARE * n_texts), asked)
    if asked < 2 or size < 2:
        return np.ones(n_clusters)
    once = np.ones(size, dtype=np.int64)
    total = np.zeros(n_clusters)
    for resample in range(RESAMPLES):
        rows = np.sort(np.random.default_rng(resample).permutation(n_texts)[:size])
        again = cluster_again(units[rows], once, asked, resample)
        total += np.nan_to_num(largest_jaccard(labels[rows], again, once, n_clusters))
    return total / RESAMPLES


def _log_odds(shares: NDArray[np.float64]) -> NDArray[np.float64]:
    clipped = np.clip(shares, LEAST_SHARE, 1 - LEAST_SHARE)
    return np.asarray(np.log(clipped / (1 - clipped)))
