"""k-means on the torch device of the vectors: Lloyd's iterations of all restarts at once.

The algorithm is scikit-learn's (greedy k-means++, its tolerance, its treatment of empty clusters). The same seed on the
same device gives the same bits: every sum has a fixed order, and random numbers come from the CPU.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from coterie.clustering.device_seeding import CHUNK, DeviceRows, initial_centers, split_restarts
from coterie.clustering.partition import Partition
from coterie.errors import SettingError

# Entries of a step (rows times centres) below which the step is faster than the check whether restarts have ended, for
# which the host waits for the device.
SMALL_STEP = 2**24
# Small steps between two of these checks; a restart that has ended in between does not change.
STEPS_BETWEEN_CHECKS = 4
# Movement of the centres at which a restart ends, as a share of the mean variance: scikit-learn's default.
TOLERANCE = 1e-4

# State of a restart that takes steps.
RUNNING = 0
# State of a restart with an empty cluster, which waits for the host.
WAITING = 1
# State of a restart that has converged or taken all its steps.
ENDED = 2


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
    """Cluster the rows of ``features`` by Lloyd's k-means on their device, in float32.

    Parameters
    ----------
    weights:
        Weight of each row; 1 by default.
    n_init:
        Restarts from k-means++ centres; the one with the least inertia is returned.
    init:
        Initial centres in place of k-means++, for a single run.
    tol:
        A restart ends when no label changes, or when its centres move (squared, in total) no more than ``tol`` times
        the mean variance of the features.
    """
    if n_clusters > len(features):
        raise SettingError(f"n_clusters={n_clusters}, but there are only {len(features)} rows: ask for fewer clusters")
    if init is not None and np.shape(init) != (n_clusters, features.shape[1]):
        raise SettingError(f"init has shape {np.shape(init)}; give {n_clusters} centres of {features.shape[1]} numbers")
    with torch.no_grad(), torch.autocast(features.device.type, enabled=False), _full_precision():
        rows = DeviceRows.of(features, weights)
        threshold = tol * rows.variance()
        if init is None:
            starts = initial_centers(rows, n_clusters, n_init, seed)
        else:
            starts = (torch.as_tensor(init, dtype=torch.float32, device=features.device) - rows.mean).unsqueeze(0)
        best: tuple[float, Tensor, Tensor] | None = None
        # Products of few rows are slow, so many restarts of many centres are split into several batches.
        for batch in split_restarts(starts, 4 * CHUNK * n_clusters):
            centers = _lloyd(rows, batch, threshold, max_iter)
            labels, _, _ = _sweep(rows, centers)
            inertias = torch.stack([_inertia(rows, own, labels[:, r]) for r, own in enumerate(centers)]).tolist()
            winner = int(np.argmin(inertias))
            if best is None or inertias[winner] < best[0]:
                best = inertias[winner], labels[: rows.count, winner].contiguous(), centers[winner] + rows.mean
    assert best is not None
    inertia, winning, final = best
    return Partition(winning.cpu().numpy(), final.cpu().numpy(), float(inertia))


@contextmanager
def _full_precision() -> Iterator[None]:
    """Compute products in float32 and not in TF32, independently of the caller's setting."""
    settings: Any = torch.backends.cuda.matmul
    try:
        before, exact = torch.get_float32_matmul_precision(), "highest"
        change: Callable[[str], None] = torch.set_float32_matmul_precision
    except RuntimeError:  # the caller used the newer setting, and torch does not allow both
        before, exact = settings.fp32_precision, "ieee"
        change = partial(setattr, settings, "fp32_precision")
    if before == exact:
        yield
        return
    change(exact)
    try:
        yield
    finally:
        change(before)


# --- Lloyd's iterations ---


@dataclass
class _Runs:
    """Running restarts: centres (restarts x clusters x features), labels (rows x restarts), steps vectors, state."""

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

    def advance(self, running: Tensor, centers: Tensor, labels: Tensor) -> None:
        """Set ``centers`` and ``labels`` of the restarts that are ``running``, and mark those that have ended."""
        shift = (centers - self.centers).square().sum((1, 2))
        converged = (labels == self.labels).all(0) | (shift <= self.threshold)
        self.centers = torch.where(running.view(-1, 1, 1), centers, self.centers)
        self.labels = torch.where(running, labels, self.labels)
        self.steps = self.steps + running
        self.state = torch.where(running & (converged | (self.steps >= self.max_iter)), ENDED, self.state)


def _lloyd(rows: DeviceRows, starts: Tensor, threshold: float, max_iter: int) -> Tensor:
    """Return the final centres of each restart."""
    finals = starts.clone()
    numbers = list(range(len(starts)))
    labels = torch.full((rows.count, len(starts)), -1, device=starts.device)
    steps = torch.zeros(len(starts), dtype=torch.int64, device=starts.device)
    runs = _Runs(starts, labels, steps, torch.full_like(steps, RUNNING), threshold, max_iter)
    while numbers:
        small = len(rows.vectors) * len(numbers) * starts.shape[1] < SMALL_STEP
        for _ in range(STEPS_BETWEEN_CHECKS if small else 1):
            _step(rows, runs)
        states = runs.state.tolist()
        waiting = [place for place, state in enumerate(states) if state == WAITING]
        if waiting:
            _relocate(rows, runs, waiting)
        if ENDED in states:
            for place, state in enumerate(states):
                if state == ENDED:
                    finals[numbers[place]] = runs.centers[place]
            running = [place for place, state in enumerate(states) if state != ENDED]
            numbers = [numbers[place] for place in running]
            runs = runs.only(running)
    return finals


