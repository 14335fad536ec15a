"""What AECL's paper shows beside its main table: rows are the ablations they claim to be, pictures show runs."""

from __future__ import annotations

import inspect
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import topic_texts

from coterie import AECL
from coterie.benchmark.catalogue import find_figure, find_row, find_table
from coterie.benchmark.figures import FigureData, figure_jobs, plot_figure
from coterie.benchmark.paper_definitions import require_paper_definitions
from coterie.benchmark.rows import PROTOCOL, Row
from coterie.benchmark.sets import find_set
from coterie.benchmark.specs import FigureSpec
from coterie.benchmark.store import Job, Store
from coterie.benchmark.tables import build_table, table_jobs
from coterie.errors import InputError
from coterie.methods.build_method import build_method

matplotlib = pytest.importorskip("matplotlib")
from matplotlib.figure import Figure  # noqa: E402 (after the check)

aecl = require_paper_definitions().package.aecl
FIGURES = aecl.FIGURES
MAIN = aecl.MAIN
ROWS = aecl.ROWS
TABLES = aecl.TABLES

EPOCHS = 50
# What the paper removes or replaces, in the words of the method.
ABLATIONS: Mapping[str, dict[str, Any]] = {
    "aecl-no-ic": {"contrast": "instance"},
    "aecl-no-stage-1": {"stage_1": 0, "stage_3": 35},
    "aecl-no-stage-2": {"stage_2": 0, "stage_3": 45},
    "aecl-no-pg": {"lambda2": 0},
    "aecl-no-rc": {"lambda3": 0},
    "aecl-plain": {"contrast": "plain"},
    "aecl-ccssl": {"contrast": "confidence"},
}


def _parameters(row: str) -> dict[str, Any]:
    chosen = find_row(row)
    model: Any = build_method(chosen.method, 3, 0, chosen.settings_for(find_set("trec6")), {})
    found: dict[str, Any] = model.get_params()
    return found


def _changed(row: str) -> dict[str, Any]:
    """The parameters that are not the main row's."""
    main = _parameters(MAIN)
    return {name: value for name, value in _parameters(row).items() if value != main[name]}


@pytest.mark.parametrize(("row", "meant"), ABLATIONS.items())
def test_an_ablation_changes_what_it_is_about_and_nothing_else(row: str, meant: dict[str, Any]) -> None:
    assert _changed(row) == meant


@pytest.mark.parametrize("row", [row for row in ROWS if re.search(r"-(lambda\d|e\d)-", row.name)], ids=lambda r: r.name)
def test_a_sweep_changes_what_its_name_says(row: Row) -> None:
    _, setting, value = row.name.split("-")
    changed = _changed(row.name)
    assert row.title.endswith(f" = {value}")
    if setting.startswith("lambda"):
        assert changed == {setting: float(value)}
    else:
        stage = f"stage_{setting[1]}"
        assert changed.keys() == {stage, "stage_3"} and changed[stage] == int(value)
        found = _parameters(row.name)
        assert found["stage_1"] + found["stage_2"] + found["stage_3"] == found["training"].max_epochs == EPOCHS


def test_no_run_is_made_twice() -> None:
    settings = [str(sorted(_changed(row.name).items())) for row in ROWS]
    assert len({*settings, "[]"}) == len(ROWS) + 1
    assert all(row.runs_here for row in ROWS)


@pytest.mark.parametrize(
    ("row", "stages"),
    [
        ("aecl-contrast-alone", {"stage_1"}),
        ("aecl-no-stage-1", {"stage_2", "stage_3"}),
        ("aecl-no-stage-2", {"stage_1", "stage_3"}),
    ],
)
def test_a_run_has_the_stages_of_its_row(row: str, stages: set[str], tiny_encoder: Path) -> None:
    small = {"encoder": str(tiny_encoder), "device": "cpu", "training.max_epochs": 10, "training.batch_size": 15}
    settings = {**find_row(row).settings_for(find_set("tweet")), **small, "training.check_every": 0}
    model = build_method("aecl", 3, 0, settings, {})
    model.fit(topic_texts(30)[0])
    assert isinstance(model, AECL)
    assert {step["stage"] for step in model.history_.steps} == stages
    assert len(model.history_.steps) == 20  # of ten epochs, whatever is left out


# --- Tables ---


def test_every_line_stands_beside_what_the_paper_prints(tmp_path: Path) -> None:
    for spec in TABLES:
        table = build_table(find_table(spec.name), Store(tmp_path))
        figures = {key: cell.reported for key, cell in table.cells.items()}
        assert len(figures) == len(spec.rows) * 2 * 2
        number = int(spec.name[-1])
        assert {figure and (figure.paper, figure.table) for figure in figures.values()} == {("aecl", number)}
        of_main = figures[MAIN, "stackoverflow", "accuracy"]
        assert of_main is not None and of_main.value == 83.22
        others = [figures[row, "stackoverflow", "accuracy"] for row in spec.rows[1:]]
        printed = {3: [78.94], 4: [79.59, 44.65], 5: [46.52, 82.67]}[number]
        assert [figure and figure.value for figure in others] == printed


