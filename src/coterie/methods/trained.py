"""Base of methods that train their encoder: all steps from texts to a partition except the paper's objective."""

from __future__ import annotations

import time
from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from coterie.checks import check_choice
from coterie.clustering.kmeans import kmeans
from coterie.clustering.partition import Partition
from coterie.errors import SettingError
from coterie.methods.encoder_method import EncoderMethod
from coterie.methods.results import Learned
from coterie.text.augmentation.base import Augmenter
from coterie.text.corpus import Corpus
from coterie.training.config import TrainingConfig

if TYPE_CHECKING:
    import torch

    from coterie.encoders.tokenization import TokenArrays
    from coterie.encoders.transformer import TransformerEncoder
    from coterie.training.history import Snapshot
    from coterie.training.objective import Objective, Stage
    from coterie.training.stopping import LabelWatch
    from coterie.training.views import Views

# Most processes that compute augmented views during training: more share the cores with the training process.
MAX_VIEW_WORKERS = 6
# Fewest texts for which these processes save more time than their start takes.
MIN_TEXTS_FOR_WORKERS = 2_000
FINAL_KMEANS = ("best", "continued", "fresh")


@dataclass(frozen=True)
class TrainingStart:
    """The state before training, from which a method builds its stages.

    Attributes
    ----------
    encoder, corpus, tokens:
        The pretrained encoder, the texts, and their tokens.
    embeddings, labels, centers:
        The distinct texts before training: the encoder's vectors, and their clusters with the centres.
    generator:
        For the initial values of a method's own parameters.
    seed:
        For all other random numbers.
    """

    encoder: TransformerEncoder
    corpus: Corpus
    tokens: TokenArrays
    embeddings: NDArray[np.float32]
    labels: NDArray[np.int64]
    centers: torch.Tensor
    generator: torch.Generator
    seed: int

    @property
    def counts(self) -> NDArray[np.int64]:
        """How often each distinct text occurs."""
        return self.corpus.counts

    @property
    def n_clusters(self) -> int:
        return len(self.centers)

    def recluster(self, embeddings: torch.Tensor, init: NDArray[np.float32] | None = None) -> Partition:
        """Run k-means on other embeddings of the same texts, from random starts or from given centres."""
        return kmeans(embeddings, self.n_clusters, weights=self.counts, init=init, seed=self.seed)


