"""A run folder, opened: everything that is known about a run, each part read when it is first used."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

from coterie.errors import InputError
from coterie.runs.assignments_file import ASSIGNMENTS_FILE, AssignmentsFile
from coterie.runs.clusters_file import read_card_dicts, read_cards
from coterie.runs.edits.log import EditLog, Edits
from coterie.runs.names_file import KnownNames
from coterie.runs.run_file import read_about
from coterie.text.corpus import Corpus, as_corpus

if TYPE_CHECKING:
    from coterie.describe.cards import ClusterCard
    from coterie.methods.base import ClusteringMethod
    from coterie.runs.calibration import Calibration
    from coterie.runs.edits.replay import Edited
    from coterie.runs.map_file import StoredMap
    from coterie.types import ClusterSummary

MODEL_FOLDER = "model"
# What is read again after a change of the run folder.
CHANGEABLE = (
    "edits",
    "known_names",
    "state",
    "state_for_new_texts",
    "card_dicts",
    "fitted_cards",
    "keyword_cards",
)


class SavedRun:
    """What ``coterie fit`` left behind, with the edits that people made to it.

    Opening reads ``run.json`` alone; everything else is read when it is first used and kept from then on. Edits made
    later, in the explorer say, are seen after :meth:`refresh`.

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
    """

    def __init__(self, folder: Path, about: dict[str, Any], *, device: str = "auto") -> None:
        self.folder = folder
        self.about = about
        self.device = device
        self.summaries: Sequence[ClusterSummary] | None = None

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

    # --- what the fit wrote ---

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
        """The fitted method, which knows nothing of edits and calibration."""
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

    # --- with edits ---

    @property
    def edit_log(self) -> EditLog:
        """``edits.jsonl``, to read and append to."""
        return EditLog(self.folder)

    @cached_property
    def edits(self) -> Edits:
        """The edits that people made, as they were last read."""
        return self.edit_log.read()

    @cached_property
    def known_names(self) -> KnownNames:
        """Names that a language model gave, as they were last read."""
        return KnownNames.read(self.folder)

    def refresh(self) -> None:
        """Read again what can change after a fit: edits, names and the descriptions of the clusters."""
        for name in CHANGEABLE:
            vars(self).pop(name, None)

    def move_to(self, folder: Path) -> None:
        """Go on from ``folder``, where the run folder has been moved."""
        self.folder = folder
        self.__dict__.pop("assignments_file", None)
        self.refresh()

    def with_edits(self, edits: Edits) -> Edited:
        """Return the clusters as they are with these edits."""
        return self._apply(edits, self.fitted_labels)

    def _apply(self, edits: Edits, labels: NDArray[np.int64]) -> Edited:
        from coterie.runs.edited_clusters import apply_edits

        return apply_edits(edits, labels, self.card_dicts, self.known_names.clusters)

    @cached_property
    def state(self) -> Edited:
        """The clusters as they are now: every row's, and their names."""
        return self.with_edits(self.edits)

    @cached_property
    def state_for_new_texts(self) -> Edited:
        """The same without the clusters of the rows: millions of rows need not be read to assign one text."""
        if "state" in vars(self):
            return self.state
        # Edits that name a row have to know that there is such a row.
        return self._apply(self.edits, np.zeros(int(self.about["rows"]), dtype=np.int64))

    @property
    def edited(self) -> Edited | None:
        """The clusters as people left them; ``None`` where nobody changed anything."""
        return self.state if self.edits.active else None

    @property
    def labels(self) -> NDArray[np.int64]:
        """The cluster of every row as it is now; -1 for none. As it was fitted: ``fitted_labels``."""
        return self.fitted_labels if self.edited is None else self.edited.labels

    @cached_property
    def _fitted_confidence(self) -> NDArray[np.float64]:
        """How likely every row's cluster is right; the margin where the run has no calibration."""
        margins, known = self._fitted["confidence_"], self.calibration
        return margins if known is None else known.confidence(self.fitted_labels, margins)

    @property
    def confidence(self) -> NDArray[np.float64]:
        """The confidence of every row: the probability that its cluster is right, and 1 where a person put it.

        Without a calibration (a run of an earlier version) it is the margin over the second best cluster.
        """
        found = self._fitted_confidence
        return found if self.edited is None else np.where(self.edited.moved, 1.0, found)

    @property
    def n_ids(self) -> int:
        """One more than the largest id of a cluster that is or was."""
        return len(self._fitted["cluster_centers_"]) if self.edited is None else self.edited.next_id

    @cached_property
    def keyword_cards(self) -> list[ClusterCard]:
        """The clusters as they are now, named by their keywords or by people, never by a language model."""
        from coterie.runs.edited_clusters import edited_cards

        if self.edited is None:
            return self.fitted_cards
        file = self.assignments_file
        return edited_cards(self.fitted_cards, self.edits, self.fitted_labels, file.texts, file.confidence)[0]

    @property
    def clusters(self) -> list[ClusterCard]:
        """The clusters as they are now, described."""
        from coterie.describe.language_model_names import with_names

        if self.edited is None:
            return with_names(self.fitted_cards, self.known_names.clusters)
        names = self.edited.names
        return [
            card
            if card.name == names[card.summary.id]
            else replace(card, name=names[card.summary.id], keyword_name=card.keyword_name or card.name)
            for card in self.keyword_cards
        ]
