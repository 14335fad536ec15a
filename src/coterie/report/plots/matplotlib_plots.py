"""Write plots as PNG or SVG with matplotlib (extra ``plot``).

HTML is written by :mod:`coterie.report.plots.plotly_plots`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from coterie.errors import SettingError, require_extra
from coterie.report.plots.plot_data import (
    BarPlot,
    CurvePlot,
    MapPlot,
    MapPoints,
    Plot,
    TablePlot,
    color_of,
    mark_lines,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.transforms import Bbox

ENDINGS = (".png", ".svg", ".html")
# Clusters that are named on a map, the largest first; more names than this hide the points.
MAX_NAMES = 40
# Lines of text that a name may move up or down to avoid another name.
MAX_LINES = 6
# What matplotlib measures offsets in.
POINTS_PER_INCH = 72
# Share of a panel's height that the turned name of a training stage takes.
MARK_HEIGHT = 0.4
# Share of a panel's width that it takes.
MARK_WIDTH = 0.06
# Cells of a table in which the values are written; in a larger table they would be too small to read.
MAX_WRITTEN_CELLS = 400


def check_ending(path: Path) -> None:
    """Raise for a file ending that no plot can be written as, before any work."""
    if path.suffix not in ENDINGS:
        raise SettingError(f"{path}: the ending must be one of {', '.join(ENDINGS)}")


def write_plot(plot: Plot, path: Path) -> None:
    """Write ``plot`` in the format that the ending of ``path`` names. The same plot gives the same bytes."""
    check_ending(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.suffix == ".html":
        from coterie.report.plots.plotly_plots import write_html

        write_html(plot, path)
        return
    matplotlib = require_extra("matplotlib", "plot")
    import logging

    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    # Fonts without emoji or Chinese letters show boxes; one warning per letter would help nobody.
    logging.getLogger("matplotlib.font_manager").setLevel(logging.ERROR)
    with matplotlib.rc_context({"svg.hashsalt": "coterie", "svg.fonttype": "none", "font.size": 9}):
        figure = Figure(layout="constrained")
        FigureCanvasAgg(figure)
        fill_figure(plot, figure)
        figure.savefig(path, dpi=150, metadata={"Date": None} if path.suffix == ".svg" else None)


def fill_figure(plot: Plot, figure: Figure) -> None:
    """Add ``plot`` to an empty matplotlib figure."""
    if isinstance(plot, MapPlot):
        _plot_maps(plot, figure)
    elif isinstance(plot, CurvePlot):
        _plot_curves(plot, figure)
    elif isinstance(plot, BarPlot):
        _plot_bars(plot, figure)
    else:
        _plot_table(plot, figure)
    figure.suptitle(_without_math(plot.title), fontsize=11)


def _plot_maps(plot: MapPlot, figure: Figure) -> None:
    columns = min(3, len(plot.panels))
    lines = math.ceil(len(plot.panels) / columns)
    side = 7.0 if len(plot.panels) == 1 else 4.2
    figure.set_size_inches(side * columns, side * lines + 0.4)
    grid = figure.subplots(lines, columns, squeeze=False)
    for axes in grid.flat:
        axes.axis("off")
    for axes, panel in zip(grid.flat, plot.panels, strict=False):
        axes.set_title(_without_math(panel.title), fontsize=9)
        axes.set_aspect("equal")
        # The last colour is for -1.
        colors = np.array([color_of(category) for category in [*range(len(panel.names)), -1]])
        size = float(np.clip(9_000 / max(1, len(panel.coordinates)), 1.5, 14))
        axes.scatter(*panel.coordinates.T, c=colors[panel.categories], s=size, linewidths=0)
        if len(plot.panels) == 1:
            _add_names(figure, axes, panel)


def _add_names(figure: Figure, axes: Axes, panel: MapPoints) -> None:
    """Write each name at the median of its points, the largest first; a name moves up or down to avoid another."""
    from matplotlib.patheffects import withStroke

    names = [
        axes.annotate(
            _without_math(panel.names[category]),
            median,
            xytext=(0, 0),
            textcoords="offset points",
            ha="center",
            va="center",
            fontsize=7,
            weight="bold",
            path_effects=[withStroke(linewidth=2.5, foreground="white")],
        )
        for category, median in _medians(panel)
    ]
    figure.draw_without_rendering()  # only a finished layout gives the extents
    taken: list[Bbox] = []
    for name in names:
        box = name.get_window_extent()
        offsets = [0, *(side * line for line in range(1, MAX_LINES) for side in (1, -1))]
        boxes = [box.translated(0, offset * box.height) for offset in offsets]
        offset, chosen = next(
            (each for each in zip(offsets, boxes, strict=True) if not any(each[1].overlaps(other) for other in taken)),
            (0, box),
        )
        name.xyann = (0, offset * box.height * POINTS_PER_INCH / figure.dpi)
        taken.append(chosen)


def _medians(panel: MapPoints) -> list[tuple[int, tuple[float, float]]]:
    """Return the largest categories, each with the median of its points."""
    sizes = np.bincount(panel.categories[panel.categories >= 0], minlength=len(panel.names))
    largest = [int(category) for category in np.argsort(-sizes, kind="stable")[:MAX_NAMES] if sizes[category]]
    found = []
    for category in largest:
        x, y = np.median(panel.coordinates[panel.categories == category], axis=0)
        found.append((category, (float(x), float(y))))
    return found


def _plot_curves(plot: CurvePlot, figure: Figure) -> None:
    columns = min(3, len(plot.curves))
    lines = math.ceil(len(plot.curves) / columns)
    figure.set_size_inches(3.2 * columns, 2.4 * lines + 0.4)
    grid = figure.subplots(lines, columns, squeeze=False)
    for axes in list(grid.flat)[len(plot.curves) :]:
        axes.axis("off")
    for axes, curve in zip(grid.flat, plot.curves, strict=False):
        axes.plot(curve.x, curve.y, color=color_of(0), linewidth=1.2, marker="." if plot.logarithmic else None)
        axes.set_title(_without_math(curve.title), fontsize=9)
        axes.set_xlabel(_without_math(plot.axis))
        if plot.logarithmic:
            _set_logarithmic(axes, curve.x)
        axes.spines[["top", "right"]].set_visible(False)
        # A turned name takes little of the axis; names that would overlap go to separate lines.
        marks = zip(plot.marks, mark_lines(plot, lambda _: MARK_WIDTH), strict=True)
        for (name, x), line in marks:
            axes.axvline(x, color="#999999", linestyle=":", linewidth=0.8)
            turned = {"fontsize": 8} if plot.logarithmic else {"fontsize": 6, "rotation": 90}
            top = 1 - MARK_HEIGHT * line
            axes.annotate(_without_math(name), (x, top), xycoords=("data", "axes fraction"), va="top", **turned)


def _set_logarithmic(axes: Axes, numbers: Sequence[float]) -> None:
    """Make the x axis logarithmic, with plain whole numbers at a few ticks."""
    axes.set_xscale("log")
    round_numbers = (2.0, 5.0, 10.0, 20.0, 50.0, 100.0, 200.0, 500.0, 1000.0, 2000.0)
    ticks = [number for number in round_numbers if numbers[0] <= number <= numbers[-1]] or [numbers[0], numbers[-1]]
    axes.set_xticks(ticks, [f"{number:g}" for number in ticks])
    axes.set_xticks([], minor=True)


def _plot_bars(plot: BarPlot, figure: Figure) -> None:
    figure.set_size_inches(6.4, 0.8 + 0.22 * len(plot.names))
    axes = figure.subplots()
    places = np.arange(len(plot.names))[::-1]
    bars = axes.barh(places, plot.values, color=[color_of(category) for category in plot.categories])
    axes.set_yticks(places, [_without_math(name) for name in plot.names], fontsize=7)
    axes.bar_label(bars, fmt="%d", padding=2, fontsize=7)
    axes.set_xlabel(plot.axis)
    axes.spines[["top", "right"]].set_visible(False)
    axes.margins(y=0.01)


def _plot_table(plot: TablePlot, figure: Figure) -> None:
    height, width = plot.values.shape
    figure.set_size_inches(2.4 + 0.3 * width, 2.0 + 0.26 * height)
    axes = figure.subplots()
    axes.imshow(plot.values, cmap="Blues", aspect="auto")
    axes.set_xticks(range(width), [_without_math(name) for name in plot.columns], rotation=90, fontsize=7)
    axes.set_yticks(range(height), [_without_math(name) for name in plot.rows], fontsize=7)
    if plot.values.size > MAX_WRITTEN_CELLS:
        return
    dark = plot.values > (plot.values.max() + plot.values.min()) / 2
    for (row, column), value in np.ndenumerate(plot.values):
        if value:
            color = "white" if dark[row, column] else "black"
            axes.text(column, row, _number(value), ha="center", va="center", fontsize=6, color=color)


def _number(value: Any) -> str:
    return f"{value:,}" if isinstance(value, np.integer) else f"{value:.2f}"


def _without_math(text: str) -> str:
    """Escape the dollar, which matplotlib would read as mathematics."""
    return text.replace("$", r"\$")
