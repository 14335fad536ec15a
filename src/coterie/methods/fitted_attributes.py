"""Set the attributes of a fitted estimator: assign every text, and order clusters by size."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from coterie.clustering.assignment import align_labels, alignment
from coterie.methods.assignment import Assigner, Assignment
from coterie.methods.fitted_texts import FittedTexts
from coterie.methods.results import Learned
from coterie.text.sampling import Sample

if TYPE_CHECKING:
    from coterie.methods.base import ClusteringMethod


def set_fitted_attributes(
    method: ClusteringMethod, sample: Sample, learned: Learned, vectors: NDArray[np.float32] | None
) -> None:
    """Assign all texts, also those outside ``sample``, and set the learned attributes of ``method``.

    ``vectors`` are the user's own, one row per distinct text.
    """
    k, corpus, counts = method.n_clusters, sample.whole, sample.whole.counts
    assignment = Assignment(len(counts), k)
    assigner = Assigner(method, learned.centers, precomputed=vectors is not None)
    for block in assigner.fitted_texts(sample.corpus.distinct, sample.drawn, learned):
        assignment.add(block)
    _assign_others(method, sample, assigner, assignment, vectors)
    order = assignment.order(counts)
    labels = assignment.labels(order)
    method._reorder_head(order)
    method.cluster_centers_ = np.ascontiguousarray(learned.centers[order], dtype=np.float32)
    method.labels_ = corpus.expand(labels, -1)
    distances = np.where(assignment.blank, np.nan, np.sqrt(assignment.squared))
    method.center_distance_ = corpus.expand(distances, np.nan)
    method.confidence_ = corpus.expand(assignment.confidence, 0.0)
    if learned.initial_labels is not None:
        _set_other_partitions(method, sample, learned, labels[sample.drawn])
    if (n_used := len(np.unique(labels))) < k:
        method._note(f"{k - n_used} of {k} clusters stayed empty")
    if learned.labels is not None:
        method.fitted_texts_ = FittedTexts.of(sample.corpus.distinct, labels[sample.drawn])
        by_mean = learned.probabilities is None
        predicted = assignment.nearest(order) if by_mean else np.argsort(order)[assignment.most_probable]
        agreement = float(counts[labels == predicted].sum() / counts.sum())
        method.predict_agreement_ = agreement
        outcome = f"agrees on {agreement:.1%}" if agreement < 1 else "agrees on all of them"
        nearest = "to the nearest cluster mean" if by_mean else "by the means of clusters and of their parts"
        method._note(
            f"predict assigns a new text {nearest}; for the texts of this fit, which keep their cluster in any case, "
            f"that {outcome}"
        )


def _assign_others(
    method: ClusteringMethod,
    sample: Sample,
    assigner: Assigner,
    assignment: Assignment,
    vectors: NDArray[np.float32] | None,
) -> None:
    """Assign the texts outside the sample as ``predict`` does."""
    if not len(sample.others):
        return
    began = time.perf_counter()
    for block in assigner.new_texts(sample.whole.distinct, vectors, sample.others, with_distances=True):
        assignment.add(block)
    if assigner.truncated:
        method._note(
            f"{assigner.truncated:,} of the {len(sample.others):,} texts outside the sample were cut (max_length)"
        )
    method.timings_ = {**method.timings_, "assigning_others": time.perf_counter() - began}


def _set_other_partitions(
    method: ClusteringMethod, sample: Sample, learned: Learned, labels: NDArray[np.int64]
) -> None:
    """Set the other partitions of a trained method, with cluster numbers that match those of ``labels``."""
    k, counts = method.n_clusters, sample.corpus.counts

    def align_rows(other: NDArray[np.int64] | None) -> NDArray[np.int64]:
        return sample.spread(labels if other is None else align_labels(other, labels, k, counts), -1)

    method.initial_labels_ = align_rows(learned.initial_labels)
    method.kmeans_labels_ = align_rows(learned.kmeans_labels)
    method.head_labels_ = align_rows(learned.head_labels)
    if learned.head_centers is not None and learned.head_labels is not None:
        names = alignment(learned.head_labels, labels, k, counts)
        method.head_centers_ = learned.head_centers[np.argsort(names)]
    rows = (method.initial_labels_ >= 0) | sample.whole.empty
    moved = float(np.mean((method.labels_ != method.initial_labels_)[rows]))
    method._note(
        f"training moved {moved:.1%} of the rows to another cluster than {method._initial_labels_from} gave them"
    )
