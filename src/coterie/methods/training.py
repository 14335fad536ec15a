"""Methods that train their encoder: from texts to a fitted partition, with the paper's part left open."""

from __future__ import annotations

import time
from abc import abstractmethod
from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from coterie.checks import check_choice, check_number
from coterie.clustering.kmeans import Partition, kmeans
from coterie.errors import SettingError
from coterie.methods.encoding import EncoderMethod
from coterie.methods.results import Learned
from coterie.text.augmentation.base import Augmenter
from coterie.text.augmentation.word_deletion import WordDeletion
from coterie.text.corpus import Corpus
from coterie.training.config import TrainingConfig

if TYPE_CHECKING:
    import torch

    from coterie.training.history import Snapshot
    from coterie.training.objective import Objective, Stage
    from coterie.training.stopping import LabelWatch

AUGMENTATIONS = ("word_deletion", "virtual")
FINAL_KMEANS = ("best", "continued", "fresh")


class TrainedMethod(EncoderMethod):
    """Frozen k-means for the start, the paper's stages, then k-means on the trained embeddings.

    A method supplies its stages (and with them its objective) and what its head answers.
    """

    augmentation: str
    augmentation_ratio: float
    final_kmeans: str
    training: TrainingConfig

    snapshots_: list[Snapshot]

    @abstractmethod
    def _stages(
        self, centers: torch.Tensor, generator: torch.Generator, refit: Callable[[torch.Tensor], torch.Tensor]
    ) -> list[Stage]:
        """The phases of training, started from the frozen k-means ``centers``.

        ``refit`` gives k-means centres of other embeddings of the same texts, for methods that re-cluster.
        """

    @abstractmethod
    def _head_centers(self, objective: Objective) -> NDArray[np.float32] | None:
        """The trained centres of an objective, where it has some."""

    def _check_settings(self) -> None:
        super()._check_settings()
        if not isinstance(self.training, TrainingConfig):
            raise SettingError(f"training={self.training!r} must be a TrainingConfig")
        self.training.check()
        check_choice("final_kmeans", self.final_kmeans, FINAL_KMEANS)
        check_choice("augmentation", self.augmentation, AUGMENTATIONS)
        check_number("augmentation_ratio", self.augmentation_ratio, above=0, below=1)

    def _accepts_embeddings(self) -> str | None:
        return f"{type(self).__name__} trains the encoder on the texts; use FrozenEncoder for fixed vectors"

    def _augmenters(self) -> dict[str, Augmenter]:
        from coterie.training.objective import AUGMENTED

        if self.augmentation == "virtual":
            return {}
        return {name: WordDeletion(self.augmentation_ratio) for name in AUGMENTED}

    def _learn(self, corpus: Corpus, vectors: NDArray[np.float32] | None) -> Learned:
        import torch

        from coterie.training.stopping import LabelWatch
        from coterie.training.trainer import Trainer
        from coterie.training.views import Views

        seed, k, counts = self.seed_, self.n_clusters, corpus.counts
        progress = self.training.progress
        clock = _Clock()
        encoder = self.encoder_ = self._load_encoder()
        tokens = encoder.tokenize(corpus.distinct)
        self._note_truncated(tokens.truncated, corpus)
        clock.lap("load_and_tokenize")

        frozen = encoder.encode_tokens(tokens, progress="embedding" if progress else None).cpu().numpy()
        start = kmeans(frozen, k, weights=counts, seed=seed)
        clock.lap("frozen_kmeans")

        def refit(embeddings: torch.Tensor) -> torch.Tensor:
            return torch.from_numpy(kmeans(embeddings.cpu().numpy(), k, weights=counts, seed=seed).centers)

        stages = self._stages(torch.from_numpy(start.centers), torch.Generator().manual_seed(seed), refit)
        watch = LabelWatch(start.labels, start.centers, counts, self.training.patience)
        views = Views(encoder, corpus.distinct, tokens, self._augmenters(), seed)
        trainer = Trainer(encoder, views, tokens, counts, self.training, watch, seed)
        self.history_ = trainer.run(stages)
        self.snapshots_ = self.history_.snapshots
        if self.history_.interrupted:
            self._note(f"training was interrupted after {len(self.history_.steps)} steps; this is the model so far")
        clock.lap("training")

        embeddings = encoder.encode_tokens(tokens, progress="embedding again" if progress else None).cpu().numpy()
        final = self._final_partition(embeddings, watch, counts)
        clock.lap("final_kmeans")
        self.timings_ = clock.seconds
        last_run = stages[len(self.history_.stop_reasons) - 1]
        return Learned(
            embeddings,
            final.centers,
            initial_labels=start.labels,
            head_centers=self._head_centers(last_run.objective),
        )

    def _final_partition(
        self, embeddings: NDArray[np.float32], watch: LabelWatch, counts: NDArray[np.int64]
    ) -> Partition:
        """k-means on the trained embeddings: the tightest of the continued one and ten fresh starts."""
        candidates = []
        if self.final_kmeans in {"best", "continued"}:
            candidates.append(watch.partition(embeddings))
        if self.final_kmeans in {"best", "fresh"}:
            candidates.append(kmeans(embeddings, self.n_clusters, weights=counts, seed=self.seed_))
        return min(candidates, key=lambda partition: partition.inertia)


class _Clock:
    """Seconds since the last lap, by name."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self._last = time.perf_counter()

    def lap(self, name: str) -> None:
        now = time.perf_counter()
        self.seconds[name] = now - self._last
        self._last = now
