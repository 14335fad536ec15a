"""Pictures of a run: what they are made of, and that both libraries draw that."""

from __future__ import annotations

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
from coterie.report.plots.matplotlib_plots import draw_picture, figure_of
from coterie.report.plots.pictures import (
    SUBJECTS,
    BarPicture,
    Curve,
    CurvePicture,
    MapPicture,
    Points,
    TablePicture,
    lines_of_marks,
    picture_of,
)
from coterie.report.plots.plotly_plots import plotly_figure
from coterie.report.report_model import Shown
from coterie.runs.saved_run import read_run
from coterie.selection import choose_k


@pytest.fixture(scope="module")
def shown(run_folder: Path) -> Shown:
    run = read_run(run_folder, device="cpu")
    run.about["choice_of_k"] = choose_k(vectors=np.random.default_rng(0).normal(size=(40, 5))).to_dict()
    return Shown(run, labels=[None if row % 7 == 0 else f"label {row % 3}" for row in range(len(run.corpus))])


def test_a_map_has_every_text_with_its_cluster(shown: Shown) -> None:
    picture = picture_of([shown], "map")
    assert isinstance(picture, MapPicture)
    (panel,) = picture.panels
    np.testing.assert_array_equal(panel.places, shown.places)
    np.testing.assert_array_equal(panel.groups, shown.clusters)
    assert panel.names == tuple(card.name for card in shown.cards)
    assert panel.told == tuple(shown.texts)
    figure = Figure()
    figure_of(picture, figure)
    (dots,) = figure.axes[0].collections
    np.testing.assert_allclose(np.asarray(dots.get_offsets()), shown.places, atol=1e-6)
    assert len(np.unique(np.asarray(dots.get_facecolors()), axis=0)) == len(np.unique(shown.clusters))
    assert {each.get_text() for each in figure.axes[0].texts} <= set(panel.names)
    drawn = plotly_figure(picture)
    assert sum(len(trace.x) for trace in drawn.data) == len(shown.texts)


def test_names_on_a_map_do_not_stand_on_each_other(tmp_path: Path) -> None:
    """Also where their groups have the same middle."""
    places = np.random.default_rng(0).normal(size=(60, 2)) * np.array([5.0, 0.01])
    panel = Points("alike", places, np.arange(60) % 4, tuple(f"A rather long name, {place}" for place in range(4)))
    figure = Figure(layout="constrained")
    FigureCanvasAgg(figure)
    figure_of(MapPicture("names", (panel,)), figure)
    figure.draw_without_rendering()
    boxes = [name.get_window_extent() for name in figure.axes[0].texts]
    assert len(boxes) == 4
    # Laid out anew, they may touch by a hair.
    assert not any(one.shrunk(0.9, 0.9).overlaps(other.shrunk(0.9, 0.9)) for one, other in combinations(boxes, 2))


def test_runs_side_by_side_show_the_same_texts(run_folder: Path, shown: Shown) -> None:
    fewer = Shown(shown.run, labels=shown.labels, points=40)
    picture = picture_of([shown, fewer], "map", sample=25)
    assert isinstance(picture, MapPicture)
    first, second = picture.panels
    assert first.told == second.told
    assert len(first.told) == 25
    assert set(first.told) <= set(fewer.texts)
    np.testing.assert_array_equal(first.groups, second.groups)
    place = {text: at for at, text in enumerate(fewer.texts)}
    np.testing.assert_array_equal(second.places, fewer.places[[place[text] for text in second.told]])
    with pytest.raises(SettingError, match="a picture of one run"):
        picture_of([shown, fewer], "sizes")


def test_colours_by_label(shown: Shown) -> None:
    picture = picture_of([shown], "map", color="label")
    assert isinstance(picture, MapPicture)
    (panel,) = picture.panels
    assert panel.names == ("label 0", "label 1", "label 2", "no label")
    assert shown.labels is not None
    for row, group in zip(shown.rows, panel.groups, strict=True):
        assert panel.names[group] == (shown.labels[row] or "no label")
    with pytest.raises(SettingError, match="--labels"):
        picture_of([Shown(shown.run)], "map", color="label")


def test_curves_are_those_of_the_run(shown: Shown) -> None:
    picture = picture_of([shown], "curves")
    assert isinstance(picture, CurvePicture)
    steps = shown.run.about["history"]["steps"]
    (instance,) = [curve for curve in picture.curves if curve.title == "instance"]
    assert instance.x == tuple(step["step"] for step in steps)
    assert instance.y == pytest.approx([step["instance"] for step in steps], rel=1e-5)
    figure = Figure()
    figure_of(picture, figure)
    assert [axes.get_title() for axes in figure.axes if axes.lines] == [curve.title for curve in picture.curves]


def test_why_so_many_clusters(shown: Shown) -> None:
    picture = picture_of([shown], "k")
    assert isinstance(picture, CurvePicture)
    choice = shown.run.about["choice_of_k"]
    first = picture.curves[0]
    assert first.x == tuple(each["k"] for each in choice["candidates"])
    assert first.y == tuple(each["score"] for each in choice["candidates"])
    assert [curve.title.split()[0] for curve in picture.curves] == [
        "sum",
        "neighbours",
        "silhouette",
        "stability",
        "gap",
    ]
    figure = Figure()
    figure_of(picture, figure)
    shown_axes = [axes for axes in figure.axes if axes.lines]
    assert {axes.get_xscale() for axes in shown_axes} == {"log"}
    assert all(str(choice["k"]) in {each.get_text() for each in axes.texts} for axes in shown_axes)
    marked = [trace for trace in plotly_figure(picture).data if trace.text]
    assert [trace.x[0] for trace in marked] == [choice["k"]] * len(picture.curves)


