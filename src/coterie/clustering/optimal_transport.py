"""Entropic optimal transport from texts to clusters, with given or estimated cluster sizes.

A plan is the mass that goes from each text to each cluster; its rows sum to the masses of the texts, its columns to the
sizes of the clusters. Everything is computed from logarithms: with costs of ``-log P`` and a small epsilon the kernel
``exp(-cost / epsilon)`` itself is zero almost everywhere.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch import Tensor

# Smallest fraction of a Newton step that is tried: below it, only rounding errors remain.
SHORTEST_STEP = 2.0**-20
# The range of the costs divided by the first epsilon: with such an epsilon the solution is close to the initial guess.
FIRST_RANGE = 10.0
# Tolerance of the column sums before the last epsilon, as a share of ``1 / K``: these solutions are only initial
# guesses for the next one.
ROUGH_TOLERANCE = 1e-2
# Factor between one epsilon and the next: small enough that each solution is a good initial guess for the next one.
EPSILON_FACTOR = 4


@dataclass(frozen=True)
class Transport:
    """A transport plan.

    Attributes
    ----------
    plan:
        ``N x K``, the mass from each row to each column, with the device and precision of the cost.
    sizes:
        ``K``, the required sum of each column of the plan (float64, on the CPU).
    error:
        Largest difference between the sizes and the sums of the columns.
    iterations:
        Steps taken.
    potential:
        ``K``, the multipliers of the columns: a similar problem is solved in fewer steps from them.
    """

    plan: Tensor
    sizes: Tensor
    error: float
    iterations: int
    potential: Tensor


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

    rows, sizes = _normalise(rows).to(cost), _normalise(sizes)
    potential = torch.zeros(cost.shape[1], dtype=torch.float64)
    for iteration in range(max_iterations + 1):
        choice, columns = _plan_shares(cost, rows, potential, epsilon)
        error = float((columns - sizes).abs().max())
        if error <= tolerance or iteration == max_iterations:
            break
        # A column without mass is raised by the largest finite logarithm, not by infinity.
        potential += epsilon * (sizes.log() - columns.clamp_min(torch.finfo(cost.dtype).tiny).log())
    return Transport(rows[:, None] * choice, sizes, error, iteration, potential)


def self_adaptive_transport(
    cost: Tensor,
    rows: Tensor,
    epsilon: float,
    size_penalty: float,
    *,
    max_iterations: int = 100,
    tolerance: float = 1e-6,
    begin_with: Tensor | None = None,
) -> Transport:
    """Return the plan of least cost with the sizes ``b`` of the columns as unknowns (RSTC's transport problem).

    ``size_penalty`` times ``sum_j -log b_j - log(1 - b_j)`` is added to the objective, and the sizes sum to one. A
    large penalty makes the sizes equal. With a small one they depend on the cost, and the penalty only keeps them above
    zero.

    With the multipliers f of the rows, g of the columns and h of the sum, the conditions are

    - ``plan_ij = exp((f_i + g_j - cost_ij) / epsilon)``,
    - ``size_penalty (1 / b_j - 1 / (1 - b_j)) = g_j - h``, a quadratic equation for ``b_j``,

    and the margins. Adding a constant to g and h and subtracting it from f changes nothing, so h is 0 here. The mass of
    the rows determines f from g: each row of the plan is a softmax. K equations for g remain: the columns of the plan
    must sum to the sizes. They are the gradient of a strictly concave function, solved by Newton's method with shorter
    steps where a full step would increase the error. The authors' code takes Newton steps only for h, inside Sinkhorn's
    iteration; with small penalties and large clusters that iteration oscillates.

    Parameters
    ----------
    cost:
        ``N x K``, finite, at least two columns.
    rows:
        Mass of each row, scaled to sum one.
    epsilon, size_penalty:
        Weights of the entropy and of the penalty on the sizes.
    begin_with:
        The potential of a similar problem: the same solution is found in fewer steps. By default a fixed one.

    References
    ----------
    Zheng et al., Robust Representation Learning with Reliable Pseudo-labels Generation via Self-Adaptive Optimal
    Transport for Short Text Clustering, ACL 2023.
    """
    import torch

    rows = _normalise(rows).to(cost)
    equal = 1 / cost.shape[1]
    # In float64: with a large penalty all entries of g are large, and only their differences matter.
    potential = torch.full((cost.shape[1],), size_penalty * (1 / equal - 1 / (1 - equal)), dtype=torch.float64)
    iterations, schedule = 0, [epsilon]
    if begin_with is None:
        # With a small epsilon the equations are nearly step functions; the solution for a larger one is a good guess.
        widest = float(cost.max() - cost.min()) / FIRST_RANGE
        schedule = _epsilon_schedule(max(widest, epsilon), epsilon)
    else:
        potential = begin_with
    for width in schedule:
        goal = tolerance if width == epsilon else max(tolerance, ROUGH_TOLERANCE * equal)
        potential, taken = _solve(cost, rows, potential, width, size_penalty, max_iterations - iterations, goal)
        iterations += taken
    choice, columns = _plan_shares(cost, rows, potential, epsilon)
    sizes = sizes_from(potential, size_penalty)
    error = float((sizes - columns).abs().max())
    if begin_with is not None and error > tolerance:
        # That potential was too far away.
        return self_adaptive_transport(
            cost, rows, epsilon, size_penalty, max_iterations=max_iterations, tolerance=tolerance
        )
    return Transport(rows[:, None] * choice, sizes, error, iterations, potential)


def _epsilon_schedule(first: float, last: float) -> list[float]:
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
    """Take Newton steps until the columns sum to the sizes; return the last potential and the number of steps."""
    import torch

    choice, columns = _plan_shares(cost, rows, potential, epsilon)
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
            candidate = potential + part * step
            choice, columns = _plan_shares(cost, rows, candidate, epsilon)
            sizes = sizes_from(candidate, size_penalty)
            if float((sizes - columns).norm()) < (1 - part / 4) * now:
                break
            part /= 2
            if part < SHORTEST_STEP:
                return potential, iteration + 1  # only rounding errors remain
        potential = candidate
    return potential, max_iterations


def sizes_from(potential: Tensor, size_penalty: float) -> Tensor:
    """Return the ``b`` in (0, 1) with ``size_penalty (1 / b - 1 / (1 - b)) = potential``, without cancellation."""
    x = potential / size_penalty
    # The smaller root of x b^2 - (x + 2) b + 1 = 0, in a form that is accurate for x = 0 and for large x.
    return 2 / (x + 2 + (x * x + 4).sqrt())


def _size_slope(sizes: Tensor, potential: Tensor, size_penalty: float) -> Tensor:
    """Return the negative derivative of the sizes with respect to the potential."""
    rest = sizes_from(-potential, size_penalty)  # 1 - b, to the last digit
    return 1 / (size_penalty * (1 / sizes.square() + 1 / rest.square()))


def _plan_shares(cost: Tensor, rows: Tensor, potential: Tensor, epsilon: float) -> tuple[Tensor, Tensor]:
    """Return each row's shares over the columns for the columns' multipliers, and the sums of the columns."""
    # Subtracting their mean changes nothing but the accuracy.
    centred = (potential - potential.mean()).to(cost)
    choice = ((centred - cost) / epsilon).softmax(dim=1)
    # Normalised again: in float32, twenty thousand small numbers do not sum to one.
    return choice, _normalise(rows @ choice)


def _normalise(masses: Tensor) -> Tensor:
    wide = masses.cpu().double()
    return wide / wide.sum()
