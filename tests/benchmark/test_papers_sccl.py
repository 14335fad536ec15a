"""What SCCL's paper shows beside its main table: which settings stand behind a row, and what a figure draws."""

from __future__ import annotations

import statistics
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib.colors import to_rgba
from matplotlib.figure import Figure

from coterie.benchmark.catalogue import find_figure, find_row, find_table, published_figures
from coterie.benchmark.figures import FigureData, figure_jobs, plot_figure
from coterie.benchmark.matplotlib_plots import COLORS
from coterie.benchmark.paper_definitions import require_paper_definitions
from coterie.benchmark.rows import PROTOCOL, Row
from coterie.benchmark.sets import EIGHT_SHORT, find_set
from coterie.benchmark.specs import FigureSpec
from coterie.benchmark.store import Store
from coterie.benchmark.tables import build_table, table_jobs
from coterie.benchmark.traces import measures
from coterie.errors import InputError
from coterie.methods.build_method import build_method
from coterie.text.augmentation.composition import Composition

sccl = require_paper_definitions().package.sccl

# What a view is made by, by the name of the row without its strength.
CHAINS = {
    "wordnet": ["Synonyms"],
    "wordnet-swap": ["Synonyms", "CharSwap"],
    "deletion": ["WordDeletion"],
    "deletion-swap": ["WordDeletion", "CharSwap"],
    "contextual": ["Contextual"],
    "contextual-swap": ["Contextual", "CharSwap"],
    "back-translation": ["BackTranslation"],
}
VARIANTS = {"sccl-instance": "instance", "sccl-clustering": "cluster", "sccl-sequential": "sequential"}
FIGURES = ("sccl-1", "sccl-3", "sccl-4", "sccl-5", "sccl-6")


def _built(row: Row) -> Any:
    return build_method(row.method, 3, 0, row.settings_for(find_set("trec6")), {})


def _changed(row: Row) -> dict[str, Any]:
    """The parameters in which a row differs from the main one."""
    main = _built(find_row("sccl")).get_params()
    return {name: value for name, value in _built(row).get_params().items() if value != main[name]}


@pytest.mark.parametrize("row", [row for row in sccl.ROWS if row.name not in VARIANTS], ids=lambda row: row.name)
def test_an_augmentation_is_all_that_differs(row: Row) -> None:
    changed = _changed(row)
    assert changed and set(changed) <= {"augmentation", "augmentation_ratio"}
    name, _, strength = row.name.removeprefix("sccl-").rpartition("-")
    views = [
        list(view.augmenters) if isinstance(view, Composition) else [view]
        for view in _built(row)._augmenters().values()
    ]
    assert [[type(each).__name__ for each in view] for view in views] == [CHAINS[name]] * 2
    if name == "back-translation":
        assert [(view[0].strength, view[0].place) for view in views] == [(strength, 0), (strength, 1)]
    else:
        assert {each.ratio for view in views for each in view} == {int(strength) / 100}
    if name.startswith("contextual"):
        assert [view[0].model for view in views] == ["bert-base-uncased", "roberta-base"]
    assert row.runs_here == (not name.startswith(("contextual", "back-translation")))


@pytest.mark.parametrize("name", VARIANTS)
def test_a_part_of_the_method_is_all_that_differs(name: str) -> None:
    assert _changed(find_row(name)) == {"variant": VARIANTS[name]}


def test_no_two_rows_are_the_same_run() -> None:
    rows = [find_row("sccl"), *sccl.ROWS]
    settings = [repr(sorted(_built(row).get_params(deep=False).items())) for row in rows]
    assert len(set(settings)) == len(rows) == 24
    assert len({row.title for row in rows}) == len(rows)


