"""Entropic optimal transport from texts to clusters, with sizes that are given or found.

A plan says how much of each text's mass goes to each cluster; its rows add up to the masses of the texts, its columns
to the sizes of the clusters. Everything is computed from logarithms: with costs of ``-log P`` and a small epsilon the
kernel ``exp(-cost / epsilon)`` itself is zero almost everywhere.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch import Tensor

# The shortest part of a Newton step that is tried.
SHORTEST = 2.0**-20
# The first epsilon is the range of the costs divided by this; on the way to the last one, columns may be off by
# this share of an even one.
WIDE, ROUGH = 10.0, 1e-2


@dataclass(frozen=True)
class Transport:
    """A plan and how it was found.

    Attributes
    ----------
    plan:
        Mass that goes from each row to each column; it has the cost's device and precision.
    sizes:
        Share of each column: what the plan's columns should add up to (float64, on the CPU).
    error:
        The largest difference between that and what they do add up to.
    iterations:
        Steps taken.
    """

    plan: Tensor
    sizes: Tensor
    error: float
    iterations: int


def sinkhorn(
    cost: Tensor,
    rows: Tensor,
    sizes: Tensor,
    epsilon: float,
    *,
    max_iterations: int = 1000,
    tolerance: float = 1e-6,
) -> Transport:
    """The plan of least ``<plan, cost> + epsilon <plan, log plan - 1>`` with the given margins.

    Rows hold to rounding, columns to ``tolerance`` where so many iterations suffice.

    Parameters
    ----------
    cost:
        ``N x K``, finite.
    rows, sizes:
        Mass of each row and of each column, positive; both are scaled to add up to one.
    epsilon:
        Weight of the entropy.

    References
    ----------
    Cuturi, Sinkhorn Distances: Lightspeed Computation of Optimal Transport, NeurIPS 2013.
    """
    import torch

    rows, sizes = _shares(rows).to(cost), _shares(sizes)
    potential = torch.zeros(cost.shape[1], dtype=torch.float64)
    for iteration in range(max_iterations + 1):
        choice, columns = _choices(cost, rows, potential, epsilon)
        error = float((columns - sizes).abs().max())
        if error <= tolerance or iteration == max_iterations:
            break
        # A column that gets nothing is raised by as much as a logarithm can hold, not by infinity.
        potential += epsilon * (sizes.log() - columns.clamp_min(torch.finfo(cost.dtype).tiny).log())
    return Transport(rows[:, None] * choice, sizes, error, iteration)


def self_adaptive_transport(
    cost: Tensor,
    rows: Tensor,
    epsilon: float,
    size_penalty: float,
    *,
    max_iterations: int = 100,
    tolerance: float = 1e-6,
) -> Transport:
    """The same with the sizes ``b`` of the columns among the unknowns (self-adaptive optimal transport of RSTC).

    ``size_penalty`` times ``sum_j -log b_j - log(1 - b_j)`` is added to what is minimised, and the sizes add up to one.
    A large penalty makes them equal; a small one lets them follow the cost and only keeps each above zero.

    With the multipliers f of the rows, g of the columns and h of the sum, the conditions are

    - ``plan_ij = exp((f_i + g_j - cost_ij) / epsilon)``,
    - ``size_penalty (1 / b_j - 1 / (1 - b_j)) = g_j - h``, a quadratic equation for ``b_j``,

    and the margins. Adding a constant to g and h and taking it from f changes nothing, so h is 0 here, and f follows
    from g, since rows must have their mass: each row of the plan is a softmax. What is left are K equations for g,
    "columns of the plan = sizes". They are the gradient of a strictly concave function, solved by Newton's steps, made
    shorter where the equations would hold less well after them. The public code takes Newton's steps for h alone,
    inside Sinkhorn's iteration; for small penalties and large clusters that one swings to and fro.

    Parameters
    ----------
    cost:
        ``N x K``, finite, at least two columns.
    rows:
        Mass of each row, scaled to add up to one.
    epsilon, size_penalty:
        Weights of the entropy and of the penalty on the sizes.

    References
    ----------
    Zheng et al., Robust Representation Learning with Reliable Pseudo-labels Generation via Self-Adaptive Optimal
    Transport for Short Text Clustering, ACL 2023.
    """
    import torch

    rows = _shares(rows).to(cost)
    even = 1 / cost.shape[1]
    # K numbers are kept in float64: for a large penalty all of g is large, and only differences matter.
    potential = torch.full((cost.shape[1],), size_penalty * (1 / even - 1 / (1 - even)), dtype=torch.float64)
    iterations = 0
    # With a small epsilon the equations are all but steps. From the solution for a larger one it is not far.
    widest = float(cost.max() - cost.min()) / WIDE
    for width in _falling(max(widest, epsilon), epsilon):
        goal = tolerance if width == epsilon else max(tolerance, ROUGH * even)
        potential, taken = _solve(cost, rows, potential, width, size_penalty, max_iterations - iterations, goal)
        iterations += taken
    choice, columns = _choices(cost, rows, potential, epsilon)
    sizes = sizes_from(potential, size_penalty)
    return Transport(rows[:, None] * choice, sizes, float((sizes - columns).abs().max()), iterations)


def _falling(first: float, last: float) -> list[float]:
    """From the first to the last, each a quarter of the one before or more."""
    widths = [last]
    while widths[-1] < first:
        widths.append(widths[-1] * 4)
    return widths[::-1]


def _solve(
    cost: Tensor,
    rows: Tensor,
    potential: Tensor,
    epsilon: float,
    size_penalty: float,
    max_iterations: int,
    tolerance: float,
) -> tuple[Tensor, int]:
    """Newton's steps from ``potential`` until the columns have their sizes; where it ends, and the steps taken."""
    import torch

    choice, columns = _choices(cost, rows, potential, epsilon)
    sizes = sizes_from(potential, size_penalty)
    for iteration in range(max_iterations):
        missing = sizes - columns
        if float(missing.abs().max()) <= tolerance:
            return potential, iteration
        # The derivative of the columns, a graph's Laplacian: its diagonal is made of the rest of each row, since the
        # difference "columns - shared on the diagonal" would be rounding alone where rows are all but decided.
        shared = (choice.T @ (rows[:, None] * choice)).cpu().double().fill_diagonal_(0)
        slope = (torch.diag(shared.sum(dim=1)) - shared) / epsilon
        slope += torch.diag(_size_slope(sizes, potential, size_penalty))
        step = torch.linalg.solve(slope, missing)
        part, now = 1.0, float(missing.norm())
        while True:
            moved = potential + part * step
            choice, columns = _choices(cost, rows, moved, epsilon)
            sizes = sizes_from(moved, size_penalty)
            if float((sizes - columns).norm()) < (1 - part / 4) * now:
                break
            part /= 2
            if part < SHORTEST:
                return potential, iteration + 1  # rounding is all that is left
        potential = moved
    return potential, max_iterations


