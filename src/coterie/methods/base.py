"""The base class of all methods: fit, predict, transform, save."""

from __future__ import annotations

import logging
import os
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClusterMixin
from sklearn.exceptions import NotFittedError as SklearnNotFittedError

from coterie.checks import check_whole
from coterie.clustering.assignment import student_t_from_distances
from coterie.encoders.precomputed_embeddings import embeddings_by_text
from coterie.errors import InputError, NotFittedError, SettingError
from coterie.methods.assignment import Assigner
from coterie.methods.fitted_attributes import set_fitted_attributes
from coterie.methods.results import Encoded, Learned, Prediction, plain
from coterie.text.corpus import Corpus, as_corpus
from coterie.text.sampling import draw_sample
from coterie.training.history import History
from coterie.types import Topic

if TYPE_CHECKING:
    from coterie.methods.fitted_texts import FittedTexts
    from coterie.selection.training_verdict import TrainingVerdict

logger = logging.getLogger(__name__)


class _NotFittedError(NotFittedError, SklearnNotFittedError):
    """Both Coterie's error and scikit-learn's, so that either can be caught."""


@dataclass(kw_only=True, eq=False, repr=False)
class ClusteringMethod(ClusterMixin, BaseEstimator, ABC):
    """Base class of all methods. The constructor only stores parameters; ``fit`` checks them.

    A method is a dataclass: its fields are its parameters, and the generated constructor takes those of its bases too,
    so that ``get_params`` and ``help`` show all of them. Every class that adds a parameter or has two bases is
    decorated in this way. What ``fit`` learns is ``field(init=False)``.

    Parameters
    ----------
    n_clusters:
        How many clusters to make; the only positional parameter.
    random_state:
        Seed of everything; ``None`` for another one at every fit.

    Attributes
    ----------
    labels_:
        Cluster of every row, ordered by size (0 is the largest); -1 for empty texts.
    cluster_centers_:
        One row per cluster, in the space of ``transform``.
    confidence_:
        Margin of each row's cluster over the runner-up: ``1 - q2 / q1`` with the probabilities of ``predict_proba``. 0
        means that two clusters are equally probable, 1 that no other cluster is near. It is not a calibrated
        probability of being right: a text that fits no cluster can still be far nearer to one than to the others. It
        is not comparable between methods. 0 for empty texts and texts without any known word.
    center_distance_:
        Euclidean distance of every row to its cluster's centre; NaN for empty texts and texts without a known word.
    history_:
        Loss terms and label changes during training; empty for methods that do not train.
    initial_labels_, kmeans_labels_, head_labels_:
        Other partitions of a trained method; -1 for empty texts and for rows outside the sample of ``fit``.
    timings_:
        Seconds per phase, for methods that train; ``assigning_others`` is the time for texts outside the sample.
    training_verdict_:
        Whether training helped, judged without labels: a :class:`~coterie.selection.training_verdict.TrainingVerdict`,
        or ``None`` where it was not judged.
    notes_:
        Remarks on the fit, one sentence each: empty texts, texts cut at ``max_length``, an early end.
    """

    n_clusters: int = field(kw_only=False)
    random_state: int | None = 0

    # Where ``initial_labels_`` come from, for the notes.
    _initial_labels_from: ClassVar[str] = "the frozen encoder"
    # Distinct texts that ``fit`` learns on where ``sample`` is not given; ``None``: all.
    usual_sample: ClassVar[int | None] = None

    labels_: NDArray[np.int64] = field(init=False)
    confidence_: NDArray[np.float64] = field(init=False)
    center_distance_: NDArray[np.float64] = field(init=False)
    cluster_centers_: NDArray[np.float32] = field(init=False)
    initial_labels_: NDArray[np.int64] = field(init=False)
    kmeans_labels_: NDArray[np.int64] = field(init=False)
    head_labels_: NDArray[np.int64] = field(init=False)
    head_centers_: NDArray[np.float32] = field(init=False)
    predict_agreement_: float = field(init=False)
    seed_: int = field(init=False)
    history_: History = field(init=False)
    timings_: dict[str, float] = field(init=False)
    notes_: tuple[str, ...] = field(init=False)
    # The clusters of the fit's texts, for methods whose partition is not what ``predict`` would give.
    fitted_texts_: FittedTexts | None = field(default=None, init=False)
    # Whether training helped; ``None`` where nothing was trained, or where it has not been judged.
    training_verdict_: TrainingVerdict | None = field(default=None, init=False)

    def fit(self, texts: Any, y: Any = None, *, embeddings: Any = None, sample: int | None = None) -> Self:
        """Cluster ``texts``.

        Parameters
        ----------
        texts:
            A list, a pandas, polars or Arrow column of strings, or a :class:`~coterie.text.corpus.Corpus`.
        y:
            Ignored; labels are never used.
        embeddings:
            Vectors to use in place of the method's own, one row per text, where the method allows it.
        sample:
            Learn on a random sample of this many distinct texts and assign the others as ``predict`` does; for
            corpora larger than a method can learn on. ``labels_``, ``confidence_`` and ``center_distance_`` cover all
            rows.
        """
        corpus = as_corpus(texts)
        self.check(corpus, sample)
        sample = self.usual_sample if sample is None else sample
        vectors = self._check_embeddings(embeddings, corpus)
        # A fit that fails must not leave parts of an earlier one behind.
        for name in [name for name in vars(self) if name.endswith("_") and not name.startswith("_")]:
            delattr(self, name)
        self.seed_ = int(np.random.default_rng().integers(2**31) if self.random_state is None else self.random_state)
        self.history_ = History()
        self.timings_ = {}
        self.notes_ = ()
        if n_empty := int(corpus.empty.sum()):
            self._note(f"{n_empty:,} of {len(corpus):,} rows are empty and in no cluster (-1)")
        n_repeated = len(corpus) - n_empty - len(corpus.distinct)
        if n_repeated:
            self._note(f"{n_repeated:,} rows repeat an earlier text; each text is used once, weighted by its count")
        drawn = draw_sample(corpus, sample, self.seed_, self.max_rows())
        for remark in drawn.notes():
            self._note(remark)
        set_fitted_attributes(self, drawn, self._learn(drawn.corpus, drawn.rows_of(vectors)), vectors)
        return self

    def check(self, corpus: Corpus, sample: int | None = None) -> None:
        """Raise an error for invalid settings or fewer texts than clusters, before anything expensive starts."""
        self._check_settings()
        if len(corpus.distinct) < self.n_clusters:
            raise InputError(
                f"n_clusters={self.n_clusters} (-k), but there are only {len(corpus.distinct)} distinct non-empty "
                f"texts among {len(corpus)} rows; ask for fewer clusters"
            )
        if sample is not None:
            check_whole("sample", sample, least=self.n_clusters)
            most = self.max_rows()
            if most is not None and min(sample, len(corpus.distinct)) > most:
                raise InputError(f"sample={sample} is more than the {most:,} texts that can be held; ask for fewer")

    def fit_predict(
        self, texts: Any, y: Any = None, *, embeddings: Any = None, sample: int | None = None
    ) -> NDArray[np.int64]:
        """Return ``fit(texts).labels_``."""
        return self.fit(texts, embeddings=embeddings, sample=sample).labels_

    def predict(self, texts: Any, *, embeddings: Any = None) -> NDArray[np.int64]:
        """Return the cluster of each text, -1 for empty texts; independent of batch and order."""
        return self.assign(texts, embeddings=embeddings).labels

    def predict_proba(self, texts: Any, *, embeddings: Any = None) -> NDArray[np.float64]:
        """Return the probability of each cluster, ``texts x clusters``; zeros for empty texts."""
        corpus, vectors = self._to_assign(texts, embeddings)
        # The last row is zero: an empty text has the index -1.
        table = np.zeros((len(corpus.distinct) + 1, len(self.cluster_centers_)))
        for block in Assigner(self, self.cluster_centers_, vectors is not None).new_texts(corpus.distinct, vectors):
            table[block.rows] = block.probabilities
        return table[corpus.distinct_index]

    def assign(self, texts: Any, *, embeddings: Any = None) -> Prediction:
        """Return the labels of ``predict`` with their confidences (see ``confidence_``), embedding the texts once."""
        corpus, vectors = self._to_assign(texts, embeddings)
        labels = np.empty(len(corpus.distinct), dtype=np.int64)
        confidence = np.empty(len(corpus.distinct))
        assigner = Assigner(self, self.cluster_centers_, vectors is not None)
        for block in assigner.new_texts(corpus.distinct, vectors):
            labels[block.rows] = block.labels
            confidence[block.rows] = block.confidence(block.labels)
        return Prediction(corpus.expand(labels, -1), corpus.expand(confidence, 0.0), assigner.truncated)

    def transform(self, texts: Any) -> Any:
        """Return the vectors that are clustered, one row per text."""
        self._check_fitted()
        corpus = as_corpus(texts, allow_empty=True)
        if not len(corpus):
            return np.zeros((0, self.cluster_centers_.shape[1]), dtype=np.float32)
        distinct = list(dict.fromkeys(corpus.texts))
        place = {text: i for i, text in enumerate(distinct)}
        return self._encode_exactly(distinct)[[place[text] for text in corpus.texts]]

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
                raise SettingError(f"{type(self).__name__} does not train an encoder; it has no parameter 'training'")
            unknown = sorted(set(nested) - set(training.get_params()))
            if unknown:
                raise SettingError(
                    f"training has no setting {unknown[0]!r}; there are {', '.join(training.get_params())}"
                )
            params["training"] = replace(training, **nested)
        super().set_params(**params)
        return self

    def cluster_topics(self) -> list[list[Topic]] | None:
        """Return the topics of each cluster; ``None`` where the method learns none."""
        return None

    def max_rows(self) -> int | None:
        """Return the most rows (repeats counted) that the method can learn on; ``None``: no limit.

        A method that needs the distances of all pairs of rows has a limit; a sample never has more rows.
        """
        return None

    # What a method implements or overrides.

    @abstractmethod
    def _learn(self, corpus: Corpus, vectors: NDArray[np.float32] | None) -> Learned:
        """Fit on ``corpus.distinct``; ``vectors`` are the user's embeddings, one row per distinct text."""

    @abstractmethod
    def _encode(self, texts: Sequence[str]) -> Encoded:
        """Return vectors of texts, one row per text."""

    def _encode_exactly(self, texts: Sequence[str]) -> Any:
        """Return vectors without rounding noise; override where those of :meth:`_encode` have some."""
        return self._encode(texts).features

    def _encode_one_by_one(self, texts: Sequence[str]) -> Any:
        """Return vectors of texts encoded one by one; override where the batch changes a vector's last digits."""
        return self._encode(texts).features

    def _accepts_embeddings(self) -> str | None:
        """Return ``None`` where ``embeddings=`` can be used, else the reason why not."""
        return f"{type(self).__name__} makes its own vectors"

    def _check_settings(self) -> None:
        """Check parameters before anything expensive starts; extend with ``super()``."""
        check_whole("n_clusters", self.n_clusters, least=2)
        if self.random_state is not None:
            check_whole("random_state", self.random_state, least=0, most=2**32 - 1)

    def provenance(self) -> dict[str, str | None]:
        """Return the device a fitted model was computed on, and where its encoder's weights came from."""
        return {"device": "cpu", "encoder_from": None}

    def _state(self) -> dict[str, NDArray[Any]]:
        """Return the arrays to save beside the centres."""
        return {}

    def _save_parts(self, folder: Path) -> dict[str, Any]:
        """Write what is not an array (an encoder, a vocabulary); return values to store as JSON with the model."""
        return {}

    @abstractmethod
    def _restore_parts(
        self, folder: Path, state: Mapping[str, NDArray[Any]], extra: Mapping[str, Any], device: str
    ) -> None:
        """Restore what :meth:`_save_parts` and :meth:`_state` saved."""

    def _prepare(self, vectors: Any) -> Any:
        """Return the user's vectors in the form that is clustered."""
        return vectors

    def _probabilities(self, distances: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the probability of each cluster from squared distances; the nearest centre stays the likeliest."""
        return student_t_from_distances(distances, alpha=1.0)

    def _head_probabilities(self, texts: Sequence[str], features: Any) -> NDArray[np.float64] | None:
        """Return the probabilities of a trained head that is not "nearest centre", independent of the batch.

        ``None`` without such a head.
        """
        return None

    def _reorder_head(self, order: NDArray[np.int64]) -> None:
        """Put the clusters of the head, and all other values with one entry per cluster, into a new order."""

    # What all methods share.

    def settings(self) -> dict[str, Any]:
        """Return the parameters as plain values for JSON."""
        return {name: plain(value) for name, value in self.get_params(deep=False).items()}

    def _note(self, sentence: str) -> None:
        self.notes_ = (*self.notes_, sentence)
        logger.info(sentence)

    def _check_fitted(self) -> None:
        if "cluster_centers_" not in vars(self):
            raise _NotFittedError(f"this {type(self).__name__} is not fitted yet; call fit(texts) first")

    def _check_embeddings(self, embeddings: Any, corpus: Corpus) -> NDArray[np.float32] | None:
        """Return the user's vectors, one row per distinct text; raise where the method takes none."""
        if embeddings is None:
            return None
        reason = self._accepts_embeddings()
        if reason is not None:
            raise SettingError(f"embeddings= cannot be used: {reason}")
        return embeddings_by_text(embeddings, corpus)

    def _to_assign(self, texts: Any, embeddings: Any) -> tuple[Corpus, NDArray[np.float32] | None]:
        self._check_fitted()
        corpus = as_corpus(texts, allow_empty=True)
        return corpus, self._check_embeddings(embeddings, corpus)
