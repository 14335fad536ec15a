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
from coterie.report.plots.pictures import (
    BarPicture,
    CurvePicture,
    MapPicture,
    Picture,
    Points,
    TablePicture,
    color_of,
    lines_of_marks,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.transforms import Bbox

ENDINGS = (".png", ".svg", ".html")
# Groups that are named on a map, the largest.
MOST_NAMED = 40
# How many lines a name may move up or down to stand on no other.
MOST_LINES = 6
POINTS_AN_INCH = 72
# How much of a panel's height the name of a stage takes.
MARK_HEIGHT = 0.4
# A table with more cells shows colours alone.
MOST_WRITTEN_CELLS = 400


def check_ending(path: Path) -> None:
    """Refuse a form that cannot be drawn, before any work."""
    if path.suffix not in ENDINGS:
        raise SettingError(f"{path}: the ending must be one of {', '.join(ENDINGS)}")


def draw_picture(picture: Picture, path: Path) -> None:
    """Write ``picture``; the ending of ``path`` says in which form. The same picture gives the same bytes."""
    check_ending(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.suffix == ".html":
        from coterie.report.plots.plotly_plots import write_page

        write_page(picture, path)
        return
    matplotlib = require_extra("matplotlib", "plot")
    # Fonts without emoji or Chinese letters draw boxes; that is no reason for a warning a letter.
    import logging

    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    logging.getLogger("matplotlib.font_manager").setLevel(logging.ERROR)
    with matplotlib.rc_context({"svg.hashsalt": "coterie", "svg.fonttype": "none", "font.size": 9}):
        figure = Figure(layout="constrained")
        FigureCanvasAgg(figure)
        figure_of(picture, figure)
        figure.savefig(path, dpi=150, metadata={"Date": None} if path.suffix == ".svg" else None)


def figure_of(picture: Picture, figure: Figure) -> None:
    """Draw into an empty matplotlib figure."""
    if isinstance(picture, MapPicture):
        _draw_maps(picture, figure)
    elif isinstance(picture, CurvePicture):
        _draw_curves(picture, figure)
    elif isinstance(picture, BarPicture):
        _draw_bars(picture, figure)
    else:
        _draw_table(picture, figure)
    # What stands in a text is not to be read as mathematics.
    figure.suptitle(_plain(picture.title), fontsize=11)


def _draw_maps(picture: MapPicture, figure: Figure) -> None:
    columns = min(3, len(picture.panels))
    lines = math.ceil(len(picture.panels) / columns)
    side = 7.0 if len(picture.panels) == 1 else 4.2
    figure.set_size_inches(side * columns, side * lines + 0.4)
    grid = figure.subplots(lines, columns, squeeze=False)
    for axes in grid.flat:
        axes.axis("off")
    for axes, panel in zip(grid.flat, picture.panels, strict=False):
        axes.set_title(_plain(panel.title), fontsize=9)
        axes.set_aspect("equal")
        # The last one is for -1.
        colors = np.array([color_of(group) for group in [*range(len(panel.names)), -1]])
        size = float(np.clip(9_000 / max(1, len(panel.places)), 1.5, 14))
        axes.scatter(*panel.places.T, c=colors[panel.groups], s=size, linewidths=0)
        if len(picture.panels) == 1:
            _name_groups(figure, axes, panel)


def _name_groups(figure: Figure, axes: Axes, panel: Points) -> None:
    """The names in the middle of their groups, the largest first; one that would stand on another moves up or down."""
    from matplotlib.patheffects import withStroke

    names = [
        axes.annotate(
            _plain(panel.names[group]),
            middle,
            xytext=(0, 0),
            textcoords="offset points",
            ha="center",
            va="center",
            fontsize=7,
            weight="bold",
            path_effects=[withStroke(linewidth=2.5, foreground="white")],
        )
        for group, middle in _middles(panel)
    ]
    figure.draw_without_rendering()  # where they stand is known once the page is laid out
    taken: list[Bbox] = []
    for name in names:
        box = name.get_window_extent()
        ways = [0, *(side * line for line in range(1, MOST_LINES) for side in (1, -1))]
        places = [box.translated(0, way * box.height) for way in ways]
        way, place = next(
            (each for each in zip(ways, places, strict=True) if not any(each[1].overlaps(other) for other in taken)),
            (0, box),
        )
        name.xyann = (0, way * box.height * POINTS_AN_INCH / figure.dpi)
        taken.append(place)


def _middles(panel: Points) -> list[tuple[int, tuple[float, float]]]:
    """The largest groups, and the middle of each."""
    sizes = np.bincount(panel.groups[panel.groups >= 0], minlength=len(panel.names))
    largest = [int(group) for group in np.argsort(-sizes, kind="stable")[:MOST_NAMED] if sizes[group]]
    found = []
    for group in largest:
        x, y = np.median(panel.places[panel.groups == group], axis=0)
        found.append((group, (float(x), float(y))))
    return found


def _draw_curves(picture: CurvePicture, figure: Figure) -> None:
    columns = min(3, len(picture.curves))
    lines = math.ceil(len(picture.curves) / columns)
    figure.set_size_inches(3.2 * columns, 2.4 * lines + 0.4)
    grid = figure.subplots(lines, columns, squeeze=False)
    for axes in list(grid.flat)[len(picture.curves) :]:
        axes.axis("off")
    for axes, curve in zip(grid.flat, picture.curves, strict=False):
        axes.plot(curve.x, curve.y, color=color_of(0), linewidth=1.2, marker="." if picture.spread else None)
        axes.set_title(_plain(curve.title), fontsize=9)
        axes.set_xlabel(_plain(picture.axis))
        if picture.spread:
            _spread_axis(axes, curve.x)
        axes.spines[["top", "right"]].set_visible(False)
        # Turned, a name takes little of the axis; one that would stand on another stands below it.
        marks = zip(picture.marks, lines_of_marks(picture, lambda _: 0.06), strict=True)
        for (name, step), line in marks:
            axes.axvline(step, color="#999999", linestyle=":", linewidth=0.8)
            turned = {"fontsize": 8} if picture.spread else {"fontsize": 6, "rotation": 90}
            top = 1 - MARK_HEIGHT * line
            axes.annotate(_plain(name), (step, top), xycoords=("data", "axes fraction"), va="top", **turned)


def _spread_axis(axes: Axes, numbers: Sequence[float]) -> None:
    """Logarithmic, with plain whole numbers at a few places."""
    axes.set_xscale("log")
    round_numbers = (2.0, 5.0, 10.0, 20.0, 50.0, 100.0, 200.0, 500.0, 1000.0, 2000.0)
    shown = [number for number in round_numbers if numbers[0] <= number <= numbers[-1]] or [numbers[0], numbers[-1]]
    axes.set_xticks(shown, [f"{number:g}" for number in shown])
    axes.set_xticks([], minor=True)


def _draw_bars(picture: BarPicture, figure: Figure) -> None:
    figure.set_size_inches(6.4, 0.8 + 0.22 * len(picture.names))
    axes = figure.subplots()
    places = np.arange(len(picture.names))[::-1]
    bars = axes.barh(places, picture.values, color=[color_of(group) for group in picture.groups])
    axes.set_yticks(places, [_plain(name) for name in picture.names], fontsize=7)
    axes.bar_label(bars, fmt="%d", padding=2, fontsize=7)
    axes.set_xlabel(picture.axis)
    axes.spines[["top", "right"]].set_visible(False)
    axes.margins(y=0.01)


def _draw_table(picture: TablePicture, figure: Figure) -> None:
    height, width = picture.values.shape
    figure.set_size_inches(2.4 + 0.3 * width, 2.0 + 0.26 * height)
    axes = figure.subplots()
    axes.imshow(picture.values, cmap="Blues", aspect="auto")
    axes.set_xticks(range(width), [_plain(name) for name in picture.columns], rotation=90, fontsize=7)
    axes.set_yticks(range(height), [_plain(name) for name in picture.rows], fontsize=7)
    if picture.values.size > MOST_WRITTEN_CELLS:
        return
    dark = picture.values > (picture.values.max() + picture.values.min()) / 2
    for (row, column), value in np.ndenumerate(picture.values):
        if value:
            color = "white" if dark[row, column] else "black"
            axes.text(column, row, _number(value), ha="center", va="center", fontsize=6, color=color)


def _number(value: Any) -> str:
    return f"{value:,}" if isinstance(value, np.integer) else f"{value:.2f}"


def _plain(text: str) -> str:
    return text.replace("$", r"\$")
