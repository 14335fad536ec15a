"""Pictures as HTML by Plotly (extra ``plotly``): one file that opens without a network."""

from __future__ import annotations

import html
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from coterie.errors import require_extra
from coterie.files import whole_file
from coterie.report.plots.pictures import (
    BarPicture,
    Curve,
    CurvePicture,
    MapPicture,
    Picture,
    Points,
    color_of,
    lines_of_marks,
)

# Of the name of a stage: a letter as a part of a panel's width, about, and a line in pixels.
LETTER_WIDTH, LINE_HEIGHT = 0.01, 14


def write_page(picture: Picture, path: Path) -> None:
    """The library itself stands in the file."""
    require_extra("plotly", "plotly")
    figure = plotly_figure(picture)
    figure.update_layout(title=_escaped(picture.title), template="plotly_white")
    page = figure.to_html(include_plotlyjs=True, full_html=True, div_id="picture")
    with whole_file(path) as stream:
        stream.write(page)


def plotly_figure(picture: Picture) -> Any:
    """A figure of Plotly's."""
    from plotly import graph_objects
    from plotly.subplots import make_subplots

    if isinstance(picture, MapPicture):
        titles = [_escaped(panel.title) for panel in picture.panels]
        figure = make_subplots(1, len(titles), subplot_titles=titles)
        for column, panel in enumerate(picture.panels, start=1):
            for group, name in [*enumerate(panel.names), (-1, "in no group")]:
                rows = np.flatnonzero(panel.groups == group)
                if len(rows):
                    trace = _point_trace(graph_objects, panel, rows, group, name, column == 1)
                    figure.add_trace(trace, row=1, col=column)
        figure.update_xaxes(visible=False)
        figure.update_yaxes(visible=False)
        for column in range(1, len(titles) + 1):
            figure.update_yaxes(scaleanchor="x" if column == 1 else f"x{column}", row=1, col=column)
    elif isinstance(picture, CurvePicture):
        figure = make_subplots(
            len(picture.curves), 1, subplot_titles=[_escaped(curve.title) for curve in picture.curves]
        )
        for line, curve in enumerate(picture.curves, start=1):
            mode = "lines+markers" if picture.spread else None
            figure.add_trace(graph_objects.Scatter(x=curve.x, y=curve.y, mode=mode, showlegend=False), row=line, col=1)
            # On a logarithmic axis Plotly puts the name of a line elsewhere: the point itself is marked.
            for name, step in picture.marks if picture.spread else ():
                if step in curve.x:
                    figure.add_trace(_mark_trace(graph_objects, name, step, curve), row=line, col=1)
        if not picture.spread:
            lines = lines_of_marks(picture, lambda name: LETTER_WIDTH * len(name))
            for (name, step), line in zip(picture.marks, lines, strict=True):
                below = -LINE_HEIGHT * line
                figure.add_vline(x=step, line_dash="dot", annotation_text=_escaped(name), annotation_yshift=below)
        if picture.spread:
            figure.update_xaxes(type="log", title=_escaped(picture.axis))
        figure.update_layout(height=260 * len(picture.curves))
    elif isinstance(picture, BarPicture):
        names = [_escaped(name) for name in picture.names]
        figure = graph_objects.Figure(graph_objects.Bar(x=picture.values, y=names, orientation="h"))
        figure.update_yaxes(autorange="reversed")
        figure.update_xaxes(title=picture.axis)
    else:
        figure = graph_objects.Figure(
            graph_objects.Heatmap(
                z=picture.values.tolist(), x=_apart(picture.columns), y=_apart(picture.rows), colorscale="Blues"
            )
        )
        figure.update_yaxes(autorange="reversed")
    return figure


def _mark_trace(graph_objects: Any, name: str, step: float, curve: Curve) -> Any:
    return graph_objects.Scatter(
        x=[step],
        y=[curve.y[curve.x.index(step)]],
        mode="markers+text",
        text=[_escaped(name)],
        textposition="top center",
        marker={"size": 11},
        showlegend=False,
    )


def _point_trace(
    graph_objects: Any, panel: Points, rows: NDArray[np.int64], group: int, name: str, in_legend: bool
) -> Any:
    red, green, blue = (round(255 * each) for each in color_of(group))
    return graph_objects.Scattergl(
        x=panel.places[rows, 0],
        y=panel.places[rows, 1],
        mode="markers",
        name=_escaped(name),
        legendgroup=str(group),
        showlegend=in_legend,
        marker={"size": 4, "color": f"rgb({red},{green},{blue})"},
        text=[_escaped(panel.told[row]) for row in rows] if panel.told else None,
        hoverinfo="text+name" if panel.told else "name",
    )


def _escaped(text: str) -> str:
    """Plotly reads some HTML in texts."""
    return html.escape(text)


def _apart(names: Sequence[str]) -> list[str]:
    """Plotly takes two rows of one name for one."""
    seen: dict[str, int] = {}
    told = []
    for name in names:
        seen[name] = seen.get(name, 0) + 1
        told.append(_escaped(name) + "\u200b" * (seen[name] - 1))
    return told
