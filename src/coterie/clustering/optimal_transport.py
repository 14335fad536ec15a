"""Entropic optimal transport from texts to clusters, with given cluster sizes or with sizes that are found.

A plan is the mass that goes from each text to each cluster; its rows sum to the masses of the texts, its columns to the
sizes of the clusters. Everything is computed from logarithms: with costs of ``-log P`` and a small epsilon the kernel
``exp(-cost / epsilon)`` itself is zero almost everywhere.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch import Tensor

# Smallest part of a Newton step that is tried: below it only rounding errors are left.
SHORTEST_STEP = 2.0**-20
# The range of the costs divided by the first epsilon: with such an epsilon the solution is close to the initial guess.
FIRST_RANGE = 10.0
# Tolerance of the columns, as a share of an equal column, before the last epsilon: those solutions are only initial
# guesses for the next one.
ROUGH_TOLERANCE = 1e-2
# Factor between one epsilon and the next.
EPSILON_FACTOR = 4


@dataclass(frozen=True)
class Transport:
    """A transport plan.

    Attributes
    ----------
    plan:
        ``N x K``, the mass from each row to each column, with the device and precision of the cost.
    sizes:
        ``K``, the size of each column: what the columns of the plan should sum to (float64, on the CPU).
    error:
        Largest difference between the sizes and the sums of the columns.
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
    """Return the plan of least ``<plan, cost> + epsilon <plan, log plan - 1>`` with the given margins.

    Rows are exact up to rounding, columns up to ``tolerance`` if ``max_iterations`` suffice.

    Parameters
    ----------
    cost:
        ``N x K``, finite.
    rows, sizes:
        Mass of each row and of each column, positive; both are scaled to sum one.
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
        # A column without mass is raised by the largest finite logarithm, not by infinity.
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
    """Return the plan of least cost with the sizes ``b`` of the columns as unknowns (of RSTC).

    ``size_penalty`` times ``sum_j -log b_j - log(1 - b_j)`` is added to the objective, and the sizes sum to one. A
    large penalty makes them equal; a small one lets them follow the cost and only keeps each above zero.

    With the multipliers f of the rows, g of the columns and h of the sum, the conditions are

    - ``plan_ij = exp((f_i + g_j - cost_ij) / epsilon)``,
    - ``size_penalty (1 / b_j - 1 / (1 - b_j)) = g_j - h``, a quadratic equation for ``b_j``,

    and the margins. Adding a constant to g and h and subtracting it from f changes nothing, so h is 0 here, and f
    follows from g, since rows must have their mass: each row of the plan is a softmax. What remains are K equations for
    g, "columns of the plan = sizes". They are the gradient of a strictly concave function, solved by Newton's method
    with shorter steps where a full step would increase the error. The authors' code takes Newton steps for h alone,
    inside Sinkhorn's iteration; with small penalties and large clusters that iteration oscillates.

    Parameters
    ----------
    cost:
        ``N x K``, finite, at least two columns.
    rows:
        Mass of each row, scaled to sum one.
    epsilon, size_penalty:
        Weights of the entropy and of the penalty on the sizes.

    References
    ----------
    Zheng et al., Robust Representation Learning with Reliable Pseudo-labels Generation via Self-Adaptive Optimal
    Transport for Short Text Clustering, ACL 2023.
    """
    import torch

    rows = _shares(rows).to(cost)
    equal = 1 / cost.shape[1]
    # In float64: with a large penalty all of g is large, and only differences matter.
    potential = torch.full((cost.shape[1],), size_penalty * (1 / equal - 1 / (1 - equal)), dtype=torch.float64)
    iterations = 0
    # With a small epsilon the equations are nearly step functions; the solution for a larger one is a good guess.
    widest = float(cost.max() - cost.min()) / FIRST_RANGE
    for width in _falling(max(widest, epsilon), epsilon):
        goal = tolerance if width == epsilon else max(tolerance, ROUGH_TOLERANCE * equal)
        potential, taken = _solve(cost, rows, potential, width, size_penalty, max_iterations - iterations, goal)
        iterations += taken
    choice, columns = _choices(cost, rows, potential, epsilon)
    sizes = sizes_from(potential, size_penalty)
    return Transport(rows[:, None] * choice, sizes, float((sizes - columns).abs().max()), iterations)


def _falling(first: float, last: float) -> list[float]:
    """Return epsilons from about ``first`` down to ``last``, each a quarter of the one before."""
    widths = [last]
    while widths[-1] < first:
        widths.append(widths[-1] * EPSILON_FACTOR)
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
    """Take Newton steps from ``potential`` until the columns have their sizes; return the end and the steps taken."""
    import torch

    choice, columns = _choices(cost, rows, potential, epsilon)
    sizes = sizes_from(potential, size_penalty)
    for iteration in range(max_iterations):
        missing = sizes - columns
        if float(missing.abs().max()) <= tolerance:
            return potential, iteration
        # The derivative of the columns is a graph's Laplacian. Its diagonal is the sum of the rest of each row: the
        # difference "columns - shared on the diagonal" would be rounding errors alone where rows are nearly one-hot.
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
            if part < SHORTEST_STEP:
                return potential, iteration + 1  # rounding is all that is left
        potential = moved
    return potential, max_iterations


def sizes_from(potential: Tensor, size_penalty: float) -> Tensor:
    """Return the ``b`` in (0, 1) with ``size_penalty (1 / b - 1 / (1 - b)) = potential``, without cancellation."""
    x = potential / size_penalty
    # The smaller root of x b^2 - (x + 2) b + 1 = 0, in a form that is accurate for x = 0 and for large x.
    return 2 / (x + 2 + (x * x + 4).sqrt())


def _size_slope(sizes: Tensor, potential: Tensor, size_penalty: float) -> Tensor:
    """Return how fast the sizes fall as the potential rises."""
    rest = sizes_from(-potential, size_penalty)  # 1 - b, to the last digit
    return 1 / (size_penalty * (1 / sizes.square() + 1 / rest.square()))


def _choices(cost: Tensor, rows: Tensor, potential: Tensor, epsilon: float) -> tuple[Tensor, Tensor]:
    """Return each row's shares over the columns for the columns' multipliers, and the sums of the columns."""
    # A constant added to all of them changes nothing, but would cost digits.
    lead = (potential - potential.mean()).to(cost)
    choice = ((lead - cost) / epsilon).softmax(dim=1)
    # Normalised again: in float32, twenty thousand small numbers do not sum to one.
    return choice, _shares(rows @ choice)


def _shares(masses: Tensor) -> Tensor:
    wide = masses.cpu().double()
    return wide / wide.sum()
