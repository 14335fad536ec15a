"""k-means where the vectors are: Lloyd's iterations and k-means++ on a torch device, all restarts at once.

The steps are scikit-learn's (greedy k-means++, its tolerance, its way with empty clusters). The same seed on the
same device gives the same bits: nothing is added up in an order that the hardware decides, and random numbers come from
the CPU.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from coterie.clustering.kmeans import Partition
from coterie.errors import InputError, SettingError

# Rows times centres (of all restarts) that are compared at a time.
ENTRIES = 2**26
# Rows that are added up in one product; longer sums are sums of these. Rows are padded to whole chunks.
CHUNK = 1024
# A look at how far the restarts are makes the host wait for the device. Where a step is shorter than that, the host
# looks every few steps only; a restart that has ended meanwhile stands still.
SMALL_STEP = 2**24
STEPS_BETWEEN_LOOKS = 4
TOLERANCE = 1e-4
# Masses are drawn by as whole numbers of this sum: whole numbers have the same sum in any order.
WHOLE = 2.0**52

RUNNING, WAITING, ENDED = 0, 1, 2


def device_kmeans(
    features: Tensor,
    n_clusters: int,
    *,
    weights: NDArray[Any] | None = None,
    n_init: int = 10,
    init: NDArray[Any] | None = None,
    seed: int = 0,
    max_iter: int = 300,
    tol: float = TOLERANCE,
) -> Partition:
    """Lloyd's k-means of the rows of ``features`` on their device, in float32.

    Parameters
    ----------
    weights:
        How often each row counts.
    n_init:
        Restarts from k-means++ centres; the one with the least inertia wins.
    init:
        Centres to start from, once, instead.
    tol:
        A restart ends when no label changes, or when its centres move (squared, in total) no more than ``tol`` times
        the mean variance of the features.
    """
    if n_clusters > len(features):
        raise SettingError(f"n_clusters={n_clusters}, but there are only {len(features)} rows: ask for fewer clusters")
    if init is not None and np.shape(init) != (n_clusters, features.shape[1]):
        raise SettingError(f"init has shape {np.shape(init)}; give {n_clusters} centres of {features.shape[1]} numbers")
    with torch.no_grad(), torch.autocast(features.device.type, enabled=False), _full_precision():
        rows = _Rows.of(features, weights)
        threshold = tol * rows.variance()
        if init is None:
            starts = _starts(rows, n_clusters, n_init, seed)
        else:
            starts = (torch.as_tensor(init, dtype=torch.float32, device=features.device) - rows.mean).unsqueeze(0)
        best: tuple[float, Tensor, Tensor] | None = None
        # Few rows at a time make slow products, so many restarts of many centres go in several batches.
        for batch in _batches(starts, 4 * CHUNK * n_clusters):
            centers = _lloyd(rows, batch, threshold, max_iter)
            labels, _, _ = _sweep(rows, centers)
            spreads = torch.stack([_inertia(rows, own, labels[:, r]) for r, own in enumerate(centers)]).tolist()
            winner = int(np.argmin(spreads))
            if best is None or spreads[winner] < best[0]:
                best = spreads[winner], labels[: rows.count, winner].contiguous(), centers[winner] + rows.mean
    assert best is not None
    inertia, winning, final = best
    return Partition(winning.cpu().numpy(), final.cpu().numpy(), float(inertia))


@contextmanager
def _full_precision() -> Iterator[None]:
    """Products in float32 and not TF32, whatever the caller's setting."""
    finer: Any = torch.backends.cuda.matmul
    try:
        before, exact = torch.get_float32_matmul_precision(), "highest"
        change: Callable[[str], None] = torch.set_float32_matmul_precision
    except RuntimeError:  # the caller used the finer switch, and torch wants no other beside it
        before, exact = finer.fp32_precision, "ieee"
        change = partial(setattr, finer, "fp32_precision")
    if before == exact:
        yield
        return
    change(exact)
    try:
        yield
    finally:
        change(before)


