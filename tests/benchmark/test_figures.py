"""Figures are drawn from results alone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from matplotlib.figure import Figure
from typer.testing import CliRunner

from coterie.benchmark.catalogue import all_figures, all_tables, find_figure, find_row
from coterie.benchmark.figures import FigureData, figure_jobs, plot_figure
from coterie.benchmark.matplotlib_plots import bars, curves, maps, over_setting
from coterie.benchmark.rows import PROTOCOL
from coterie.benchmark.sets import find_set
from coterie.benchmark.specs import FigureSpec
from coterie.benchmark.store import Job, Store
from coterie.benchmark.tables import table_jobs
from coterie.cli.main import app
from coterie.errors import InputError, SettingError

SPEC = FigureSpec("x", "A small one", ("tfidf", "bow"), ("tweet", "agnews"), bars)


def _stored(store: Store, row: str, dataset: str, seed: int, accuracy: float) -> str:
    job = Job(find_row(row), find_set(dataset), seed)
    record = {
        "row": row,
        "dataset": dataset,
        "protocol": PROTOCOL,
        "source_digest": "a",
        "seconds": {"fit": 2.0},
        "method": find_row(row).method,
        "settings": job.settings,
        "machine": {"device": "cpu"},
        "scores": {"final": {"accuracy": accuracy, "nmi": accuracy + 20}, "frozen": None, "oracle": None},
    }
    store.write(job.name, record)
    return job.name


def _traced(store: Store, row: str, dataset: str) -> None:
    snapshots = [
        {"stage": stage, "epoch": epoch, "step": epoch, "mapped": epoch != 1, "silhouette": value}
        for epoch, (stage, value) in enumerate([("start", 0.1), ("one", None), ("one", 0.3), ("two", 0.4)])
    ]
    for epoch, each in enumerate(snapshots):
        if each["mapped"]:
            each["map"] = [[epoch, 0.0], [epoch, 1.0]]
    name = _stored(store, row, dataset, 0, 50.0)
    store.write_trace(name, {"texts": 2, "classes": [0, 1], "class_names": ["a", "b"], "snapshots": snapshots})


def _plotted(store: Store, plot: Any, rows: tuple[str, ...], sets: tuple[str, ...]) -> Figure:
    figure = Figure()
    plot(FigureData(store, rows, sets), figure)
    return figure


def test_cost_is_of_runs_that_were_alone(tmp_path: Path) -> None:
    store = Store(tmp_path)
    for dataset in find_figure("cost").sets:
        for row in ("tfidf", "bow"):
            _stored(store, row, dataset, 0, 40.0)
    for seed, at_once, seconds in ((5, 1, 3.0), (6, 16, 90.0)):
        name = _stored(store, "tfidf", "stackoverflow", seed, 10.0)
        store.write(name, {**store.read(name), "runs_at_once": at_once, "seconds": {"fit": seconds}})
    figure = _plotted(store, find_figure("cost").plot, ("tfidf", "bow"), find_figure("cost").sets)
    points = [tuple(each.get_offsets()[0]) for each in figure.axes[0].collections]
    assert points == [(3.0, 40.0)]  # the other row was never timed, and a seed beyond the tables counts in no mean


def test_bars_are_the_means_of_the_seeds(tmp_path: Path) -> None:
    store = Store(tmp_path)
    for seed, value in enumerate((40.0, 44.0)):
        _stored(store, "tfidf", "tweet", seed, value)
    _stored(store, "bow", "agnews", 0, 30.0)
    axes = _plotted(store, bars, SPEC.rows, SPEC.sets).axes[0]
    heights = [
        [bar.get_height() for bar in container] for container in axes.containers if hasattr(container, "patches")
    ]
    assert heights == [[42.0], [30.0]]
    # Each over its own set.
    assert [round(container.patches[0].get_center()[0]) for container in axes.containers[1::2]] == [0, 1]


def test_lines_over_a_setting(tmp_path: Path) -> None:
    store = Store(tmp_path)
    _stored(store, "tfidf", "tweet", 0, 40.0)
    _stored(store, "bow", "tweet", 0, 30.0)
    panels = {"weight": {"tfidf": 5.0, "bow": 1.0}}
    figure = _plotted(
        store, lambda data, on: over_setting(data, on, panels, ("accuracy", "nmi")), SPEC.rows, ("tweet",)
    )
    upper, lower = (axes.lines[0] for axes in figure.axes)
    assert list(upper.get_xdata()) == [1.0, 5.0] and list(upper.get_ydata()) == [30.0, 40.0]
    assert list(lower.get_ydata()) == [50.0, 60.0]


def test_curves_leave_out_what_could_not_be_measured(tmp_path: Path) -> None:
    store = Store(tmp_path)
    _traced(store, "tfidf", "tweet")
    figure = _plotted(store, lambda data, on: curves(data, on, {"silhouette": "silhouette"}), ("tfidf",), ("tweet",))
    assert list(figure.axes[0].lines[0].get_xdata()) == [0, 2, 3]
    assert list(figure.axes[0].lines[0].get_ydata()) == [0.1, 0.3, 0.4]


def test_maps_pick_stages_and_places(tmp_path: Path) -> None:
    store = Store(tmp_path)
    _traced(store, "tfidf", "tweet")
    picks = [("tfidf", "before", 0), ("tfidf", "after one", "one"), ("tfidf", "end", -1), ("bow", "none", 0)]
    figure = _plotted(store, lambda data, on: maps(data, on, picks), ("tfidf", "bow"), ("tweet",))
    offsets = [axes.collections[0].get_offsets()[0][0] for axes in figure.axes if axes.collections]
    assert offsets == [0, 2, 3]
    assert "not run" in [text.get_text() for axes in figure.axes for text in axes.texts]


@pytest.mark.parametrize("ending", ["png", "svg", "pdf"])
def test_the_ending_says_the_form(tmp_path: Path, ending: str) -> None:
    store = Store(tmp_path / "results")
    _stored(store, "tfidf", "tweet", 0, 40.0)
    plot_figure(SPEC, store, tmp_path / "new" / f"f.{ending}")
    start = (tmp_path / "new" / f"f.{ending}").read_bytes()[:5]
    assert start == {"png": b"\x89PNG\r", "svg": b"<?xml", "pdf": b"%PDF-"}[ending]


def test_the_same_results_give_the_same_svg(tmp_path: Path) -> None:
    store = Store(tmp_path / "results")
    _stored(store, "tfidf", "tweet", 0, 40.0)
    for name in ("a.svg", "b.svg"):
        plot_figure(SPEC, store, tmp_path / name)
    assert (tmp_path / "a.svg").read_bytes() == (tmp_path / "b.svg").read_bytes()


def test_without_runs_the_error_names_the_command(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="coterie benchmark run --figure x"):
        plot_figure(SPEC, Store(tmp_path), tmp_path / "f.svg")
    with pytest.raises(SettingError, match="there are: cost"):
        find_figure("nothing")


def test_names_are_unique() -> None:
    """Of all tables and figures, and everything they name is there."""
    figures, tables = all_figures(), all_tables()
    assert len({spec.name for spec in figures}) == len(figures)
    assert len({spec.name for spec in tables}) == len(tables)
    for spec in (*figures, *tables):
        assert all(find_row(row) for row in spec.rows) and all(find_set(name) for name in spec.sets)


def test_jobs_of_tables_and_figures() -> None:
    cost = figure_jobs(find_figure("cost"), (0, 1))
    assert {job.seed for job in cost if job.row.name == "sccl"} == {0, 1}
    assert {job.seed for job in cost if job.row.name == "frozen-ward"} == {0}  # no chance in it
    assert not any(job.trace for job in cost)
    traced = FigureSpec("y", "y", ("sccl",), ("tweet",), bars, traced=True)
    assert [job.trace for job in figure_jobs(traced, (0, 1))] == [True, False]
    wrong_k = next(spec for spec in all_tables() if spec.name == "5-k")
    assert {job.dataset.name for job in table_jobs(wrong_k, (0,))} == set(wrong_k.sets)


def test_commands(tmp_path: Path) -> None:
    store = Store(tmp_path)
    for dataset in find_figure("cost").sets:
        _stored(store, "tfidf", dataset, 0, 40.0)
    call = CliRunner().invoke
    assert "cost" in call(app, ["benchmark", "figure", "list"]).output
    assert "5-imbalance" in call(app, ["benchmark", "table", "list"]).output
    everything = call(app, ["benchmark", "list"]).output
    assert all(name in everything for name in ("aecl-no-ic", "stackoverflow-k0.5", "4-sccl-3", "uftc-2"))
    both = call(app, ["benchmark", "run", "--table", "1", "-m", "bow", "-o", str(tmp_path)])
    assert "leave out --methods" in str(both.exception)
    none = call(app, ["benchmark", "run", "-m", "frozen-ward", "-d", "support", "-s", "3", "-o", str(tmp_path)])
    assert "nothing to run" in str(none.exception)
    nothing = call(app, ["benchmark", "figure", "cost", "-f", str(tmp_path / "c.png"), "-o", str(tmp_path)])
    assert nothing.exit_code != 0 and "timed alone" in str(nothing.exception)
    alone = _stored(store, "tfidf", "stackoverflow", 5, 40.0)
    store.write(alone, {**store.read(alone), "runs_at_once": 1})
    done = call(app, ["benchmark", "figure", "cost", "-f", str(tmp_path / "c.png"), "-o", str(tmp_path)])
    assert done.exit_code == 0 and (tmp_path / "c.png").stat().st_size > 5_000
    printed = call(app, ["benchmark", "status", "--table", "5-imbalance", "-s", "0", "-o", str(tmp_path)]).output
    of_figure = call(app, ["benchmark", "status", "--figure", "sccl-4", "-s", "0", "-o", str(tmp_path)]).output
    assert "coterie benchmark run --figure sccl-4 --seeds 0" in of_figure
    assert "0 of" in printed and "--methods sccl --datasets stackoverflow-i20 --seeds 0" in printed
