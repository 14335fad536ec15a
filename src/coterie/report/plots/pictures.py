"""Pictures of a run as data: four shapes, which matplotlib and Plotly both draw.

``coterie plot`` and :func:`picture_of` make them; :mod:`coterie.report.plots.matplotlib_plots` writes them as PNG, SVG
or HTML.
"""

from __future__ import annotations

import colorsys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, get_args

import numpy as np
from numpy.typing import NDArray

from coterie.clustering.kmeans import unit_rows
from coterie.errors import InputError, SettingError
from coterie.report.report_model import Shown
from coterie.report.truth import truth_table

Subject: TypeAlias = Literal["map", "curves", "sizes", "confusion", "stages", "similarity", "k"]
SUBJECTS: tuple[str, ...] = get_args(Subject)
COLORS_BY = ("cluster", "label")
# Characters of a text that is shown at its point.
HOVER_TEXT = 200
NO_GROUP = (0.53, 0.53, 0.53)
# Clusters of a table; more would be too small to read.
MOST_IN_TABLE = 60


@dataclass(frozen=True)
class Points:
    """One panel of a map: places, the group of each (-1: none), the groups' names, and what is told at each point."""

    title: str
    places: NDArray[np.floating[Any]]
    groups: NDArray[np.int64]
    names: tuple[str, ...]
    told: tuple[str, ...] = ()


@dataclass(frozen=True)
class MapPicture:
    """Maps side by side."""

    title: str
    panels: tuple[Points, ...]


@dataclass(frozen=True)
class Curve:
    """A line over steps."""

    title: str
    x: tuple[float, ...]
    y: tuple[float, ...]


@dataclass(frozen=True)
class CurvePicture:
    """Curves in panels, with marks where stages begin.

    With ``spread``, a few points over a logarithmic axis: each is shown, and a mark is one of them.
    """

    title: str
    curves: tuple[Curve, ...]
    marks: tuple[tuple[str, float], ...]
    axis: str = "step"
    spread: bool = False


@dataclass(frozen=True)
class BarPicture:
    """A bar each, the first on top; ``groups`` say their colours."""

    title: str
    names: tuple[str, ...]
    values: tuple[float, ...]
    axis: str
    groups: tuple[int, ...]


@dataclass(frozen=True)
class TablePicture:
    """Numbers as a table of colours."""

    title: str
    rows: tuple[str, ...]
    columns: tuple[str, ...]
    values: NDArray[np.floating[Any] | np.integer[Any]]


Picture: TypeAlias = MapPicture | CurvePicture | BarPicture | TablePicture


def picture_of(runs: Sequence[Shown], subject: str, *, color: str = "cluster", sample: int | None = None) -> Picture:
    """The picture of ``subject`` of one run; of several, their maps on the same texts side by side.

    Parameters
    ----------
    subject:
        ``map``, ``curves`` (every loss term), ``sizes`` (of the clusters), ``confusion`` (true labels against
        clusters), ``stages`` (maps of stored snapshots), ``similarity`` (cosines between the clusters' means) or ``k``
        (why so many clusters, after ``-k auto``).
    color:
        Of a map: by ``cluster``, or by true ``label``, which must have been given.
    sample:
        Texts of maps at most.
    """
    if subject not in SUBJECTS:
        raise SettingError(f"{subject!r} cannot be drawn; use one of {', '.join(SUBJECTS)}")
    if color not in COLORS_BY:
        raise SettingError(f"color={color!r}: use 'cluster' or 'label'")
    if not runs:
        raise InputError("no run to draw")
    if subject == "map":
        return _maps(runs, color, sample)
    if len(runs) > 1:
        raise SettingError(f"{subject} is a picture of one run; {len(runs)} were given (maps go side by side)")
    draw: dict[str, Callable[[Shown], Picture]] = {
        "curves": _curves,
        "sizes": _sizes,
        "confusion": _confusion,
        "stages": _stages,
        "similarity": _similarity,
        "k": _choice,
    }
    return draw[subject](runs[0])


def choice_picture(choice: Mapping[str, Any]) -> CurvePicture:
    """Every sign of every number of clusters that was tried, from ``choice_of_k`` of a ``run.json``."""
    names = {"score": "sum of signs, which decides"} | {
        name: f"{name} (counts {weight:g})" for name, weight in choice["weights"].items()
    }
    names.setdefault("gap", "gap (not counted)")
    curves = []
    for name, title in names.items():
        points = [(each["k"], each[name]) for each in choice["candidates"] if each[name] is not None]
        if points:
            curves.append(Curve(title, *map(tuple, zip(*points, strict=True))))
    title = f"{choice['k']} clusters chosen, from {choice['lowest']} to {choice['highest']}"
    return CurvePicture(title, tuple(curves), ((str(choice["k"]), float(choice["k"])),), "clusters", spread=True)


