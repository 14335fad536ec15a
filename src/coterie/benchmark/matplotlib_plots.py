"""The kinds of plots that figures consist of, by matplotlib (``pip install 'coterie[plot]'``)."""

from __future__ import annotations

import itertools
import math
import statistics
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from coterie.benchmark.sets import find_set
from coterie.benchmark.specs import MEASURE_TITLES
from coterie.errors import InputError

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from coterie.benchmark.figures import FigureData

# Distinguishable with colour blindness; in print, the markers distinguish them.
COLORS = ("#4477aa", "#ee6677", "#228833", "#ccbb44", "#66ccee", "#aa3377", "#bbbbbb", "#222222")
MARKERS = "osD^vP*X"
# The data set whose runs are timed.
COST_SET = "stackoverflow"


def bars(data: FigureData, figure: Figure, measure: str | Sequence[str] = "accuracy", answer: str = "final") -> None:
    """Plot a panel per measure, with a bar per data set and row and its standard deviation over seeds."""
    measures = (measure,) if isinstance(measure, str) else measure
    figure.set_size_inches(1.2 + 1.2 * len(data.sets), 1.0 + 2.4 * len(measures))
    panels = figure.subplots(len(measures), squeeze=False, sharex=True)[:, 0]
    for axes, each in zip(panels, measures, strict=True):
        _bars_of(data, axes, each, answer)
    names = [find_set(name).title for name in data.sets]
    panels[-1].set_xticks(range(len(data.sets)), names, rotation=20, ha="right")
    panels[0].legend(
        frameon=False, fontsize=8, ncols=min(4, len(data.rows)), loc="lower center", bbox_to_anchor=(0.5, 1.0)
    )


def _bars_of(data: FigureData, axes: Axes, measure: str, answer: str) -> None:
    width = 0.8 / len(data.rows)
    for place, row in enumerate(data.rows):
        found = [data.scores(row, name, measure, answer) for name in data.sets]
        measured = [(at, values) for at, values in enumerate(found) if values]
        if not measured:
            continue
        axes.bar(
            [at + (place - (len(data.rows) - 1) / 2) * width for at, _ in measured],
            [statistics.mean(values) for _, values in measured],
            width,
            yerr=[_deviation(values) for _, values in measured],
            color=COLORS[place % len(COLORS)],
            label=data.title(row),
            error_kw={"elinewidth": 0.8},
        )
    axes.set_ylabel(MEASURE_TITLES.get(measure, measure))
    plain(axes)


def over_setting(
    data: FigureData,
    figure: Figure,
    panels: Mapping[str, Mapping[str, float]],
    measures: Sequence[str] = ("accuracy",),
    *,
    logarithmic: Sequence[str] = (),
) -> None:
    """Plot how a score changes with a setting: a panel per setting and measure, a line per data set.

    ``panels`` has, by the name of a setting, its value in each row.
    """
    figure.set_size_inches(1 + 2.6 * len(panels), 0.6 + 2.4 * len(measures))
    grid = figure.subplots(len(measures), len(panels), squeeze=False)
    for line, measure in enumerate(measures):
        for column, (setting, values) in enumerate(panels.items()):
            axes = grid[line][column]
            for place, name in enumerate(data.sets):
                found = [(x, data.mean(row, name, measure)) for row, x in values.items()]
                points = sorted((x, y) for x, y in found if y is not None)
                axes.plot(*_columns(points), **style(place), label=find_set(name).title)
            if setting in logarithmic:
                axes.set_xscale("log")
            axes.set_xlabel(setting)
            axes.set_ylabel(MEASURE_TITLES.get(measure, measure) if column == 0 else "")
            plain(axes)
    legend_below(figure, grid[0][0])


def over_shared_setting(
    data: FigureData, figure: Figure, setting: str, lines: Mapping[str, Mapping[str, float]], measure: str = "accuracy"
) -> None:
    """Plot how a score changes with a setting of several kinds of rows: a panel per data set, a line per kind.

    ``lines`` has, by the name of a kind, the value of the setting in each of its rows. Bars are standard deviations
    over seeds.
    """
    figure.set_size_inches(1 + 2.6 * len(data.sets), 3.4)
    panels = figure.subplots(1, len(data.sets), squeeze=False)[0]
    for place, (words, values) in enumerate(lines.items()):
        measured = any(data.scores(row, name, measure) for row in values for name in data.sets)
        for axes, name in zip(panels, data.sets, strict=True):
            found = [(x, data.scores(row, name, measure)) for row, x in values.items()]
            points = sorted((x, statistics.mean(scores), _deviation(scores)) for x, scores in found if scores)
            x, y, deviations = zip(*points, strict=True) if points else ((), (), ())
            axes.errorbar(
                x, y, deviations, **style(place), elinewidth=0.8, label=words if measured else f"{words} (not run)"
            )
    for axes, name in zip(panels, data.sets, strict=True):
        axes.set_title(find_set(name).title, fontsize=9)
        axes.set_xlabel(setting)
        axes.set_xticks(sorted({x for values in lines.values() for x in values.values()}))
        plain(axes)
    panels[0].set_ylabel(MEASURE_TITLES.get(measure, measure))
    legend_below(figure, panels[0], columns=2)


