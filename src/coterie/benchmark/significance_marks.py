"""Which differences to the frozen encoder are more than chance: computed once, kept beside the results."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Sequence
from typing import Any

from coterie.benchmark.catalogue import find_row
from coterie.benchmark.cell_runs import run_names
from coterie.benchmark.sets import find_set, load_set
from coterie.benchmark.specs import FINAL, FROZEN, TableSpec
from coterie.benchmark.store import Store
from coterie.files import whole_file


def p_values(
    spec: TableSpec, store: Store, tell: Callable[[str], object] = lambda _: None, *, compute: bool = True
) -> dict[tuple[str, str], float]:
    """Of accuracy against the frozen row, by row and set, corrected within each set by Holm's method.

    The bootstrap of a pair of rows takes a while and is kept in ``comparisons.json`` until a run of it changes;
    ``compute=False`` uses what is kept and needs no labels.
    """
    from coterie.metrics.external.significance import holm

    if FINAL not in spec.answers:
        return {}  # other answers carry no marks
    records, kept = store.records(), _kept(store)
    found: dict[tuple[str, str], float] = {}
    for dataset in spec.sets:
        runs = {
            row: [name for name in run_names(find_row(row), dataset) if name in records and store.has_assignments(name)]
            for row in dict.fromkeys((FROZEN, *spec.rows))
        }
        runs = {row: names for row, names in runs.items() if len(names) == len(find_row(row).seeds)}
        if FROZEN not in runs:
            continue
        raw: dict[str, float] = {}
        whole = True
        for row, names in runs.items():
            if row == FROZEN:
                continue
            key = f"{row} {dataset}"
            stamp = _stamp(store, [*names, *runs[FROZEN]])
            if kept.get(key, {}).get("runs") != stamp:
                if not compute:
                    whole = False
                    continue
                tell(f"comparing {row} with {FROZEN} on {dataset}")
                kept[key] = {"runs": stamp, **_compared(store, names, runs[FROZEN], dataset)}
                _keep(store, kept)
            raw[row] = kept[key]["p_value"]
        if whole:  # with some left out the correction would be too small
            found |= {(row, dataset): value for row, value in zip(raw, holm(raw.values()), strict=True)}
    return found


def _compared(store: Store, first: Sequence[str], second: Sequence[str], dataset: str) -> dict[str, Any]:
    from coterie.metrics.external.significance import paired_bootstrap

    labels = load_set(find_set(dataset)).labels
    ours, theirs = ([store.assignments(name)[FINAL] for name in names] for names in (first, second))
    if len(ours) == 1:  # no chance in it: every seed would have given the same
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
    digest = hashlib.sha256()
    for name in names:
        digest.update(store.assignments_sha256(name).encode())
    return digest.hexdigest()[:16]


def _kept(store: Store) -> dict[str, Any]:
    path = store.comparisons_file
    found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
    return found


def _keep(store: Store, kept: dict[str, Any]) -> None:
    with whole_file(store.comparisons_file) as stream:
        stream.write(json.dumps(kept, indent=1, sort_keys=True) + "\n")
