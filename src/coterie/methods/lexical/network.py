"""The variational auto-encoder of TF-IDF rows, and its losses.

The numbered equations are in :class:`~coterie.methods.lexical.method.LexicalClusters`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from scipy import sparse
from torch import Tensor, nn
from torch.nn import functional

from coterie.losses.nt_xent import nt_xent, weighted_mean
from coterie.losses.soft_cross_entropy import soft_cross_entropy
from coterie.methods.networks import linear
from coterie.training.objective import LossTerms

# Range of the first layer's initial weights: with rows of unit length, a hidden unit's input has a standard deviation
# of 0.17 whatever the size of the vocabulary.
FIRST_LAYER_RANGE = 0.3
# Initial bias of the latent's log variance: a standard deviation of 0.37, so that the first steps are not all noise.
FIRST_LOG_VARIANCE = -2.0
# Weight of the loss of pseudo-labels, and temperature of the cosines that predict them.
LABEL_WEIGHT = 1.0
LABEL_TEMPERATURE = 0.1
# Largest absolute value of a latent mean.
MOST_MEAN = 3.0
# Most values of rows with zeros: 1 GB, 130,000 texts of 2,048 words.
MOST_VALUES = 2**28


@dataclass(frozen=True)
class LexicalConfig:
    """How the network is built and trained; :class:`~coterie.methods.lexical.method.LexicalClusters` explains each."""

    hidden: int = 512
    dimension: int = 128
    neighbours: int = 20
    epochs: int = 20
    min_steps: int = 600
    max_steps: int = 1_500
    batch_size: int = 128
    learning_rate: float = 1e-3
    dropout: float = 0.2
    kl_weight: float = 0.1
    contrast_weight: float = 3.0
    temperature: float = 0.5


class SparseRows:
    """Rows of a sparse table on a device; a batch of rows is read without the zeros between.

    Parameters
    ----------
    table:
        ``texts x words``, non-negative.
    """

    def __init__(self, table: sparse.csr_matrix, device: torch.device) -> None:
        self._n_words = table.shape[1]
        lengths = np.diff(table.indptr)
        shares = table.data / np.repeat(np.asarray(table.sum(axis=1)).ravel(), lengths)
        self._begins = torch.from_numpy(table.indptr[:-1].astype(np.int64)).to(device)
        self._lengths = torch.from_numpy(lengths.astype(np.int64)).to(device)
        self._words = torch.from_numpy(table.indices.astype(np.int64)).to(device)
        self._values = torch.from_numpy(table.data.astype(np.float32)).to(device)
        self._shares = torch.from_numpy(shares.astype(np.float32)).to(device)

    def __len__(self) -> int:
        return len(self._lengths)

    def batch(self, rows: Tensor) -> RowBatch:
        """Return the rows ``rows``."""
        lengths = self._lengths[rows]
        offsets = lengths.cumsum(0) - lengths
        owners = torch.repeat_interleave(torch.arange(len(rows), device=rows.device), lengths)
        entries = torch.arange(len(owners), device=rows.device) + (self._begins[rows] - offsets)[owners]
        return RowBatch(
            self._words[entries], self._values[entries], self._shares[entries], offsets, owners, self._n_words
        )


@dataclass(frozen=True)
class RowBatch:
    """Some rows of :class:`SparseRows`, one entry per word of each text.

    Attributes
    ----------
    words, values:
        Column and TF-IDF value of each entry.
    shares:
        The values divided by the sum of their row.
    offsets:
        The first entry of each row.
    owners:
        The row of each entry.
    n_words:
        Words of the vocabulary.
    """

    words: Tensor
    values: Tensor
    shares: Tensor
    offsets: Tensor
    owners: Tensor
    n_words: int

    def products(self, weight: Tensor) -> Tensor:
        """Return the rows times ``weight``."""
        return functional.embedding_bag(self.words, weight, self.offsets, per_sample_weights=self.values, mode="sum")

    def word_shares(self) -> Tensor:
        """Return the distribution of each text over the words, ``rows x words``."""
        shares = self.shares.new_zeros(len(self.offsets), self.n_words)
        shares[self.owners, self.words] = self.shares  # Eq. 1
        return shares


class DenseRows:
    """The same rows with the zeros between: every batch of one size has the same shapes, as recorded steps need.

    Parameters
    ----------
    table:
        ``texts x words``, non-negative.
    """

    def __init__(self, table: sparse.csr_matrix, device: torch.device) -> None:
        entries = table.tocoo()
        self._values = torch.zeros(table.shape, device=device)
        places = (torch.from_numpy(each.astype(np.int64)).to(device) for each in (entries.row, entries.col))
        self._values[tuple(places)] = torch.from_numpy(entries.data.astype(np.float32)).to(device)

    def __len__(self) -> int:
        return len(self._values)

    def batch(self, rows: Tensor) -> DenseBatch:
        """Return the rows ``rows``."""
        return DenseBatch(self._values[rows])


@dataclass(frozen=True)
class DenseBatch:
    """Some rows of :class:`DenseRows`."""

    values: Tensor

    def products(self, weight: Tensor) -> Tensor:
        """Return the rows times ``weight``."""
        return self.values @ weight

    def word_shares(self) -> Tensor:
        """Return the distribution of each text over the words, ``rows x words``."""
        return self.values / self.values.sum(dim=1, keepdim=True)  # Eq. 1


def rows_on_device(table: sparse.csr_matrix, device: torch.device) -> SparseRows | DenseRows:
    """Return the rows in the form that is faster on the device: a GPU multiplies zeros as well, if they fit."""
    dense = device.type == "cuda" and table.shape[0] * table.shape[1] <= MOST_VALUES
    return DenseRows(table, device) if dense else SparseRows(table, device)


class LexicalNetwork(nn.Module):
    """A variational auto-encoder of TF-IDF rows with one hidden layer and a linear decoder.

    Parameters
    ----------
    n_words, hidden, dimension:
        Widths of the input, the hidden layer and the latent vector.
    generator:
        Generator of the initial weights.
    """

    def __init__(self, n_words: int, hidden: int, dimension: int, generator: torch.Generator) -> None:
        super().__init__()
        weights = torch.empty(n_words, hidden).uniform_(-FIRST_LAYER_RANGE, FIRST_LAYER_RANGE, generator=generator)
        self.first_weight = nn.Parameter(weights)
        self.first_bias = nn.Parameter(torch.zeros(hidden))
        self.mean = linear(hidden, dimension, generator)
        self.log_variance = linear(hidden, dimension, generator)
        nn.init.constant_(self.log_variance.bias, FIRST_LOG_VARIANCE)
        self.decoder = linear(dimension, n_words, generator)

    @classmethod
    def from_arrays(cls, arrays: dict[str, NDArray[np.float32]]) -> LexicalNetwork:
        """Return the network that has these :meth:`arrays`."""
        n_words, hidden = arrays["first_weight"].shape
        network = cls(n_words, hidden, len(arrays["mean.bias"]), torch.Generator())
        network.load_state_dict({name: torch.from_numpy(array) for name, array in arrays.items()})
        return network

    def arrays(self) -> dict[str, NDArray[np.float32]]:
        """Return all weights by name."""
        return {name: value.cpu().numpy() for name, value in self.state_dict().items()}

    def hidden_states(self, batch: RowBatch | DenseBatch) -> Tensor:
        """Return the hidden layer, without dropout."""
        return torch.relu(batch.products(self.first_weight) + self.first_bias)  # Eq. 2

    def latent_means(self, hidden: Tensor) -> Tensor:
        """Return the means of the latent vectors."""
        return MOST_MEAN * torch.tanh(self.mean(hidden) / MOST_MEAN)  # Eq. 3

    def loss(
        self,
        batch: RowBatch | DenseBatch,
        weights: Tensor,
        config: LexicalConfig,
        generator: torch.Generator,
        pseudo_labels: PseudoLabelBatch | None = None,
    ) -> LossTerms:
        """Return the loss of some texts, the first half of ``batch``, and of one neighbour of each, the second half.

        ``weights`` are the occurrences of the texts; a neighbour has its text's weight. With ``pseudo_labels``, those
        of the texts, Eq. 11 is added.
        """
        count, twice = len(weights), weights.repeat(2)
        hidden = drop(self.hidden_states(batch), config.dropout, generator)  # Eq. 2
        means, log_variances = self.latent_means(hidden), self.log_variance(hidden)  # Eq. 3, 4
        noise = torch.randn(means.shape, generator=generator, device=means.device, dtype=means.dtype)
        latents = means + torch.exp(log_variances / 2) * noise  # Eq. 5
        reconstruction = multinomial_error(batch.word_shares(), self.decoder(latents), twice)
        divergence = gaussian_divergence(means, log_variances, twice)
        contrast = nt_xent(means[:count], means[count:], config.temperature, weights)  # Eq. 9
        total = reconstruction + config.kl_weight * divergence + config.contrast_weight * contrast  # Eq. 10
        terms = {"reconstruction": reconstruction, "divergence": divergence, "contrast": contrast}
        if pseudo_labels is not None:
            terms["labels"] = pseudo_labels.loss(means[:count], weights)  # Eq. 11
            total = total + LABEL_WEIGHT * terms["labels"]
        return LossTerms(total, **terms)


@dataclass(frozen=True)
class PseudoLabelBatch:
    """The pseudo-labels of some texts, and the centres of the clusters that predict them.

    Attributes
    ----------
    centers:
        ``K x D``, trained together with the network.
    targets:
        ``B x K``, probability of each cluster.
    trust:
        ``B``, how much each target is trusted, from 0 to 1.
    """

    centers: Tensor
    targets: Tensor
    trust: Tensor

    def loss(self, means: Tensor, weights: Tensor) -> Tensor:
        """Return the cross entropy of the targets and the cosines of ``means`` with the centres."""
        cosines = functional.normalize(means, dim=1) @ functional.normalize(self.centers, dim=1).T
        return soft_cross_entropy(cosines / LABEL_TEMPERATURE, self.targets, self.trust, weights)  # Eq. 11


def drop(states: Tensor, rate: float, generator: torch.Generator) -> Tensor:
    """Return ``states`` with dropout from ``generator``."""
    keep_mask = torch.rand(states.shape, generator=generator, device=states.device) >= rate
    return states * keep_mask / (1 - rate)


def multinomial_error(shares: Tensor, logits: Tensor, weights: Tensor | None = None) -> Tensor:
    """Return the mean over texts of the cross entropy between word shares and decoded words.

    Parameters
    ----------
    shares, logits:
        ``M x V``: the shares of each text's words, which sum to 1, and the decoder's output.
    weights:
        ``M``, the weight of each text in the mean.
    """
    texts = functional.cross_entropy(logits, shares, reduction="none")  # Eq. 6
    return weighted_mean(texts, weights)  # Eq. 7


def gaussian_divergence(means: Tensor, log_variances: Tensor, weights: Tensor | None = None) -> Tensor:
    """Return the mean over texts of the divergence of diagonal Gaussians from the standard one.

    Parameters
    ----------
    means, log_variances:
        ``M x D``.
    weights:
        ``M``, the weight of each text in the mean.
    """
    texts = (means.square() + log_variances.exp() - 1 - log_variances).sum(dim=1) / 2
    return weighted_mean(texts, weights)  # Eq. 8