@dataclass(kw_only=True, eq=False, repr=False)
class TrainedMethod(EncoderMethod):
    """k-means on the pretrained encoder, the paper's stages of training, then k-means on the trained embeddings.

    A method implements ``_stages``, which hold its objective, and ``_conclude`` where its result is not k-means.

    Parameters
    ----------
    training:
        See :class:`~coterie.training.config.TrainingConfig`; every method has defaults of its own.
    """

    training: TrainingConfig

    snapshots_: list[Snapshot] = field(init=False)

    # Parameters of some methods; these are the values of the others.
    final_kmeans = "best"
    radius = 1.0

    # Set for a trial run (see :mod:`coterie.methods.cost_estimate`).
    _trial_epochs: int | None = field(default=None, init=False)
    _stage_lengths: list[float] = field(init=False)
    _stage_epochs: int = field(init=False)

    @abstractmethod
    def _stages(self, start: TrainingStart) -> list[Stage]:
        """Return the stages of training; without any, the initial clusters are the result."""

    def _augmenters(self) -> Mapping[str, Augmenter]:
        """Return the augmenter of each view other than the original, by the view's name."""
        return {}

    def _check_backbone(self, encoder: TransformerEncoder) -> None:
        """Raise an error for an encoder that lacks what the method needs."""

    def _attach(self, start: TrainingStart) -> TrainingStart:
        """Add the layers that the method needs behind the encoder, before training."""
        return start

    def _conclude(
        self, start: TrainingStart, objective: Objective, embeddings: torch.Tensor, final: Partition
    ) -> Learned:
        """Return the outcome, given the last stage's objective and the final embeddings with their k-means."""
        return Learned(
            embeddings.cpu().numpy(),
            final.centers,
            initial_labels=start.labels,
            head_labels=head_labels(objective, embeddings),
            head_centers=self._head_centers(objective),
        )

    def _head_centers(self, objective: Objective) -> NDArray[np.float32] | None:
        """Return the trained centres of an objective; ``None`` without any."""
        return None

    def _check_settings(self) -> None:
        super()._check_settings()
        if not isinstance(self.training, TrainingConfig):
            raise SettingError(f"training={self.training!r} must be a TrainingConfig")
        self.training.check()
        check_choice("final_kmeans", self.final_kmeans, FINAL_KMEANS)

    @property
    def _radius(self) -> float:
        """The factor on unit vectors before a clustering loss; 1 for vectors of other lengths."""
        return self.radius if self.encoder_.settings.normalize else 1.0

    def _quick_dtype(self, n_texts: int) -> torch.dtype:
        return super()._quick_dtype(0 if self.training.precision == "float32" else n_texts)

    def _accepts_embeddings(self) -> str | None:
        return f"{type(self).__name__} trains the encoder on the texts; use FrozenEncoder for fixed vectors"

    def _learn(self, corpus: Corpus, vectors: NDArray[np.float32] | None) -> Learned:
        from coterie.training.stopping import LabelWatch
        from coterie.training.trainer import Trainer
        from coterie.training.views import Views

        clock = Clock()
        encoder, tokens = self._load_and_tokenize(corpus)
        clock.lap("load_and_tokenize")
        ahead = n_view_workers(encoder.device, len(corpus.distinct)) if self.training.fresh_views else 0
        with Views(encoder, corpus.distinct, tokens, self._augmenters(), self.seed_, ahead) as views:
            # The workers compute the first views while this process embeds and clusters.
            views.prefetch(list(self._augmenters()), range(min(ahead, 2)))
            start = self._begin(encoder, corpus, tokens, clock)
            stages = self._plan(self._stages(start))
            if not stages:
                return self._initial_outcome(start, clock)
            watch = LabelWatch(start.labels, start.centers.numpy(), corpus.counts, self.training.patience)
            trainer = Trainer(start.encoder, views, start.tokens, corpus.counts, self.training, watch, self.seed_)
            self.history_ = trainer.run(stages)
        self.snapshots_ = self.history_.snapshots
        if self.history_.interrupted:
            self._note(f"training was interrupted after {len(self.history_.steps)} steps; this is the model so far")
        self._note_unchanged(views)
        clock.lap("training")

        self._measured_noise = None
        dtype = self._quick_dtype(len(tokens))
        progress = "embedding again" if self.training.progress else None
        embeddings = encoder.encode_tokens(tokens, dtype, progress=progress)
        final = self._final_partition(embeddings, watch, corpus.counts)
        clock.lap("final_kmeans")
        last_run = stages[len(self.history_.stop_reasons) - 1]
        learned = self._conclude(start, last_run.objective, embeddings, final)
        learned = replace(learned, noise=self._noise(corpus.distinct, dtype))
        clock.lap("head")
        self.timings_ = clock.seconds
        return learned

    def _initial_outcome(self, start: TrainingStart, clock: Clock) -> Learned:
        """Return the initial clusters as the outcome."""
        self.snapshots_, self._measured_noise = [], None
        self.timings_ = clock.seconds
        noise = self._noise(start.corpus.distinct, self._quick_dtype(len(start.tokens)))
        first = start.labels
        return Learned(start.embeddings, start.centers.numpy(), first, initial_labels=first, noise=noise)

    def _plan(self, stages: list[Stage]) -> list[Stage]:
        """Return the stages to run; in a trial all are equally short, and their real lengths are stored."""
        self._stage_lengths = [(stage.share if stage.epochs is None else stage.epochs) for stage in stages]
        self._stage_epochs = sum(stage.epochs or 0 for stage in stages)
        if self._trial_epochs is None:
            return stages
        return [replace(stage, epochs=self._trial_epochs) for stage in stages]

    def planned_steps(self, n_texts: int, training: TrainingConfig) -> list[float]:
        """Return the most steps of each stage for a corpus of ``n_texts``; known after a first fit."""
        cap = training.most_steps(n_texts)
        if not self._stage_lengths:
            return []
        if self._stage_epochs:
            cap = min(cap, self._stage_epochs * training.steps_per_epoch(n_texts))
        return [cap * length / sum(self._stage_lengths) for length in self._stage_lengths]

    def _load_and_tokenize(self, corpus: Corpus) -> tuple[TransformerEncoder, TokenArrays]:
        encoder = self.encoder_ = self.load_encoder()
        self._check_backbone(encoder)
        tokens = encoder.tokenize(corpus.distinct)
        self._note_truncated(tokens.truncated, corpus)
        return encoder, tokens

    def _begin(self, encoder: TransformerEncoder, corpus: Corpus, tokens: TokenArrays, clock: Clock) -> TrainingStart:
        """Embed and cluster before training."""
        import torch

        progress = "embedding" if self.training.progress else None
        frozen = encoder.encode_tokens(tokens, self._quick_dtype(len(tokens)), progress=progress)
        partition = kmeans(frozen, self.n_clusters, weights=corpus.counts, seed=self.seed_)
        clock.lap("frozen_kmeans")
        return self._attach(
            TrainingStart(
                encoder,
                corpus,
                tokens,
                frozen.cpu().numpy(),
                partition.labels,
                torch.from_numpy(partition.centers),
                torch.Generator().manual_seed(self.seed_),
                self.seed_,
            )
        )

    def _note_unchanged(self, views: Views) -> None:
        for name, share in views.unchanged.items():
            if share == 1:
                self._note(f"the augmentation changed no text at all: view {name} differs by dropout alone")
            elif share > 0.5:
                self._note(
                    f"the augmentation left {share:.0%} of the texts unchanged (view {name}), since they are short"
                )

    def _final_partition(self, embeddings: torch.Tensor, watch: LabelWatch, counts: NDArray[np.int64]) -> Partition:
        """Return the tighter k-means of the trained embeddings: from the followed centres or from random starts."""
        candidates = []
        if self.final_kmeans in {"best", "continued"}:
            candidates.append(watch.partition(embeddings))
        if self.final_kmeans in {"best", "fresh"}:
            candidates.append(kmeans(embeddings, self.n_clusters, weights=counts, seed=self.seed_))
        return min(candidates, key=lambda partition: partition.inertia)


def n_view_workers(device: torch.device, n_texts: int) -> int:
    """Return how many processes compute views ahead: some for a GPU, which must not wait; none on a CPU."""
    from coterie.encoders.device import usable_cores

    return (
        min(MAX_VIEW_WORKERS, usable_cores() // 2) if device.type == "cuda" and n_texts >= MIN_TEXTS_FOR_WORKERS else 0
    )


def head_labels(objective: Objective, embeddings: torch.Tensor) -> NDArray[np.int64] | None:
    """Return the clusters that a trained head gives; ``None`` without one."""
    import torch

    objective.eval()
    with torch.no_grad():
        probabilities = objective.head_probabilities(embeddings)
    return None if probabilities is None else probabilities.argmax(dim=1).cpu().numpy()


class Clock:
    """Measure the seconds of each phase."""

    def __init__(self, seconds: dict[str, float] | None = None) -> None:
        self.seconds = {} if seconds is None else seconds
        self._last = time.perf_counter()

    def lap(self, name: str) -> None:
        """Store the seconds since the last lap under ``name``."""
        now = time.perf_counter()
        self.seconds[name] = now - self._last
        self._last = now
