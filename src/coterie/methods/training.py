"""Methods that train their encoder: from texts to a fitted partition, with the paper's part left open."""

from __future__ import annotations

import time
from abc import abstractmethod
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from coterie.clustering.kmeans import kmeans
from coterie.errors import SettingError
from coterie.methods.base import Learned
from coterie.methods.encoding import EncoderMethod
from coterie.text.augmentation.base import Augmenter
from coterie.text.augmentation.word_deletion import WordDeletion
from coterie.text.corpus import Corpus

if TYPE_CHECKING:
    import torch

    from coterie.training.config import TrainingConfig
    from coterie.training.history import Snapshot
    from coterie.training.objective import Objective, Stage

AUGMENTATIONS = ("word_deletion", "virtual")
FINAL_KMEANS = ("continued", "fresh")


class TrainedMethod(EncoderMethod):
    """Frozen k-means for the start, the paper's stages, then k-means on the trained embeddings.

    A method supplies its stages (and with them its objective) and what its head answers.
    """

    augmentation: str
    augmentation_ratio: float
    final_kmeans: str
    training: TrainingConfig

    kmeans_labels_: NDArray[np.int64]
    head_labels_: NDArray[np.int64]
    initial_labels_: NDArray[np.int64]
    head_centers_: NDArray[np.float32] | None
    snapshots_: list[Snapshot]
    timings_: dict[str, float]

    @abstractmethod
    def _stages(self, centers: torch.Tensor, generator: torch.Generator) -> list[Stage]:
        """The phases of training, started from the frozen k-means ``centers``."""

    @abstractmethod
    def _head_centers(self, objective: Objective) -> NDArray[np.float32] | None:
        """The trained head of the last stage's objective, where it has one."""

    @abstractmethod
    def _head_labels(self, embeddings: NDArray[np.float32], centers: NDArray[np.float32]) -> NDArray[np.int64]:
        """The head's own answer."""

    def _check_settings(self) -> None:
        super()._check_settings()
        self.training.check()
        if self.final_kmeans not in FINAL_KMEANS:
            raise SettingError(f"final_kmeans={self.final_kmeans!r} is unknown; use one of {', '.join(FINAL_KMEANS)}")
        if self.augmentation not in AUGMENTATIONS:
            raise SettingError(f"augmentation={self.augmentation!r} is unknown; use one of {', '.join(AUGMENTATIONS)}")
        if not 0 < self.augmentation_ratio < 1:
            raise SettingError(
                f"augmentation_ratio={self.augmentation_ratio} must lie between 0 and 1: it is a share of words"
            )

    def _accepts_embeddings(self) -> str | None:
        return f"{type(self).__name__} trains the encoder on the texts; use FrozenEncoder for fixed vectors"

    def _augmenters(self) -> dict[str, Augmenter]:
        if self.augmentation == "virtual":
            return {}
        return {name: WordDeletion(self.augmentation_ratio) for name in ("augmented_1", "augmented_2")}

    def _learn(self, corpus: Corpus, vectors: NDArray[np.float32] | None) -> Learned:
        import torch

        from coterie.training.stopping import LabelWatch
        from coterie.training.trainer import Trainer
        from coterie.training.views import Views

        seed, k, counts = self.seed, self.n_clusters, corpus.counts
        clock = _Clock()
        encoder = self.encoder_ = self._load_encoder()
        tokens = encoder.tokenize(corpus.distinct)
        self._note_truncated(tokens.truncated, corpus)
        clock.lap("load_and_tokenize")

        frozen = encoder.encode_tokens(tokens).cpu().numpy()
        start = kmeans(frozen, k, weights=counts, seed=seed)
        clock.lap("frozen_kmeans")

        centers = torch.from_numpy(start.centers)
        stages = self._stages(centers, torch.Generator().manual_seed(seed))
        watch = LabelWatch(start.labels, start.centers, counts, self.training.patience)
        trainer = Trainer(
            encoder,
            Views(encoder, corpus.distinct, tokens, self._augmenters(), seed),
            tokens,
            counts,
            self.training,
            watch,
            seed,
        )
        self.history_ = trainer.run(stages)
        self.snapshots_ = self.history_.snapshots
        if self.history_.interrupted:
            self._note(f"training was interrupted after {len(self.history_.steps)} steps; this is the model so far")
        clock.lap("training")

        embeddings = encoder.encode_tokens(tokens).cpu().numpy()
        continued = watch.centers if self.final_kmeans == "continued" else None
        final = kmeans(embeddings, k, weights=counts, seed=seed, init=continued)
        self.head_centers_ = self._head_centers(stages[-1].objective)
        head = final.labels if self.head_centers_ is None else self._head_labels(embeddings, self.head_centers_)
        clock.lap("final_kmeans")
        self.timings_ = clock.seconds
        return Learned(
            embeddings,
            final.centers,
            other_labels={"head_labels_": head, "initial_labels_": start.labels},
        )

    def _finish(self, corpus: Corpus, learned: Learned, given: bool) -> None:
        super()._finish(corpus, learned, given)
        self.kmeans_labels_ = self.labels_

    @abstractmethod
    def _restore_state(self, state: Mapping[str, NDArray[Any]]) -> None:
        """Undo ``_state``."""

    def _restore_parts(
        self, folder: Path, state: Mapping[str, NDArray[Any]], extra: Mapping[str, Any], device: str
    ) -> None:
        super()._restore_parts(folder, state, extra, device)
        self._restore_state(state)


class _Clock:
    """Seconds since the last lap, by name."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self._last = time.perf_counter()

    def lap(self, name: str) -> None:
        now = time.perf_counter()
        self.seconds[name] = now - self._last
        self._last = now