def test_what_the_paper_prints_stands_beside_every_strength(tmp_path: Path) -> None:
    table = build_table(find_table("4-sccl-3"), Store(tmp_path))
    methods = {"wordnet": "sccl/wordnet", "back-translation": "sccl/back_translation", "contextual": "sccl"}
    printed = {
        (f.method, f.dataset, f.metric): f.value for f in published_figures() if (f.paper, f.table) == ("sccl", 3)
    }
    for name, method in methods.items():
        rows = [row.name for row in sccl.ROWS if row.name.removeprefix("sccl-").rpartition("-")[0] == name]
        assert len(rows) == 3
        for dataset in EIGHT_SHORT:
            for measure in ("accuracy", "nmi"):
                cells = [table.cells[row, dataset, measure].reported for row in rows]
                assert [each and each.value for each in cells] == [printed[method, dataset, measure]] * 3
    # As in the paper's own table.
    for key, value in {
        ("sccl-wordnet-10", "agnews", "accuracy"): 86.6,
        ("sccl-back-translation-high", "tweet", "nmi"): 86.4,
        ("sccl-contextual-30", "googlenews_t", "accuracy"): 73.9,
    }.items():
        found = table.cells[key].reported
        assert found is not None and found.value == value
    assert table.cells["sccl-deletion-10", "agnews", "accuracy"].reported is None
    assert [line.row.name for line in table.lines] == [row.name for row in sccl.ROWS if row.missing][:6]


def test_nothing_is_run_that_needs_weights() -> None:
    jobs = [*table_jobs(find_table("4-sccl-3"), range(5)), *figure_jobs(find_figure("sccl-5"), range(5))]
    rows = {job.row.name for job in jobs}
    assert rows and not any("contextual" in row or "translation" in row for row in rows)
    assert len({job.name for job in jobs}) == 7 * 8 * 5 + 6 * 2 * 5  # the rows of the table, and those composed


# --- Figures ---


def _accuracy(row: str, dataset: str, seed: int) -> float:
    """Any score that no other run has."""
    names = [each.name for each in (find_row("sccl"), *sccl.ROWS)]
    return 30 + 2 * names.index(row) + 0.1 * EIGHT_SHORT.index(dataset) + 0.01 * seed


def _mean(row: str, dataset: str) -> float:
    return statistics.mean(_accuracy(row, dataset, seed) for seed in (0, 1))


def _trace(row: str) -> dict[str, Any]:
    generator = np.random.default_rng(len(row))
    classes = np.repeat(np.arange(3), 4)
    snapshots = []
    for epoch in range(4):
        vectors = generator.normal(size=(12, 5))
        found = measures(vectors, np.tile(np.arange(3), 4), classes)
        snapshot = {"stage": "sccl" if epoch else "start", "epoch": epoch, "step": 9 * epoch, "mapped": True}
        snapshots.append({**snapshot, **found, "map": vectors[:, :2].tolist()})
    return {"texts": 12, "classes": classes.tolist(), "class_names": ["a", "b", "c"], "snapshots": snapshots}


@pytest.fixture
def plotted(tmp_path: Path, request: pytest.FixtureRequest) -> tuple[FigureSpec, Store, Figure]:
    """The figure of the parameter, of two seeds of every run that can be made here."""
    spec = find_figure(request.param)
    store = Store(tmp_path)
    for job in figure_jobs(spec, (0, 1)):
        accuracy = _accuracy(job.row.name, job.dataset.name, job.seed)
        scores = {"final": {"accuracy": accuracy, "nmi": accuracy - 20}}
        if job.trace:
            store.write_trace(job.name, _trace(job.row.name))
        store.write(job.name, {"protocol": PROTOCOL, "source_digest": "a", "scores": scores})
    figure = Figure(layout="constrained")
    spec.plot(FigureData(store, spec.rows, spec.sets), figure)
    return spec, store, figure


@pytest.mark.parametrize("plotted", ["sccl-3", "sccl-6"], indirect=True)
def test_the_ablation_is_a_bar_a_part_and_set(plotted: tuple[FigureSpec, Store, Figure]) -> None:
    spec, _, figure = plotted
    sets = [name for name in EIGHT_SHORT if spec.name == "sccl-6" or name != "biomedical"]
    for axes, less in zip(figure.axes, (0, 20), strict=True):
        for place, row in enumerate(("sccl-instance", "sccl-clustering", "sccl-sequential", "sccl")):
            bars = [each for each in axes.patches if each.get_facecolor() == to_rgba(COLORS[place])]
            assert [bar.get_height() for bar in bars] == pytest.approx([_mean(row, name) - less for name in sets])
            # Beside the name of its set.
            assert [round(bar.get_x() + bar.get_width() / 2) for bar in bars] == list(range(len(sets)))
    assert [axes.get_ylabel() for axes in figure.axes] == ["ACC", "NMI"]
    assert len(figure.axes[-1].get_xticklabels()) == len(sets)


