"""A saved run as it is now: what its fit left, with the edits that people made, and where new texts go."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from coterie.runs.edits.log import EditLog, Edits
from coterie.runs.fitted_run import FittedRun
from coterie.runs.names_file import KnownNames

if TYPE_CHECKING:
    from coterie.describe.cards import ClusterCard
    from coterie.runs.edits.replay import EditedClusters
    from coterie.runs.prediction import Predictor
    from coterie.runs.table import Table

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


class SavedRun(FittedRun):
    """A run folder, opened: what ``coterie fit`` wrote, with the edits that people made to it.

    Report, explorer, predictions and every command read a run here, and never a file of its folder by name. Opening
    reads ``run.json`` alone. Edits made later, in the explorer say, are seen after :meth:`refresh`.
    """

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
        """Set the folder of the run, after the run folder has been moved there."""
        self.folder = folder
        self.__dict__.pop("assignments_file", None)
        self.refresh()

    def with_edits(self, edits: Edits) -> EditedClusters:
        """Return the clusters as they are with these edits."""
        return self._apply(edits, self.fitted_labels)

    def _apply(self, edits: Edits, labels: NDArray[np.int64]) -> EditedClusters:
        from coterie.runs.edited_clusters import apply_edits

        return apply_edits(edits, labels, self.card_dicts, self.known_names.clusters)

    @cached_property
    def state(self) -> EditedClusters:
        """The clusters as they are now: every row's, and their names."""
        return self.with_edits(self.edits)

    @cached_property
    def state_for_new_texts(self) -> EditedClusters:
        """The clusters as they are now, without those of the rows: to assign one text, no row needs to be read."""
        if "state" in vars(self):
            return self.state
        # An edit of a row is valid only if the run has that row.
        return self._apply(self.edits, np.zeros(int(self.about["rows"]), dtype=np.int64))

    @property
    def edited(self) -> EditedClusters | None:
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

    @property
    def names(self) -> dict[int, str]:
        """The name of each cluster as it is now, by id."""
        return dict(self.state.names)

    @property
    def assignments(self) -> Table:
        """Every row of the input with its cluster as it is now: the columns of ``assignments.csv``, and names.

        A row that was left unassigned for its confidence stays so, unless a person has moved it.
        """
        from coterie.runs.assignments_file import BEST_GUESS, CLUSTER_NAME
        from coterie.runs.table import Table

        file, state = self.assignments_file, self.state
        columns = {name: list(cells) for name, cells in file.columns().items()}
        abstained = np.array([status == "abstained" for status in columns["status"]]) & ~state.moved
        clusters = np.where(abstained, -1, state.labels).tolist()
        own: dict[str, list[Any]] = {
            "row": list(range(1, len(clusters) + 1)),
            "cluster": clusters,
            CLUSTER_NAME: [state.names.get(cluster, "") for cluster in clusters],
            BEST_GUESS: state.labels.tolist(),
            "confidence": np.where(state.moved, 1.0, file.confidence).tolist(),
            "status": [
                "assigned" if moved and status == "abstained" else status
                for moved, status in zip(state.moved.tolist(), columns["status"], strict=True)
            ],
        }
        table = Table()
        for name, cells in columns.items():
            table[name] = own.get(name, cells)
            if name == "cluster":
                table[CLUSTER_NAME] = own[CLUSTER_NAME]
        return table

    # --- new texts ---

    @property
    def predictor(self) -> Predictor:
        """What assigns new texts: see :meth:`predict`."""
        from coterie.runs.prediction import Predictor

        return Predictor(self)

    def predict(
        self,
        texts: object,
        *,
        text_column: str | None = None,
        id_column: str | None = None,
        keep: str | Collection[str] = (),
        min_confidence: float = 0.0,
        with_texts: bool = True,
    ) -> Table:
        """Return the cluster of each new text, with the run's edits and its calibrated confidence.

        The answer is what ``coterie predict`` writes: a text gets the same cluster alone, in a batch and in any order.

        Parameters
        ----------
        texts:
            A list, a column or a data frame of texts, a :class:`~coterie.text.corpus.Corpus`, or the path of a file.
        text_column, id_column, keep:
            Of a file or a data frame, the column of texts (default: that of the fit, ``text``, or the only one), a
            column of ids, and other columns to carry along.
        min_confidence:
            Texts below it are left unassigned: cluster -1, status ``abstained``, the cluster they would be in as
            ``best_guess``.
        with_texts:
            Whether the answer holds the texts.

        Returns
        -------
        A :class:`~coterie.runs.table.Table`: a dictionary of the columns ``row``, ``cluster``, ``cluster_name``,
        ``confidence`` (the probability that the cluster is right), ``status`` and ``text``, with ``to_pandas()``,
        ``to_polars()`` and ``to_arrow()``.
        """
        predictor = self.predictor
        corpora = predictor.read(texts, text_column=text_column, id_column=id_column, keep=keep)
        return predictor.predict(corpora, min_confidence=min_confidence, with_texts=with_texts)