def sizes_from(potential: Tensor, size_penalty: float) -> Tensor:
    """The ``b`` in (0, 1) with ``size_penalty (1 / b - 1 / (1 - b)) = potential``, without cancellation."""
    x = potential / size_penalty
    # Of the two roots of x b^2 - (x + 2) b + 1 = 0 the smaller, written so that x = 0 and large x are harmless.
    return 2 / (x + 2 + (x * x + 4).sqrt())


def _size_slope(sizes: Tensor, potential: Tensor, size_penalty: float) -> Tensor:
    """How fast the sizes fall as the potential rises."""
    rest = sizes_from(-potential, size_penalty)  # 1 - b, to the last digit
    return 1 / (size_penalty * (1 / sizes.square() + 1 / rest.square()))


def _choices(cost: Tensor, rows: Tensor, potential: Tensor, epsilon: float) -> tuple[Tensor, Tensor]:
    """Each row's shares over the columns for the columns' multipliers, and what the columns get."""
    # A constant added to all of them changes nothing, but would cost digits.
    lead = (potential - potential.mean()).to(cost)
    choice = ((lead - cost) / epsilon).softmax(dim=1)
    # Shares once more: twenty thousand small numbers do not add up to one in float32.
    return choice, _shares(rows @ choice)


def _shares(masses: Tensor) -> Tensor:
    wide = masses.cpu().double()
    return wide / wide.sum()