@pytest.mark.parametrize("plotted", ["sccl-1"], indirect=True)
def test_the_maps_are_of_the_start_and_of_three_ends(plotted: tuple[FigureSpec, Store, Figure]) -> None:
    _, _, figure = plotted
    expected = [("sccl", 0), ("sccl-instance", -1), ("sccl-clustering", -1), ("sccl", -1)]
    for axes, (row, place) in zip(figure.axes, expected, strict=True):
        trace = _trace(row)
        (points,) = axes.collections
        np.testing.assert_allclose(points.get_offsets(), trace["snapshots"][place]["map"])
        assert points.get_array().tolist() == trace["classes"]
    assert [axes.get_title() for axes in figure.axes][::3] == ["frozen encoder", "SCCL"]


@pytest.mark.parametrize("plotted", ["sccl-4"], indirect=True)
def test_distances_of_classes_are_solid_and_of_clusters_dashed(plotted: tuple[FigureSpec, Store, Figure]) -> None:
    _, _, figure = plotted
    assert len(figure.axes) == 2
    for axes, measure in zip(figure.axes, ("within", "between"), strict=True):
        for place, row in enumerate(("sccl-instance", "sccl-clustering", "sccl")):
            solid, dashed = (line for line in axes.lines if line.get_color() == COLORS[place])
            snapshots = _trace(row)["snapshots"]
            assert (solid.get_linestyle(), dashed.get_linestyle()) == ("-", "--")
            assert list(solid.get_ydata()) == [each[measure] for each in snapshots]
            assert list(dashed.get_ydata()) == [each[f"{measure}_clusters"] for each in snapshots]


def test_distances_of_clusters_are_of_what_was_found() -> None:
    vectors = np.array([[0.0, 0.0], [0.0, 2.0], [8.0, 0.0], [8.0, 2.0]])
    found = measures(vectors, np.array([0, 1, 0, 1]), np.array([0, 0, 1, 1]))
    assert (found["within"], found["between"]) == (1, 8)
    assert (found["within_clusters"], found["between_clusters"]) == (4, 2)
    alone = measures(vectors, np.zeros(4, dtype=np.int64), np.array([0, 0, 1, 1]))
    assert (alone["within_clusters"], alone["between_clusters"]) == (None, None)


@pytest.mark.parametrize("plotted", ["sccl-5"], indirect=True)
def test_one_augmentation_stands_beside_two(plotted: tuple[FigureSpec, Store, Figure]) -> None:
    _, _, figure = plotted
    words = figure.legends[0].get_texts()
    assert [each.get_text().endswith("(not run)") for each in words] == [False] * 4 + [True] * 2
    for axes, name in zip(figure.axes, ("googlenews_ts", "stackoverflow"), strict=True):
        lines = {each.get_label(): each.lines[0] for each in axes.containers}
        for label, rows in {
            "WordNet": ("sccl-wordnet-10", "sccl-wordnet-20", "sccl-wordnet-30"),
            "word deletion": ("sccl-deletion-10", "sccl", "sccl-deletion-30"),
            "word deletion, then char swap": tuple(f"sccl-deletion-swap-{share}" for share in (10, 20, 30)),
        }.items():
            assert list(lines[label].get_xdata()) == [0.1, 0.2, 0.3]
            assert list(lines[label].get_ydata()) == pytest.approx([_mean(row, name) for row in rows])


@pytest.mark.parametrize("plotted", FIGURES, indirect=True)
def test_a_figure_becomes_a_file(plotted: tuple[FigureSpec, Store, Figure], tmp_path: Path) -> None:
    spec, store, _ = plotted
    for ending in ("png", "svg"):
        plot_figure(spec, store, tmp_path / "shown" / f"{spec.name}.{ending}")
    assert (tmp_path / "shown" / f"{spec.name}.png").read_bytes().startswith(b"\x89PNG")
    assert spec.title in (tmp_path / "shown" / f"{spec.name}.svg").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", FIGURES)
def test_without_runs_there_is_no_figure(name: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=f"run --figure {name}"):
        plot_figure(find_figure(name), Store(tmp_path), tmp_path / "none.svg")
