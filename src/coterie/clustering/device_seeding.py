"""The rows of a k-means on a torch device, and k-means++ centres among them."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from coterie.errors import InputError

# Rows times centres (of all restarts) that are compared at a time: 256 MiB in float32.
ENTRIES = 2**26
# Rows that are summed in one product. Longer sums add these sums, which is faster and more accurate. Rows are padded to
# whole chunks.
CHUNK = 1024
# Sum of the integer weights by which rows are sampled: integers have the same sum in any order, and this sum is exact
# in float64.
WHOLE = 2.0**52


@dataclass(frozen=True)
class DeviceRows:
    """Vectors minus their mean, for accuracy, padded to whole chunks with rows of weight 0."""

    vectors: Tensor
    squares: Tensor
    weights: Tensor
    mean: Tensor
    count: int

    @classmethod
    def of(cls, features: Tensor, weights: NDArray[Any] | None) -> DeviceRows:
        count, dimension = features.shape
        padded = math.ceil(count / CHUNK) * CHUNK
        vectors = torch.zeros(padded, dimension, dtype=torch.float32, device=features.device)
        mean = features.mean(0, dtype=torch.float32)
        torch.sub(features, mean, out=vectors[:count])
        mass = torch.zeros(padded)
        mass[:count] = 1 if weights is None else torch.as_tensor(np.asarray(weights, dtype=np.float32))
        squares = torch.linalg.vector_norm(vectors, dim=1).square()
        return cls(vectors, squares, mass.to(features.device), mean, count)

    def variance(self) -> float:
        """Return the mean variance of the features, without weights, as in scikit-learn."""
        variance = self.squares.sum(dtype=torch.float64).item() / (self.count * self.vectors.shape[1])
        if not math.isfinite(variance):
            raise InputError("features hold values that are not finite (NaN or infinity): k-means needs numbers")
        return variance

    def blocks(self, width: int) -> Iterator[slice]:
        """Yield blocks of whole chunks, each with about ``ENTRIES`` numbers for rows of ``width`` numbers."""
        size = max(1, ENTRIES // (width * CHUNK)) * CHUNK
        for begin in range(0, len(self.vectors), size):
            yield slice(begin, min(begin + size, len(self.vectors)))


def split_restarts(restarts: Tensor, entries: int) -> tuple[Tensor, ...]:
    """Split restarts into the fewest parts of similar size within ``ENTRIES``; one restart needs ``entries``."""
    most = max(1, ENTRIES // entries)
    return torch.tensor_split(restarts, math.ceil(len(restarts) / most))


def initial_centers(rows: DeviceRows, n_clusters: int, n_init: int, seed: int) -> Tensor:
    """Return k-means++ centres of every restart (restarts x clusters x features)."""
    trials = 2 + int(math.log(n_clusters))
    generator = torch.Generator().manual_seed(seed)
    draws = torch.rand(n_init, n_clusters, trials, generator=generator, dtype=torch.float64).to(rows.vectors.device)
    return torch.cat([kmeans_plus_plus(rows, batch) for batch in split_restarts(draws, len(rows.vectors) * trials)])


def kmeans_plus_plus(rows: DeviceRows, draws: Tensor) -> Tensor:
    """Select centres by greedy k-means++, as scikit-learn does: the row of least inertia among a few sampled rows.

    ``draws`` are uniform random numbers, of shape restarts x centres x trials.
    """
    restarts, n_clusters, _ = draws.shape
    each = torch.arange(restarts, device=draws.device)
    picks = torch.empty(restarts, n_clusters, dtype=torch.int64, device=draws.device)
    first = sample_rows(rows.weights.expand(restarts, -1), draws[:, 0, :1])
    picks[:, 0] = first[:, 0]
    closest = _distances(rows, first)[:, 0]
    for c in range(1, n_clusters):
        candidates = sample_rows(closest * rows.weights, draws[:, c])
        distances = _distances(rows, candidates)
        torch.minimum(distances, closest.unsqueeze(1), out=distances)
        best = (distances @ rows.weights).argmin(1)
        picks[:, c] = candidates[each, best]
        closest = distances[each, best]
    return rows.vectors[picks]


def sample_rows(masses: Tensor, draws: Tensor) -> Tensor:
    """Sample rows in proportion to their mass (restarts x rows), one per uniform number (restarts x trials).

    It samples first a chunk by its sum, then a row in it: one cumulative sum over a million rows would be slow.
    """
    chunks = masses.reshape(len(masses), -1, CHUNK)
    sums = chunks.sum(2, dtype=torch.float64)
    scale = WHOLE / sums.sum(1, keepdim=True).clamp_min(1e-60)
    outer = (sums * scale).long().cumsum(1)
    targets = (draws * outer[:, -1:]).long()
    chunk = _first_above(outer, targets)
    each = torch.arange(len(masses), device=masses.device).unsqueeze(1)
    inner = (chunks[each, chunk].double() * scale.unsqueeze(2)).long().cumsum(2)
    before = outer.gather(1, chunk) - inner[:, :, -1]
    place = _first_above(inner, (targets - before).clamp_min(0).unsqueeze(2)).squeeze(2)
    return chunk * CHUNK + place


def _first_above(sums: Tensor, targets: Tensor) -> Tensor:
    """Return the first position where cumulative ``sums`` exceed ``targets``, else the last one with a mass, else 0."""
    last = torch.searchsorted(sums, sums[..., -1:].contiguous())
    return torch.minimum(torch.searchsorted(sums, targets.contiguous(), right=True), last)


def _distances(rows: DeviceRows, picks: Tensor) -> Tensor:
    """Return the squared distances of the rows ``picks`` (restarts x trials) to all rows."""
    flat = picks.flatten()
    result = torch.addmm(rows.squares, rows.vectors[flat], rows.vectors.T, alpha=-2)
    result.add_(rows.squares[flat].unsqueeze(1)).clamp_min_(0)
    return result.view(*picks.shape, -1)
