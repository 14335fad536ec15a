"""What the texts are taught: clusters by the vote of their neighbours in two views, with sizes that are found."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from coterie.clustering.optimal_transport import self_adaptive_transport, sinkhorn

if TYPE_CHECKING:
    import torch

# A cluster that no neighbour votes for is unlikely, not impossible.
FLOOR = 1e-2
SIZES = ("found", "equal", "free")


def two_views(
    shares: NDArray[np.float64], semantic: Any, lexical: Any | None
) -> tuple[NDArray[np.float64], NDArray[np.float64], float]:
    """What neighbours by meaning and by words say together, how far each text is trusted, and how far words are.

    ``shares`` is what each text is held for now, ``semantic`` and ``lexical`` are neighbours by weights that add up to
    one a row (a text without words in common with others has an empty row). Both views vote. The lexical vote counts
    to the power of its agreement with the semantic one beyond chance (Cohen's kappa), so that words that say nothing
    have no say; where the two differ, the text is trusted less by as much. Returned are logarithms of probabilities
    that are not normalised.
    """
    by_meaning = _floored(semantic @ shares)
    logs, trust = np.log(by_meaning), np.ones(len(shares))
    if lexical is None:
        return logs, trust, 0.0
    by_words = np.asarray(lexical @ shares)
    voted = by_words.sum(axis=1) > 0
    first, second = by_meaning[voted].argmax(axis=1), by_words[voted].argmax(axis=1)
    agreement = max(0.0, kappa(first, second, shares.shape[1]))
    logs[voted] += agreement * np.log(_floored(by_words[voted]))
    trust[voted] = 1 - agreement * (first != second)
    return logs, trust, agreement


def _floored(shares: Any) -> NDArray[np.float64]:
    lifted = np.asarray(shares, dtype=np.float64) + FLOOR
    return np.asarray(lifted / lifted.sum(axis=1, keepdims=True))


def kappa(first: NDArray[np.int64], second: NDArray[np.int64], n_clusters: int) -> float:
    """Agreement of two labellings beyond chance (Cohen, 1960): 1 for the same, 0 for unrelated ones."""
    if not len(first):
        return 0.0
    sizes = (np.bincount(each, minlength=n_clusters) / len(first) for each in (first, second))
    by_chance = float(np.multiply(*sizes).sum())
    return (float((first == second).mean()) - by_chance) / max(1 - by_chance, 1e-12)


def transported(
    logs: NDArray[np.float64],
    counts: NDArray[Any],
    *,
    sizes: str,
    epsilon: float,
    size_penalty: float,
    device: torch.device | str = "cpu",
) -> NDArray[np.float32]:
    """Each text's shares in the plan of least cost, the cost being minus the logarithms.

    The sizes of the clusters are ``"found"``: free, under a penalty that only keeps each above zero
    (``size_penalty`` is that of an even cluster: with K clusters each has 1/K of it); ``"equal"``; or ``"free"``, where
    nothing keeps a cluster alive.
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


def drawn_neighbours(graphs: list[Any], labels: NDArray[np.int64], generator: np.random.Generator) -> NDArray[np.int64]:
    """For each text one of its neighbours, in any of the graphs, that is in its cluster; itself where there is none."""
    first, second = (np.concatenate(each) for each in zip(*(graph.nonzero() for graph in graphs), strict=True))
    kept = (labels[first] == labels[second]) & (first != second)
    order = generator.permutation(int(kept.sum()))
    found = np.arange(len(labels))
    # Of several the last one written stays: any of them, since their order is drawn.
    found[first[kept][order]] = second[kept][order]
    return found
