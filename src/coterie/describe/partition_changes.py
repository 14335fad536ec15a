"""Changes between two partitions of the same rows: clusters that split, merged, stayed, disappeared or are new."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from itertools import islice, pairwise
from typing import Any, Literal, TypeAlias, get_args

import numpy as np
from numpy.typing import NDArray

from coterie.clustering.contingency import Contingency
from coterie.errors import InputError

ChangeKind: TypeAlias = Literal["stayed", "split", "merged", "new", "gone"]
Ids: TypeAlias = NDArray[np.int64]

# Share of a cluster from which a part counts in a split or a merger.
LARGE_PART = 0.2
# Moves between clusters that are listed.
MAX_MOVES = 20


@dataclass(frozen=True)
class ClusterChange:
    """One change of clusters; :func:`compare_partitions` defines the kinds.

    Attributes
    ----------
    kind:
        ``stayed``, ``split``, ``merged``, ``new`` or ``gone``.
    before, after:
        Ids of the clusters that changed, and of those that resulted.
    rows:
        Rows in common: one number per resulting cluster of a split, per original cluster of a merger, else one number.
    size_before, size_after:
        The size of each cluster of ``before`` and of ``after``, in rows.
    """

    kind: ChangeKind
    before: tuple[int, ...]
    after: tuple[int, ...]
    rows: tuple[int, ...]
    size_before: tuple[int, ...]
    size_after: tuple[int, ...]


@dataclass(frozen=True)
class Move:
    """Rows that moved from one cluster to another that is not its partner, with the first few texts among them."""

    before: int
    after: int
    rows: int
    examples: tuple[str, ...]


@dataclass(frozen=True)
class PartitionChanges:
    """How two partitions of the same rows differ.

    Attributes
    ----------
    n_rows, n_left_out:
        Rows compared, and rows left out because they are in no cluster in one of the partitions.
    n_before, n_after:
        Clusters that contain a compared row.
    agreement:
        Share of rows whose clusters before and after are partners.
    ari, nmi:
        Adjusted Rand index and normalised mutual information of the two partitions.
    changes:
        Splits, mergers, clusters that are gone, new ones, and those that stayed; of each kind the largest first.
    moves:
        The largest moves between clusters that are not partners, at most 20.
    """

    n_rows: int
    n_left_out: int
    n_before: int
    n_after: int
    agreement: float
    ari: float
    nmi: float
    changes: tuple[ClusterChange, ...]
    moves: tuple[Move, ...]

    @property
    def counts(self) -> dict[ChangeKind, int]:
        """The number of changes of each kind."""
        found = Counter(change.kind for change in self.changes)
        return {kind: found[kind] for kind in get_args(ChangeKind)}

    def of_kind(self, kind: ChangeKind) -> list[ClusterChange]:
        """Return the changes of one kind, the largest first."""
        return [change for change in self.changes if change.kind == kind]

    def to_dict(self) -> dict[str, Any]:
        """Return all fields and the number of changes of each kind, for JSON."""
        return {**asdict(self), "counts": dict(self.counts)}


def compare_partitions(
    before: Sequence[int] | NDArray[np.integer[Any]],
    after: Sequence[int] | NDArray[np.integer[Any]],
    texts: Sequence[str] | None = None,
    *,
    max_examples: int = 3,
) -> PartitionChanges:
    """Return how the clusters changed from the partition ``before`` to the partition ``after`` of the same rows.

    Rows labelled -1 in either are left out. Clusters are matched one to one, as partners, so that as many rows as
    possible are in partners (Hungarian matching). A large part is at least 20 %:

    - ``split``: large parts of a cluster before are in two or more clusters after, which are listed.
    - ``merged``: two or more clusters before each make up a large part of a cluster after; they are listed.
    - ``stayed``: partners that share a large part of both; the one before is not split, the one after not merged.
    - ``gone``: a cluster before in none of these changes; the cluster after that received most of it is listed.
    - ``new``: a cluster after in none of these changes; the cluster before that most of it comes from is listed.

    So every cluster is in at least one change. It may be in several: half of a split cluster may be merged with another
    one.

    Parameters
    ----------
    before, after:
        The cluster of each row; -1 for no cluster.
    texts:
        The text of each row, for examples of the moves.
    max_examples:
        The largest number of examples per move.

    Examples
    --------
    >>> from coterie.describe.partition_changes import compare_partitions
    >>> compare_partitions([0, 0, 0, 0, 1, 1], [0, 0, 2, 2, 1, 1]).of_kind("split")[0].after
    (0, 2)
    """
    first, second = np.asarray(before, dtype=np.int64), np.asarray(after, dtype=np.int64)
    for name, given in (("after", second), ("texts", texts)):
        if given is not None and len(given) != len(first):
            raise InputError(f"before has {len(first):,} rows, but {name} has {len(given):,}: give one of each per row")
    compared = np.flatnonzero((first >= 0) & (second >= 0))
    if not len(compared):
        raise InputError("nothing to compare: no row is in a cluster in both partitions")
    ids_before, codes_before = np.unique(first[compared], return_inverse=True)
    ids_after, codes_after = np.unique(second[compared], return_inverse=True)
    table = Contingency.of(codes_before, codes_after)
    counts = table.counts()
    matching = table.matching(counts)
    are_partners = matching[table.cluster_of_cell] == table.class_of_cell
    cells = _Cells(
        before=table.class_of_cell,
        after=table.cluster_of_cell,
        rows=counts.astype(np.int64),
        are_partners=are_partners,
        size_before=np.bincount(codes_before),
        size_after=np.bincount(codes_after),
        ids_before=ids_before,
        ids_after=ids_after,
    )
    largest = [cell for cell in np.argsort(-counts, kind="stable") if not are_partners[cell]][:MAX_MOVES]
    return PartitionChanges(
        n_rows=len(compared),
        n_left_out=len(first) - len(compared),
        n_before=len(ids_before),
        n_after=len(ids_after),
        agreement=table.accuracy(counts, matching),
        ari=table.ari(counts),
        nmi=table.nmi(counts),
        changes=tuple(_changes(cells)),
        moves=tuple(
            Move(
                before=int(ids_before[cells.before[cell]]),
                after=int(ids_after[cells.after[cell]]),
                rows=int(cells.rows[cell]),
                examples=_examples(texts, compared[table.cell_of_row == cell], max_examples),
            )
            for cell in largest
        ),
    )


def _examples(texts: Sequence[str] | None, rows: Ids, n_texts: int) -> tuple[str, ...]:
    """Return the first distinct texts among the rows."""
    if texts is None:
        return ()
    distinct: dict[str, None] = {}
    for row in rows.tolist():
        if len(distinct) >= n_texts:
            break
        distinct[texts[row]] = None
    return tuple(islice(distinct, n_texts))


@dataclass(frozen=True)
class _Cells:
    """The pairs of clusters that share a row; clusters by their position among the ids."""

    before: NDArray[np.intp]
    after: NDArray[np.intp]
    rows: Ids
    are_partners: NDArray[np.bool_]
    size_before: Ids
    size_after: Ids
    ids_before: Ids
    ids_after: Ids

    def change(self, kind: ChangeKind, cells: NDArray[np.intp]) -> ClusterChange:
        """Return the change that these cells make up, with the largest cell first."""
        largest_first = cells[np.argsort(-self.rows[cells], kind="stable")]
        before = list(dict.fromkeys(self.before[largest_first].tolist()))
        after = list(dict.fromkeys(self.after[largest_first].tolist()))
        return ClusterChange(
            kind=kind,
            before=tuple(self.ids_before[before].tolist()),
            after=tuple(self.ids_after[after].tolist()),
            rows=tuple(self.rows[largest_first].tolist()),
            size_before=tuple(self.size_before[before].tolist()),
            size_after=tuple(self.size_after[after].tolist()),
        )


def _changes(cells: _Cells) -> list[ClusterChange]:
    large_of_before = cells.rows / cells.size_before[cells.before] >= LARGE_PART
    large_of_after = cells.rows / cells.size_after[cells.after] >= LARGE_PART
    is_split = np.bincount(cells.before[large_of_before], minlength=len(cells.size_before)) > 1
    is_merged = np.bincount(cells.after[large_of_after], minlength=len(cells.size_after)) > 1
    in_split = large_of_before & is_split[cells.before]
    in_merger = large_of_after & is_merged[cells.after]
    stays = cells.are_partners & large_of_before & large_of_after
    stays &= ~is_split[cells.before] & ~is_merged[cells.after]
    is_explained = in_split | in_merger | stays
    is_gone, is_new = np.ones(len(cells.size_before), dtype=bool), np.ones(len(cells.size_after), dtype=bool)
    is_gone[cells.before[is_explained]] = False
    is_new[cells.after[is_explained]] = False
    members_by_kind: list[tuple[ChangeKind, list[NDArray[np.intp]]]] = [
        ("split", _cells_by_cluster(cells.before, in_split)),
        ("merged", _cells_by_cluster(cells.after, in_merger)),
        ("gone", _largest_cells(cells, _cells_by_cluster(cells.before, is_gone[cells.before]))),
        ("new", _largest_cells(cells, _cells_by_cluster(cells.after, is_new[cells.after]))),
        ("stayed", _cells_by_cluster(cells.before, stays)),
    ]
    found = []
    for kind, members in members_by_kind:
        found += sorted((cells.change(kind, each) for each in members), key=lambda change: -sum(change.rows))
    return found


def _cells_by_cluster(keys: NDArray[np.intp], chosen: NDArray[np.bool_]) -> list[NDArray[np.intp]]:
    """Return the chosen cells, one array per cluster in ``keys``."""
    chosen_cells = np.flatnonzero(chosen)
    chosen_cells = chosen_cells[np.argsort(keys[chosen_cells], kind="stable")]
    begins = [0, *(np.flatnonzero(np.diff(keys[chosen_cells])) + 1).tolist(), len(chosen_cells)]
    return [chosen_cells[begin:end] for begin, end in pairwise(begins) if end > begin]


def _largest_cells(cells: _Cells, candidates: list[NDArray[np.intp]]) -> list[NDArray[np.intp]]:
    """Return the cell with most rows of each array."""
    return [each[[cells.rows[each].argmax()]] for each in candidates]
