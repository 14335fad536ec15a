"""Pictures of a run: what they are made of, and that both libraries draw that."""

from __future__ import annotations

import json
import re
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from made_run import NASTY
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from coterie import plot
from coterie.clustering.kmeans import unit_rows
from coterie.errors import InputError, SettingError
from coterie.report.plots.matplotlib_plots import fill_figure, write_plot
from coterie.report.plots.plot_data import (
    SUBJECTS,
    BarPlot,
    Curve,
    CurvePlot,
    MapPlot,
    MapPoints,
    TablePlot,
    build_cluster_count_plot,
    build_plot,
    mark_lines,
)
from coterie.report.plots.plotly_plots import plotly_figure
from coterie.report.report_model import ReportModel
from coterie.runs.saved_run import SavedRun
from coterie.selection import choose_k


@pytest.fixture(scope="module")
def shown(run_folder: Path) -> ReportModel:
    run = SavedRun.open(run_folder, device="cpu")
    run.about["choice_of_k"] = choose_k(vectors=np.random.default_rng(0).normal(size=(40, 5))).to_dict()
    return ReportModel(run, labels=[None if row % 7 == 0 else f"label {row % 3}" for row in range(len(run.corpus))])


def test_a_map_has_every_text_with_its_cluster(shown: ReportModel) -> None:
    plot = build_plot([shown], "map")
    assert isinstance(plot, MapPlot)
    (panel,) = plot.panels
    np.testing.assert_array_equal(panel.coordinates, shown.coordinates)
    np.testing.assert_array_equal(panel.categories, shown.clusters)
    assert panel.names == tuple(card.name for card in shown.cards)
    assert panel.hover_texts == tuple(shown.texts)
    figure = Figure()
    fill_figure(plot, figure)
    (dots,) = figure.axes[0].collections
    np.testing.assert_allclose(np.asarray(dots.get_offsets()), shown.coordinates, atol=1e-6)
    assert len(np.unique(np.asarray(dots.get_facecolors()), axis=0)) == len(np.unique(shown.clusters))
    assert {each.get_text() for each in figure.axes[0].texts} <= set(panel.names)
    drawn = plotly_figure(plot)
    assert sum(len(trace.x) for trace in drawn.data) == len(shown.texts)


def test_names_on_a_map_do_not_stand_on_each_other(tmp_path: Path) -> None:
    """Also where their clusters have the same median."""
    places = np.random.default_rng(0).normal(size=(60, 2)) * np.array([5.0, 0.01])
    panel = MapPoints("alike", places, np.arange(60) % 4, tuple(f"A rather long name, {place}" for place in range(4)))
    figure = Figure(layout="constrained")
    FigureCanvasAgg(figure)
    fill_figure(MapPlot("names", (panel,)), figure)
    figure.draw_without_rendering()
    boxes = [name.get_window_extent() for name in figure.axes[0].texts]
    assert len(boxes) == 4
    # Laid out anew, they may touch by a hair.
    assert not any(one.shrunk(0.9, 0.9).overlaps(other.shrunk(0.9, 0.9)) for one, other in combinations(boxes, 2))


def test_runs_side_by_side_show_the_same_texts(run_folder: Path, shown: ReportModel) -> None:
    fewer = ReportModel(shown.run, labels=shown.labels, points=40)
    plot = build_plot([shown, fewer], "map", sample=25)
    assert isinstance(plot, MapPlot)
    first, second = plot.panels
    assert first.hover_texts == second.hover_texts
    assert len(first.hover_texts) == 25
    assert set(first.hover_texts) <= set(fewer.texts)
    np.testing.assert_array_equal(first.categories, second.categories)
    place = {text: at for at, text in enumerate(fewer.texts)}
    np.testing.assert_array_equal(second.coordinates, fewer.coordinates[[place[text] for text in second.hover_texts]])
    with pytest.raises(SettingError, match="a plot of one run"):
        build_plot([shown, fewer], "sizes")


def test_colours_by_label(shown: ReportModel) -> None:
    plot = build_plot([shown], "map", color="label")
    assert isinstance(plot, MapPlot)
    (panel,) = plot.panels
    assert panel.names == ("label 0", "label 1", "label 2", "no label")
    assert shown.labels is not None
    for row, category in zip(shown.rows, panel.categories, strict=True):
        assert panel.names[category] == (shown.labels[row] or "no label")
    with pytest.raises(SettingError, match="--labels"):
        build_plot([ReportModel(shown.run)], "map", color="label")


