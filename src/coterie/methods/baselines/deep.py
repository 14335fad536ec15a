"""Base of networks over fixed vectors: a pretrained auto-encoder, k-means on its latent vectors, further training."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from coterie.checks import check_number, check_whole
from coterie.clustering.assignment import student_t, target_distribution
from coterie.clustering.kmeans import kmeans, unit_rows
from coterie.clustering.partition import Partition
from coterie.encoders.device import resolve_device
from coterie.losses.kl_divergence import kl_divergence
from coterie.methods.array_groups import of_part, with_prefix
from coterie.methods.baselines.features import FeatureMethod
from coterie.methods.baselines.stacked import StackedAutoEncoder, parse_layers, pretrain
from coterie.methods.results import Encoded, Learned, blank_rows
from coterie.methods.trained import Clock
from coterie.text.corpus import Corpus
from coterie.training.objective import LossTerms
from coterie.training.vectors import VectorTrainer

# Rows per forward pass, which bounds the memory of the network's layers.
ROWS_AT_A_TIME = 4_096


@dataclass(frozen=True)
class Pretrained:
    """The state before the second phase.

    Attributes
    ----------
    inputs, weights:
        The scaled vectors and the occurrences of each text, on the device.
    counts:
        Occurrences of each text, on the host.
    start:
        k-means on the latent vectors.
    trainer:
        Continues to count steps.
    """

    inputs: Tensor
    weights: Tensor
    counts: NDArray[np.int64]
    start: Partition
    trainer: VectorTrainer


@dataclass(kw_only=True, eq=False, repr=False)
class NetworkMethod(FeatureMethod):
    """A stacked auto-encoder over fixed vectors; ``transform`` returns its latent vectors.

    Every vector is scaled to the length sqrt(d), as Xie et al. scale REUTERS. The latent vector of a text without any
    known word, whose vector is all zeros, is also zero.

    Parameters
    ----------
    layers:
        Widths of the network behind the vectors; the last is that of the latent vector.
    pretrain_steps:
        Steps of pretraining the whole auto-encoder.
    batch_size:
        Texts per step.
    """

    layers: str = "500-500-2000-10"
    pretrain_steps: int = 200
    batch_size: int = 256

    network_: StackedAutoEncoder = field(init=False)

    _initial_labels_from: ClassVar[str] = "k-means on the pretrained network"
    # Restarts of the first k-means.
    _n_init: ClassVar[int] = 20

    @abstractmethod
    def _refine(self, begun: Pretrained) -> NDArray[np.float32] | None:
        """Train further and return the trained centres; ``None``: the result is k-means on the latent vectors."""

    def _check_settings(self) -> None:
        super()._check_settings()
        parse_layers(self.layers)
        check_whole("pretrain_steps", self.pretrain_steps, least=1)
        check_whole("batch_size", self.batch_size, least=1)

    def _learn(self, corpus: Corpus, vectors: NDArray[np.float32] | None) -> Learned:
        clock = Clock()
        features = self._fit_features(corpus, vectors)
        clock.lap("features")
        device, counts = resolve_device(self.device), corpus.counts
        inputs = torch.from_numpy(scale_rows(features)).to(device)
        weights = torch.from_numpy(counts.astype(np.float32)).to(device)
        generator = torch.Generator().manual_seed(self.seed_)
        self.network_ = StackedAutoEncoder([self.n_features_, *parse_layers(self.layers)], generator).to(device)
        trainer = VectorTrainer(len(inputs), self.batch_size, device, self.seed_, self.history_)
        pretrain(self.network_, inputs, weights, self.pretrain_steps, trainer, self.seed_)
        clock.lap("pretraining")
        start = self._kmeans(self._latents(features), counts)
        clock.lap("kmeans")
        centers = self._refine(Pretrained(inputs, weights, counts, start, trainer))
        clock.lap("training")
        if self.history_.interrupted:
            self._note(f"training was interrupted after {len(self.history_.steps)} steps; this is the model so far")
        latents = self._latents(features)
        learned = self._conclude(features, latents, start, centers, counts)
        clock.lap("final_kmeans")
        self.timings_ = clock.seconds
        return learned

    def _conclude(
        self,
        features: NDArray[np.float32],
        latents: NDArray[np.float32],
        start: Partition,
        centers: NDArray[np.float32] | None,
        counts: NDArray[np.int64],
    ) -> Learned:
        """Return the partition by the trained centres, with k-means on the latent vectors beside it."""
        assert centers is not None
        final = self._kmeans(latents, counts)
        return Learned(latents, centers, initial_labels=start.labels, kmeans_labels=final.labels)

    def _kmeans(self, rows: NDArray[np.float32], counts: NDArray[np.int64]) -> Partition:
        on_device = torch.from_numpy(rows).to(resolve_device(self.device))
        return kmeans(on_device, self.n_clusters, weights=counts, n_init=self._n_init, seed=self.seed_)

    # Vectors.

    @torch.no_grad()
    def _latents(self, features: NDArray[np.float32]) -> NDArray[np.float32]:
        """Return the latent vectors of unscaled features."""
        device = next(self.network_.parameters()).device
        parts = [
            self.network_.encode(torch.from_numpy(scale_rows(features[begin : begin + ROWS_AT_A_TIME])).to(device))
            for begin in range(0, len(features), ROWS_AT_A_TIME)
        ]
        latents: NDArray[np.float32] = torch.cat(parts).cpu().numpy()
        latents[blank_rows(features)] = 0
        return latents

    def _prepare(self, vectors: NDArray[np.float32]) -> NDArray[np.float32]:
        self._check_width(vectors)
        return self._latents(vectors)

    def _encode(self, texts: Sequence[str]) -> Encoded:
        encoded = self._encoded_features(texts)
        return Encoded(self._latents(encoded.features), encoded.truncated)

    def _encode_one_by_one(self, texts: Sequence[str]) -> NDArray[np.float32]:
        return np.concatenate([self._latents(row[None]) for row in self._features_one_by_one(texts)])

    # Saving.

    def provenance(self) -> dict[str, str | None]:
        return {**super().provenance(), "device": str(next(self.network_.parameters()).device)}

    def _state(self) -> dict[str, NDArray[Any]]:
        return super()._state() | with_prefix("network", self.network_.arrays())

    def _restore_parts(
        self, folder: Path, state: Mapping[str, NDArray[Any]], extra: Mapping[str, Any], device: str
    ) -> None:
        super()._restore_parts(folder, state, extra, device)
        own = of_part("network", state)
        self.network_ = StackedAutoEncoder.from_arrays(own).to(resolve_device(device))


@dataclass(kw_only=True, eq=False, repr=False)
class CentreMethod(NetworkMethod):
    """Centres that are trained with the network until the labels converge.

    Parameters
    ----------
    max_steps:
        Steps of the second phase, at most.
    learning_rate:
        Learning rate of the second phase.
    update_interval:
        Steps between two checks of the whole corpus.
    tolerance:
        Training ends when a smaller share of the labels than this changed between two checks.
    """

    max_steps: int
    learning_rate: float
    update_interval: int = 140
    tolerance: float = 0.001

    def _check_settings(self) -> None:
        super()._check_settings()
        check_whole("max_steps", self.max_steps, least=1)
        check_number("learning_rate", self.learning_rate, above=0)
        check_whole("update_interval", self.update_interval, least=1)
        check_number("tolerance", self.tolerance, least=0, below=1)


class SelfTrainingMethod(CentreMethod):
    """DEC's second phase: soft assignments approach their own sharpened targets."""

    def _optimizer(self, parameters: list[nn.Parameter]) -> torch.optim.Optimizer:
        """Return SGD with momentum; override for another optimiser."""
        return torch.optim.SGD(parameters, lr=self.learning_rate, momentum=0.9)

    def _trained(self) -> list[nn.Parameter]:
        """Return the network's parameters that the loss trains."""
        return list(self.network_.down.parameters())

    def _loss(self, inputs: Tensor, latents: Tensor, cluster: Tensor, weights: Tensor) -> LossTerms:
        """Return the total loss, given the clustering loss."""
        return LossTerms(cluster, cluster=cluster)

    def _refine(self, begun: Pretrained) -> NDArray[np.float32]:
        inputs, weights, network = begun.inputs, begun.weights, self.network_
        centers = nn.Parameter(torch.from_numpy(begun.start.centers).to(inputs.device))
        state = SoftState(network, centers, inputs, weights)

        def loss(rows: Tensor) -> LossTerms:
            latents = network.encode(inputs[rows])
            q = student_t(latents, centers)
            cluster = kl_divergence(state.targets[rows], q, weights[rows])
            return self._loss(inputs[rows], latents, cluster, weights[rows])

        begun.trainer.run(
            "clustering",
            loss,
            self._optimizer([*self._trained(), centers]),
            self.max_steps,
            check_every=self.update_interval,
            check=state.refresh,
            tolerance=self.tolerance,
        )
        return centers.detach().cpu().numpy()