def test_tables_run_the_ablations_and_what_they_are_compared_with() -> None:
    assert [len(table_jobs(spec, (0,))) for spec in TABLES] == [6, 8, 8]


# --- Figures ---


def _write(store: Store, row: str, dataset: str, seed: int, scores: dict[str, float], **more: Any) -> str:
    job = Job(find_row(row), find_set(dataset), seed)
    record = {
        "row": row,
        "dataset": dataset,
        "protocol": PROTOCOL,
        "source_digest": "a",
        "scores": {"final": scores},
        **more,
    }
    store.write(job.name, record)
    return job.name


def _snapshot(epoch: int, stage: str, level: float, mapped: bool) -> dict[str, Any]:
    found = {"stage": stage, "epoch": epoch, "step": 10 * epoch, "mapped": mapped}
    measured = {"cosine_same": level, "cosine_other": level / 4, "accuracy": 1.0, "nmi": 1.0}
    place = np.random.default_rng(epoch).normal(size=(12, 2)).round(2) + 100 * level
    return {**found, **measured, **({"map": place.tolist()} if mapped else {})}


def _trace(level: float, epochs: tuple[int, ...] = (0, 1, 2, 5, 9, 20)) -> dict[str, Any]:
    """Epochs are missing, as in the trace of a long run."""
    snapshots = [
        _snapshot(
            epoch, "start" if not epoch else "stage_3", level * (1 + epoch / 20), epoch in (epochs[0], epochs[-1])
        )
        for epoch in epochs
    ]
    return {"texts": 12, "classes": [0, 1, 2] * 4, "class_names": ["a", "b", "c"], "snapshots": snapshots}


def _level(row: str) -> float:
    """Another one for every row."""
    return 0.1 + 0.01 * (sum(row.encode()) % 37)


def _filled(folder: Path, spec: FigureSpec, seeds: tuple[int, ...] = (0, 1)) -> FigureData:
    """A store with runs of all jobs of a figure: the second seed is two better, and stops earlier."""
    store = Store(folder)
    for job in figure_jobs(spec, seeds):
        level, dataset = 100 * _level(job.row.name), job.dataset.name
        curve = [{"accuracy": level + 2 * job.seed + epoch, "nmi": 0.0} for epoch in range(21 - 10 * job.seed)]
        scores = {"accuracy": level + 2 * job.seed, "nmi": level + 30}
        if job.trace:
            store.write_trace(job.name, _trace(_level(job.row.name)))
        _write(store, job.row.name, dataset, job.seed, scores, curve=curve)
    return FigureData(store, spec.rows, spec.sets)


def _plotted(spec: FigureSpec, data: FigureData) -> Any:
    figure = Figure(layout="constrained")
    spec.plot(data, figure)
    return figure


@pytest.mark.parametrize("spec", FIGURES, ids=lambda spec: spec.name)
def test_every_figure_is_plotted_from_runs_alone(spec: FigureSpec, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=f"--figure {spec.name}"):
        plot_figure(spec, Store(tmp_path), tmp_path / "none.png")
    _filled(tmp_path, spec)
    for ending in ("png", "svg"):
        plot_figure(spec, Store(tmp_path), tmp_path / f"figure.{ending}")
    assert (tmp_path / "figure.png").read_bytes().startswith(b"\x89PNG")
    assert spec.title in (tmp_path / "figure.svg").read_text(encoding="utf-8")


def test_maps_show_the_start_and_the_end_of_three_methods(tmp_path: Path) -> None:
    data = _filled(tmp_path, find_figure("aecl-4"))
    panels = _plotted(find_figure("aecl-4"), data).axes
    assert [axes.get_title() for axes in panels] == ["Frozen encoder", "SCCL", "RSTC", "AECL"]
    for axes, row, snapshot in zip(panels, (MAIN, "sccl", "rstc", MAIN), (0, -1, -1, -1), strict=True):
        (points,) = axes.collections
        trace = data.trace(row, "stackoverflow")
        assert trace is not None
        assert points.get_offsets().tolist() == trace["snapshots"][snapshot]["map"]
        assert points.get_array().tolist() == trace["classes"]


def test_false_negatives_over_epochs(tmp_path: Path) -> None:
    spec = find_figure("aecl-5")
    cosine, accuracy = _plotted(spec, _filled(tmp_path, spec)).axes
    assert [line.get_label() for line in cosine.lines] == [find_row(row).title for row in spec.rows]
    for row, line in zip(spec.rows, cosine.lines, strict=True):
        # A trace leaves epochs out: points stand where they belong, not one after the other.
        assert line.get_xdata().tolist() == [0, 1, 2, 5, 9, 20]
        assert line.get_ydata()[-1] == pytest.approx(2 * _level(row))
    assert not cosine.collections
    for row, line, band in zip(spec.rows, accuracy.lines, accuracy.collections, strict=True):
        start = 100 * _level(row) + 1
        # The second seed ended at epoch 10, ten higher and two better.
        assert line.get_ydata()[[0, 10, 20]].tolist() == pytest.approx([start, start + 10, start + 15])
        corners = band.get_paths()[0].vertices
        at_start = sorted(set(corners[corners[:, 0] == 0][:, 1].round(6)))
        assert at_start == pytest.approx([start - 2**0.5, start + 2**0.5], abs=1e-5)