def test_curves_are_those_of_the_run(shown: ReportModel) -> None:
    plot = build_plot([shown], "curves")
    assert isinstance(plot, CurvePlot)
    steps = shown.run.about["history"]["steps"]
    (instance,) = [curve for curve in plot.curves if curve.title == "instance"]
    assert instance.x == tuple(step["step"] for step in steps)
    assert instance.y == pytest.approx([step["instance"] for step in steps], rel=1e-5)
    figure = Figure()
    fill_figure(plot, figure)
    assert [axes.get_title() for axes in figure.axes if axes.lines] == [curve.title for curve in plot.curves]


def test_why_so_many_clusters(shown: ReportModel) -> None:
    plot = build_plot([shown], "k")
    assert isinstance(plot, CurvePlot)
    choice = shown.run.about["choice_of_k"]
    first = plot.curves[0]
    assert first.x == tuple(each["k"] for each in choice["candidates"])
    assert first.y == tuple(each["score"] for each in choice["candidates"])
    assert [curve.title.split()[0] for curve in plot.curves] == [
        "score",
        "information",
        "neighbours",
        "silhouette",
        "stability",
        "gap",
    ]
    figure = Figure()
    fill_figure(plot, figure)
    shown_axes = [axes for axes in figure.axes if axes.lines]
    assert {axes.get_xscale() for axes in shown_axes} == {"log"}
    assert all(str(choice["k"]) in {each.get_text() for each in axes.texts} for axes in shown_axes)
    marked = [trace for trace in plotly_figure(plot).data if trace.text]
    assert [trace.x[0] for trace in marked] == [choice["k"]] * len(plot.curves)


def test_the_choice_of_an_earlier_version_is_plotted(shown: ReportModel) -> None:
    """It had a sum of four criteria, and no information."""
    choice = json.loads(json.dumps(shown.run.about["choice_of_k"]))
    for each in choice["candidates"]:
        del each["information"]
    choice["weights"] = {"neighbours": 1.0, "silhouette": 1.0, "stability": 0.5, "words": 0.5}
    titles = [curve.title for curve in build_cluster_count_plot(choice).curves]
    assert titles == [
        "score (decides)",
        "neighbours (weight 1)",
        "silhouette (weight 1)",
        "stability (weight 0.5)",
        "gap (not used)",
    ]


def test_sizes_and_similarity(shown: ReportModel) -> None:
    sizes = build_plot([shown], "sizes")
    assert isinstance(sizes, BarPlot)
    labels = shown.run.model.labels_
    assert sizes.values == tuple(np.bincount(labels[labels >= 0]))
    figure = Figure()
    fill_figure(sizes, figure)
    assert [bar.get_width() for bar in figure.axes[0].patches] == list(sizes.values)
    near = build_plot([shown], "similarity")
    assert isinstance(near, TablePlot)
    units = unit_rows(shown.centers)
    np.testing.assert_allclose(near.values, units @ units.T, atol=1e-3)


def test_confusion_counts_labels_in_clusters(shown: ReportModel) -> None:
    plot = build_plot([shown], "confusion")
    assert isinstance(plot, TablePlot)
    labels, names = shown.labels, [card.name for card in shown.cards]
    assert labels is not None
    for row, label in enumerate(plot.rows):
        for column, name in enumerate(plot.columns):
            together = [
                cluster >= 0 and names[cluster] == name and answer == label
                for cluster, answer in zip(shown.run.model.labels_, labels, strict=True)
            ]
            assert plot.values[row, column] == sum(together)
    with pytest.raises(SettingError, match="--labels"):
        build_plot([ReportModel(shown.run)], "confusion")


def test_a_label_of_no_clustered_row_has_no_line(shown: ReportModel) -> None:
    labels: list[object] = ["here"] * len(shown.run.corpus)
    empty = int(np.flatnonzero(shown.run.model.labels_ < 0)[0])
    labels[empty] = "nowhere"
    plot = build_plot([ReportModel(shown.run, labels=labels)], "confusion")
    assert isinstance(plot, TablePlot)
    assert plot.rows == ("here",)


