"""Write plots as HTML with Plotly (extra ``plotly``): one file that opens without a network."""

from __future__ import annotations

import html
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from coterie.errors import require_extra
from coterie.files import atomic_file
from coterie.report.plots.plot_data import (
    BarPlot,
    Curve,
    CurvePlot,
    MapPlot,
    MapPoints,
    Plot,
    color_of,
    mark_lines,
)

# Share of a panel's width that a letter of a mark's name takes, about.
LETTER_WIDTH = 0.01
# Pixels from one line of names to the next.
LINE_HEIGHT = 14


def write_html(plot: Plot, path: Path) -> None:
    """Write ``plot`` with the Plotly library itself into one HTML file."""
    require_extra("plotly", "plotly")
    figure = plotly_figure(plot)
    figure.update_layout(title=_escaped(plot.title), template="plotly_white")
    page = figure.to_html(include_plotlyjs=True, full_html=True, div_id="plot")
    with atomic_file(path) as stream:
        stream.write(page)


def plotly_figure(plot: Plot) -> Any:
    """Return ``plot`` as a Plotly figure."""
    from plotly import graph_objects
    from plotly.subplots import make_subplots

    if isinstance(plot, MapPlot):
        titles = [_escaped(panel.title) for panel in plot.panels]
        figure = make_subplots(1, len(titles), subplot_titles=titles)
        for column, panel in enumerate(plot.panels, start=1):
            for category, name in [*enumerate(panel.names), (-1, "no cluster")]:
                rows = np.flatnonzero(panel.categories == category)
                if len(rows):
                    trace = _point_trace(graph_objects, panel, rows, category, name, column == 1)
                    figure.add_trace(trace, row=1, col=column)
        figure.update_xaxes(visible=False)
        figure.update_yaxes(visible=False)
        for column in range(1, len(titles) + 1):
            figure.update_yaxes(scaleanchor="x" if column == 1 else f"x{column}", row=1, col=column)
    elif isinstance(plot, CurvePlot):
        figure = make_subplots(len(plot.curves), 1, subplot_titles=[_escaped(curve.title) for curve in plot.curves])
        for line, curve in enumerate(plot.curves, start=1):
            mode = "lines+markers" if plot.logarithmic else None
            figure.add_trace(graph_objects.Scatter(x=curve.x, y=curve.y, mode=mode, showlegend=False), row=line, col=1)
            # On a logarithmic axis Plotly misplaces the name of a vertical line, so the point itself is marked.
            for name, x in plot.marks if plot.logarithmic else ():
                if x in curve.x:
                    figure.add_trace(_mark_trace(graph_objects, name, x, curve), row=line, col=1)
        if not plot.logarithmic:
            lines = mark_lines(plot, lambda name: LETTER_WIDTH * len(name))
            for (name, x), line in zip(plot.marks, lines, strict=True):
                below = -LINE_HEIGHT * line
                figure.add_vline(x=x, line_dash="dot", annotation_text=_escaped(name), annotation_yshift=below)
        if plot.logarithmic:
            figure.update_xaxes(type="log", title=_escaped(plot.axis))
        figure.update_layout(height=260 * len(plot.curves))
    elif isinstance(plot, BarPlot):
        names = [_escaped(name) for name in plot.names]
        figure = graph_objects.Figure(graph_objects.Bar(x=plot.values, y=names, orientation="h"))
        figure.update_yaxes(autorange="reversed")
        figure.update_xaxes(title=plot.axis)
    else:
        figure = graph_objects.Figure(
            graph_objects.Heatmap(
                z=plot.values.tolist(), x=_unique_names(plot.columns), y=_unique_names(plot.rows), colorscale="Blues"
            )
        )
        figure.update_yaxes(autorange="reversed")
    return figure


def _mark_trace(graph_objects: Any, name: str, x: float, curve: Curve) -> Any:
    return graph_objects.Scatter(
        x=[x],
        y=[curve.y[curve.x.index(x)]],
        mode="markers+text",
        text=[_escaped(name)],
        textposition="top center",
        marker={"size": 11},
        showlegend=False,
    )


def _point_trace(
    graph_objects: Any, panel: MapPoints, rows: NDArray[np.int64], category: int, name: str, in_legend: bool
) -> Any:
    red, green, blue = (round(255 * each) for each in color_of(category))
    return graph_objects.Scattergl(
        x=panel.coordinates[rows, 0],
        y=panel.coordinates[rows, 1],
        mode="markers",
        name=_escaped(name),
        legendgroup=str(category),
        showlegend=in_legend,
        marker={"size": 4, "color": f"rgb({red},{green},{blue})"},
        text=[_escaped(panel.hover_texts[row]) for row in rows] if panel.hover_texts else None,
        hoverinfo="text+name" if panel.hover_texts else "name",
    )


def _escaped(text: str) -> str:
    """Escape HTML: Plotly interprets some of it in texts."""
    return html.escape(text)


def _unique_names(names: Sequence[str]) -> list[str]:
    """Escape the names and make repeated ones distinct: Plotly would merge rows of one name."""
    counts: dict[str, int] = {}
    unique = []
    for name in names:
        counts[name] = counts.get(name, 0) + 1
        # A zero-width space is invisible.
        unique.append(_escaped(name) + "\u200b" * (counts[name] - 1))
    return unique
