"""Maps of the same texts at several moments of the training, side by side."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from coterie.report.projection import ProjectionKind, project_together

Vectors = NDArray[np.float32]
Labels = NDArray[np.int64]

# Most snapshots side by side. If there are more, they are thinned out evenly.
MAX_PANELS = 6


@dataclass(frozen=True)
class MapPanel:
    """One of several maps of the same texts.

    Attributes
    ----------
    title:
        The moment that it shows.
    points:
        Which points of the large map these texts are.
    coordinates, clusters:
        Their coordinates on this map, and the cluster of each.
    """

    title: str
    points: NDArray[np.int64]
    coordinates: NDArray[np.float32]
    clusters: Labels


def before_after_panels(
    points: NDArray[np.int64],
    vectors: tuple[Vectors, Vectors],
    clusters: tuple[Labels, Labels],
    *,
    kind: ProjectionKind,
    seed: int,
) -> list[MapPanel]:
    """Return two maps of ``points``; ``vectors`` and ``clusters`` are those before and after training."""
    maps = project_together(vectors, kind=kind, seed=seed)
    return [MapPanel(*panel) for panel in zip(("before", "after"), (points, points), maps, clusters, strict=True)]


def snapshot_panels(
    points: NDArray[np.int64],
    snapshots: Sequence[tuple[str, Vectors]],
    clusters: Labels,
    *,
    kind: ProjectionKind,
    seed: int,
) -> list[MapPanel]:
    """Return a map of ``points`` per snapshot, at most ``MAX_PANELS``; none where there are fewer than two.

    ``snapshots`` are titles and embeddings of the points, ``clusters`` what all maps are coloured by.
    """
    if len(snapshots) < 2:
        return []
    evenly = np.linspace(0, len(snapshots) - 1, min(MAX_PANELS, len(snapshots)))
    chosen = [snapshots[i] for i in np.unique(evenly.round().astype(int))]
    maps = project_together([vectors for _, vectors in chosen], kind=kind, seed=seed)
    return [
        MapPanel(title, points, coordinates, clusters) for (title, _), coordinates in zip(chosen, maps, strict=True)
    ]