def curves(
    data: FigureData,
    figure: Figure,
    measures: Mapping[str, str],
    x: str = "epoch",
    *,
    dashed: Mapping[str, str] = MappingProxyType({}),
) -> None:
    """Plot measures during training, from the traces: a panel per data set and measure, a line per row.

    ``measures`` has, by the name of a measure of a trace, the label of its axis; ``dashed`` names a second measure for
    the panel of the first. The ends of stages are dotted lines.
    """
    figure.set_size_inches(1 + 2.6 * len(data.sets), 0.6 + 2.2 * len(measures))
    grid = figure.subplots(len(measures), len(data.sets), squeeze=False)
    for column, name in enumerate(data.sets):
        for place, row in enumerate(data.rows):
            trace = data.trace(row, name)
            snapshots: list[dict[str, Any]] = trace["snapshots"] if trace else []
            for line, measure in enumerate(measures):
                # Epochs are numbered across stages; the trace of a long run omits some.
                points = [(each["epoch"], each[measure]) for each in snapshots if each[measure] is not None]
                grid[line][column].plot(*_columns(points), **style(place), label=data.title(row))
                other = dashed.get(measure, "")
                points = [(each["epoch"], each[other]) for each in snapshots if each.get(other) is not None]
                if points:
                    grid[line][column].plot(*_columns(points), **style(place), linestyle="--")
            if len(data.rows) == 1:
                pairs = itertools.pairwise(snapshots)
                ends = [after["epoch"] for before, after in pairs if before["stage"] != after["stage"]]
                for line in range(len(measures)):
                    for end in ends:
                        grid[line][column].axvline(end - 0.5, color="#999999", linestyle=":", linewidth=0.8)
        for line, words in enumerate(measures.values()):
            axes = grid[line][column]
            axes.set_title(find_set(name).title if line == 0 else "", fontsize=9)
            axes.set_ylabel(words if column == 0 else "")
            axes.set_xlabel(x if line == len(measures) - 1 else "")
            plain(axes)
    legend_below(figure, grid[0][0])


