"""Confidence that means something: from margins and neighbours, without labels, to the chance of being right.

A text is right where its class is the most frequent one of its cluster. Five things that need no label tell how likely
that is: how often texts of its cluster have their nearest neighbours with them, how often all texts of the run do, how
often they have them in the cluster or in those most like it, how well the cluster is found again by k-means on other
draws of the texts, and where the text's own margin lies among the margins of the run. What they are worth was learned
on the tuning sets (benchmarks/calibrate.py); that, and how far the answer is off on other sets, is in
benchmarks/results/calibration.json.
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
NEIGHBOURS = 10
# Texts whose neighbours are looked at, among as many: the parameters suppose it, as more texts lie nearer.
SAMPLE = 4_000
# A cluster's agreement counts as that of so many more texts with the agreement of the run.
PRIOR_TEXTS = 5
# Agreement is held off 0 and 1, where its logarithm of odds has no end.
LEAST_SHARE = 0.02
# Margins that are kept, evenly over their ranks.
KNOTS = 201
# Draws of the texts in which clusters are looked for again, and how large they are.
DRAWS, SHARE = 5, 0.8
# Learned on the tuning sets: log-odds of being right = INTERCEPT + each weight times its sign.
INTERCEPT = -0.99
WEIGHTS = {"cluster": 0.24, "run": 0.37, "group": 0.34, "found_again": 0.28, "margin": 2.3}


@dataclass(frozen=True)
class Calibration:
    """What a run says about itself, from which confidence follows.

    Attributes
    ----------
    agreement:
        How many of a text's nearest neighbours are in its cluster, of those that could be; the mean of the run.
    by_cluster:
        The same of each cluster, drawn towards the run's where it has few texts.
    by_group:
        Neighbours of each cluster's texts that are in its group: as many groups as the square root of the clusters,
        joined by likeness. Low where a cluster is a mixture; a class that was cut in two keeps its neighbours near.
    found_again:
        How much of each cluster k-means finds on other draws (Jaccard, the mean of all draws).
    margins:
        Margins of the run at even ranks, rising.
    """

    agreement: float
    by_cluster: tuple[float, ...]
    by_group: tuple[float, ...]
    found_again: tuple[float, ...]
    margins: tuple[float, ...]

    def signs(self, labels: NDArray[np.int64], margins: NDArray[np.floating[Any]]) -> dict[str, NDArray[np.float64]]:
        """What speaks for each text: log-odds of the shares, and the rank of its margin from -0.5 to 0.5."""
        knots = np.asarray(self.margins)
        # Of equal margins all get the middle rank.
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
        """The chance of each text to be right; 0 without a cluster."""
        signs = self.signs(np.maximum(labels, 0), margins)
        odds = INTERCEPT + sum(weight * signs[name] for name, weight in WEIGHTS.items())
        return np.where(labels >= 0, 1 / (1 + np.exp(-odds)), 0.0)

    def write(self, folder: Path) -> None:
        from coterie.files import write_json

        write_json(folder / CALIBRATION_FILE, asdict(self))

    @classmethod
    def read(cls, folder: Path) -> Calibration | None:
        """Of a run folder or of its model; ``None`` where it has none: saved from Python, or by an earlier version."""
        path = next(
            (path for path in (folder / "model" / CALIBRATION_FILE, folder / CALIBRATION_FILE) if path.is_file()), None
        )
        if path is None:
            return None
        try:
            told = json.loads(path.read_text(encoding="utf-8"))
            # Earlier versions told of fewer signs, which are worth something else alone.
            return None if "agreement" in told and "by_group" not in told else cls.from_dict(told)
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise InputError(f"{path} cannot be read: {error}") from error

    @classmethod
    def from_dict(cls, told: Mapping[str, Any]) -> Calibration:
        lists = {name: tuple(map(float, told[name])) for name in ("by_cluster", "by_group", "found_again", "margins")}
        if not lists["margins"] or len({len(lists[name]) for name in lists if name != "margins"}) != 1:
            raise ValueError("it tells of no margin, or of more clusters in one place than in another")
        if not lists["by_cluster"]:
            raise ValueError("it tells of no cluster")
        return cls(float(told["agreement"]), **lists)


def calibrate(
    labels: NDArray[np.int64], margins: NDArray[np.floating[Any]], vectors: Any, n_clusters: int | None = None
) -> Calibration:
    """From rows of distinct texts: their clusters, how far these are ahead (``confidence_``), and their vectors.

    ``vectors`` say which texts are neighbours. They should be none that were trained with these clusters in mind: those
    would agree with anything. Up to ``SAMPLE`` rows; rows labelled -1 are left out.
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
    group = _groups(units, labels, n_clusters)[labels]
    in_group = (group[near] == group[:, None]).sum(axis=1)
    knots = np.quantile(margins, np.linspace(0, 1, KNOTS))
    return Calibration(
        mean,
        _by_cluster(agreement, np.ones(len(labels)), labels, n_clusters, PRIOR_TEXTS * mean, PRIOR_TEXTS),
        # As though each cluster had six more neighbours, five of them in its group.
        _by_cluster(in_group, np.full(len(labels), count), labels, n_clusters, 5, 6),
        tuple(_found_again(units, labels, n_clusters).tolist()),
        tuple(knots.tolist()),
    )


def _by_cluster(
    values: NDArray[Any], of: NDArray[Any], labels: NDArray[np.int64], n_clusters: int, more: float, of_more: float
) -> tuple[float, ...]:
    """Shares of each cluster, ``more`` of ``of_more`` added."""
    sums, wholes = (np.bincount(labels, weights=each, minlength=n_clusters) for each in (values, of))
    shares: NDArray[np.float64] = (sums + more) / (wholes + of_more)
    return tuple(shares.tolist())


def _groups(units: Any, labels: NDArray[np.int64], n_clusters: int) -> NDArray[np.int64]:
    """The group of each cluster: as many as the square root of their number, at least two, by average linkage."""
    from scipy.cluster.hierarchy import linkage
    from scipy.sparse import csr_matrix, issparse

    if n_clusters < 3:
        return np.arange(n_clusters)
    members = csr_matrix((np.ones(len(labels)), (labels, np.arange(len(labels)))), shape=(n_clusters, len(labels)))
    sums = members @ units
    means = unit_rows(sums.toarray() if issparse(sums) else np.asarray(sums))
    return cut(np.asarray(linkage(means, "average")), n_clusters, max(2, round(n_clusters**0.5)))


def _found_again(units: Any, labels: NDArray[np.int64], n_clusters: int) -> NDArray[np.float64]:
    """Of each cluster, how much k-means finds again on draws of the texts; 1 where there is nothing to look for."""
    n_texts, asked = len(labels), len(np.unique(labels))
    size = max(int(SHARE * n_texts), asked)
    if asked < 2 or size < 2:
        return np.ones(n_clusters)
    once = np.ones(size, dtype=np.int64)
    total = np.zeros(n_clusters)
    for draw in range(DRAWS):
        rows = np.sort(np.random.default_rng(draw).permutation(n_texts)[:size])
        again = cluster_again(units[rows], once, asked, draw)
        total += np.nan_to_num(largest_jaccard(labels[rows], again, once, n_clusters))
    return total / DRAWS


def _log_odds(shares: NDArray[np.float64]) -> NDArray[np.float64]:
    held = np.clip(shares, LEAST_SHARE, 1 - LEAST_SHARE)
    return np.asarray(np.log(held / (1 - held)))