def color_of(group: int) -> tuple[float, float, float]:
    """Hues a golden angle apart, in three lightnesses, as in the report; grey for -1, no group."""
    if group < 0:
        return NO_GROUP
    light = (0.46, 0.34, 0.58)[group % 3]
    return colorsys.hls_to_rgb((group * 137.508 + 215) % 360 / 360, light, 0.58 if group % 2 else 0.72)


def lines_of_marks(picture: CurvePicture, wide: Callable[[str], float]) -> list[int]:
    """In which line each mark's name stands: the first that is free. ``wide`` tells a name's part of the axis."""
    steps = [step for curve in picture.curves for step in (curve.x[0], curve.x[-1])]
    spread = max(max(steps) - min(steps), 1e-9)
    free: list[float] = []
    lines = []
    for name, step in picture.marks:
        begin = (step - min(steps)) / spread
        line = next((at for at, end in enumerate(free) if end <= begin), len(free))
        free[line : line + 1] = [begin + wide(name)]
        lines.append(line)
    return lines


def _maps(runs: Sequence[Shown], color: str, sample: int | None) -> MapPicture:
    """The same texts in every panel: those that all runs show."""
    common = set(runs[0].texts).intersection(*(run.texts for run in runs[1:]))
    texts = [text for text in runs[0].texts if text in common]
    if not texts:
        raise InputError("these runs have no text in common: their maps cannot be set side by side")
    if sample is not None and len(texts) > sample:
        drawn = np.random.default_rng(runs[0].seed).permutation(len(texts))[:sample]
        texts = [texts[place] for place in np.sort(drawn)]
    panels = []
    for run in runs:
        place = {text: at for at, text in enumerate(run.texts)}
        chosen = np.array([place[text] for text in texts])
        groups, names = _groups(run, chosen, color)
        told = tuple(text if len(text) <= HOVER_TEXT else text[:HOVER_TEXT] + "…" for text in texts)
        panels.append(Points(_title(run), run.places[chosen], groups, names, told))
    return MapPicture("Texts, near where alike", tuple(panels))


def _groups(run: Shown, chosen: NDArray[np.int64], color: str) -> tuple[NDArray[np.int64], tuple[str, ...]]:
    if color == "cluster":
        return run.clusters[chosen], tuple(run.names)
    if run.labels is None:
        raise SettingError("color='label' needs the true labels (--labels)")
    told = ["no label" if run.labels[row] is None else str(run.labels[row]) for row in run.rows[chosen]]
    names = tuple(sorted(set(told)))
    place = {name: at for at, name in enumerate(names)}
    return np.array([place[name] for name in told]), names


def _stages(run: Shown) -> MapPicture:
    if not run.stages:
        raise InputError(f"{run.run.folder} has no snapshots: fit with --snapshots 1 to keep every epoch")
    names = tuple(run.names)
    return MapPicture(
        "The same texts while it was trained",
        tuple(Points(panel.title, panel.places, panel.clusters, names) for panel in run.stages),
    )


def _curves(run: Shown) -> CurvePicture:
    if run.curves is None:
        raise InputError(f"{run.run.folder} is of a method that is not trained by steps: it has no curves")
    curves = tuple(
        Curve(name.replace("_", " "), *map(tuple, zip(*points, strict=True)))
        for name, points in run.curves["terms"].items()
    )
    stages = run.curves["stages"]
    marks = tuple((stage["name"], float(stage["step"])) for stage in stages) if len(stages) > 1 else ()
    return CurvePicture("Training", curves, marks)


def _sizes(run: Shown) -> BarPicture:
    labels = run.run.labels
    sizes = np.bincount(labels[labels >= 0], minlength=len(run.names))
    there = sorted((cluster for cluster, name in enumerate(run.names) if name), key=lambda k: -sizes[k])
    names, values = tuple(run.names[k] for k in there), tuple(float(sizes[k]) for k in there)
    return BarPicture("Sizes of the clusters", names, values, "texts", tuple(there))


def _confusion(run: Shown) -> TablePicture:
    if run.labels is None:
        raise SettingError("confusion needs the true labels (--labels)")
    table = truth_table(run.labels, run.run.labels)
    columns = tuple(run.names[cluster] for cluster in table["clusters"])
    return TablePicture("Labels against clusters", tuple(table["labels"]), columns, np.array(table["counts"]))


def _similarity(run: Shown) -> TablePicture:
    there = np.flatnonzero(np.isfinite(run.centers).all(axis=1))[:MOST_IN_TABLE]
    units = unit_rows(run.centers[there])
    names = tuple(run.names[cluster] for cluster in there)
    return TablePicture("Cosines between the clusters' means", names, names, np.round(units @ units.T, 3))


def _choice(run: Shown) -> CurvePicture:
    choice = run.run.about.get("choice_of_k")
    if choice is None:
        raise InputError(f"{run.run.folder} has no choice to show: its number of clusters was given, not -k auto")
    return choice_picture(choice)


def _title(run: Shown) -> str:
    about = run.run.about
    return f"{about['method']}, {sum(map(bool, run.names))} clusters"