def epoch_curves(data: FigureData, figure: Figure, measures: Mapping[str, str], columns: int = 4) -> None:
    """Plot measures by epoch: a panel per data set and measure, ``columns`` side by side, and a line per row.

    ``measures`` has the label of the axis by the name of the measure. Accuracy and NMI are of k-means on the
    embeddings of all texts: the mean over seeds, with a band of the standard deviation. All others are of the traces,
    which have one seed.
    """
    panels = [(name, measure) for name in data.sets for measure in measures]
    columns = min(columns, len(panels))
    lines = math.ceil(len(panels) / columns)
    figure.set_size_inches(1 + 2.6 * columns, 1 + 2.2 * lines)
    # Panels of one measure share an axis, for comparison.
    grid = figure.subplots(lines, columns, squeeze=False, sharey=len(measures) == 1)
    for spare in list(grid.flat)[len(panels) :]:
        spare.axis("off")
    for at, (axes, (name, measure)) in enumerate(zip(grid.flat, panels, strict=False)):
        for place, row in enumerate(data.rows):
            points = _epochs(data, row, name, measure)
            means = [(epoch, statistics.mean(values)) for epoch, values in points]
            few = {"markevery": max(1, len(points) // 10)}
            axes.plot(*_columns(means), **style(place), **few, label=data.title(row))
            spread = [statistics.stdev(values) if len(values) > 1 else 0.0 for _, values in points]
            if any(spread):
                low = [mean - each for (_, mean), each in zip(means, spread, strict=True)]
                high = [mean + each for (_, mean), each in zip(means, spread, strict=True)]
                axes.fill_between(_columns(means)[0], low, high, color=COLORS[place % len(COLORS)], alpha=0.2, lw=0)
        axes.set_title(find_set(name).title, fontsize=9)
        axes.set_xlabel("epoch" if at + columns >= len(panels) else "")
        axes.set_ylabel(measures[measure] if len(measures) > 1 or at % columns == 0 else "")
        plain(axes)
    legend_below(figure, grid[0][0])


def maps(data: FigureData, figure: Figure, picks: Sequence[tuple[str, str, int | str]], columns: int = 3) -> None:
    """Plot maps of the same texts side by side, coloured by their true class.

    A pick is a row, the title of its panel, and a snapshot with a map: the last of the stage called so, or a position
    among them (0 the start, -1 the end).
    """
    lines = math.ceil(len(picks) / columns)
    figure.set_size_inches(0.4 + 3.1 * min(columns, len(picks)), 0.6 + 3.1 * lines)
    grid = figure.subplots(lines, min(columns, len(picks)), squeeze=False)
    dataset = data.sets[0]
    for axes in grid.flat:
        axes.axis("off")
    for axes, (row, words, pick) in zip(grid.flat, picks, strict=False):
        trace = data.trace(row, dataset)
        mapped = [each for each in trace["snapshots"] if each["mapped"]] if trace else []
        if isinstance(pick, str):
            mapped, pick = [each for each in mapped if each["stage"] == pick], -1
        axes.set_title(words, fontsize=9)
        if trace is None or not -len(mapped) <= pick < len(mapped):
            axes.text(0.5, 0.5, "not run", ha="center", va="center")
            continue
        x, y = zip(*mapped[pick]["map"], strict=True)
        axes.scatter(x, y, c=trace["classes"], cmap="tab20", s=4, linewidths=0)


def quality_against_cost(data: FigureData, figure: Figure) -> None:
    """Plot mean accuracy over the data sets against the seconds of a fit on one of them, on a logarithmic scale.

    Only runs that had the machine to themselves are timed: ``coterie benchmark run --datasets stackoverflow --seeds
    5``.
    """
    figure.set_size_inches(6.4, 4.2)
    axes = figure.subplots()
    for place, row in enumerate(data.rows):
        found, seconds = [data.mean(row, name, "accuracy") for name in data.sets], data.seconds_alone(row, COST_SET)
        quality = [value for value in found if value is not None]
        if not seconds or len(quality) < len(data.sets):
            continue
        point = statistics.median(seconds), statistics.mean(quality)
        axes.scatter(*point, color=COLORS[place % len(COLORS)], marker=MARKERS[place % len(MARKERS)])
        axes.annotate(data.title(row), point, xytext=(5, 3), textcoords="offset points", fontsize=8)
    if not axes.collections:
        raise InputError(
            f"no row has been timed alone yet: coterie benchmark run --datasets {COST_SET} --seeds 5 --jobs 1"
        )
    axes.set_xscale("log")
    axes.set_xlabel(f"seconds of a fit on {find_set(COST_SET).title}, alone on the machine")
    axes.set_ylabel("ACC, mean over the sets")
    plain(axes)


def _epochs(data: FigureData, row: str, dataset: str, measure: str) -> list[tuple[int, list[float]]]:
    """Return the epochs with the values of all seeds; a run that stopped early keeps its last value."""
    if measure in ("accuracy", "nmi"):
        # One entry per snapshot: at the start and after every epoch. Results of older code have none.
        curves = [[each[measure] for each in run.get("curve", [])] for run in data.runs(row, dataset)]
        longest = max(map(len, curves), default=0)
        return [(at, [curve[min(at, len(curve) - 1)] for curve in curves if curve]) for at in range(longest)]
    trace = data.trace(row, dataset)
    snapshots: list[dict[str, Any]] = trace["snapshots"] if trace else []
    return [(each["epoch"], [each[measure]]) for each in snapshots if each[measure] is not None]


def _columns(points: Sequence[tuple[float, float]]) -> tuple[list[float], list[float]]:
    return [x for x, _ in points], [y for _, y in points]


def style(place: int) -> dict[str, Any]:
    return {
        "color": COLORS[place % len(COLORS)],
        "marker": MARKERS[place % len(MARKERS)],
        "markersize": 3.5,
        "linewidth": 1.2,
    }


def plain(axes: Axes) -> None:
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(axis="y", color="#e5e5e5", linewidth=0.6)
    axes.set_axisbelow(True)


def _deviation(values: Sequence[float]) -> float:
    return statistics.stdev(values) if len(values) > 1 else 0.0


def legend_below(figure: Figure, axes: Axes, columns: int = 4) -> None:
    handles, words = axes.get_legend_handles_labels()
    # Inches of an entry at this font size; a legend wider than the figure would be cut off.
    widest = 0.6 + 0.065 * max(map(len, words), default=0)
    columns = max(1, min(columns, len(words), int(figure.get_figwidth() / widest)))
    figure.legend(handles, words, frameon=False, fontsize=8, ncols=columns, loc="outside lower center")
