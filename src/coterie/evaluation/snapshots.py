"""How a run developed, from the snapshots it kept: computed afterwards, with or without labels."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from coterie.errors import InputError
from coterie.evaluation.external import evaluate
from coterie.training.history import Snapshot
from coterie.validity.distances import cluster_distances
from coterie.validity.silhouette import silhouette

ROWS_FILE = "rows.safetensors"
# Silhouette of every text against every other is quadratic; a draw of so many is enough to follow a run.
SILHOUETTE_SAMPLE = 2_000


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
    """For each snapshot: silhouette, mean distance inside and between clusters, and with labels ACC, NMI and ARI.

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
            "silhouette": silhouette(snapshot.embeddings, snapshot.labels, sample_size=SILHOUETTE_SAMPLE),
            "intra": distances.mean_intra,
            "inter": distances.mean_inter,
        }
        if labels_true is not None:
            by_row = np.where(rows >= 0, snapshot.labels[np.maximum(rows, 0)], -1)
            outcome = evaluate(labels_true, by_row)
            found |= {"accuracy": outcome.accuracy, "nmi": outcome.nmi, "ari": outcome.ari}
        scores.append(found)
    return scores
