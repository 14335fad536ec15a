"""``snapshots/``: embeddings and labels at stored moments of the training, one safetensors file per moment."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from coterie.methods.base import ClusteringMethod
    from coterie.text.corpus import Corpus

SNAPSHOTS = "snapshots"
ROWS_FILE = "rows.safetensors"


def write_snapshots(folder: Path, model: ClusteringMethod, corpus: Corpus) -> None:
    """Write the snapshots of a fit, and which of their texts each row is (-1: none); nothing where there are none."""
    snapshots = model.history_.snapshots
    if not snapshots:
        return
    from safetensors.numpy import save_file

    from coterie.text.sampling import sample_places

    (folder / SNAPSHOTS).mkdir()
    index = sample_places(corpus, model.initial_labels_)
    save_file({"distinct_index": index}, folder / SNAPSHOTS / ROWS_FILE)
    for i, snapshot in enumerate(snapshots):
        save_file(
            {"embeddings": snapshot.embeddings, "labels": snapshot.labels},
            folder / SNAPSHOTS / f"{i:03d}.safetensors",
            metadata={"stage": snapshot.stage, "epoch": str(snapshot.epoch), "step": str(snapshot.step)},
        )


def read_snapshot_vectors(folder: Path, rows: NDArray[np.int64]) -> list[tuple[str, NDArray[np.float32]]]:
    """Return the name of every stored moment and the embeddings of ``rows`` then.

    Empty where the run stored no snapshots, or where one of the rows was not learned on.
    """
    from safetensors import safe_open
    from safetensors.numpy import load_file

    stored = folder / SNAPSHOTS
    if not stored.is_dir():
        return []
    places = load_file(stored / ROWS_FILE)["distinct_index"][rows]
    if (places < 0).any():
        return []
    found = []
    for path in sorted(stored.glob("[0-9]*.safetensors")):
        with safe_open(path, "numpy") as opened:
            about, vectors = opened.metadata(), opened.get_tensor("embeddings")[places]
        first = about["epoch"] == "0"
        found.append(("before training" if first else f"{about['stage']}, epoch {about['epoch']}", vectors))
    return found
