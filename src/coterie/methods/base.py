"""What every method can do: fit, predict, transform, save."""

from __future__ import annotations

import logging
import os
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClusterMixin

from coterie.clustering.assignment import (
    align_labels,
    near_ties,
    order_by_size,
    relabel,
    squared_distances,
    student_t_kernel,
)
from coterie.errors import InputError, NotFittedError, SettingError
from coterie.text.corpus import Corpus, as_corpus
from coterie.training.history import History

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Learned:
    """What a method's own fitting hands to the base: everything is per distinct text.

    Attributes
    ----------
    features:
        The vectors the final partition lives in.
    centers:
        One centre a cluster.
    labels:
        The partition, or ``None`` where it is "nearest centre".
    other_labels:
        Further partitions to keep, by attribute name (``head_labels_``); renamed to match the main one.
    """

    features: Any
    centers: NDArray[np.float32]
    labels: NDArray[np.int64] | None = None
    other_labels: Mapping[str, NDArray[np.int64]] = field(default_factory=dict)


class ClusteringMethod(ClusterMixin, BaseEstimator, ABC):
    """Base of all methods; the constructor only stores, ``fit`` checks.

    Attributes
    ----------
    labels_:
        Cluster of every row, ordered by size (0 is the largest); -1 for empty texts.
    cluster_centers_:
        One centre a cluster, in the space of ``transform``.
    confidence_:
        For every row, how far its cluster is ahead of the runner-up: ``1 - q2 / q1`` with the probabilities of
        ``predict_proba``. 0 is a coin flip between two clusters, 1 means no other cluster is near. It is a
        margin, not a calibrated probability of being right. 0 for empty texts.
    center_distance_:
        Euclidean distance of every row to its cluster's centre; NaN for empty texts.
    history_:
        Loss terms and label changes during training (empty for methods that do not train).
    notes_:
        What a user should know about the fit, in sentences: empty texts, cut texts, early ends.
    """

    # Degrees of freedom of the Student t kernel behind predict_proba; methods with an alpha override it.
    alpha: float = 1.0

    n_clusters: int
    random_state: int | None

    labels_: NDArray[np.int64]
    confidence_: NDArray[np.float64]
    center_distance_: NDArray[np.float64]
    cluster_centers_: NDArray[np.float32]
    predict_agreement_: float
    history_: History
    notes_: tuple[str, ...]

    def fit(self, texts: Any, y: Any = None, *, embeddings: Any = None) -> Self:
        """Cluster ``texts``.

        Parameters
        ----------
        texts:
            A list, a pandas, polars or Arrow column of strings, or a :class:`~coterie.text.corpus.Corpus`.
        y:
            Ignored; labels are never used.
        embeddings:
            Vectors to use in place of the method's own, one row a text, where the method allows it.
        """
        corpus = as_corpus(texts)
        self._check_settings()
        if len(corpus.distinct) < self.n_clusters:
            raise InputError(
                f"n_clusters={self.n_clusters}, but there are only {len(corpus.distinct)} distinct non-empty texts "
                f"among {len(corpus)} rows; ask for fewer clusters"
            )
        vectors = self._check_embeddings(embeddings, corpus)
        self.history_ = History()
        self.notes_ = ()
        n_empty = int(corpus.empty.sum())
        if n_empty:
            self._note(f"{n_empty:,} of {len(corpus):,} rows are empty and in no cluster (-1)")
        n_repeated = len(corpus) - n_empty - len(corpus.distinct)
        if n_repeated:
            self._note(f"{n_repeated:,} rows repeat an earlier text; each text is used once, weighted by its count")
        self._finish(corpus, self._learn(corpus, vectors), given=vectors is not None)
        return self

    def fit_predict(self, texts: Any, y: Any = None, *, embeddings: Any = None) -> NDArray[np.int64]:
        """``fit(texts).labels_``."""
        return self.fit(texts, embeddings=embeddings).labels_

    def predict(self, texts: Any, *, embeddings: Any = None) -> NDArray[np.int64]:
        """Cluster of each text, the same alone, in a batch and in any order; -1 for empty texts."""
        corpus, distances = self._distances_of(texts, embeddings)
        return corpus.expand(distances.argmin(axis=1), -1)

    def predict_proba(self, texts: Any, *, embeddings: Any = None) -> NDArray[np.float64]:
        """Probability of each cluster for each text (Student t to the centres); zeros for empty texts."""
        corpus, distances = self._distances_of(texts, embeddings)
        return corpus.expand(student_t_kernel(distances, self.alpha), 0.0)

    def predict_with_confidence(
        self, texts: Any, *, embeddings: Any = None
    ) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """``predict`` and the confidence of each answer (see ``confidence_``), embedding the texts once."""
        corpus, distances = self._distances_of(texts, embeddings)
        labels = distances.argmin(axis=1)
        confidence = lead(student_t_kernel(distances, self.alpha), labels)
        return corpus.expand(labels, -1), corpus.expand(confidence, 0.0)

    def transform(self, texts: Any) -> Any:
        """The vectors the clusters live in, one row a text."""
        self._check_fitted()
        corpus = as_corpus(texts, allow_empty=True)
        distinct = list(dict.fromkeys(corpus.texts))
        place = {text: i for i, text in enumerate(distinct)}
        return self._encode(distinct)[[place[text] for text in corpus.texts]]

    def save_pretrained(self, folder: str | os.PathLike[str]) -> None:
        """Write the fitted model to ``folder`` (see :func:`coterie.load`)."""
        from coterie.methods.persistence import save

        self._check_fitted()
        save(self, Path(folder))

    def set_params(self, **params: Any) -> Self:
        """Set parameters; ``training__name`` replaces one field of an (immutable) training configuration."""
        nested = {name.split("__", 1)[1]: params.pop(name) for name in list(params) if name.startswith("training__")}
        if nested:
            training = params.pop("training", self.get_params(deep=False).get("training"))
            if training is None:
                raise SettingError(f"{type(self).__name__} does not train; it has no parameter 'training'")
            unknown = sorted(set(nested) - set(training.get_params()))
            if unknown:
                raise SettingError(
                    f"training has no setting {unknown[0]!r}; there are {', '.join(training.get_params())}"
                )
            params["training"] = replace(training, **nested)
        super().set_params(**params)
        return self

    # What a method supplies.

    @abstractmethod
    def _learn(self, corpus: Corpus, vectors: NDArray[np.float32] | None) -> Learned:
        """Fit on ``corpus.distinct``; ``vectors`` are given embeddings, one row a distinct text."""

    @abstractmethod
    def _encode(self, texts: Sequence[str]) -> Any:
        """Vectors of texts, dense or sparse, one row each."""

    def _encode_alone(self, texts: Sequence[str]) -> Any:
        """Vectors of texts that no batch mate can have touched; override where batching leaves a trace."""
        return self._encode(texts)

    def _accepts_embeddings(self) -> str | None:
        """``None`` where ``embeddings=`` can be used, else the reason why not."""
        return f"{type(self).__name__} makes its own vectors"

    def _check_settings(self) -> None:
        """Check parameters before anything expensive starts; extend with ``super()``."""
        k = self.n_clusters
        if isinstance(k, bool) or not isinstance(k, (int, np.integer)):
            raise SettingError(f"n_clusters={k!r} must be a whole number")
        if k < 2:
            raise SettingError(f"n_clusters={k}: at least 2 clusters are needed")
        if self.random_state is not None and not isinstance(self.random_state, (int, np.integer)):
            raise SettingError(f"random_state={self.random_state!r} must be a whole number or None")

    def _state(self) -> dict[str, NDArray[Any]]:
        """Arrays to save beside the centres."""
        return {}

    def _save_parts(self, folder: Path) -> dict[str, Any]:
        """Write what is not an array (an encoder, a vocabulary); returns JSON to keep with the model."""
        return {}

    @abstractmethod
    def _restore_parts(
        self, folder: Path, state: Mapping[str, NDArray[Any]], extra: Mapping[str, Any], device: str
    ) -> None:
        """Undo :meth:`_save_parts` and :meth:`_state`."""

    # Shared machinery.

    @property
    def seed(self) -> int:
        """``random_state`` as a number; ``None`` draws one."""
        if self.random_state is None:
            return int(np.random.default_rng().integers(2**31))
        return int(self.random_state)

    def _note(self, sentence: str) -> None:
        self.notes_ = (*self.notes_, sentence)
        logger.info(sentence)

    def _check_fitted(self) -> None:
        if "cluster_centers_" not in vars(self):
            raise NotFittedError(f"this {type(self).__name__} is not fitted yet; call fit(texts) first")

    def _check_embeddings(self, embeddings: Any, corpus: Corpus) -> NDArray[np.float32] | None:
        """Given vectors as one row a distinct text (the first row that holds it)."""
        if embeddings is None:
            return None
        reason = self._accepts_embeddings()
        if reason is not None:
            raise SettingError(f"embeddings= cannot be used: {reason}")
        array = np.asarray(embeddings, dtype=np.float32)
        if array.ndim != 2 or len(array) != len(corpus):
            raise InputError(
                f"embeddings= must have one row a text: received shape {array.shape} for {len(corpus)} texts"
            )
        rows = np.flatnonzero(~corpus.empty)
        bad = rows[~np.isfinite(array[rows]).all(axis=1)]
        if len(bad):
            raise InputError(f"embeddings= holds NaN or infinity in row {bad[0] + 1}")
        _, first = np.unique(corpus.distinct_index[rows], return_index=True)
        return array[rows[first]]

    def _settled_distances(
        self, texts: Sequence[str], features: Any, centers: NDArray[np.float32], given: bool
    ) -> NDArray[np.float64]:
        """Squared distances to the centres, near ties computed anew from the text alone."""
        distances = squared_distances(features, centers)
        if not given:
            ties = near_ties(distances)
            if len(ties):
                distances[ties] = squared_distances(self._encode_alone([texts[i] for i in ties]), centers)
        return distances

    def _distances_of(self, texts: Any, embeddings: Any) -> tuple[Corpus, NDArray[np.float64]]:
        self._check_fitted()
        corpus = as_corpus(texts, allow_empty=True)
        vectors = self._check_embeddings(embeddings, corpus)
        if not corpus.distinct:
            return corpus, np.zeros((0, len(self.cluster_centers_)))
        features = self._encode(corpus.distinct) if vectors is None else vectors
        if features.shape[1] != self.cluster_centers_.shape[1]:
            raise InputError(
                f"embeddings have {features.shape[1]} dimensions, "
                f"the model was fitted on {self.cluster_centers_.shape[1]}"
            )
        return corpus, self._settled_distances(corpus.distinct, features, self.cluster_centers_, vectors is not None)

    def _finish(self, corpus: Corpus, learned: Learned, given: bool) -> None:
        """Order the clusters by size and fill the learned attributes."""
        k, counts = self.n_clusters, corpus.counts
        distances = self._settled_distances(corpus.distinct, learned.features, learned.centers, given)
        nearest = distances.argmin(axis=1)
        labels = nearest if learned.labels is None else learned.labels
        order = order_by_size(labels, k, counts)
        labels, nearest = relabel(labels, order), relabel(nearest, order)
        self.cluster_centers_ = np.ascontiguousarray(learned.centers[order], dtype=np.float32)
        self.labels_ = corpus.expand(labels, -1)
        self.confidence_ = corpus.expand(lead(student_t_kernel(distances[:, order], self.alpha), labels), 0.0)
        own = np.take_along_axis(distances[:, order], labels[:, None], axis=1)[:, 0]
        self.center_distance_ = corpus.expand(np.sqrt(own), np.nan)
        for name, values in learned.other_labels.items():
            setattr(self, name, corpus.expand(align_labels(values, labels, k, counts), -1))
        n_used = len(np.unique(labels))
        if n_used < k:
            self._note(f"{k - n_used} of {k} clusters stayed empty")
        if learned.labels is not None:
            agreement = float(counts[labels == nearest].sum() / counts.sum())
            self.predict_agreement_ = agreement
            self._note(
                f"predict assigns to the nearest centroid, which differs from the linkage on "
                f"{1 - agreement:.1%} of the rows"
            )


def lead(probabilities: NDArray[np.float64], labels: NDArray[np.int64]) -> NDArray[np.float64]:
    """How far the chosen cluster is ahead of the best other one: ``1 - q2 / q1``, at least 0."""
    rows = np.arange(len(labels))
    chosen = probabilities[rows, labels]
    others = probabilities.copy()
    others[rows, labels] = -np.inf
    return np.clip(1 - others.max(axis=1, initial=0.0) / np.maximum(chosen, 1e-300), 0, 1)
