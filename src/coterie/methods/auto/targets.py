"""The training targets of the default method: soft clusters voted by semantic and lexical neighbours."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from coterie.clustering.optimal_transport import self_adaptive_transport, sinkhorn
from coterie.metrics.internal.modularity import beyond_chance

if TYPE_CHECKING:
    import torch

# Probability added to every cluster in a vote, so that a cluster without votes is unlikely but not impossible.
SMOOTHING = 1e-2
# Values of ``sizes``: see :func:`transport_targets`.
SIZES = ("found", "equal", "free")


def combine_votes(
    probabilities: NDArray[np.float64], semantic: Any, lexical: Any | None
) -> tuple[NDArray[np.float64], NDArray[np.float64], float]:
    """Combine the votes of semantic and lexical neighbours on the cluster of each text.

    The lexical vote is raised to the power of its agreement with the semantic one beyond chance (Cohen's kappa), so
    that words unrelated to the clusters do not count. Where the two votes differ, the text is trusted less, by the same
    agreement.

    Parameters
    ----------
    probabilities:
        ``N x K``, current cluster probabilities of each text.
    semantic, lexical:
        Sparse ``N x N`` weights of the neighbours, each row with sum one; a text that shares no words has an empty
        lexical row. ``lexical`` may be ``None``.

    Returns
    -------
    tuple
        ``N x K`` unnormalised log-probabilities; the trust in each text, from 0 to 1; and the agreement.
    """
    semantic_vote = _normalise_votes(semantic @ probabilities)
    logs, trust = np.log(semantic_vote), np.ones(len(probabilities))
    if lexical is None:
        return logs, trust, 0.0
    lexical_vote = np.asarray(lexical @ probabilities)
    has_lexical = lexical_vote.sum(axis=1) > 0
    first, second = semantic_vote[has_lexical].argmax(axis=1), lexical_vote[has_lexical].argmax(axis=1)
    agreement = max(0.0, cohen_kappa(first, second, probabilities.shape[1]))
    logs[has_lexical] += agreement * np.log(_normalise_votes(lexical_vote[has_lexical]))
    trust[has_lexical] = 1 - agreement * (first != second)
    return logs, trust, agreement


def _normalise_votes(votes: Any) -> NDArray[np.float64]:
    smoothed = np.asarray(votes, dtype=np.float64) + SMOOTHING
    return np.asarray(smoothed / smoothed.sum(axis=1, keepdims=True))


def cohen_kappa(first: NDArray[np.int64], second: NDArray[np.int64], n_clusters: int) -> float:
    """Return the agreement of two labellings beyond chance (Cohen, 1960): 1 if equal, 0 if unrelated or empty."""
    if not len(first):
        return 0.0
    sizes = (np.bincount(each, minlength=n_clusters) / len(first) for each in (first, second))
    by_chance = float(np.multiply(*sizes).sum())
    return beyond_chance(float((first == second).mean()), by_chance)


def transport_targets(
    logs: NDArray[np.float64],
    counts: NDArray[Any],
    *,
    sizes: str,
    epsilon: float,
    size_penalty: float,
    device: torch.device | str = "cpu",
) -> NDArray[np.float32]:
    """Return each text's target probabilities: its rows in the optimal transport plan to the clusters.

    Parameters
    ----------
    logs:
        ``N x K`` log-probabilities; the cost is their negative.
    counts:
        How often each text occurs.
    sizes:
        ``"found"``: cluster sizes are found by self-adaptive transport, under a penalty that keeps each above zero.
        ``"equal"``: all sizes are equal. ``"free"``: a softmax, which does not constrain sizes.
    epsilon:
        Weight of the entropy: larger is softer.
    size_penalty:
        Weight of the penalty for ``"found"``, divided by the number of clusters.
    device:
        A device with float64.
    """
    import torch

    cost, masses = torch.tensor(-logs, device=device), torch.tensor(np.asarray(counts))
    if sizes == "free":
        plan = (-cost / epsilon).softmax(dim=1)
    elif sizes == "equal":
        plan = sinkhorn(cost, masses, torch.ones(cost.shape[1]), epsilon).plan
    else:
        penalty = size_penalty / cost.shape[1]
        plan = self_adaptive_transport(cost, masses, epsilon, penalty).plan
    return np.asarray((plan / plan.sum(dim=1, keepdim=True)).cpu().numpy(), dtype=np.float32)


def sample_neighbours(
    graphs: list[Any], labels: NDArray[np.int64], generator: np.random.Generator
) -> NDArray[np.int64]:
    """Sample for each text one of its neighbours, in any graph, in the same cluster; itself where there is none."""
    first, second = (np.concatenate(each) for each in zip(*(graph.nonzero() for graph in graphs), strict=True))
    usable = (labels[first] == labels[second]) & (first != second)
    order = generator.permutation(int(usable.sum()))
    found = np.arange(len(labels))
    # If a row occurs several times, its last assignment counts; it is a random one, since the order is random.
    found[first[usable][order]] = second[usable][order]
    return found
