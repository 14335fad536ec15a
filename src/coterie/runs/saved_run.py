"""A run folder as a report reads it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from coterie.errors import InputError
from coterie.text.corpus import Corpus, as_corpus
from coterie.text.reading import column_names, read_columns
from coterie.text.source import listed

if TYPE_CHECKING:
    from coterie.methods.base import ClusteringMethod
    from coterie.runs.calibration import Calibration
    from coterie.runs.edits.replay import Edited
    from coterie.types import ClusterSummary

# The cluster of a text whose confidence was too low to assign it; the column is there where any could be.
BEST_GUESS = "best_guess"
RUN_FILE, CLUSTERS_FILE, ASSIGNMENTS_FILE, SNAPSHOTS = "run.json", "clusters.json", "assignments.csv", "snapshots"


@dataclass(frozen=True)
class Run:
    """What ``coterie fit`` left behind.

    Attributes
    ----------
    folder:
        Where it lies.
    about:
        ``run.json``: method, settings, notes, history.
    corpus:
        The texts, row for row.
    model:
        The fitted method, with its labels and confidences of all rows.
    summaries:
        Its clusters as they were fitted and described, where that is known already.
    """

    folder: Path
    about: dict[str, Any]
    corpus: Corpus
    model: ClusteringMethod
    summaries: Sequence[ClusterSummary] | None = None

    @cached_property
    def calibration(self) -> Calibration | None:
        """How margins become confidence; ``None`` for a run of an earlier version."""
        from coterie.runs.calibration import Calibration

        return Calibration.read(self.folder)

    @cached_property
    def confidence(self) -> NDArray[np.float64]:
        """Of every row: the chance of being right, or, without a calibration, the margin; 1 where a person put it."""
        model, known = self.model, self.calibration
        found = model.confidence_ if known is None else known.confidence(model.labels_, model.confidence_)
        return found if self.edited is None else np.where(self.edited.moved, 1.0, found)

    @cached_property
    def edited(self) -> Edited | None:
        """The clusters as people left them; ``None`` where nobody changed anything."""
        from coterie.runs.edited_clusters import read_edited
        from coterie.runs.edits.log import read_edits

        edits = read_edits(self.folder)
        return read_edited(self.folder, self.model.labels_, edits=edits) if edits.active else None

    @property
    def labels(self) -> NDArray[np.int64]:
        """The cluster of every row as it is now; -1 for none. As it was fitted: ``model.labels_``."""
        return self.model.labels_ if self.edited is None else self.edited.labels

    @property
    def n_ids(self) -> int:
        """One more than the largest id of a cluster that is or was."""
        return len(self.model.cluster_centers_) if self.edited is None else self.edited.next_id

    @property
    def initial_labels(self) -> NDArray[np.int64] | None:
        """Before training, row for row; -1 outside the sample that was learned on. ``None`` without training."""
        return vars(self.model).get("initial_labels_")

    def snapshots(self, rows: NDArray[np.int64]) -> list[tuple[str, NDArray[np.float32]]]:
        """The embeddings of some rows at every stored moment with its name; none where a row was not learned on."""
        from safetensors import safe_open
        from safetensors.numpy import load_file

        folder = self.folder / SNAPSHOTS
        if not folder.is_dir():
            return []
        places = load_file(folder / "rows.safetensors")["distinct_index"][rows]
        if (places < 0).any():
            return []
        found = []
        for path in sorted(folder.glob("[0-9]*.safetensors")):
            with safe_open(path, "numpy") as opened:
                about, vectors = opened.metadata(), opened.get_tensor("embeddings")[places]
            first = about["epoch"] == "0"
            found.append(("before training" if first else f"{about['stage']}, epoch {about['epoch']}", vectors))
        return found


def read_run(folder: Path, *, device: str = "auto") -> Run:
    """Read a run folder; its model is loaded onto ``device``."""
    from coterie.methods.persistence import load

    about = read_about(folder)
    model = load(folder, device=device)
    assignments = folder / ASSIGNMENTS_FILE
    if not holds_texts(folder):
        raise InputError(f"{assignments} holds no texts (--no-text): only the fit itself could show this run")
    fitted = fitted_column(column_names(assignments))
    columns = read_columns(assignments, [fitted, "text"])
    clusters = whole_numbers(columns[fitted], folder)
    if not np.array_equal(clusters, model.labels_):
        raise InputError(
            f"{folder}/{ASSIGNMENTS_FILE} and the model beside it are not of one fit: their clusters differ; fit again"
        )
    return Run(folder, about, as_corpus([str(text or "") for text in columns["text"]], allow_empty=True), model)


def read_about(folder: Path) -> dict[str, Any]:
    """``run.json`` of a run folder."""
    if not (folder / RUN_FILE).is_file():
        raise InputError(f"{folder} is not a run of Coterie: it has no {RUN_FILE}")
    return dict(json.loads((folder / RUN_FILE).read_text(encoding="utf-8")))


def holds_texts(folder: Path) -> bool:
    """Whether the texts lie in the run folder; ``coterie fit --no-text`` leaves them out."""
    return "text" in column_names(folder / ASSIGNMENTS_FILE)


def read_clusters(folder: Path) -> NDArray[np.int64]:
    """The cluster of every row, from ``assignments.csv``; the best guess where it was left unassigned."""
    column = fitted_column(column_names(folder / ASSIGNMENTS_FILE))
    return whole_numbers(read_columns(folder / ASSIGNMENTS_FILE, [column])[column], folder)


def fitted_column(names: Sequence[str]) -> str:
    """The column of ``assignments.csv`` that tells the clusters with no text left unassigned for its confidence."""
    return BEST_GUESS if BEST_GUESS in names else "cluster"


def read_kept(folder: Path, names: Sequence[str]) -> dict[str, list[object]]:
    """Columns of the input that the fit kept (``--keep``), by the name they had there."""
    kept = read_about(folder)["input"]["kept"]
    assignments = folder / ASSIGNMENTS_FILE
    # They come last, in this order, under their own names or one beside: ``cluster_input``.
    header = column_names(assignments)
    stored = dict(zip(kept, header[len(header) - len(kept) :], strict=True))
    for name in names:
        if name not in stored and name not in stored.values():
            there = f"it kept {listed(kept)}" if kept else "it kept none"
            raise InputError(
                f"{folder}: the run has no column {name!r} (--by); {there} (coterie fit --keep keeps more)"
            )
    columns = read_columns(assignments, [stored.get(name, name) for name in names])
    return {name: columns[stored.get(name, name)] for name in names}


def read_told_clusters(folder: Path) -> list[dict[str, Any]]:
    """What ``clusters.json`` tells of every cluster."""
    try:
        told = json.loads((folder / CLUSTERS_FILE).read_text(encoding="utf-8"))["clusters"]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise InputError(f"{folder / CLUSTERS_FILE} cannot be read: {error}") from error
    return list(told)


def whole_numbers(cells: Sequence[object], folder: Path) -> NDArray[np.int64]:
    """The cells of a column of clusters."""
    try:
        return np.array([int(str(cell)) for cell in cells], dtype=np.int64)
    except ValueError as error:
        raise InputError(f"{folder}/{ASSIGNMENTS_FILE}: column 'cluster' must hold whole numbers: {error}") from error
