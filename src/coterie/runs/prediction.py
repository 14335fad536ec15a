"""Assign new texts to the clusters of a run as they are now: with its edits and its calibration."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from coterie.errors import InputError
from coterie.files import atomic_file
from coterie.methods.persistence import load
from coterie.methods.results import Prediction
from coterie.runs.assignments_file import AssignmentWriter, assignment_columns
from coterie.runs.calibration import Calibration
from coterie.runs.edits.replay import apply_to_new
from coterie.runs.folder import check_free
from coterie.runs.table import Table
from coterie.text.corpus import Corpus, as_corpus
from coterie.text.reading import column_names, iter_corpus, read_corpus

if TYPE_CHECKING:
    from coterie.methods.base import ClusteringMethod
    from coterie.runs.edits.kinds import Edit
    from coterie.runs.edits.replay import EditedClusters
    from coterie.runs.saved_run import SavedRun

# Rows read, assigned and written at a time: enough texts of like length to keep a GPU busy, few enough to hold.
CHUNK_ROWS = 8_192


@dataclass(frozen=True)
class BareModel:
    """The folder of a fitted method without a run around it: there are no edits, and the clusters have no names.

    Attributes
    ----------
    folder, device:
        Where it is, and where it is loaded to.
    """

    folder: Path
    device: str = "auto"
    about: None = None
    state_for_new_texts: None = None

    @cached_property
    def model(self) -> ClusteringMethod:
        """The fitted method."""
        return load(self.folder, device=self.device)

    @cached_property
    def calibration(self) -> Calibration | None:
        """How margins become confidence, where it was saved beside the method."""
        return Calibration.read(self.folder)


@dataclass(frozen=True)
class PredictionCounts:
    """What became of the rows of a file.

    Attributes
    ----------
    rows, empty, abstained:
        Rows written; those without a text, which are in cluster -1; those below the least confidence asked for.
    truncated:
        Distinct texts that were cut at the model's length limit.
    """

    rows: int
    empty: int
    abstained: int
    truncated: int


@dataclass(frozen=True)
class RunPrediction(Prediction):
    """Clusters of new texts with the edits of a run applied, and calibrated confidence.

    Attributes
    ----------
    fitted_labels:
        The clusters before the edits.
    moved:
        Whether a person moved the very text.
    """

    fitted_labels: NDArray[np.int64]
    moved: NDArray[np.bool_]


def assign_with_edits(
    model: ClusteringMethod, calibration: Calibration | None, edits: Sequence[Edit], texts: Any
) -> RunPrediction:
    """Assign new texts. This is the one place where a run decides where a new text goes.

    The model finds the nearest cluster as it was fitted, the calibration turns its margin into a confidence, and the
    edits are applied in their order.
    """
    corpus = as_corpus(texts, allow_empty=True)
    found = model.assign(corpus)
    labels, confidence = found.labels, found.confidence
    moved = np.zeros(len(labels), dtype=bool)
    if calibration is not None:
        confidence = calibration.confidence(labels, confidence)
    if edits:
        labels, moved = apply_to_new(edits, corpus.texts, labels, model.transform)
        confidence = np.where(moved, 1.0, confidence)
    return RunPrediction(labels, confidence, found.n_truncated, found.labels, moved)


@dataclass(frozen=True)
class Predictor:
    """Assigns new texts to the clusters of ``source``. A text gets the same cluster alone, in a batch, in any order."""

    source: SavedRun | BareModel

    @property
    def state(self) -> EditedClusters | None:
        """The clusters as they are now; ``None`` without a run."""
        return self.source.state_for_new_texts

    def assign(self, texts: Any) -> RunPrediction:
        """Return cluster and confidence of each text; 1 where a person moved the very text."""
        edits = () if self.state is None else self.state.applied
        return assign_with_edits(self.source.model, self.source.calibration, edits, texts)

    def predict(self, corpora: Iterable[Corpus], *, min_confidence: float = 0.0, with_texts: bool = True) -> Table:
        """Return the columns that ``coterie predict`` writes."""
        table = Table()
        names = None if self.state is None else self.state.names
        for corpus in corpora:
            found = self.assign(corpus)
            columns = assignment_columns(
                corpus,
                found.labels,
                found.confidence,
                names=names,
                min_confidence=min_confidence,
                with_texts=with_texts,
                first_row=table.n_rows + 1,
            )
            for name, cells in columns.items():
                table.setdefault(name, []).extend(cells)
        return table

    def write(
        self,
        corpora: Iterable[Corpus],
        stream: IO[str],
        *,
        min_confidence: float = 0.0,
        with_texts: bool = True,
        on_rows: Callable[[int], None] | None = None,
    ) -> PredictionCounts:
        """Write the same as CSV, corpus by corpus; ``on_rows`` is called with the number of rows after each."""
        names = None if self.state is None else self.state.names
        writer = AssignmentWriter(stream, with_texts=with_texts, min_confidence=min_confidence, names=names)
        truncated = 0
        for corpus in corpora:
            found = self.assign(corpus)
            writer.write(corpus, found.labels, found.confidence)
            truncated += found.n_truncated
            if on_rows is not None:
                on_rows(writer.rows)
        return PredictionCounts(writer.rows, writer.empty, writer.abstained, truncated)

    def read(
        self,
        texts: object,
        *,
        text_column: str | None = None,
        id_column: str | None = None,
        keep: str | Collection[str] = (),
    ) -> Iterator[Corpus]:
        """Read new texts, a file piece by piece; its columns are checked at once, before a model is loaded."""
        if isinstance(texts, (str, Path)):
            text_column = text_column or self._usual_text_column(texts)
            return iter_corpus(
                texts, text_column=text_column, id_column=id_column, keep_columns=keep, chunk_rows=CHUNK_ROWS
            )
        if isinstance(texts, (Corpus, list, tuple, np.ndarray)):
            return iter([as_corpus(texts, allow_empty=True)])
        return iter([read_corpus(texts, text_column=text_column, id_column=id_column, keep_columns=keep)])

    def _usual_text_column(self, path: str | Path) -> str | None:
        """Return the text column that the run was fitted on, where the new file has it too."""
        about = self.source.about
        column = None if about is None else about.get("input", {}).get("text_column")
        return column if column in column_names(path) else None


def predict_file(
    predictor: Predictor,
    corpora: Iterable[Corpus],
    output: Path,
    *,
    overwrite: bool = False,
    min_confidence: float = 0.0,
    with_texts: bool = True,
    on_rows: Callable[[int], None] | None = None,
) -> PredictionCounts:
    """Write the clusters of new texts to a CSV file, whole or not at all; memory does not grow with the texts."""
    check_csv(output, overwrite)
    with atomic_file(output) as stream:
        return predictor.write(corpora, stream, min_confidence=min_confidence, with_texts=with_texts, on_rows=on_rows)


def check_csv(output: Path, overwrite: bool) -> None:
    """Refuse a target that must not become a CSV file."""
    if output.is_dir():
        raise InputError(f"{output} is a folder; --output must name a file")
    if output.suffix.lower() != ".csv":
        raise InputError(f"{output}: the output is CSV; give --output a name that ends in .csv")
    check_free(output, overwrite)


def open_predictor(folder: Path, *, device: str = "auto") -> Predictor:
    """Open a run folder, or the folder of a model without a run around it, to assign new texts."""
    from coterie.runs.clusters_file import CLUSTERS_FILE
    from coterie.runs.fitted_run import MODEL_FOLDER
    from coterie.runs.run_file import RUN_FILE
    from coterie.runs.saved_run import SavedRun

    if (folder / RUN_FILE).is_file() and (folder / CLUSTERS_FILE).is_file():
        return Predictor(SavedRun.open(folder, device=device))
    inside = folder / MODEL_FOLDER
    return Predictor(BareModel(inside if inside.is_dir() else folder, device))