def test_sizes_and_similarity(shown: Shown) -> None:
    sizes = picture_of([shown], "sizes")
    assert isinstance(sizes, BarPicture)
    labels = shown.run.model.labels_
    assert sizes.values == tuple(np.bincount(labels[labels >= 0]))
    figure = Figure()
    figure_of(sizes, figure)
    assert [bar.get_width() for bar in figure.axes[0].patches] == list(sizes.values)
    near = picture_of([shown], "similarity")
    assert isinstance(near, TablePicture)
    units = unit_rows(shown.centers)
    np.testing.assert_allclose(near.values, units @ units.T, atol=1e-3)


def test_confusion_counts_labels_in_clusters(shown: Shown) -> None:
    picture = picture_of([shown], "confusion")
    assert isinstance(picture, TablePicture)
    labels, names = shown.labels, [card.name for card in shown.cards]
    assert labels is not None
    for row, label in enumerate(picture.rows):
        for column, name in enumerate(picture.columns):
            together = [
                cluster >= 0 and names[cluster] == name and told == label
                for cluster, told in zip(shown.run.model.labels_, labels, strict=True)
            ]
            assert picture.values[row, column] == sum(together)
    with pytest.raises(SettingError, match="--labels"):
        picture_of([Shown(shown.run)], "confusion")


def test_a_label_of_no_clustered_row_has_no_line(shown: Shown) -> None:
    labels: list[object] = ["here"] * len(shown.run.corpus)
    empty = int(np.flatnonzero(shown.run.model.labels_ < 0)[0])
    labels[empty] = "nowhere"
    picture = picture_of([Shown(shown.run, labels=labels)], "confusion")
    assert isinstance(picture, TablePicture)
    assert picture.rows == ("here",)


def test_stages_need_snapshots(shown: Shown, tmp_path: Path) -> None:
    picture = picture_of([shown], "stages")
    assert isinstance(picture, MapPicture)
    assert picture.panels[0].title == "before training"
    assert len(picture.panels) == len(list((shown.run.folder / "snapshots").glob("[0-9]*.safetensors")))
    from coterie.cli.fit import fit

    (tmp_path / "texts.txt").write_text("\n".join(f"{word} {i}" for i in range(5) for word in ("parcel", "login")))
    fit(tmp_path / "texts.txt", clusters=2, method="tfidf", output=tmp_path / "run", quiet=True, report=False)
    plain = Shown(read_run(tmp_path / "run"))
    with pytest.raises(InputError, match="--snapshots"):
        picture_of([plain], "stages")
    with pytest.raises(InputError, match="no curves"):
        picture_of([plain], "curves")
    with pytest.raises(InputError, match="no text in common"):
        picture_of([shown, plain], "map")


@pytest.mark.parametrize("ending", ["png", "svg", "html"])
@pytest.mark.parametrize("subject", SUBJECTS)
def test_every_picture_in_every_form(shown: Shown, subject: str, ending: str, tmp_path: Path) -> None:
    picture = picture_of([shown], subject)
    for name in ("one", "two"):
        draw_picture(picture, tmp_path / f"{name}.{ending}")
    content = (tmp_path / f"one.{ending}").read_bytes()
    assert content == (tmp_path / f"two.{ending}").read_bytes()
    begins: dict[str, Any] = {"png": rb"\x89PNG", "svg": rb"<\?xml", "html": rb"<!doctype html>|<html>"}
    assert re.match(begins[ending], content)
    if ending == "html":
        assert b"<script>document.body.remove" not in content
        assert (b"{{data}}" in content) == (subject == "map")
    assert NASTY in shown.texts


def test_what_cannot_be_drawn(shown: Shown, tmp_path: Path) -> None:
    with pytest.raises(SettingError, match="use one of map, curves"):
        picture_of([shown], "pie")
    with pytest.raises(SettingError, match="cluster' or 'label"):
        picture_of([shown], "map", color="size")
    with pytest.raises(SettingError, match=r"\.png, \.svg, \.html"):
        draw_picture(picture_of([shown], "sizes"), tmp_path / "sizes.pdf")


def test_names_of_stages_that_begin_soon_after_each_other_stand_in_lines_of_their_own(tmp_path: Path) -> None:
    marks = (("denoising", 0.0), ("clustering", 2.0), ("hardening", 4.0), ("end", 90.0))
    picture = CurvePicture("Training", (Curve("loss", (0.0, 100.0), (1.0, 0.5)),), marks)
    assert lines_of_marks(picture, lambda _: 0.06) == [0, 1, 2, 0]
    assert lines_of_marks(picture, lambda _: 0.01) == [0, 0, 0, 0]
    # As they are drawn, no two overlap.
    figure = Figure(layout="constrained")
    figure_of(picture, figure)
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
