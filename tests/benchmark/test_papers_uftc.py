"""What UFTC's paper shows beside its main table: which settings stand behind a row, and what its figure draws."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import topic_texts
from matplotlib.figure import Figure

from coterie import UFTC, TrainingConfig
from coterie.benchmark.catalogue import find_figure, find_row, find_table
from coterie.benchmark.figures import FigureData, figure_jobs, plot_figure
from coterie.benchmark.paper_definitions import require_paper_definitions
from coterie.benchmark.rows import PROTOCOL
from coterie.benchmark.sets import Loaded, find_set
from coterie.benchmark.store import Job, Store
from coterie.benchmark.tables import build_table, table_jobs
from coterie.benchmark.traces import save_trace, trace_of
from coterie.errors import InputError
from coterie.methods.build_method import build_method
from coterie.text.corpus import as_corpus

uftc = require_paper_definitions().package.uftc


def _parameters(name: str) -> dict[str, Any]:
    row = find_row(name)
    return build_method(row.method, 3, 0, row.settings_for(find_set("trec6")), {}).get_params()


@pytest.mark.parametrize(
    ("name", "expected"), [("uftc-no-masked-loss", {"masked_loss": False}), ("uftc-cls", {"pooling": "cls"})]
)
def test_one_part_is_all_that_differs(name: str, expected: dict[str, Any]) -> None:
    main = _parameters("uftc")
    assert {key: value for key, value in _parameters(name).items() if value != main[key]} == expected


def test_what_the_paper_prints_stands_beside(tmp_path: Path) -> None:
    table = build_table(find_table("4-uftc-2"), Store(tmp_path))
    printed = {
        row: [
            cell.reported and cell.reported.value
            for cell in (table.cells[row, name, "purity"] for name in table.spec.sets)
        ]
        for row in ("uftc", *(row.name for row in uftc.ROWS))
    }
    assert printed == {
        "uftc": [39.91, 66.99, 33.40],
        "uftc-no-masked-loss": [39.10, 64.25, 32.08],
        "uftc-cls": [39.79, 65.18, 33.04],
    }
    assert table.cells["uftc-cls", "trec6", "accuracy"].reported is None  # the paper prints purity alone
    assert len(table_jobs(table.spec, range(5))) == 4 * 3 * 5


def test_the_maps_are_of_the_start_and_of_the_epochs_after_it(tiny_encoder: Path, tmp_path: Path) -> None:
    texts, groups = topic_texts(24)
    training = TrainingConfig(max_epochs=8, batch_size=8, snapshot_every=1, check_every=0, learning_rate=1e-3)
    model = UFTC(3, encoder=str(tiny_encoder), device="cpu", training=training).fit(texts)
    snapshots = save_trace(tmp_path / "trace.safetensors", as_corpus(texts).distinct_index, model.snapshots_)
    store, spec = Store(tmp_path), find_figure("uftc-2")
    job = Job(find_row("uftc"), find_set("dbpedia14"), 0)
    trace = trace_of(tmp_path / "trace.safetensors", snapshots, Loaded(tuple(texts), tuple(groups), 3, ""))
    store.write_trace(job.name, trace)
    store.write(job.name, {"protocol": PROTOCOL})

    figure = Figure(layout="constrained")
    spec.plot(FigureData(store, spec.rows, spec.sets), figure)
    joint = [each for each in trace["snapshots"] if each["stage"] == "joint"]
    assert len(joint) == 7
    expected = [trace["snapshots"][0], *joint[:4], joint[-1]]
    for axes, snapshot in zip(figure.axes, expected, strict=True):
        (points,) = axes.collections
        np.testing.assert_allclose(points.get_offsets(), snapshot["map"])
        assert points.get_array().tolist() == trace["classes"]
    assert [axes.get_title() for axes in figure.axes][1:] == ["epoch 2", "epoch 3", "epoch 4", "epoch 5", "the end"]
    for ending in ("png", "svg"):
        plot_figure(spec, store, tmp_path / f"maps.{ending}")
    assert (tmp_path / "maps.png").read_bytes().startswith(b"\x89PNG")
    assert "coloured by true class" in (tmp_path / "maps.svg").read_text(encoding="utf-8")


def test_one_seed_is_followed() -> None:
    jobs = figure_jobs(find_figure("uftc-2"), range(5))
    assert [(job.seed, job.trace) for job in jobs] == [(0, True), *((seed, False) for seed in range(1, 5))]


def test_without_runs_there_is_no_figure(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="run --figure uftc-2"):
        plot_figure(find_figure("uftc-2"), Store(tmp_path), tmp_path / "none.svg")