def test_results_without_a_curve_are_left_out_of_it(tmp_path: Path) -> None:
    spec = find_figure("aecl-5")
    store = Store(tmp_path)
    _write(store, MAIN, "tweet", 0, {"accuracy": 50.0})
    _write(store, MAIN, "tweet", 1, {"accuracy": 50.0}, curve=[{"accuracy": 40.0}, {"accuracy": 45.0}])
    cosine, accuracy = _plotted(spec, FigureData(store, spec.rows, spec.sets)).axes
    assert [line.get_ydata().tolist() for line in accuracy.lines] == [[], [], [40.0, 45.0]]
    assert all(not len(line.get_xdata()) for line in cosine.lines) and not accuracy.collections


def test_a_panel_a_set_of_the_eight(tmp_path: Path) -> None:
    spec = find_figure("aecl-6")
    panels = _plotted(spec, _filled(tmp_path, spec)).axes
    assert [axes.get_title() for axes in panels] == [find_set(name).title for name in spec.sets]
    for axes in panels:
        alone, whole = axes.lines
        assert alone.get_ydata()[0] == pytest.approx(_level("aecl-contrast-alone") / 4)
        assert whole.get_ydata()[0] == pytest.approx(_level(MAIN) / 4)
    assert len({axes.get_ylim() for axes in panels}) == 1


def test_a_panel_that_is_not_needed_is_blank(tmp_path: Path) -> None:
    from coterie.benchmark.matplotlib_plots import epoch_curves

    spec = find_figure("aecl-6")
    data = FigureData(_filled(tmp_path, spec, (0,)).store, spec.rows, spec.sets[:3])
    figure = Figure(layout="constrained")
    epoch_curves(data, figure, {"cosine_other": "cosine"}, columns=2)
    assert [axes.axison for axes in figure.axes] == [True, True, True, False]
    assert [axes.get_xlabel() for axes in figure.axes] == ["", "epoch", "epoch", ""]


@pytest.mark.parametrize(
    ("name", "settings"),
    [("aecl-7", ("lambda1", "lambda2", "lambda3", "lambda4")), ("aecl-8", ("stage_1",)), ("aecl-9", ("stage_2",))],
)
def test_a_sweep_has_every_run_at_its_value(name: str, settings: tuple[str, ...], tmp_path: Path) -> None:
    spec = find_figure(name)
    panels = _plotted(spec, _filled(tmp_path, spec)).axes
    plotted_rows = set()
    for axes, setting in zip(panels, settings, strict=False):
        default = inspect.signature(AECL).parameters[setting].default
        rows = [row for row in spec.rows if row == MAIN or setting in find_row(row).settings]
        expected = sorted((_parameters(row)[setting], 100 * _level(row) + 1) for row in rows)
        assert default in [value for value, _ in expected]
        assert len(axes.lines) == len(spec.sets)
        for line in axes.lines:
            points = list(zip(line.get_xdata(), line.get_ydata(), strict=True))
            assert points == [pytest.approx(each) for each in expected]
        plotted_rows |= set(rows)
    assert plotted_rows == set(spec.rows)
    assert [axes.get_xscale() for axes in panels[:4]] == (
        ["linear", "linear", "log", "log"] if len(settings) == 4 else ["linear", "linear"]
    )


@pytest.mark.parametrize("spec", FIGURES[1:], ids=lambda spec: spec.name)
def test_the_legend_is_not_cut(spec: FigureSpec, tmp_path: Path) -> None:
    figure = _plotted(spec, _filled(tmp_path, spec))
    figure.draw_without_rendering()
    (legend,) = figure.legends
    assert len(legend.get_texts()) == len(figure.axes[0].lines)
    around, page = legend.get_window_extent(), figure.bbox
    assert page.x0 <= around.x0 and around.x1 <= page.x1 and page.y0 <= around.y0


def test_curves_of_a_trace_that_leaves_epochs_out(tmp_path: Path) -> None:
    from coterie.benchmark.matplotlib_plots import curves

    name = _write(Store(tmp_path), MAIN, "tweet", 0, {"accuracy": 50.0})
    snapshots = [
        _snapshot(epoch, stage, 0.5, False)
        for epoch, stage in ((0, "start"), (1, "stage_1"), (4, "stage_1"), (6, "stage_2"))
    ]
    Store(tmp_path).write_trace(name, {"snapshots": snapshots})
    figure = Figure()
    curves(FigureData(Store(tmp_path), (MAIN,), ("tweet",)), figure, {"cosine_same": "cosine"})
    line, *ends = figure.axes[0].lines
    assert list(line.get_xdata()) == [0, 1, 4, 6]
    assert [list(end.get_xdata()) for end in ends] == [[0.5, 0.5], [5.5, 5.5]]
