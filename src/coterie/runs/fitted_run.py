"""What a fit left in a run folder, each part read when it is first used."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

from coterie.errors import InputError
from coterie.runs.assignments_file import ASSIGNMENTS_FILE, AssignmentsFile
from coterie.runs.clusters_file import read_card_dicts, read_cards
from coterie.runs.run_file import read_about
from coterie.text.corpus import Corpus, as_corpus

if TYPE_CHECKING:
    from coterie.describe.cards import ClusterCard
    from coterie.methods.base import ClusteringMethod
    from coterie.runs.calibration import Calibration
    from coterie.runs.map_file import StoredMap
    from coterie.selection.training_verdict import TrainingVerdict
    from coterie.types import ClusterSummary

MODEL_FOLDER = "model"


class FittedRun:
    """What ``coterie fit`` left behind, without the edits that people made to it: see ``SavedRun``.

    Opening reads ``run.json`` alone; everything else is read when it is first used and kept from then on.

    Attributes
    ----------
    folder:
        The run folder.
    about:
        The content of ``run.json``: method, settings, notes, history.
    device:
        Where the model is loaded to.
    summaries:
        The clusters as they were fitted and described, where a fit in this process left them; else ``None``.
    column_notes:
        Notes on the columns that the clusters were counted by, of a fit in this process.
    """

    def __init__(self, folder: Path, about: dict[str, Any], *, device: str = "auto") -> None:
        self.folder = folder
        self.about = about
        self.device = device
        self.summaries: Sequence[ClusterSummary] | None = None
        self.column_notes: tuple[str, ...] = ()

    def __repr__(self) -> str:
        """Return a summary made of ``run.json`` alone: nothing else is read."""
        n_clusters = self.about.get("settings", {}).get("n_clusters")
        return (
            f"{type(self).__name__}({str(self.folder)!r}, method={self.about.get('method')!r}, "
            f"rows={self.about.get('rows')}, n_clusters={n_clusters})"
        )

    @classmethod
    def open(cls, folder: str | os.PathLike[str], *, device: str = "auto") -> Self:
        """Open a run folder; its model is loaded onto ``device`` when it is first used."""
        path = Path(folder)
        return cls(path, read_about(path), device=device)

    @classmethod
    def of_fit(
        cls,
        folder: Path,
        about: dict[str, Any],
        corpus: Corpus,
        model: ClusteringMethod,
        *,
        calibration: Calibration | None = None,
        summaries: Sequence[ClusterSummary] | None = None,
    ) -> Self:
        """Return the run of a fit in this process: what it holds in memory is not read again."""
        run = cls(folder, about)
        run.summaries = summaries
        vars(run).update(corpus=corpus, model=model, calibration=calibration, fitted_labels=model.labels_)
        run.__dict__["_fitted"] = vars(model)
        return run

    @cached_property
    def assignments_file(self) -> AssignmentsFile:
        """``assignments.csv``, to read columns from."""
        return AssignmentsFile(self.folder / ASSIGNMENTS_FILE)

    @property
    def holds_texts(self) -> bool:
        """Whether the texts are in the run folder; ``coterie fit --no-text`` leaves them out."""
        return "corpus" in vars(self) or self.assignments_file.holds_texts

    @cached_property
    def corpus(self) -> Corpus:
        """The texts, row for row."""
        if not self.assignments_file.holds_texts:
            raise InputError(
                f"{self.assignments_file.path} holds no texts (--no-text): only the fit itself could show this run, "
                "and there is nothing to explore"
            )
        return as_corpus(self.assignments_file.texts, allow_empty=True)

    @cached_property
    def fitted_labels(self) -> NDArray[np.int64]:
        """The cluster of every row as it was fitted; -1 for none."""
        return self.assignments_file.labels

    @property
    def model_folder(self) -> Path:
        """The fitted method without the run around it: see :func:`coterie.load`."""
        return self.folder / MODEL_FOLDER

    @cached_property
    def model(self) -> ClusteringMethod:
        """The fitted method alone, without edits and calibration."""
        from coterie.methods.persistence import load

        return load(self.model_folder, device=self.device)

    @cached_property
    def _fitted(self) -> Mapping[str, NDArray[Any]]:
        """The arrays that the fit learned, without the encoder."""
        from coterie.methods.persistence import read_fitted_arrays

        found = read_fitted_arrays(self.model_folder)
        if not np.array_equal(found["labels_"], self.fitted_labels):
            raise InputError(
                f"{self.assignments_file.path} and the model beside it are not of one fit: their clusters differ; "
                "fit again"
            )
        return found

    @cached_property
    def calibration(self) -> Calibration | None:
        """How margins become confidence; ``None`` for a run of an earlier version."""
        from coterie.runs.calibration import Calibration

        return Calibration.read(self.model_folder)

    @property
    def initial_labels(self) -> NDArray[np.int64] | None:
        """The cluster of every row before training; -1 outside the sample of the fit. ``None`` without training."""
        return self._fitted.get("initial_labels_")

    @property
    def center_distance(self) -> NDArray[np.float64]:
        """The distance of every row to the centre of the cluster it was fitted into."""
        return self._fitted["center_distance_"]

    @cached_property
    def fitted_cards(self) -> list[ClusterCard]:
        """The clusters as ``clusters.json`` describes them, without names of a language model."""
        from coterie.describe.language_model_names import with_names

        return with_names(read_cards(self.folder), {})

    @cached_property
    def card_dicts(self) -> list[dict[str, Any]]:
        """The entries of ``clusters.json``."""
        return read_card_dicts(self.folder)

    @cached_property
    def training_verdict(self) -> TrainingVerdict | None:
        """Whether fine-tuning helped, as stored by the fit; ``None`` without training.

        For a run of an earlier version, which stored no verdict, it is computed on first use.
        """
        from coterie.runs.verdict import judge_saved_run
        from coterie.selection.training_verdict import TrainingVerdict

        if "training_verdict" in self.about:
            stored = self.about["training_verdict"]
            return None if stored is None else TrainingVerdict.from_dict(stored)
        return None if self.initial_labels is None else judge_saved_run(self.model, self.corpus)

    def kept_columns(self, names: Sequence[str]) -> dict[str, Sequence[object]]:
        """Return columns of the input that the fit kept (``--keep``), by the name they had there."""
        return self.assignments_file.kept_columns(self.about["input"]["kept"], names)

    def snapshots(self, rows: NDArray[np.int64]) -> list[tuple[str, NDArray[np.float32]]]:
        """Return the name of every stored moment of the training and the embeddings of ``rows`` then."""
        from coterie.runs.snapshots_file import read_snapshot_vectors

        return read_snapshot_vectors(self.folder, rows)

    @cached_property
    def stored_map(self) -> StoredMap | None:
        """The map that the report left; ``None`` where there is none."""
        from coterie.runs.map_file import read_map

        return read_map(self.folder, len(self.fitted_labels))

    def store_map(self, made: StoredMap) -> StoredMap:
        """Keep a map in the run folder and return it."""
        from coterie.runs.map_file import write_map

        self.__dict__["stored_map"] = write_map(self.folder, made)
        return made

    @property
    def notes(self) -> list[str]:
        """What a user should know about the fit, the verdict on its training among it, in sentences."""
        notes = list(self.about["notes"])
        verdict = None if self.about.get("training_verdict") is None else self.training_verdict
        # The notes of the default method contain its verdict already.
        if verdict is not None and not any(verdict.sentence[1:-1] in note for note in notes):
            notes.append(verdict.sentence.removesuffix("."))
        return [*notes, *self.column_notes]
