"""Measure the agreement of clusters with true labels: accuracy, NMI, ARI, purity.

Labels may be of any hashable type, and the numbers of clusters and of classes may differ. All scores are fractions: 1
is a perfect match, and only ARI can be below 0 (worse than chance). A predicted ``-1`` means that the text is in no
cluster. These rows count as wrong in accuracy and purity, and as one cluster in NMI and ARI. In the true labels ``-1``
is an ordinary class.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from coterie.clustering.contingency import UNASSIGNED, Contingency, NmiAverage
from coterie.errors import InputError, SettingError

Labels: TypeAlias = Iterable[Hashable]


@dataclass(frozen=True)
class Scores:
    """Agreement of one clustering with the true labels, as fractions.

    All numbers except ``n_without_label`` are about the scored rows, those with a true label.
    """

    accuracy: float
    nmi: float
    nmi_geometric: float
    ari: float
    purity: float
    n_clusters: int
    """Clusters with at least one scored row."""
    n_labels: int
    """Different labels."""
    n_rows: int
    """Rows scored."""
    n_unassigned: int
    """Scored rows that are in no cluster."""
    n_without_label: int
    """Rows left out because their true label is missing."""

    def to_dict(self) -> dict[str, float | int]:
        """Return the scores as plain numbers, ready for JSON."""
        return asdict(self)


def accuracy(labels_true: Labels, labels_pred: Labels) -> float:
    """Return the share of correct rows when clusters are matched with classes in the best way (Hungarian matching).

    A class is matched with at most one cluster: of two clusters that split a class, one counts as wrong.
    """
    table = _table(labels_true, labels_pred)
    return table.accuracy(table.counts())


def nmi(labels_true: Labels, labels_pred: Labels, average: NmiAverage = "arithmetic") -> float:
    """Return normalized mutual information: mutual information over the mean of the two entropies.

    ``average`` is the kind of mean: papers differ, and the geometric mean never gives the lower score.
    """
    if average not in ("arithmetic", "geometric"):
        raise SettingError(f"average={average!r} is unknown: use 'arithmetic' or 'geometric'")
    table = _table(labels_true, labels_pred)
    return table.nmi(table.counts(), average)


def ari(labels_true: Labels, labels_pred: Labels) -> float:
    """Return the adjusted Rand index: agreement over pairs of rows, 0 on average for chance, 1 when perfect."""
    table = _table(labels_true, labels_pred)
    return table.ari(table.counts())


def purity(labels_true: Labels, labels_pred: Labels) -> float:
    """Return the share of rows that belong to the most frequent class of their cluster.

    It rises with the number of clusters, and is 1 when each row is its own cluster.
    """
    table = _table(labels_true, labels_pred)
    return table.purity(table.counts())


def n_nonempty(labels_pred: Labels) -> int:
    """Return the number of clusters with at least one row; ``-1`` is no cluster."""
    codes = _codes(_as_list(labels_pred, "labels_pred"), "labels_pred", unassigned=UNASSIGNED)
    return len(np.unique(codes[codes != UNASSIGNED]))


def evaluate(labels_true: Labels, labels_pred: Labels) -> Scores:
    """Score a clustering by every measure.

    Rows without a true label (None, NaN, "") are left out and counted.
    """
    true, pred = _pair(labels_true, labels_pred)
    labelled = [row for row, label in enumerate(true) if not _is_missing(label)]
    if not labelled:
        raise InputError(f"nothing to score: none of the {len(true)} rows has a true label; check the column of labels")
    true_codes = _codes([true[row] for row in labelled], "labels_true")
    # All predictions are checked, also those of rows without a true label.
    pred_codes = _codes(pred, "labels_pred", unassigned=UNASSIGNED)[labelled]
    table = Contingency.of(true_codes, pred_codes)
    counts = table.counts()
    return Scores(
        accuracy=table.accuracy(counts),
        nmi=table.nmi(counts, "arithmetic"),
        nmi_geometric=table.nmi(counts, "geometric"),
        ari=table.ari(counts),
        purity=table.purity(counts),
        n_clusters=table.n_clusters,
        n_labels=len(np.unique(true_codes)),
        n_rows=len(labelled),
        n_unassigned=int(np.count_nonzero(pred_codes == UNASSIGNED)),
        n_without_label=len(true) - len(labelled),
    )


# --- from labels to codes ---------------------------------------------------------------------------------


def _table(labels_true: Labels, labels_pred: Labels) -> Contingency:
    true, pred = _pair(labels_true, labels_pred)
    if not true:
        raise InputError("nothing to score: labels_true and labels_pred are empty; give at least one row")
    return Contingency.of(_codes(true, "labels_true"), _codes(pred, "labels_pred", unassigned=UNASSIGNED))


def _pair(labels_true: Labels, labels_pred: Labels) -> tuple[list[Hashable], list[Hashable]]:
    true, pred = _as_list(labels_true, "labels_true"), _as_list(labels_pred, "labels_pred")
    if len(true) != len(pred):
        raise InputError(
            f"labels_true has {len(true)} rows and labels_pred has {len(pred)}: give one of each for every text"
        )
    return true, pred


def _as_list(labels: Labels, name: str) -> list[Hashable]:
    if isinstance(labels, (str, bytes)) or not isinstance(labels, Iterable):
        raise InputError(f"{name} is {type(labels).__name__}: give a list or an array with one label per row")
    if isinstance(labels, (Sequence, Iterator)):
        return list(labels)
    # Arrays, columns and tensors go through numpy: the items of some, such as tensors, do not hash by value.
    array = np.asarray(labels)
    if array.ndim == 0:
        return list(labels)
    if array.ndim != 1:
        raise InputError(f"{name} has shape {array.shape}: give one label per row, in one dimension")
    return list(array.tolist())


def _codes(labels: list[Hashable], name: str, unassigned: Hashable = None) -> NDArray[np.int64]:
    """Number the labels from 0 in order of appearance; ``unassigned`` keeps the code -1."""
    code_of: dict[Hashable, int] = {}
    codes = np.empty(len(labels), dtype=np.int64)
    for row, label in enumerate(labels):
        if _is_missing(label):
            raise InputError(f"{name} has no label in row {row} ({label!r}): {_suggest_for_missing(name)}")
        try:
            codes[row] = UNASSIGNED if label == unassigned else code_of.setdefault(label, len(code_of))
        except (TypeError, ValueError) as error:  # ValueError: an array has no truth value
            raise InputError(
                f"{name} holds {type(label).__name__} in row {row}: labels must be single values, "
                "such as strings or integers"
            ) from error
    return codes


def _suggest_for_missing(name: str) -> str:
    if name == "labels_true":
        return "leave the row out, or use evaluate(), which does"
    return f"use {UNASSIGNED} for a text in no cluster"


def _is_missing(label: Hashable) -> bool:
    if label is None or isinstance(label, str):
        return not label
    if isinstance(label, (float, np.floating)):
        return bool(np.isnan(label))
    # pandas' own null values, recognised by name so that pandas is not imported.
    return type(label).__name__ in ("NAType", "NaTType")
