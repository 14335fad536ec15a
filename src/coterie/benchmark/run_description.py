"""From a cell of a table to the run behind it (``coterie benchmark show``)."""

from __future__ import annotations

from typing import Any

from coterie.benchmark.catalogue import all_rows
from coterie.benchmark.sets import find_set
from coterie.benchmark.store import Job, Store
from coterie.errors import InputError

# Measures in the order in which they are printed; a ranking set has the last two alone.
MEASURES = ("accuracy", "nmi", "ari", "purity", "clusters", "map", "mrr")
# Width of the column of names, in characters.
WIDTH = 16


def find_runs(store: Store, row: str, dataset: str, seed: int) -> list[str]:
    """Return the names of the runs of a row on a data set with a seed; the one that tables use comes first.

    There are several where the settings of the row have changed since.
    """
    store.require_folder()
    records = store.records()
    wanted = (row, dataset, seed)
    names = [name for name, each in records.items() if (each["row"], each["dataset"], each["seed"]) == wanted]
    if not names:
        raise InputError(_nothing_found(store, records, row, dataset, seed))
    present = next((Job(each, find_set(dataset), seed).name for each in all_rows() if each.name == row), "")
    return sorted(names, key=lambda name: (name != present, records[name].get("date", "")))


def _nothing_found(store: Store, records: dict[str, dict[str, Any]], row: str, dataset: str, seed: int) -> str:
    """Return a message about which of row, data set and seed has no run."""
    rows = sorted({each["row"] for each in records.values()})
    sets = sorted({each["dataset"] for each in records.values() if each["row"] == row})
    seeds = sorted({each["seed"] for each in records.values() if (each["row"], each["dataset"]) == (row, dataset)})
    start = f"{store.folder} holds no run of {row} on {dataset} with seed {seed}"
    if not sets:
        return f"{start}; it has the methods: {', '.join(rows) or 'none'}"
    if not seeds:
        return f"{start}; {row} was run on: {', '.join(sets)}"
    return f"{start}; it has the seeds: {', '.join(map(str, seeds))}"


def run_as_text(store: Store, name: str) -> str:
    """Return what is known of a run: where it is, how it was made, its scores and notes."""
    record = store.read(name)
    lines = [
        ("run", name),
        ("stored in", str(store.run_file(name) if store.run_file(name).is_file() else store.packed_runs_file)),
        ("method", record.get("method", "")),
        ("settings", _pairs(record.get("settings", {}))),
        ("parameters", _pairs(record.get("parameters", {}))),
        ("texts", f"{record.get('texts', '')} (sha256 {record.get('data_sha256', 'unknown')})"),
        ("clusters", str(record.get("n_clusters", ""))),
        ("date", record.get("date", "")),
        ("versions", _versions(record)),
        ("machine", record.get("machine", {}).get("device", "")),
        ("seconds", _pairs({part: round(value, 1) for part, value in record.get("seconds", {}).items()})),
    ]
    found = [f"{record['row']} on {record['dataset']}, seed {record['seed']}"]
    found += [f"  {title:{WIDTH}s}{content}" for title, content in lines if content]
    found.append("  scores, in percent")
    for partition, scores in record["scores"].items():
        if scores is not None:
            printed = ", ".join(f"{measure} {scores[measure]:.4g}" for measure in MEASURES if measure in scores)
            found.append(f"    {partition:{WIDTH - 2}s}{printed}")
    found += ["  notes", *(f"    {note}" for note in record["notes"])] if record.get("notes") else []
    return "\n".join(found) + "\n"


def topics_as_markdown(job: Job, store: Store) -> str:
    """Return a Markdown table with a line per cluster and a column per topic, the largest and most common first."""
    again = f"coterie benchmark run --methods {job.row.name} --datasets {job.dataset.name} --seeds {job.seed}"
    if not store.has_run(job.name):
        raise InputError(f"{store.folder} has no such run yet: {again}")
    clusters = store.read(job.name).get("topics")
    if clusters is None:
        raise InputError(
            f"{job.name} was run when topics were not stored yet; run it into another folder: {again} --out again"
        )
    if not clusters:
        raise InputError(f"{job.row.title} learns no topics")
    columns = max(len(each["topics"]) for each in clusters)
    lines = [
        "| cluster | texts | " + " | ".join(f"topic {number + 1}" for number in range(columns)) + " |",
        "|---|---|" + "---|" * columns,
    ]
    for each in clusters:
        lines.append(f"| {each['cluster']} | {each['texts']:,} | " + " | ".join(each["topics"]) + " |")
    return f"## {job.row.title} on {job.dataset.name}, seed {job.seed}: topics\n\n" + "\n".join(lines) + "\n"


def _pairs(values: dict[str, Any]) -> str:
    return ", ".join(f"{name}={value}" for name, value in values.items())


def _versions(record: dict[str, Any]) -> str:
    machine = record.get("machine", {})
    versions = {
        "coterie": record.get("code_version"),
        "source": record.get("source_digest"),
        "python": machine.get("python"),
        "torch": machine.get("torch"),
        "protocol": record.get("protocol"),
    }
    return _pairs({name: value for name, value in versions.items() if value is not None})
