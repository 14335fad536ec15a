"""The networks of AECL: projection, attention between texts, clustering head."""

from __future__ import annotations

import copy
from collections.abc import Callable

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from coterie.methods.networks import Projector, linear

ATTENTIONS = ("layer", "bare")
# Width of the attention, D2.
WIDTH = 128
# Hidden units of the feed-forward layer: twice the width.
FEED_FORWARD = 256


class SampleAttention(nn.Module):
    """Attention between the texts of a batch (Eq. 1-3), bare or as a post-norm transformer layer with one head."""

    def __init__(self, kind: str, generator: torch.Generator, width: int = WIDTH) -> None:
        super().__init__()
        self.kind = kind
        self.scale = width**-0.5
        self.queries, self.keys, self.values = (linear(width, width, generator) for _ in range(3))
        if kind == "bare":
            for layer in (self.queries, self.keys, self.values):
                layer.bias = None  # type: ignore[assignment]
        else:
            self.mix = linear(width, width, generator)
            self.feed_forward = nn.Sequential(
                linear(width, FEED_FORWARD, generator),
                nn.ReLU(),
                nn.Dropout(0.1),
                linear(FEED_FORWARD, width, generator),
            )
            self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(2))
            self.dropout = nn.Dropout(0.1)

    def forward(self, z: Tensor) -> tuple[Tensor, Tensor]:
        """Return the consistent representations H and the similarities S of one batch."""
        k1, k2, t = self.queries(z), self.keys(z), self.values(z)  # Eq. 1
        similarities = (k1 @ k2.T * self.scale).softmax(dim=-1)  # Eq. 2
        return self._out(z, self._drop(similarities) @ t), similarities  # Eq. 3

    def towards(self, z: Tensor, references: Tensor) -> Tensor:
        """Return H of texts that attend only to themselves and to ``references``."""
        k1 = self.queries(z)
        own = (k1 * self.keys(z)).sum(dim=-1, keepdim=True)
        weights = (torch.cat([own, k1 @ self.keys(references).T], dim=-1) * self.scale).softmax(dim=-1)  # Eq. 2
        mixed = weights[:, :1] * self.values(z) + weights[:, 1:] @ self.values(references)  # Eq. 3
        return self._out(z, mixed)

    def _drop(self, values: Tensor) -> Tensor:
        return values if self.kind == "bare" else self.dropout(values)

    def _out(self, z: Tensor, mixed: Tensor) -> Tensor:
        if self.kind == "bare":
            return mixed
        inner = self.norms[0](z + self.dropout(self.mix(mixed)))
        return self.norms[1](inner + self.dropout(self.feed_forward(inner)))


class PseudoLabels(nn.Module):
    """The k-means label of every text, on the device, shared by all stages."""

    def __init__(self, labels: Tensor) -> None:
        super().__init__()
        self.register_buffer("labels", labels, persistent=False)
        self.labels: Tensor


class AttentionHead(nn.Module):
    """Projector G_z, attention G_h and classifier G_p: from the encoder's output to cluster logits."""

    def __init__(self, dimension: int, n_clusters: int, attention: str, generator: torch.Generator) -> None:
        super().__init__()
        self.learned = False  # whether the classifier has had a step of training
        self.projector = Projector(dimension, generator, WIDTH)
        self.attention = SampleAttention(attention, generator)
        self.classifier = nn.Sequential(
            nn.Dropout(0.5),
            linear(WIDTH, dimension, generator),
            nn.ReLU(),
            nn.Dropout(0.5),
            linear(dimension, dimension, generator),
            nn.ReLU(),
            linear(dimension, n_clusters, generator),
        )

    def forward(self, embeddings: Tensor) -> Tensor:
        """Return the probabilities P of one batch."""
        consistent, _ = self.attention(self.projector(embeddings))
        return self.classifier(consistent).softmax(dim=-1)

    def probabilities_without_dropout(self, embeddings: Tensor) -> Tensor:
        """Return the probabilities P without dropout, in training mode too."""
        was_training = self.training
        self.eval()
        probabilities = self(embeddings)
        self.train(was_training)
        return probabilities

    def in_batches(self, embeddings: Tensor, size: int) -> Tensor:
        """Return the probabilities of a corpus, in batches of a fixed random order as in training."""
        order = torch.randperm(len(embeddings), generator=torch.Generator().manual_seed(0)).to(embeddings.device)
        n_batches = max(1, -(-len(order) // size))
        batches = order.tensor_split(n_batches)
        probabilities = torch.cat([self.probabilities_without_dropout(embeddings[rows]) for rows in batches])
        return probabilities[order.argsort()]

    def probability_function(
        self, references: NDArray[np.float32]
    ) -> Callable[[NDArray[np.float32]], NDArray[np.float64]]:
        """Return a function from embeddings to probabilities in float64; a row attends to itself and ``references``."""
        wide = copy.deepcopy(self).double().eval()
        with torch.no_grad():
            context = wide.projector(torch.from_numpy(references).double())

        @torch.no_grad()
        def probabilities(embeddings: NDArray[np.float32]) -> NDArray[np.float64]:
            z = wide.projector(torch.from_numpy(embeddings).double())
            return wide.classifier(wide.attention.towards(z, context)).softmax(dim=-1).numpy()

        return probabilities

    @torch.no_grad()
    def similarities(self, embeddings: NDArray[np.float32]) -> NDArray[np.float64]:
        """Return S of Eq. 2 of one batch."""
        wide = copy.deepcopy(self).double().eval()
        _, similarities = wide.attention(wide.projector(torch.from_numpy(embeddings).double()))
        return similarities.numpy()

    @torch.no_grad()
    def reorder(self, order: NDArray[np.int64]) -> None:
        """Rename the clusters: the old ``order[i]`` becomes ``i``."""
        last = self.classifier[-1]
        for parameter in last.parameters():
            parameter.copy_(parameter[torch.from_numpy(order)].clone())
