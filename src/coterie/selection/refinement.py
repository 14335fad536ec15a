"""Refine a partition on the neighbour graph: each text moves to its most probable cluster.

The probability depends on the text's vector and on the clusters of its neighbours.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from coterie.clustering.sparse import on_device
from coterie.selection.graph import with_self_loops

if TYPE_CHECKING:
    import torch
    from torch import Tensor

    from coterie.selection.neighbour_graphs import NeighbourGraphs

# Steps without a size penalty: afterwards hardly any text moves.
STEPS = 10
# Most steps with a size penalty: balancing moves more texts, most of them in the first steps.
BALANCING_STEPS = 25
# Steps without a moved text after which the refinement ends: texts that move afterwards are one in a thousand.
PATIENCE = 2
# Temperature of the softmax over cosines with the cluster means.
TEMPERATURE = 0.2
# Probability added to every cluster in the vote of the neighbours, so that none is impossible.
SMOOTHING = 1e-2


def refine_assignment(
    graphs: NeighbourGraphs,
    labels: NDArray[np.int64],
    n_clusters: int,
    weights: NDArray[Any],
    size_penalty: float = 0.0,
) -> NDArray[np.int64]:
    """Return the labels after some steps of :func:`assignment_logits`; no cluster becomes empty.

    Parameters
    ----------
    graphs:
        The texts and their neighbours.
    labels:
        Cluster of each text, from 0 to ``n_clusters - 1``.
    weights:
        How often each text occurs.
    size_penalty:
        How strongly clusters are pulled towards equal sizes, as in
        :func:`~coterie.clustering.optimal_transport.self_adaptive_transport`; 0 leaves sizes free. It is divided by
        the number of clusters.
    """
    import torch

    from coterie.clustering.optimal_transport import self_adaptive_transport

    device = graphs.device if str(graphs.device).startswith("cuda") else "cpu"
    units = torch.from_numpy(graphs.units).to(device)
    neighbours = on_device(with_self_loops(graphs.combined), device, torch.float32)
    mass = torch.from_numpy(np.asarray(weights, dtype=np.float32)).to(device)
    current = torch.from_numpy(labels).to(device)
    probabilities = one_hot(current, n_clusters)
    unchanged_steps, potential = 0, None
    for _ in range(BALANCING_STEPS if size_penalty else STEPS):
        logits = assignment_logits(units, neighbours, probabilities, mass)
        probabilities = logits.softmax(dim=1)
        if size_penalty and n_clusters > 1:
            # The logits change little from step to step, and so does the solution.
            penalty = size_penalty / n_clusters
            found = self_adaptive_transport(-logits.double(), mass, 1.0, penalty, begin_with=potential)
            plan, potential = found.plan, found.potential
            probabilities = (plan / plan.sum(dim=1, keepdim=True)).float()
        updated = probabilities.argmax(dim=1)
        # Texts of a cluster that would become empty stay in it.
        stay = (torch.bincount(updated, minlength=n_clusters) == 0)[current]
        updated = torch.where(stay, current, updated)
        probabilities = torch.where(stay[:, None], one_hot(current, n_clusters), probabilities)
        unchanged_steps = unchanged_steps + 1 if torch.equal(current, updated) else 0
        current = updated
        if unchanged_steps == PATIENCE:
            break
    return current.cpu().numpy()


def assignment_logits(units: Tensor, neighbours: Tensor, probabilities: Tensor, weights: Tensor) -> Tensor:
    """Return the logits of each text's next cluster, from the current probabilities of all texts.

    They are ``log a_ik + log b_ik``. ``a_i`` is the softmax of the cosines with the cluster means, divided by
    ``TEMPERATURE``; ``b_i`` is the smoothed mean of the neighbours' probabilities.

    Parameters
    ----------
    units:
        ``N x D``, rows of length one.
    neighbours:
        ``N x N``, weights of the neighbours, each row with sum one.
    probabilities:
        ``N x K``, current cluster probabilities.
    weights:
        ``N``, how often each text occurs.
    """
    from torch.nn import functional

    means = functional.normalize((probabilities * weights[:, None]).T @ units, dim=1)
    by_vector = (units @ means.T / TEMPERATURE).log_softmax(dim=1)
    votes = neighbours @ probabilities + SMOOTHING
    return by_vector + (votes / votes.sum(dim=1, keepdim=True)).log()


def one_hot(labels: torch.Tensor, n_clusters: int) -> Tensor:
    """Return the labels as rows of zeros and a one, in float32."""
    from torch.nn import functional

    return functional.one_hot(labels, n_clusters).float()
