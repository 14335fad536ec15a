"""Generate reference points without clusters, with the width of given points, to compare a clustering with."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray


def principal_coordinates(units: NDArray[np.float32], dimensions: int) -> NDArray[np.float64]:
    """Return the coordinates of the rows on their first principal axes."""
    centred = units.astype(np.float64) - units.mean(axis=0, dtype=np.float64)
    values, axes = np.linalg.eigh(centred.T @ centred)
    leading = axes[:, np.argsort(values)[::-1][:dimensions]]
    return np.asarray(centred @ leading)


def reference_points(points: NDArray[np.float64], generator: np.random.Generator) -> NDArray[np.float64]:
    """Return the same number of points in one cloud, with the same widths along the axes and distances from the mean.

    The distances matter because vectors of length one lie on a sphere, where even a cloud without clusters is not
    normally distributed.
    """
    sampled = generator.normal(size=points.shape) * points.std(axis=0)
    lengths = np.linalg.norm(sampled, axis=1)
    target_lengths = np.sort(np.linalg.norm(points, axis=1))[np.argsort(np.argsort(lengths))]
    return np.asarray(sampled * (target_lengths / np.maximum(lengths, 1e-12))[:, None])


def reference_units(units: NDArray[np.float32], generator: np.random.Generator) -> NDArray[np.float32]:
    """Return reference points for rows of length one: a cloud around their mean, scaled to length one again."""
    distance = np.linalg.norm(units.mean(axis=0, dtype=np.float64))
    around = reference_points(principal_coordinates(units, units.shape[1]), generator)
    points: NDArray[Any] = np.concatenate([around, np.full((len(around), 1), distance)], axis=1)
    return np.asarray(points / np.maximum(np.linalg.norm(points, axis=1, keepdims=True), 1e-12), dtype=np.float32)
