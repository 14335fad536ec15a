"""How a run developed, from the snapshots it kept: computed afterwards, with or without labels."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from coterie.errors import InputError
from coterie.metrics.external.scores import evaluate
from coterie.metrics.internal.distances import cluster_distances
from coterie.metrics.internal.dunn import dunn
from coterie.metrics.internal.silhouette import silhouette
from coterie.text.sampling import labels_by_row
from coterie.training.history import Snapshot

ROWS_FILE = "rows.safetensors"
# Every text against every other is quadratic; a draw of so many is enough to follow a run.
SAMPLE = 2_000


def read_snapshots(run: Path) -> tuple[list[Snapshot], NDArray[np.int64]]:
    """A run's snapshots in order, and for every row of its input which of their texts it is (-1: empty)."""
    from safetensors import safe_open

    folder = run / "snapshots"
    files = sorted(path for path in folder.glob("*.safetensors") if path.name != ROWS_FILE)
    if not files:
        raise InputError(f"{run} holds no snapshots; fit with --snapshots 1 to keep one after every epoch")
    snapshots = []
    for path in files:
        with safe_open(path, framework="numpy") as file:
            about = file.metadata()
            snapshots.append(
                Snapshot(
                    about["stage"],
                    int(about["epoch"]),
                    int(about["step"]),
                    file.get_tensor("embeddings"),
                    file.get_tensor("labels"),
                )
            )
    with safe_open(folder / ROWS_FILE, framework="numpy") as file:
        rows: NDArray[np.int64] = file.get_tensor("distinct_index")
    return snapshots, rows


def score_snapshots(
    snapshots: Sequence[Snapshot], rows: NDArray[np.int64], labels_true: Sequence[Any] | None = None
) -> list[dict[str, Any]]:
    """For each snapshot what can be said without labels, and with labels ACC, NMI and ARI.

    Without labels: silhouette, Dunn index, mean distance inside and between clusters; ``None`` where a measure is
    not defined, as all but the first distance are when everything lies in one cluster. Of more than 2,000 texts a
    draw is scored. The silhouette of a draw estimates that of all texts; the Dunn index, which hangs on single
    texts, does not: it is that of the same drawn texts in every snapshot, and comparable between them alone.

    Parameters
    ----------
    rows:
        For every row of the input, its text's place in the snapshots; -1 for empty texts.
    labels_true:
        One label a row.
    """
    scores = []
    for snapshot in snapshots:
        distances = cluster_distances(snapshot.embeddings, snapshot.labels)
        found: dict[str, Any] = {
            "stage": snapshot.stage,
            "epoch": snapshot.epoch,
            "step": snapshot.step,
            "silhouette": _silhouette(snapshot),
            "dunn": _dunn(snapshot),
            "intra": distances.mean_intra,
            "inter": _finite(distances.mean_inter),
        }
        if labels_true is not None:
            outcome = evaluate(labels_true, labels_by_row(snapshot.labels, rows))
            found |= {"accuracy": outcome.accuracy, "nmi": outcome.nmi, "ari": outcome.ari}
        scores.append(found)
    return scores


def _silhouette(snapshot: Snapshot) -> float | None:
    if len(np.unique(snapshot.labels)) < 2:
        return None
    return silhouette(snapshot.embeddings, snapshot.labels, sample_size=SAMPLE)


def _dunn(snapshot: Snapshot) -> float | None:
    drawn = draw_rows(len(snapshot.labels), SAMPLE)
    if len(np.unique(snapshot.labels[drawn])) < 2:
        return None
    return _finite(dunn(snapshot.embeddings[drawn], snapshot.labels[drawn]))


def draw_rows(n_rows: int, most: int, seed: int = 0) -> NDArray[np.int64]:
    """At most ``most`` of so many rows, in order; the same for the same seed."""
    if n_rows <= most:
        return np.arange(n_rows)
    return np.sort(np.random.default_rng(seed).choice(n_rows, most, replace=False))


def _finite(value: float) -> float | None:
    """JSON knows neither infinity nor NaN."""
    return value if math.isfinite(value) else None
