"""What clusters of vectors are worth beside those of a cloud without clusters."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray


def principal(units: NDArray[np.float32], directions: int) -> NDArray[np.float64]:
    """Coordinates in the first principal directions."""
    centred = units.astype(np.float64) - units.mean(axis=0, dtype=np.float64)
    values, axes = np.linalg.eigh(centred.T @ centred)
    kept = axes[:, np.argsort(values)[::-1][:directions]]
    return np.asarray(centred @ kept)


def cloud_like(points: NDArray[np.float64], generator: np.random.Generator) -> NDArray[np.float64]:
    """As many points of one cloud: as wide in every principal direction as ``points``, and as far from its middle.

    Vectors of one length lie on a sphere, where even a cloud without clusters is no normal distribution.
    """
    drawn = generator.normal(size=points.shape) * points.std(axis=0)
    lengths = np.linalg.norm(drawn, axis=1)
    wanted = np.sort(np.linalg.norm(points, axis=1))[np.argsort(np.argsort(lengths))]
    return np.asarray(drawn * (wanted / np.maximum(lengths, 1e-12))[:, None])


def cloud_of_units(units: NDArray[np.float32], generator: np.random.Generator) -> NDArray[np.float32]:
    """The same for vectors of length one: a cloud around their mean, of length one again."""
    middle = np.linalg.norm(units.mean(axis=0, dtype=np.float64))
    around = cloud_like(principal(units, units.shape[1]), generator)
    points: NDArray[Any] = np.concatenate([around, np.full((len(around), 1), middle)], axis=1)
    return np.asarray(points / np.maximum(np.linalg.norm(points, axis=1, keepdims=True), 1e-12), dtype=np.float32)
