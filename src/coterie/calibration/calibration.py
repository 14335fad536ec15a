"""Confidence that means something: from margins and neighbours, without labels, to the chance of being right.

A text is right where its class is the most frequent one of its cluster. Three things that need no label tell how likely
that is: how often texts of its cluster have their nearest neighbours with them, how often all texts of the run do, and
where its own margin lies among the margins of the run. What they are worth was learned on the tuning sets
(benchmarks/calibrate.py); that, and how far the answer is off on other sets, is in benchmarks/results/calibration.json.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from coterie.clustering.kmeans import unit_rows
from coterie.clustering.nearest import nearest_rows
from coterie.errors import InputError

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
# Learned on the tuning sets: log-odds of being right = INTERCEPT + each weight times its sign.
INTERCEPT = -0.25
WEIGHTS = {"cluster": 0.5, "run": 0.45, "margin": 2.2}


@dataclass(frozen=True)
class Calibration:
    """What a run says about itself, from which confidence follows.

    Attributes
    ----------
    agreement:
        How many of a text's nearest neighbours are in its cluster, of those that could be; the mean of the run.
    by_cluster:
        The same of each cluster, drawn towards the run's where it has few texts.
    margins:
        Margins of the run at even ranks, rising.
    """

    agreement: float
    by_cluster: tuple[float, ...]
    margins: tuple[float, ...]

    def signs(self, labels: NDArray[np.int64], margins: NDArray[np.floating[Any]]) -> dict[str, NDArray[np.float64]]:
        """What speaks for each text: log-odds of the agreements, and the rank of its margin from -0.5 to 0.5."""
        knots = np.asarray(self.margins)
        # Of equal margins all get the middle rank.
        below, upto = (np.searchsorted(knots, margins, side=side) for side in ("left", "right"))
        rank = (below + upto) / (2 * len(knots))
        return {
            "cluster": _log_odds(np.asarray(self.by_cluster))[labels],
            "run": np.full(len(labels), float(_log_odds(np.array(self.agreement)))),
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
            return cls.from_dict(json.loads(path.read_text(encoding="utf-8")))
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise InputError(f"{path} cannot be read: {error}") from error

    @classmethod
    def from_dict(cls, told: Mapping[str, Any]) -> Calibration:
        by_cluster, margins = tuple(map(float, told["by_cluster"])), tuple(map(float, told["margins"]))
        if not by_cluster or not margins:
            raise ValueError("it tells of no cluster or of no margin")
        return cls(float(told["agreement"]), by_cluster, margins)


def calibrate(
    labels: NDArray[np.int64], margins: NDArray[np.floating[Any]], vectors: Any, n_clusters: int | None = None
) -> Calibration:
    """From rows of distinct texts: their clusters, how far these are ahead (``confidence_``), and their vectors.

    ``vectors`` say which texts are neighbours. They should be none that were trained with these clusters in mind: those
    would agree with anything. Up to ``SAMPLE`` rows; rows labelled -1 are left out.
    """
    inside = np.flatnonzero(labels >= 0)
    if not len(inside):
        raise InputError("no text is in a cluster: there is nothing to calibrate")
    labels, margins = labels[inside], np.asarray(margins, dtype=np.float64)[inside]
    n_clusters = max(n_clusters or 0, int(labels.max()) + 1)
    agreement = _agreement(labels, vectors[inside])
    sizes = np.bincount(labels, minlength=n_clusters)
    sums = np.bincount(labels, weights=agreement, minlength=n_clusters)
    mean = float(agreement.mean())
    by_cluster = (sums + PRIOR_TEXTS * mean) / (sizes + PRIOR_TEXTS)
    knots = np.quantile(margins, np.linspace(0, 1, KNOTS))
    return Calibration(mean, tuple(by_cluster.tolist()), tuple(knots.tolist()))


def _agreement(labels: NDArray[np.int64], vectors: Any) -> NDArray[np.float64]:
    """Of each text's nearest neighbours, how many share its cluster, of as many as could: a cluster may have fewer."""
    from scipy.sparse import issparse

    rows = vectors if issparse(vectors) else np.asarray(vectors, dtype=np.float32)
    rows, count = unit_rows(rows), min(NEIGHBOURS, len(labels) - 1)
    if count < 1:
        return np.ones(len(labels))
    possible = np.clip(np.bincount(labels)[labels] - 1, 1, count)
    found = np.empty(len(labels))
    for own, near, _ in nearest_rows(rows, count):
        found[own] = (labels[near] == labels[own][:, None]).sum(axis=1)
    return np.minimum(found / possible, 1.0)


def _log_odds(shares: NDArray[np.float64]) -> NDArray[np.float64]:
    held = np.clip(shares, LEAST_SHARE, 1 - LEAST_SHARE)
    return np.asarray(np.log(held / (1 - held)))