def test_stages_need_snapshots(shown: ReportModel, tmp_path: Path) -> None:
    plot = build_plot([shown], "stages")
    assert isinstance(plot, MapPlot)
    assert plot.panels[0].title == "before training"
    assert len(plot.panels) == len(list((shown.run.folder / "snapshots").glob("[0-9]*.safetensors")))
    from coterie.cli.fit import fit

    (tmp_path / "texts.txt").write_text("\n".join(f"{word} {i}" for i in range(5) for word in ("parcel", "login")))
    fit(tmp_path / "texts.txt", clusters=2, method="tfidf", output=tmp_path / "run", quiet=True, report=False)
    plain = ReportModel(SavedRun.open(tmp_path / "run"))
    with pytest.raises(InputError, match="--snapshots"):
        build_plot([plain], "stages")
    with pytest.raises(InputError, match="no curves"):
        build_plot([plain], "curves")
    with pytest.raises(InputError, match="no text in common"):
        build_plot([shown, plain], "map")


@pytest.mark.parametrize("ending", ["png", "svg", "html"])
@pytest.mark.parametrize("subject", SUBJECTS)
def test_every_picture_in_every_form(shown: ReportModel, subject: str, ending: str, tmp_path: Path) -> None:
    plot = build_plot([shown], subject)
    for name in ("one", "two"):
        write_plot(plot, tmp_path / f"{name}.{ending}")
    content = (tmp_path / f"one.{ending}").read_bytes()
    assert content == (tmp_path / f"two.{ending}").read_bytes()
    begins: dict[str, Any] = {"png": rb"\x89PNG", "svg": rb"<\?xml", "html": rb"<!doctype html>|<html>"}
    assert re.match(begins[ending], content)
    if ending == "html":
        assert b"<script>document.body.remove" not in content
        assert (b"{{data}}" in content) == (subject == "map")
    assert NASTY in shown.texts


def test_what_cannot_be_drawn(shown: ReportModel, tmp_path: Path) -> None:
    with pytest.raises(SettingError, match="use one of map, curves"):
        build_plot([shown], "pie")
    with pytest.raises(SettingError, match="cluster' or 'label"):
        build_plot([shown], "map", color="size")
    with pytest.raises(SettingError, match=r"\.png, \.svg, \.html"):
        write_plot(build_plot([shown], "sizes"), tmp_path / "sizes.pdf")


def test_names_of_stages_that_begin_soon_after_each_other_stand_in_lines_of_their_own(tmp_path: Path) -> None:
    marks = (("denoising", 0.0), ("clustering", 2.0), ("hardening", 4.0), ("end", 90.0))
    plot = CurvePlot("Training", (Curve("loss", (0.0, 100.0), (1.0, 0.5)),), marks)
    assert mark_lines(plot, lambda _: 0.06) == [0, 1, 2, 0]
    assert mark_lines(plot, lambda _: 0.01) == [0, 0, 0, 0]
    # As they are drawn, no two overlap.
    figure = Figure(layout="constrained")
    fill_figure(plot, figure)
    renderer = FigureCanvasAgg(figure).get_renderer()
    figure.draw(renderer)
    boxes = [each.get_window_extent(renderer) for each in figure.axes[0].texts]
    assert len(boxes) == 4
    assert not any(one.overlaps(other) for one, other in combinations(boxes, 2))


def test_pictures_from_python_take_a_folder_and_a_file(run_folder: Path, tmp_path: Path) -> None:
    assert plot(run_folder, "sizes", tmp_path / "new" / "sizes.svg", device="cpu").is_file()
    both = [str(run_folder), run_folder]
    assert plot(both, "map", str(tmp_path / "map.html"), sample=20, device="cpu") == tmp_path / "map.html"
    with pytest.raises(SettingError, match="ending must be one of"):
        plot(tmp_path / "no-run", "sizes", tmp_path / "sizes.jpg")
    with pytest.raises(InputError, match="2 labels, but .* has 65 rows"):
        plot(run_folder, "confusion", tmp_path / "confusion.png", labels=["a", "b"], device="cpu")
