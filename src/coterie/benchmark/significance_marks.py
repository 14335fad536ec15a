"""Which differences to the frozen encoder are significant: computed once and stored beside the results."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Sequence
from typing import Any

from coterie.benchmark.catalogue import find_row
from coterie.benchmark.cell_runs import existing_names
from coterie.benchmark.sets import find_set, load_set
from coterie.benchmark.specs import FINAL, FROZEN, TableSpec
from coterie.benchmark.store import Store
from coterie.files import atomic_file


def p_values(
    spec: TableSpec, store: Store, echo: Callable[[str], object] = lambda _: None, *, compute: bool = True
) -> dict[tuple[str, str], float]:
    """Return p-values of the difference in accuracy to the frozen encoder, by row and data set.

    They are corrected within each data set by Holm's method. The bootstrap of a pair of rows takes a while; its result
    is stored in ``comparisons.json`` until a run of the pair changes. ``echo`` is called with a line about each that is
    computed; ``compute=False`` uses stored results alone, for which no labels are needed.
    """
    from coterie.metrics.external.significance import holm

    if FINAL not in spec.answers:
        return {}  # only the returned partition is marked
    records, stored = store.records(), _read_comparisons(store)
    p_values: dict[tuple[str, str], float] = {}
    for dataset in spec.sets:
        runs = {
            row: [name for name in existing_names(find_row(row), dataset, records) if store.has_assignments(name)]
            for row in dict.fromkeys((FROZEN, *spec.rows))
        }
        runs = {row: names for row, names in runs.items() if len(names) == len(find_row(row).seeds)}
        if FROZEN not in runs:
            continue
        raw: dict[str, float] = {}
        complete = True
        for row, names in runs.items():
            if row == FROZEN:
                continue
            key = f"{row} {dataset}"
            stamp = _stamp(store, [*names, *runs[FROZEN]])
            if stored.get(key, {}).get("runs") != stamp:
                if not compute:
                    complete = False
                    continue
                echo(f"comparing {row} with {FROZEN} on {dataset}")
                stored[key] = {"runs": stamp, **_compare(store, names, runs[FROZEN], dataset)}
                _write_comparisons(store, stored)
            raw[row] = stored[key]["p_value"]
        if complete:  # with a row left out the correction would be too small
            p_values |= {(row, dataset): value for row, value in zip(raw, holm(raw.values()), strict=True)}
    return p_values


def _compare(store: Store, first: Sequence[str], second: Sequence[str], dataset: str) -> dict[str, Any]:
    """Return the bootstrap of the difference in accuracy between two lists of runs, as it is stored."""
    from coterie.metrics.external.significance import paired_bootstrap

    labels = load_set(find_set(dataset)).labels
    ours, theirs = ([store.assignments(name)[FINAL] for name in names] for names in (first, second))
    if len(ours) == 1:  # it uses no seed: each would have given the same
        ours *= len(theirs)
    result = paired_bootstrap(ours, theirs, labels)
    return {
        "difference": result.difference,
        "low": result.low,
        "high": result.high,
        "p_value": result.p_value,
        "resamples": result.n_resamples,
    }


def _stamp(store: Store, names: Sequence[str]) -> str:
    """Return a digest of the assignments of runs, by which a stored comparison is recognised as up to date."""
    digest = hashlib.sha256()
    for name in names:
        digest.update(store.assignments_sha256(name).encode())
    return digest.hexdigest()[:16]


def _read_comparisons(store: Store) -> dict[str, Any]:
    path = store.comparisons_file
    comparisons: dict[str, Any] = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
    return comparisons


def _write_comparisons(store: Store, comparisons: dict[str, Any]) -> None:
    with atomic_file(store.comparisons_file) as stream:
        stream.write(json.dumps(comparisons, indent=1, sort_keys=True) + "\n")
