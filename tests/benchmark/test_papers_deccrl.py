"""What DECCRL's paper shows beside the main table: ablation, sweep, maps, curves and topics."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.collections import PathCollection
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from worker_thread import WorkerThread

from coterie.benchmark.catalogue import find_figure, find_row, find_table
from coterie.benchmark.figures import FigureData, figure_jobs, plot_figure
from coterie.benchmark.paper_definitions import require_paper_definitions
from coterie.benchmark.rows import PROTOCOL, Row
from coterie.benchmark.run_description import topics_as_markdown
from coterie.benchmark.runner import run_jobs
from coterie.benchmark.sets import find_set
from coterie.benchmark.specs import FigureSpec
from coterie.benchmark.store import Job, Store
from coterie.benchmark.table_formats import as_markdown
from coterie.benchmark.tables import build_table, table_jobs
from coterie.errors import InputError
from coterie.methods.build_method import build_method

deccrl = require_paper_definitions().package.deccrl
FIGURES = deccrl.FIGURES
ROWS = deccrl.ROWS
TABLES = deccrl.TABLES

SUPPORT = find_set("support")


def _parameters(row: Row) -> dict[str, Any]:
    return dict(build_method(row.method, 3, 0, row.settings_for(find_set("trec6")), {}).get_params())


def _stored(store: Store, row: str, dataset: str, accuracy: float = 50.0, seed: int = 0) -> str:
    name = Job(find_row(row), find_set(dataset), seed).name
    scores = {"accuracy": accuracy, "nmi": accuracy / 2}
    store.write(
        name,
        {
            "row": row,
            "dataset": dataset,
            "protocol": PROTOCOL,
            "source_digest": "a",
            "scores": {"final": scores, "frozen": None, "oracle": None},
        },
    )
    return name


def _traced(store: Store, row: str, dataset: str, silhouettes: list[float | None]) -> None:
    """A trace of four texts, mapped at its start and its end; where they lie tells which snapshot it is."""
    snapshots: list[dict[str, Any]] = [
        {"stage": row, "epoch": at, "step": at, "mapped": False, "silhouette": value}
        for at, value in enumerate(silhouettes)
    ]
    for at in (0, -1):
        snapshots[at] |= {"mapped": True, "map": [[text, silhouettes[at]] for text in range(4)]}
    store.write_trace(_stored(store, row, dataset), {"classes": [0, 1, 2, 0], "snapshots": snapshots})


def _plotted(spec: FigureSpec, store: Store) -> Figure:
    figure = Figure()
    spec.plot(FigureData(store, spec.rows, spec.sets), figure)
    return figure


def _points(line: Line2D) -> list[tuple[float, float]]:
    return [(float(x), float(y)) for x, y in np.asarray(line.get_xydata())]


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_a_row_differs_from_the_method_in_one_setting(row: Row) -> None:
    main, other = _parameters(find_row("deccrl")), _parameters(row)
    changed = {name: value for name, value in other.items() if value != main[name]}
    if row.name.startswith("deccrl-topics-"):
        assert changed == {"n_topics": int(row.name.rpartition("-")[2])}
    else:
        assert changed == {"variant": {"deccrl-no-crl": "none", "deccrl-lsr": "latent"}[row.name]}


def test_the_ablation_stands_beside_what_the_paper_prints(tmp_path: Path) -> None:
    (spec,) = TABLES
    assert find_table("4-deccrl-3") is spec
    store = Store(tmp_path)
    for row in spec.rows:
        _stored(store, row, "agnews", 80.0)
    table = build_table(spec, store)
    reported = {key: cell.reported.value for key, cell in table.cells.items() if cell.reported}
    assert reported == {
        ("deccrl-no-crl", "agnews", "nmi"): 59.2,
        ("deccrl-no-crl", "agnews", "accuracy"): 81.5,
        ("deccrl-lsr", "agnews", "nmi"): 62.3,
        ("deccrl", "agnews", "nmi"): 69.1,
        ("deccrl", "agnews", "accuracy"): 88.9,
        ("deccrl", "stackoverflow", "accuracy"): 82.3,
        ("deccrl", "biomedical", "accuracy"): 47.0,
        # From Table 2.
        ("deccrl", "stackoverflow", "nmi"): 76.7,
        ("deccrl", "biomedical", "nmi"): 41.5,
    }
    assert "| DECCRL without CRL | 80.0 ×1 (81.5: -1.5) | - | - |" in as_markdown(table)
    assert len({job.name for job in table_jobs(spec, range(5))}) == 4 * 3 * 5


def test_figures_know_their_runs() -> None:
    counted = {spec.name: len({job.name for job in figure_jobs(spec, [0])}) for spec in FIGURES}
    assert counted == {"deccrl-2": 2, "deccrl-3": 9, "deccrl-4": 21}
    traced = {spec.name: {job.trace for job in figure_jobs(spec, [0])} for spec in FIGURES}
    assert traced == {"deccrl-2": {True}, "deccrl-3": {True}, "deccrl-4": {False}}


def test_maps_of_both_methods_before_and_after_training(tmp_path: Path) -> None:
    store = Store(tmp_path)
    _traced(store, "sccl", "stackoverflow", [1.0, 2.0, 3.0])
    _traced(store, "deccrl", "stackoverflow", [4.0, 5.0, 6.0])
    heights = {}
    for axes in _plotted(find_figure("deccrl-2"), store).axes:
        (dots,) = (each for each in axes.collections if isinstance(each, PathCollection))
        offsets = np.asarray(dots.get_offsets())
        assert offsets[:, 0].tolist() == [0, 1, 2, 3]
        assert np.asarray(dots.get_array()).tolist() == [0, 1, 2, 0]
        heights[axes.get_title()] = set(offsets[:, 1].tolist())
    assert heights == {
        "SCCL, before training": {1.0},
        "SCCL, after training": {3.0},
        "DECCRL, before training": {4.0},
        "DECCRL, after training": {6.0},
    }


def test_a_curve_of_silhouettes_a_strategy_and_set(tmp_path: Path) -> None:
    store = Store(tmp_path)
    spec = find_figure("deccrl-3")
    for place, row in enumerate(spec.rows):
        _traced(store, row, "agnews", [place / 10, None, place / 10 + 0.2])
    first, *others = _plotted(spec, store).axes
    assert first.get_title() == find_set("agnews").title and len(others) == 2
    assert {str(line.get_label()): _points(line) for line in first.lines} == {
        "DECCRL without CRL": [(0.0, 0.0), (2.0, 0.2)],
        "DECCRL with LSR for CRL": [(0.0, 0.1), (2.0, pytest.approx(0.3))],
        "DECCRL": [(0.0, 0.2), (2.0, 0.4)],
    }
    assert all(_points(line) == [] for axes in others for line in axes.lines)


def test_scores_over_the_number_of_topics(tmp_path: Path) -> None:
    """The main row is that of five topics."""
    store = Store(tmp_path)
    for row in find_figure("deccrl-4").rows:
        topics = _parameters(find_row(row))["n_topics"]
        _stored(store, row, "biomedical", 40.0 + topics)
    title = find_set("biomedical").title
    nmi, accuracy = _plotted(find_figure("deccrl-4"), store).axes
    (line,) = (each for each in accuracy.lines if each.get_label() == title)
    assert _points(line) == [(topics, 40.0 + topics) for topics in (1, 5, 10, 15, 20, 25, 30)]
    (line,) = (each for each in nmi.lines if each.get_label() == title)
    assert _points(line)[1] == (5, 22.5)
    assert (nmi.get_ylabel(), accuracy.get_ylabel()) == ("NMI", "ACC")


@pytest.mark.parametrize("spec", FIGURES, ids=lambda spec: spec.name)
def test_a_figure_becomes_a_file(spec: FigureSpec, tmp_path: Path) -> None:
    store = Store(tmp_path / "results")
    with pytest.raises(InputError, match=f"--figure {spec.name}"):
        plot_figure(spec, store, tmp_path / "none.svg")
    for row in spec.rows:
        for dataset in spec.sets:
            _traced(store, row, dataset, [0.1, 0.2])
    for ending, begins in ((".png", b"\x89PNG"), (".svg", b"<?xml")):
        path = tmp_path / f"{spec.name}{ending}"
        plot_figure(spec, store, path)
        assert path.read_bytes().startswith(begins)
    assert spec.title in path.read_text(encoding="utf-8")


def test_a_legend_is_not_wider_than_its_figure(tmp_path: Path) -> None:
    store = Store(tmp_path)
    _stored(store, "deccrl", "agnews")
    figure = _plotted(find_figure("deccrl-4"), store)
    FigureCanvasAgg(figure)
    (legend,) = figure.legends
    assert 0 < legend.get_window_extent().width <= figure.bbox.width


# --- Topics: Table 4 ---


def test_a_run_keeps_some_words_of_its_topics(
    tmp_path: Path, tiny_encoder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("coterie.benchmark.runner._new_process", WorkerThread)
    quick = {"training.max_steps": 2, "training.batch_size": 256, "topic_steps": 5, "n_topics": 7}
    with_topics = Job(Row("quick", "Quick", "deccrl", {"encoder": str(tiny_encoder), **quick}), SUPPORT, 0)
    without = Job(Row("plain", "Plain", "tfidf"), SUPPORT, 0)
    store = Store(tmp_path)
    run_jobs([with_topics, without], store, device="cpu")
    clusters = store.read(with_topics.name)["topics"]
    sizes = np.bincount(store.assignments(with_topics.name)["final"])
    assert [each["texts"] for each in clusters] == sizes.tolist() == sorted(sizes.tolist(), reverse=True)
    for each in clusters:
        assert len(each["topics"]) == 5  # of seven
        assert all(len(set(topic.split(", "))) == 4 for topic in each["topics"])
    assert store.read(without.name)["topics"] == []
    printed = topics_as_markdown(with_topics, store)
    assert f"| 0 | {sizes[0]} | {clusters[0]['topics'][0]} | " in printed
    with pytest.raises(InputError, match="Plain learns no topics"):
        topics_as_markdown(without, store)