@dataclass(frozen=True)
class _Rows:
    """Vectors around their mean, which loses fewest digits, padded to whole chunks by rows without weight."""

    vectors: Tensor
    squares: Tensor
    weights: Tensor
    mean: Tensor
    count: int

    @classmethod
    def of(cls, features: Tensor, weights: NDArray[Any] | None) -> _Rows:
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
        """Mean over the features, without weights, as in scikit-learn."""
        variance = self.squares.sum(dtype=torch.float64).item() / (self.count * self.vectors.shape[1])
        if not math.isfinite(variance):
            raise InputError("features hold values that are not finite (NaN or infinity): k-means needs numbers")
        return variance

    def blocks(self, width: int) -> Iterator[slice]:
        """Parts of whole chunks, each with about ``ENTRIES`` numbers where a row has ``width``."""
        size = max(1, ENTRIES // (width * CHUNK)) * CHUNK
        for begin in range(0, len(self.vectors), size):
            yield slice(begin, min(begin + size, len(self.vectors)))


def _batches(restarts: Tensor, entries: int) -> tuple[Tensor, ...]:
    """``restarts`` in as few parts of like size as keep to ``ENTRIES``, where one restart needs ``entries``."""
    most = max(1, ENTRIES // entries)
    return torch.tensor_split(restarts, math.ceil(len(restarts) / most))


# --- k-means++ ---


def _starts(rows: _Rows, n_clusters: int, n_init: int, seed: int) -> Tensor:
    trials = 2 + int(math.log(n_clusters))
    generator = torch.Generator().manual_seed(seed)
    draws = torch.rand(n_init, n_clusters, trials, generator=generator, dtype=torch.float64).to(rows.vectors.device)
    return torch.cat([_plus_plus(rows, batch) for batch in _batches(draws, len(rows.vectors) * trials)])


def _plus_plus(rows: _Rows, draws: Tensor) -> Tensor:
    """Greedy k-means++ (as scikit-learn's): of a few rows drawn, the one that leaves the least inertia.

    ``draws`` are uniform, of shape restarts x centres x trials.
    """
    restarts, n_clusters, _ = draws.shape
    each = torch.arange(restarts, device=draws.device)
    picks = torch.empty(restarts, n_clusters, dtype=torch.int64, device=draws.device)
    first = _drawn(rows.weights.expand(restarts, -1), draws[:, 0, :1])
    picks[:, 0] = first[:, 0]
    closest = _distances(rows, first)[:, 0]
    for c in range(1, n_clusters):
        candidates = _drawn(closest * rows.weights, draws[:, c])
        distances = _distances(rows, candidates)
        torch.minimum(distances, closest.unsqueeze(1), out=distances)
        best = (distances @ rows.weights).argmin(1)
        picks[:, c] = candidates[each, best]
        closest = distances[each, best]
    return rows.vectors[picks]


def _drawn(masses: Tensor, draws: Tensor) -> Tensor:
    """Rows drawn in proportion to their mass (restarts x rows), one for each uniform number (restarts x trials).

    First a chunk by its sum, then a row in it: one running sum over a million rows would be slow.
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
    """Where running ``sums`` first exceed ``targets``, or else the last place with a mass (0 without any)."""
    last = torch.searchsorted(sums, sums[..., -1:].contiguous())
    return torch.minimum(torch.searchsorted(sums, targets.contiguous(), right=True), last)


def _distances(rows: _Rows, picks: Tensor) -> Tensor:
    """Squared distances of the rows ``picks`` (restarts x trials) to all rows."""
    flat = picks.flatten()
    result = torch.addmm(rows.squares, rows.vectors[flat], rows.vectors.T, alpha=-2)
    result.add_(rows.squares[flat].unsqueeze(1)).clamp_min_(0)
    return result.view(*picks.shape, -1)


# --- Lloyd's iterations ---


@dataclass
class _Runs:
    """Restarts that go on: centres (restarts x clusters x features), labels (rows x restarts), steps taken, state."""

    centers: Tensor
    labels: Tensor
    steps: Tensor
    state: Tensor
    threshold: float
    max_iter: int

    def only(self, places: list[int]) -> _Runs:
        which = torch.tensor(places, dtype=torch.int64, device=self.state.device)
        steps, state = self.steps[which], self.state[which]
        return replace(self, centers=self.centers[which], labels=self.labels[:, which], steps=steps, state=state)

    def advance(self, going: Tensor, centers: Tensor, labels: Tensor) -> None:
        """Take ``centers`` and ``labels`` for the restarts that are ``going``, and see which of these have ended."""
        shift = (centers - self.centers).square().sum((1, 2))
        settled = (labels == self.labels).all(0) | (shift <= self.threshold)
        self.centers = torch.where(going.view(-1, 1, 1), centers, self.centers)
        self.labels = torch.where(going, labels, self.labels)
        self.steps = self.steps + going
        self.state = torch.where(going & (settled | (self.steps >= self.max_iter)), ENDED, self.state)


def _lloyd(rows: _Rows, starts: Tensor, threshold: float, max_iter: int) -> Tensor:
    """Final centres of each restart."""
    finals = starts.clone()
    numbers = list(range(len(starts)))
    labels = torch.full((rows.count, len(starts)), -1, device=starts.device)
    steps = torch.zeros(len(starts), dtype=torch.int64, device=starts.device)
    runs = _Runs(starts, labels, steps, torch.full_like(steps, RUNNING), threshold, max_iter)
    while numbers:
        small = len(rows.vectors) * len(numbers) * starts.shape[1] < SMALL_STEP
        for _ in range(STEPS_BETWEEN_LOOKS if small else 1):
            _step(rows, runs)
        states = runs.state.tolist()
        waiting = [place for place, state in enumerate(states) if state == WAITING]
        if waiting:
            _relocate(rows, runs, waiting)
        if ENDED in states:
            for place, state in enumerate(states):
                if state == ENDED:
                    finals[numbers[place]] = runs.centers[place]
            going = [place for place, state in enumerate(states) if state != ENDED]
            numbers = [numbers[place] for place in going]
            runs = runs.only(going)
    return finals


def _step(rows: _Rows, runs: _Runs) -> None:
    """One iteration of every running restart; one with an empty cluster waits for the host, unchanged."""
    labels, sums, masses = _sweep(rows, runs.centers)
    lacking = (masses == 0).any(1)
    running = runs.state == RUNNING
    runs.state = torch.where(running & lacking, WAITING, runs.state)
    runs.advance(running & ~lacking, sums / masses.unsqueeze(2), labels[: rows.count])


def _relocate(rows: _Rows, runs: _Runs, places: list[int]) -> None:
    """The iteration of restarts with empty clusters, which get the rows farthest from their centres."""
    part = runs.only(places)
    labels, sums, masses = _sweep(rows, part.centers)
    for r in range(len(places)):
        _refill(rows, part.centers[r], labels[:, r], sums[r], masses[r])
    # A cluster that is still empty lies on the heaviest one, rather than at the origin.
    heaviest = masses.argmax(1, keepdim=True)
    means = sums / masses.clamp_min(torch.finfo(torch.float32).tiny).unsqueeze(2)
    fallback = means.gather(1, heaviest.unsqueeze(2).expand(-1, -1, means.shape[2]))
    means = torch.where((masses > 0).unsqueeze(2), means, fallback)
    part.state.fill_(RUNNING)
    part.advance(part.state == RUNNING, means, labels[: rows.count])
    runs.centers[places], runs.labels[:, places] = part.centers, part.labels
    runs.steps[places], runs.state[places] = part.steps, part.state


def _refill(rows: _Rows, centers: Tensor, labels: Tensor, sums: Tensor, masses: Tensor) -> None:
    """Move the farthest rows out of the sums of their clusters, each into an empty one."""
    empty = (masses == 0).nonzero().squeeze(1)
    gaps, far = torch.where(rows.weights > 0, _gaps(rows, centers, labels), 0).topk(len(empty))
    if gaps[0] == 0:  # fewer distinct rows than clusters
        return
    moved = rows.weights[far]
    taken = rows.vectors[far] * moved.unsqueeze(1)
    givers = torch.nn.functional.one_hot(labels[far], len(masses)).T.float()
    sums -= givers @ taken
    masses -= givers @ moved
    sums[empty] = taken
    masses[empty] = moved


# --- Rows and centres ---


def _sweep(rows: _Rows, centers: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Nearest centre of each row (rows x restarts), and the weighted sum and the mass of each centre's rows."""
    restarts, n_clusters, dimension = centers.shape
    flat = centers.flatten(0, 1)
    squares = flat.square().sum(1)
    labels = torch.empty(len(rows.vectors), restarts, dtype=torch.int64, device=centers.device)
    sums, masses = torch.zeros_like(flat), torch.zeros_like(squares)
    scratch: Tensor | None = None
    for block in rows.blocks(len(flat)):
        vectors, nearest = rows.vectors[block], labels[block]
        scratch = flat.new_empty(len(vectors), len(flat)) if scratch is None else scratch[: len(vectors)]
        # The square of the row itself is left out: it is the same for all centres.
        torch.addmm(squares, vectors, flat.T, alpha=-2, out=scratch)
        torch.argmin(scratch.view(-1, restarts, n_clusters), 2, out=nearest)
        share = rows.weights[block].view(-1, 1, 1).expand(-1, restarts, 1)
        scratch.zero_().view(-1, restarts, n_clusters).scatter_(2, nearest.unsqueeze(2), share)
        # Many short products instead of a long one: they fill the device, and short sums are more accurate.
        members = scratch.view(-1, CHUNK, len(flat))
        sums += torch.bmm(members.transpose(1, 2), vectors.view(-1, CHUNK, dimension)).sum(0)
        masses += members.sum((0, 1))
    return labels, sums.view_as(centers), masses.view(restarts, n_clusters)


def _gaps(rows: _Rows, centers: Tensor, labels: Tensor) -> Tensor:
    """Squared distance of each row to its centre, from the difference itself: exact where both are close."""
    parts = []
    for block in rows.blocks(centers.shape[1]):
        difference = rows.vectors[block] - centers[labels[block]]
        parts.append(difference.square_().sum(1))
    return torch.cat(parts)


def _inertia(rows: _Rows, centers: Tensor, labels: Tensor) -> Tensor:
    return (_gaps(rows, centers, labels) * rows.weights).sum(dtype=torch.float64)