class SoftState:
    """The targets P over the whole corpus, and the labels at the last update."""

    def __init__(self, network: StackedAutoEncoder, centers: Tensor, inputs: Tensor, weights: Tensor) -> None:
        self.targets = torch.zeros(len(inputs), len(centers), device=inputs.device)
        self._network, self._centers, self._inputs, self._weights = network, centers, inputs, weights
        self._labels: Tensor | None = None

    @torch.no_grad()
    def refresh(self) -> float | None:
        """Recompute the targets; return the share of the corpus that changed cluster since the last call."""
        latents = torch.cat([self._network.encode(rows) for rows in self._inputs.split(ROWS_AT_A_TIME)])
        q = student_t(latents, self._centers)
        self.targets = target_distribution(q, self._weights)
        labels, self._labels = self._labels, q.argmax(dim=1)
        return None if labels is None else changed_share(labels, self._labels, self._weights)


def changed_share(before: Tensor, after: Tensor, weights: Tensor) -> float:
    """Return the share of the corpus whose label changed."""
    return float((weights * (before != after)).sum() / weights.sum())


def scale_rows(features: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return rows of length sqrt(d), whose squared entries are 1 on average; rows of zeros stay zero."""
    rows: NDArray[np.float32] = unit_rows(features) * np.float32(features.shape[1] ** 0.5)
    return rows