def _step(rows: DeviceRows, runs: _Runs) -> None:
    """Take one step of every running restart; a restart with an empty cluster is unchanged and waits for the host."""
    labels, sums, masses = _sweep(rows, runs.centers)
    has_empty = (masses == 0).any(1)
    running = runs.state == RUNNING
    runs.state = torch.where(running & has_empty, WAITING, runs.state)
    runs.advance(running & ~has_empty, sums / masses.unsqueeze(2), labels[: rows.count])


def _relocate(rows: DeviceRows, runs: _Runs, places: list[int]) -> None:
    """Take the step of restarts with empty clusters; these clusters get the rows farthest from their centres."""
    part = runs.only(places)
    labels, sums, masses = _sweep(rows, part.centers)
    for r in range(len(places)):
        _refill(rows, part.centers[r], labels[:, r], sums[r], masses[r])
    # A cluster that is still empty gets the centre of the heaviest one, rather than the origin.
    heaviest = masses.argmax(1, keepdim=True)
    means = sums / masses.clamp_min(torch.finfo(torch.float32).tiny).unsqueeze(2)
    fallback = means.gather(1, heaviest.unsqueeze(2).expand(-1, -1, means.shape[2]))
    means = torch.where((masses > 0).unsqueeze(2), means, fallback)
    part.state.fill_(RUNNING)
    part.advance(part.state == RUNNING, means, labels[: rows.count])
    runs.centers[places], runs.labels[:, places] = part.centers, part.labels
    runs.steps[places], runs.state[places] = part.steps, part.state


def _refill(rows: DeviceRows, centers: Tensor, labels: Tensor, sums: Tensor, masses: Tensor) -> None:
    """Move the farthest rows from the sums of their clusters to those of empty clusters, one row each."""
    empty = (masses == 0).nonzero().squeeze(1)
    distances, far = torch.where(rows.weights > 0, _squared_distances(rows, centers, labels), 0).topk(len(empty))
    if distances[0] == 0:  # fewer distinct rows than clusters
        return
    mass = rows.weights[far]
    vectors = rows.vectors[far] * mass.unsqueeze(1)
    donors = torch.nn.functional.one_hot(labels[far], len(masses)).T.float()
    sums -= donors @ vectors
    masses -= donors @ mass
    sums[empty] = vectors
    masses[empty] = mass


# --- Rows and centres ---


def _sweep(rows: DeviceRows, centers: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Return the nearest centre of each row (rows x restarts), and the weighted sum and the mass of its rows."""
    restarts, n_clusters, dimension = centers.shape
    flat = centers.flatten(0, 1)
    squares = flat.square().sum(1)
    labels = torch.empty(len(rows.vectors), restarts, dtype=torch.int64, device=centers.device)
    sums, masses = torch.zeros_like(flat), torch.zeros_like(squares)
    buffer: Tensor | None = None
    for block in rows.blocks(len(flat)):
        vectors, nearest = rows.vectors[block], labels[block]
        buffer = flat.new_empty(len(vectors), len(flat)) if buffer is None else buffer[: len(vectors)]
        # The square of the row itself is left out: it is the same for all centres.
        torch.addmm(squares, vectors, flat.T, alpha=-2, out=buffer)
        torch.argmin(buffer.view(-1, restarts, n_clusters), 2, out=nearest)
        share = rows.weights[block].view(-1, 1, 1).expand(-1, restarts, 1)
        buffer.zero_().view(-1, restarts, n_clusters).scatter_(2, nearest.unsqueeze(2), share)
        # Many short products instead of a long one use the whole device, and short sums are more accurate.
        members = buffer.view(-1, CHUNK, len(flat))
        sums += torch.bmm(members.transpose(1, 2), vectors.view(-1, CHUNK, dimension)).sum(0)
        masses += members.sum((0, 1))
    return labels, sums.view_as(centers), masses.view(restarts, n_clusters)


def _squared_distances(rows: DeviceRows, centers: Tensor, labels: Tensor) -> Tensor:
    """Return the squared distance of each row to its centre, from the difference, which is exact for close points."""
    parts = []
    for block in rows.blocks(centers.shape[1]):
        difference = rows.vectors[block] - centers[labels[block]]
        parts.append(difference.square_().sum(1))
    return torch.cat(parts)


def _inertia(rows: DeviceRows, centers: Tensor, labels: Tensor) -> Tensor:
    return (_squared_distances(rows, centers, labels) * rows.weights).sum(dtype=torch.float64)
