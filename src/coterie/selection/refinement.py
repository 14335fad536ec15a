"""Clusters that settle: each text goes where its vector and its neighbours, in both views, agree that it belongs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from coterie.clustering.sparse import on_device
from coterie.selection.graph import with_oneself

if TYPE_CHECKING:
    import torch
    from torch import Tensor

    from coterie.selection.neighbour_graphs import Seen

# Steps until next to nothing moves; clusters that are drawn to one size go further and take more, at most so many, or
# until no text has moved for some.
STEPS, EVEN_STEPS, STILL = 10, 80, 10
# Of the likeness with a cluster's mean; and what a cluster has that no neighbour is in.
TEMPERATURE, FLOOR = 0.2, 1e-2


def settled(
    seen: Seen, labels: NDArray[np.int64], n_clusters: int, weights: NDArray[Any], size_penalty: float = 0.0
) -> NDArray[np.int64]:
    """The clusters after some steps of :func:`held_for`; none is lost on the way.

    ``labels`` run from 0 to ``n_clusters - 1``; ``weights`` say how often each text occurs. With a ``size_penalty``
    clusters are drawn to one size, as in :func:`~coterie.clustering.optimal_transport.self_adaptive_transport` (the
    penalty is that of an even cluster: with K clusters each has 1/K of it).
    """
    import torch

    from coterie.clustering.optimal_transport import self_adaptive_transport

    device = seen.device if str(seen.device).startswith("cuda") else "cpu"
    units = torch.from_numpy(seen.units).to(device)
    neighbours = on_device(with_oneself(seen.graph), device, torch.float32)
    mass = torch.from_numpy(np.asarray(weights, dtype=np.float32)).to(device)
    now = torch.from_numpy(labels).to(device)
    shares = one_hot(now, n_clusters)
    still = 0
    for _ in range(EVEN_STEPS if size_penalty else STEPS):
        logs = held_for(units, neighbours, shares, mass)
        shares = logs.softmax(dim=1)
        if size_penalty and n_clusters > 1:
            plan = self_adaptive_transport(-logs.double(), mass, 1.0, size_penalty / n_clusters).plan
            shares = (plan / plan.sum(dim=1, keepdim=True)).float()
        then = shares.argmax(dim=1)
        # The texts of a cluster that would be left without any stay.
        stay = (torch.bincount(then, minlength=n_clusters) == 0)[now]
        then = torch.where(stay, now, then)
        shares = torch.where(stay[:, None], one_hot(now, n_clusters), shares)
        still = still + 1 if torch.equal(now, then) else 0
        now = then
        if still == STILL:
            break
    return now.cpu().numpy()


def held_for(units: Tensor, neighbours: Tensor, shares: Tensor, weights: Tensor) -> Tensor:
    """What each text is held for, from what all are held for: by its vector times by its neighbours' vote.

    ``log a_ik + log b_ik``, where ``a_i`` is the softmax of the cosines with the clusters' means over ``TEMPERATURE``
    and ``b_i`` the mean of what the neighbours are held for, no cluster being impossible.
    """
    from torch.nn import functional

    means = functional.normalize((shares * weights[:, None]).T @ units, dim=1)
    by_vector = (units @ means.T / TEMPERATURE).log_softmax(dim=1)
    lifted = neighbours @ shares + FLOOR
    return by_vector + (lifted / lifted.sum(dim=1, keepdim=True)).log()


def one_hot(labels: torch.Tensor, n_clusters: int) -> Tensor:
    from torch.nn import functional

    return functional.one_hot(labels, n_clusters).float()
