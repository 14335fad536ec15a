"""The data of a plot, independent of the library that renders it: maps, curves, bars and tables.

:func:`build_plot` makes them from a run. :mod:`coterie.report.plots.matplotlib_plots` writes them as PNG, SVG or HTML.
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
from coterie.report.label_comparison import confusion_table
from coterie.report.report_model import ReportModel

Subject: TypeAlias = Literal["map", "curves", "sizes", "confusion", "stages", "similarity", "k"]
SUBJECTS: tuple[str, ...] = get_args(Subject)
COLORS_BY = ("cluster", "label")

# Characters of a text in the tooltip of its point; more would cover the map.
HOVER_CHARACTERS = 200
# Red, green and blue of points that are in no cluster: a grey that stands out from light and dark paper alike.
NO_CLUSTER_COLOR = (0.53, 0.53, 0.53)
# Clusters in the similarity table; with more, the cells are too small to read.
MAX_SIMILARITY_CLUSTERS = 60


@dataclass(frozen=True)
class MapPoints:
    """The points of one map.

    Attributes
    ----------
    title:
        What the map shows.
    coordinates:
        Shape (n_points, 2).
    categories:
        What each point is coloured by: the number of its cluster or label, -1 for no cluster.
    names:
        The name of each category.
    hover_texts:
        The text in the tooltip of each point; empty where there are no tooltips.
    """

    title: str
    coordinates: NDArray[np.floating[Any]]
    categories: NDArray[np.int64]
    names: tuple[str, ...]
    hover_texts: tuple[str, ...] = ()


@dataclass(frozen=True)
class MapPlot:
    """Maps side by side."""

    title: str
    panels: tuple[MapPoints, ...]


@dataclass(frozen=True)
class Curve:
    """A line through the points (x, y)."""

    title: str
    x: tuple[float, ...]
    y: tuple[float, ...]


@dataclass(frozen=True)
class CurvePlot:
    """Curves, one per panel.

    Attributes
    ----------
    title, curves:
        The title of the plot, and its curves.
    marks:
        Names of positions on the x axis, such as the beginning of a training stage.
    axis:
        The label of the x axis.
    logarithmic:
        Few points on a logarithmic axis: every point has a marker, and each mark is at one of them.
    """

    title: str
    curves: tuple[Curve, ...]
    marks: tuple[tuple[str, float], ...]
    axis: str = "step"
    logarithmic: bool = False


@dataclass(frozen=True)
class BarPlot:
    """One bar per name, the first on top; ``categories`` give their colours."""

    title: str
    names: tuple[str, ...]
    values: tuple[float, ...]
    axis: str
    categories: tuple[int, ...]


@dataclass(frozen=True)
class TablePlot:
    """A table of numbers in which the colour of a cell shows its value."""

    title: str
    rows: tuple[str, ...]
    columns: tuple[str, ...]
    values: NDArray[np.floating[Any] | np.integer[Any]]


Plot: TypeAlias = MapPlot | CurvePlot | BarPlot | TablePlot


def build_plot(
    reports: Sequence[ReportModel], subject: str, *, color: str = "cluster", sample: int | None = None
) -> Plot:
    """Return the plot of ``subject`` for one run; for several runs, their maps of the same texts side by side.

    Parameters
    ----------
    reports:
        One per run.
    subject:
        ``map``, ``curves`` (every loss term), ``sizes`` (of the clusters), ``confusion`` (true labels against
        clusters), ``stages`` (maps of the snapshots), ``similarity`` (cosines between the clusters' means) or ``k``
        (the criteria behind the number of clusters, after ``-k auto``).
    color:
        What a map is coloured by: ``cluster``, or the true ``label``, which must have been given.
    sample:
        The largest number of texts on a map.
    """
    if subject not in SUBJECTS:
        raise SettingError(f"there is no plot {subject!r}; use one of {', '.join(SUBJECTS)}")
    if color not in COLORS_BY:
        raise SettingError(f"color={color!r}: use 'cluster' or 'label'")
    if not reports:
        raise InputError("there is no run to plot: give at least one")
    if subject == "map":
        return _build_maps(reports, color, sample)
    if len(reports) > 1:
        raise SettingError(f"{subject} is a plot of one run, but {len(reports)} were given; only maps go side by side")
    builders: dict[str, Callable[[ReportModel], Plot]] = {
        "curves": _build_loss_curves,
        "sizes": _build_sizes,
        "confusion": _build_confusion,
        "stages": _build_stages,
        "similarity": _build_similarity,
        "k": _build_cluster_count,
    }
    return builders[subject](reports[0])


def build_cluster_count_plot(choice: Mapping[str, Any]) -> CurvePlot:
    """Return every criterion over the numbers of clusters that were tried; ``choice_of_k`` of a ``run.json``."""
    weights = choice["weights"]
    titles = {"score": "score (decides)"}
    for name in ("information", "neighbours", "words", "silhouette", "stability", "gap"):
        titles[name] = f"{name} (weight {weights[name]:g})" if name in weights else f"{name} (not used)"
    curves = []
    for name, title in titles.items():
        # Runs of earlier versions have no information.
        points = [(each["k"], each[name]) for each in choice["candidates"] if each.get(name) is not None]
        if points:
            curves.append(Curve(title, *map(tuple, zip(*points, strict=True))))
    title = f"{choice['k']} clusters chosen, from {choice['lowest']} to {choice['highest']}"
    return CurvePlot(title, tuple(curves), ((str(choice["k"]), float(choice["k"])),), "clusters", logarithmic=True)


def color_of(category: int) -> tuple[float, float, float]:
    """Return red, green and blue: hues a golden angle apart in three lightnesses, as in the report; grey for -1."""
    if category < 0:
        return NO_CLUSTER_COLOR
    light = (0.46, 0.34, 0.58)[category % 3]
    return colorsys.hls_to_rgb((category * 137.508 + 215) % 360 / 360, light, 0.58 if category % 2 else 0.72)


def mark_lines(plot: CurvePlot, name_width: Callable[[str], float]) -> list[int]:
    """Return the line that each mark's name is written in: the first with room for it.

    ``name_width`` returns the share of the axis that a name covers.
    """
    ends_of_curves = [x for curve in plot.curves for x in (curve.x[0], curve.x[-1])]
    length = max(max(ends_of_curves) - min(ends_of_curves), 1e-9)
    line_ends: list[float] = []
    lines = []
    for name, x in plot.marks:
        begin = (x - min(ends_of_curves)) / length
        line = next((number for number, end in enumerate(line_ends) if end <= begin), len(line_ends))
        line_ends[line : line + 1] = [begin + name_width(name)]
        lines.append(line)
    return lines


def _build_maps(reports: Sequence[ReportModel], color: str, sample: int | None) -> MapPlot:
    """Every panel shows the same texts: those that all runs have on their map."""
    common = set(reports[0].texts).intersection(*(report.texts for report in reports[1:]))
    texts = [text for text in reports[0].texts if text in common]
    if not texts:
        raise InputError("these runs have no text in common: only maps of the same texts can be compared side by side")
    if sample is not None and len(texts) > sample:
        chosen = np.random.default_rng(reports[0].seed).permutation(len(texts))[:sample]
        texts = [texts[i] for i in np.sort(chosen)]
    hover_texts = tuple(text if len(text) <= HOVER_CHARACTERS else text[:HOVER_CHARACTERS] + "…" for text in texts)
    panels = []
    for report in reports:
        index = {text: i for i, text in enumerate(report.texts)}
        points = np.array([index[text] for text in texts])
        categories, names = _categories(report, points, color)
        panels.append(MapPoints(_run_title(report), report.coordinates[points], categories, names, hover_texts))
    return MapPlot("Map of the texts: similar texts are close", tuple(panels))


def _categories(
    report: ReportModel, points: NDArray[np.int64], color: str
) -> tuple[NDArray[np.int64], tuple[str, ...]]:
    """Return the category of each point, and the names of the categories."""
    if color == "cluster":
        return report.clusters[points], tuple(report.names)
    if report.labels is None:
        raise SettingError("color='label' needs the true labels (--labels)")
    labels = report.labels
    written = ["no label" if labels[row] is None else str(labels[row]) for row in report.rows[points]]
    names = tuple(sorted(set(written)))
    number = {name: i for i, name in enumerate(names)}
    return np.array([number[name] for name in written]), names


def _build_stages(report: ReportModel) -> MapPlot:
    if not report.snapshot_panels:
        raise InputError(f"{report.run.folder} has no snapshots: fit with --snapshots 1 to keep one per epoch")
    names = tuple(report.names)
    return MapPlot(
        "The same texts during training",
        tuple(MapPoints(panel.title, panel.coordinates, panel.clusters, names) for panel in report.snapshot_panels),
    )


def _build_loss_curves(report: ReportModel) -> CurvePlot:
    if report.loss_curves is None:
        raise InputError(f"{report.run.folder} has no curves: its method is not trained step by step")
    curves = tuple(
        Curve(name.replace("_", " "), *map(tuple, zip(*points, strict=True)))
        for name, points in report.loss_curves["terms"].items()
    )
    stages = report.loss_curves["stages"]
    marks = tuple((stage["name"], float(stage["step"])) for stage in stages) if len(stages) > 1 else ()
    return CurvePlot("Training losses", curves, marks)


def _build_sizes(report: ReportModel) -> BarPlot:
    labels = report.run.labels
    sizes = np.bincount(labels[labels >= 0], minlength=len(report.names))
    # Clusters that were merged away have no name.
    present = sorted((cluster for cluster, name in enumerate(report.names) if name), key=lambda k: -sizes[k])
    names, values = tuple(report.names[k] for k in present), tuple(float(sizes[k]) for k in present)
    return BarPlot("Sizes of the clusters", names, values, "texts", tuple(present))


def _build_confusion(report: ReportModel) -> TablePlot:
    if report.labels is None:
        raise SettingError("confusion needs the true labels (--labels)")
    table = confusion_table(report.labels, report.run.labels)
    columns = tuple(report.names[cluster] for cluster in table["clusters"])
    return TablePlot("Labels against clusters", tuple(table["labels"]), columns, np.array(table["counts"]))


def _build_similarity(report: ReportModel) -> TablePlot:
    present = np.flatnonzero(np.isfinite(report.centers).all(axis=1))[:MAX_SIMILARITY_CLUSTERS]
    units = unit_rows(report.centers[present])
    names = tuple(report.names[cluster] for cluster in present)
    return TablePlot("Cosines between the clusters' means", names, names, np.round(units @ units.T, 3))


def _build_cluster_count(report: ReportModel) -> CurvePlot:
    choice = report.run.about.get("choice_of_k")
    if choice is None:
        raise InputError(f"{report.run.folder}: its number of clusters was given; only -k auto compares several")
    return build_cluster_count_plot(choice)


def _run_title(report: ReportModel) -> str:
    return f"{report.run.about['method']}, {sum(map(bool, report.names))} clusters"
