"""Score a run against a file of true labels: its assignments, pairs of its texts, its attention."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from coterie.errors import InputError, SettingError
from coterie.metrics.external.pairs import SentencePair, labels_of_texts, sentence_pairs
from coterie.metrics.external.scores import Scores, evaluate
from coterie.text.reading import read_columns
from coterie.training.history import Snapshot

if TYPE_CHECKING:
    from coterie.methods.base import ClusteringMethod
    from coterie.metrics.external.attention import AttentionScores

# File beside the snapshots of a run: for every row of its input, the row of its text in the snapshots.
ROWS_FILE = "rows.safetensors"


def match_labels(
    assignments: Path, labels: Path, label_column: str, id_column: str | None = None
) -> tuple[list[int], list[Any]]:
    """Return the cluster and the true label of every row of an assignments file.

    Parameters
    ----------
    assignments:
        ``assignments.csv`` of a run, or the output of ``coterie predict``.
    labels:
        A table with the true labels.
    label_column:
        Its column of labels.
    id_column:
        Its column of ids, matched with ``id`` of the assignments. Rows are matched one by one if not given.
    """
    ours = read_columns(assignments, ["cluster"] if id_column is None else ["cluster", "id"])
    try:
        clusters = [int(str(value)) for value in ours["cluster"]]
    except ValueError as error:
        raise InputError(f"{assignments}: column 'cluster' must hold whole numbers: {error}") from error
    theirs = read_columns(labels, [label_column] if id_column is None else [label_column, id_column])
    truth = theirs[label_column]
    if id_column is None:
        if len(truth) != len(clusters):
            raise InputError(
                f"{labels} has {len(truth):,} rows, {assignments} has {len(clusters):,}: rows are matched one by one "
                "(or match them by id with --id-column)"
            )
        return clusters, truth
    by_id = {str(key): label for key, label in zip(theirs[id_column], truth, strict=True)}
    if len(by_id) < len(truth):
        raise InputError(f"{labels}: column {id_column!r} holds an id twice; ids must be unique to match rows by them")
    ids = [str(key) for key in ours["id"]]
    if by_id.keys().isdisjoint(ids):
        raise InputError(f"{labels}: none of the ids in column {id_column!r} is in {assignments}")
    # Often only a part of the rows has a label: rows without one are left out of the scores and counted.
    return clusters, [by_id.get(key) for key in ids]


def score_assignments(assignments: Path, labels: Path, label_column: str, id_column: str | None = None) -> Scores:
    """Return the scores of an assignments file; the parameters are those of :func:`match_labels`."""
    clusters, truth = match_labels(assignments, labels, label_column, id_column)
    return evaluate(truth, clusters)


def score_assigned_rows(clusters: Sequence[int], truth: Sequence[Any]) -> Scores:
    """Return the scores over only the rows that are in a cluster."""
    inside = [row for row, cluster in enumerate(clusters) if cluster >= 0]
    return evaluate([truth[row] for row in inside], [clusters[row] for row in inside])


@dataclass(frozen=True)
class RunPairs:
    """Pairs of texts of a run whose similarity changed most in training.

    Attributes
    ----------
    snapshots:
        The run's snapshots, in order.
    pairs:
        The pairs; they refer to texts by their row in the snapshots.
    rows:
        For each row of the snapshots, the first row of the input (from 0) with this text.
    texts:
        One text per row.
    labels:
        The true label of each text of the snapshots; ``None`` without labels.
    """

    snapshots: Sequence[Snapshot]
    pairs: Sequence[SentencePair]
    rows: dict[int, int]
    texts: Sequence[str]
    labels: Sequence[Hashable] | None

    def text(self, place: int) -> str:
        """Return the text at ``place`` in the snapshots."""
        return self.texts[self.rows[place]]

    def to_dict(self) -> dict[str, Any]:
        """Return the pairs with their texts, ready for JSON."""
        return {
            "snapshots": [{"stage": each.stage, "epoch": each.epoch, "step": each.step} for each in self.snapshots],
            "pairs": [
                {
                    "kind": pair.kind,
                    "first": self._text_to_dict(pair.first),
                    "second": self._text_to_dict(pair.second),
                    "similarities": list(pair.similarities),
                }
                for pair in self.pairs
            ],
        }

    def _text_to_dict(self, place: int) -> dict[str, Any]:
        label = {} if self.labels is None else {"label": self.labels[place]}
        return {"row": self.rows[place] + 1, "text": self.text(place), **label}


def read_snapshots(run: Path) -> tuple[list[Snapshot], NDArray[np.int64]]:
    """Return the snapshots of a run folder in order, and for every row of its input its text in them (-1: empty)."""
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


def pairs_of_run(assignments: Path, truth: Sequence[Any] | None) -> RunPairs:
    """Find the pairs of texts that training moved together or apart, from the snapshots beside ``assignments``.

    ``truth`` is one true label per row; without it, pairs are ranked by the change of their similarity alone.
    """
    snapshots, places = read_snapshots(assignments.parent)
    texts = read_texts(assignments)
    if len(texts) != len(places):
        raise InputError(
            f"{assignments} has {len(texts):,} rows, the run's snapshots {len(places):,}: give the run's own folder"
        )
    # A repeated text is represented by its first row.
    rows = {place: row for row, place in reversed(list(enumerate(places.tolist())))}
    labels = None if truth is None else labels_of_texts(places, truth, len(snapshots[0].embeddings))
    return RunPairs(snapshots, sentence_pairs([each.embeddings for each in snapshots], labels), rows, texts, labels)


def attention_of_run(assignments: Path, truth: Sequence[Any]) -> AttentionScores:
    """Score the attention of the run's model (AECL) on the run's texts, with one true label per row."""
    from coterie.methods.persistence import load

    texts = read_texts(assignments)
    folder = assignments.parent
    model = folder / "model"
    return attention_of_model(load(model if model.is_dir() else folder), texts, truth)


def attention_of_model(
    model: ClusteringMethod, texts: Sequence[str], truth: Sequence[Hashable], seed: int = 0
) -> AttentionScores:
    """Score the attention of a fitted AECL between texts, with one true label per text.

    ``seed`` decides which texts share a batch, as in :func:`~coterie.metrics.external.attention.corpus_attention`.
    """
    from coterie.methods.aecl.method import AECL
    from coterie.metrics.external.attention import corpus_attention

    if not isinstance(model, AECL):
        raise SettingError(
            f"attention between texts is a part of AECL, and this is {type(model).__name__}: fit with --method aecl"
        )
    return corpus_attention(model.attention_between, texts, truth, model.training.batch_size_for, seed)


def read_texts(assignments: Path) -> list[str]:
    """Return the texts of an assignments file, one per row."""
    return ["" if cell is None else str(cell) for cell in read_columns(assignments, ["text"])["text"]]
