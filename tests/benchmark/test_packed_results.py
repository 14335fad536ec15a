"""Packed results: nothing is lost, the same bytes each time, and new runs beside them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner, Result

import coterie.benchmark.packing as packing
from coterie.benchmark.packed_results import PACKED, PackedResults, partitions_sha256, write_runs
from coterie.benchmark.packing import pack_results
from coterie.benchmark.partitions import write_partitions
from coterie.benchmark.rows import PROTOCOL
from coterie.benchmark.store import Store
from coterie.cli.main import app
from coterie.errors import CoterieError, InputError

SNAPSHOTS = [{"stage": "start", "epoch": 0, "map": [[0.1, -2.25]]}]
TRACE: dict[str, Any] = {"texts": 2, "snapshots": SNAPSHOTS, "classes": [1, 0]}


def _call(*arguments: object) -> Result:
    return CliRunner().invoke(app, ["benchmark", *map(str, arguments)])


def _record(row: str, dataset: str, seed: int, **more: Any) -> dict[str, Any]:
    """Keys in an order that sorting would change, and texts that are not ASCII."""
    scores = {"final": {"nmi": 0.1 + 0.2, "accuracy": 100 / 3, "clusters": 2}, "oracle": None}
    notes = ["1,737 of 4,270 texts – größer"]
    return {
        "row": row,
        "method": "tfidf",
        "dataset": dataset,
        "seed": seed,
        "protocol": PROTOCOL,
        "settings": {"max_features": 200},
        "date": "2026-11-16",
        "source_digest": "a1",
        "machine": {"device": "cpu", "torch": "2.13.0"},
        "seconds": {"fit": 1.25},
        "notes": notes,
        "scores": scores,
        **more,
    }


def _partitions(seed: int) -> dict[str, Any]:
    labels = np.random.default_rng(seed).integers(0, 9, 40)
    outliers = np.where(labels == 0, -1, labels + 200)
    return {"final": labels, "frozen": np.arange(40) % 3, "head": outliers}


def _write(store: Store, name: str, seed: int, record: dict[str, Any], trace: bool = False) -> None:
    write_partitions(store.assignment_file(name), _partitions(seed))
    if trace:
        store.write_trace(name, TRACE)
    store.write(name, record)


@pytest.fixture
def loose(tmp_path: Path) -> Store:
    """Three runs on two sets, one of them with a trace, one more without assignments."""
    store = Store(tmp_path / "loose")
    _write(store, "b.tweet.s0", 0, _record("b", "tweet", 0), trace=True)
    _write(store, "a.tweet.s1", 1, _record("a", "tweet", 1))
    _write(store, "a.agnews.s0", 2, _record("a", "agnews", 0))
    store.write("bare.tweet.s0", _record("bare", "tweet", 0))
    store.comparisons_file.write_text("{}\n", encoding="utf-8")
    return store


def _content(store: Store) -> dict[str, Any]:
    """All that a store gives, as text where the order of keys counts."""
    return {
        "records": [(name, json.dumps(record)) for name, record in store.records().items()],
        "read": [json.dumps(store.read(name)) for name in store.names()],
        "assignments": [
            (name, partition, labels.dtype.str, labels.tolist())
            for name in store.names()
            for partition, labels in sorted({**store.assignments(name), **store.stored_partitions(name)}.items())
        ],
        "digests": [(name, store.assignments_sha256(name)) for name in store.names() if store.has_assignments(name)],
        "with assignments": [name for name in store.names() if store.has_assignments(name)],
        "traces": [(name, json.dumps(store.read_trace(name))) for name in store.names() if store.has_trace(name)],
    }


def _files(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def test_every_record_assignment_and_trace_comes_back_equal(loose: Store, tmp_path: Path) -> None:
    before = _content(loose)
    files = _files(loose.folder)
    summary = pack_results(loose.folder, tmp_path / "packed")
    assert (summary.runs, summary.loose, summary.traces) == (4, 4, 1)
    assert _content(Store(tmp_path / "packed")) == before
    assert before["assignments"] and before["traces"] and len(before["with assignments"]) == 3
    assert _files(loose.folder) == files  # what was packed is left as it was
    names = set(_files(tmp_path / "packed"))
    assert names == {
        "comparisons.json",
        "packed/runs.parquet",
        "packed/traces.parquet",
        "packed/assignments/agnews.parquet",
        "packed/assignments/tweet.parquet",
    }


def test_the_same_runs_give_the_same_bytes(loose: Store, tmp_path: Path) -> None:
    pack_results(loose.folder, tmp_path / "first")
    pack_results(loose.folder, tmp_path / "second")
    pack_results(tmp_path / "first", tmp_path / "third")
    pack_results(tmp_path / "second")
    first = _files(tmp_path / "first")
    assert first == _files(tmp_path / "second") == _files(tmp_path / "third")


def test_in_place_new_runs_lie_beside_the_packed_ones_and_are_joined_again(loose: Store) -> None:
    before = _content(loose)
    pack_results(loose.folder)
    assert set(_files(loose.folder)) == {
        "comparisons.json",
        *(f"packed/{name}" for name in ("runs.parquet", "traces.parquet")),
        *(f"packed/assignments/{name}.parquet" for name in ("agnews", "tweet")),
    }
    assert _content(Store(loose.folder)) == before

    agnews = (loose.folder / "packed/assignments/agnews.parquet").stat().st_mtime_ns
    beside = Store(loose.folder)
    again = _record("b", "tweet", 0, date="2026-11-18")
    _write(beside, "b.tweet.s0", 7, again)  # run again: it replaces the packed one
    _write(beside, "c.tweet.s0", 8, _record("c", "tweet", 0))
    assert beside.read("b.tweet.s0") == beside.records()["b.tweet.s0"] == again
    assert beside.assignments("b.tweet.s0")["final"].tolist() == _partitions(7)["final"].tolist()
    assert beside.names() == ["a.agnews.s0", "a.tweet.s1", "b.tweet.s0", "bare.tweet.s0", "c.tweet.s0"]
    assert beside.has_run("a.agnews.s0") and beside.has_run("c.tweet.s0") and not beside.has_run("d.tweet.s0")

    content = _content(Store(loose.folder))
    assert pack_results(loose.folder).loose == 2
    assert _content(Store(loose.folder)) == content
    assert Store(loose.folder).loose_names() == []
    # No run of this set was new.
    assert (loose.folder / "packed/assignments/agnews.parquet").stat().st_mtime_ns == agnews


def test_epochs_stay_as_they_are(loose: Store, tmp_path: Path) -> None:
    write_partitions(loose.epochs_file("b.tweet.s0"), {"epochs": np.arange(80).reshape(2, 40)})
    before = loose.assignments("b.tweet.s0")
    pack_results(loose.folder, tmp_path / "packed")
    after = Store(tmp_path / "packed").assignments("b.tweet.s0")
    assert after["epochs"].shape == (2, 40) and list(after) == list(before)
    assert all(np.array_equal(after[each], before[each]) for each in before)


def test_nothing_is_removed_when_what_was_written_is_not_the_same(
    loose: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = packing.write_assignments

    def spoiled(path: Path, assignments: Any) -> None:
        real(path, {name: {each: labels[::-1] for each, labels in of.items()} for name, of in assignments.items()})

    monkeypatch.setattr(packing, "write_assignments", spoiled)
    files = _files(loose.folder)
    with pytest.raises(CoterieError, match="nothing was removed"):
        pack_results(loose.folder)
    assert files.items() <= _files(loose.folder).items()


def test_a_packed_run_that_would_get_lost_is_noticed(loose: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    pack_results(loose.folder)
    _write(Store(loose.folder), "c.tweet.s0", 8, _record("c", "tweet", 0))
    real = packing.write_assignments

    def spoiled(path: Path, assignments: Any) -> None:
        real(path, {name: of if name == "c.tweet.s0" else {"final": of["final"]} for name, of in assignments.items()})

    monkeypatch.setattr(packing, "write_assignments", spoiled)
    with pytest.raises(CoterieError, match=r"a.tweet.s1 was not packed.*nothing was removed"):
        pack_results(loose.folder)


def test_a_folder_without_runs_and_one_that_is_not_empty_are_refused(loose: Store, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="coterie benchmark run --out"):
        pack_results(tmp_path / "nothing")
    with pytest.raises(InputError, match="not empty"):
        pack_results(loose.folder, tmp_path)


def test_commands_pack_a_folder_and_show_a_run(loose: Store, tmp_path: Path) -> None:
    output = tmp_path / "packed"
    assert "4 runs (4 of them newly packed) and 1 traces" in _call("pack", loose.folder, "-o", output).output
    for folder, place in ((loose.folder, "runs/a.tweet.s1.json"), (output, "packed/runs.parquet")):
        printed = _call("show", "a", "tweet", 1, "--out", folder).output
        assert "a on tweet, seed 1" in printed and "a.tweet.s1" in printed and place in printed
        assert "max_features=200" in printed and "accuracy 33.33" in printed and "source=a1" in printed
        assert "größer" in printed and "torch=2.13.0" in printed
    as_json = _call("show", "a", "tweet", 1, "--json", "--out", output).output
    assert as_json == json.dumps(loose.read("a.tweet.s1"), indent=1) + "\n"


def test_a_run_that_is_not_there_is_refused_with_what_is(loose: Store) -> None:
    assert "it has the methods: a, b, bare" in str(_call("show", "z", "tweet", 0, "--out", loose.folder).exception)
    assert "was run on: agnews, tweet" in str(_call("show", "a", "trec6", 0, "--out", loose.folder).exception)
    assert "there is no folder nowhere" in str(_call("show", "a", "tweet", 0, "--out", "nowhere").exception)
    assert "it has the seeds: 1" in str(_call("show", "a", "tweet", 0, "--out", loose.folder).exception)


def test_of_several_runs_of_a_cell_the_others_are_named(loose: Store) -> None:
    loose.write("a.tweet.s1.other", _record("a", "tweet", 1, date="2026-11-17"))
    printed = _call("show", "a", "tweet", 1, "--out", loose.folder).output
    assert "also there, with other settings: a.tweet.s1.other" in printed


def test_the_digest_is_of_labels_whatever_their_type_and_order() -> None:
    labels = np.arange(5)
    digest = partitions_sha256({"final": labels, "head": labels + 1})
    assert digest == partitions_sha256({"head": (labels + 1).astype(np.int8), "final": labels.astype(np.uint16)})
    assert digest != partitions_sha256({"final": labels + 1, "head": labels})


def test_the_assignments_of_one_data_set_are_in_memory_at_a_time(loose: Store, tmp_path: Path) -> None:
    pack_results(loose.folder, tmp_path / "packed")
    packed = PackedResults(tmp_path / "packed" / PACKED)
    for name, dataset in (("a.tweet.s1", "tweet"), ("a.agnews.s0", "agnews"), ("b.tweet.s0", "tweet")):
        assert packed.assignments(name)["final"].tolist() == loose.assignments(name)["final"].tolist()
        assert list(packed._assignments) == [dataset]


def test_the_order_in_which_runs_are_written_does_not_matter(tmp_path: Path) -> None:
    records = {name: _record(name, "tweet", 0) for name in ("b", "a", "c")}
    for file, names in (("first", "abc"), ("second", "cba")):
        write_runs(tmp_path / file, {name: records[name] for name in names}, dict.fromkeys(names, ""))
    assert (tmp_path / "first").read_bytes() == (tmp_path / "second").read_bytes()
