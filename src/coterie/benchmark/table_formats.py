"""Tables as Markdown, CSV or HTML."""

from __future__ import annotations

import csv
import html
import io
from collections.abc import Callable

from coterie.benchmark.catalogue import find_table
from coterie.benchmark.sets import find_set
from coterie.benchmark.significance_marks import p_values
from coterie.benchmark.specs import MEASURE_TITLES
from coterie.benchmark.store import Store
from coterie.benchmark.tables import FOUND, Cell, Table, build_table, found_table
from coterie.checks import check_choice

LEGEND = (
    "Measured: mean ± standard deviation over seeds, in percent, all-MiniLM-L6-v2. In brackets: what the papers "
    "report, with other encoders, and the difference of the measured mean to it. ↑ and ↓: significantly better or "
    "worse than k-means on the frozen encoder (5 %, paired bootstrap over texts and seeds, corrected for all rows "
    "of the table by Holm's method). ×1: the number of seeds, where not all have been run. *: the runs of the "
    "cell were made with different versions of the code. †: some of them were made before the method itself was "
    "changed, and have to be made again. AECL and ClusterBERT print the geometric NMI; ours is "
    "the arithmetic one, which is up to a point lower."
)


def as_markdown(table: Table, legend: bool = True, heading: str = "##") -> str:
    """Return one Markdown table per measure, and the command that runs a row again."""
    parts = [f"{heading} {table.spec.name}. {table.spec.title}", *([LEGEND] if legend else [])]
    if not any(cell.values for cell in table.cells.values()):
        parts.append(f"No run of this table yet: `coterie benchmark run --table {table.spec.name}`.")
        return "\n\n".join(parts) + "\n"
    for measure in table.spec.measures:
        lines = [
            f"| {MEASURE_TITLES[measure]} | " + " | ".join(find_set(name).title for name in table.spec.sets) + " |",
            "|---|" + "---|" * len(table.spec.sets),
        ]
        for line in table.lines:
            cells = [_cell_text(table.cells[line.key, name, measure]) for name in table.spec.sets]
            lines.append(f"| {line.title} | " + " | ".join(cells) + " |")
        parts.append("\n".join(lines))
    if table.spec.remark:
        parts.append(table.spec.remark)
    if table.waiting:
        parts.append("Not run yet: " + ", ".join(row.title for row in table.waiting) + ".")
    lacking = dict.fromkeys(line.row.name for line in table.lines if line.row.missing)
    if lacking:
        sets = ",".join(table.spec.sets)
        parts.append(
            "Not run, because the weights are not available here; where they are: "
            f"`coterie benchmark run --methods {','.join(lacking)} --datasets {sets}`."
        )
    if table.lines:
        first = table.cells[table.lines[0].key, table.spec.sets[0], table.spec.measures[0]]
        rest = f"; what is missing: `coterie benchmark run --table {table.spec.name}`"
        again = f"The first cell again: `{first.command}`; the others in the same way"
        parts.append(f"{again}{'' if table.spec.name == FOUND else rest}.")
    return "\n\n".join(parts) + "\n"


def as_csv(table: Table) -> str:
    """Return one CSV line per cell, with everything that is known about it."""
    shown = {line.key for line in table.lines}
    cells = [cell for cell in table.cells.values() if cell.line.key in shown and (cell.values or cell.missing)]
    lines = [_cell_columns(cell) for cell in cells]
    stream = io.StringIO()
    writer = csv.DictWriter(stream, list(lines[0]) if lines else ["row"], lineterminator="\n")
    writer.writeheader()
    writer.writerows(lines)
    return stream.getvalue()


def _cell_columns(cell: Cell) -> dict[str, object]:
    """Return the columns of a cell; their names are those of the CSV file."""
    reported = cell.reported
    return {
        "row": cell.line.row.name,
        "title": cell.line.title,
        "answer": cell.line.answer,
        "dataset": cell.dataset,
        "measure": cell.measure,
        "mean": _number(cell.mean),
        "deviation": _number(cell.deviation),
        "seeds": len(cell.values),
        "frozen": _number(cell.frozen),
        "gain": _number(cell.gain),
        "p_value": _number(cell.p_value),
        "mark": cell.mark,
        "start": _number(cell.start),
        "oracle": _number(cell.oracle),
        "reported": "" if reported is None else reported.value,
        "reported_by": "" if reported is None else f"{reported.paper} table {reported.table}",
        "beyond_reported": _number(cell.beyond_reported),
        "mixed_code": cell.mixed,
        "outdated": cell.outdated,
        "command": cell.command,
    }


def as_html(table: Table) -> str:
    """A page of its own; the command of a cell is its tooltip."""
    parts = [
        "<!doctype html><html lang='en'><meta charset='utf-8'>",
        f"<title>{html.escape(table.spec.title)}</title>",
        "<style>body{font:15px/1.4 sans-serif;margin:2em}table{border-collapse:collapse;margin:1em 0}"
        "td,th{border:1px solid #bbb;padding:.3em .6em;text-align:right}td:first-child,th:first-child{text-align:left}"
        "</style>",
        f"<h1>{html.escape(table.spec.name)}. {html.escape(table.spec.title)}</h1><p>{html.escape(LEGEND)}</p>",
    ]
    for measure in table.spec.measures:
        head = "".join(f"<th>{html.escape(find_set(name).title)}</th>" for name in table.spec.sets)
        parts.append(f"<table><tr><th>{MEASURE_TITLES[measure]}</th>{head}</tr>")
        for line in table.lines:
            cells = [table.cells[line.key, name, measure] for name in table.spec.sets]
            body = "".join(f"<td title='{html.escape(c.command)}'>{html.escape(_cell_text(c))}</td>" for c in cells)
            parts.append(f"<tr><td>{html.escape(line.title)}</td>{body}</tr>")
        parts.append("</table>")
    parts.append(f"<p>{html.escape(table.spec.remark)}</p>")
    return "\n".join(parts) + "</html>\n"


FORMATS: dict[str, Callable[[Table], str]] = {"md": as_markdown, "csv": as_csv, "html": as_html}


def table_as_text(name: str, form: str, store: Store, on_comparison: Callable[[str], object] | None) -> str:
    """Return the table called ``name`` as ``md``, ``csv`` or ``html``.

    ``on_comparison`` is called with a line about every comparison with the frozen encoder that is computed; with
    ``None``, none is marked.
    """
    check_choice("--format", form, tuple(FORMATS))
    store.require_folder()
    spec = found_table(store) if name == FOUND else find_table(name)
    found = p_values(spec, store, on_comparison) if on_comparison is not None else None
    return FORMATS[form](build_table(spec, store, found))


def _cell_text(cell: Cell) -> str:
    """Return a cell as ``74.2 ± 0.4 ↑ (75.5: -1.3)``."""
    reported = "" if cell.reported is None else f" ({cell.reported.value:.1f})"
    if cell.mean is None:
        return (f"not run: {cell.missing}" if cell.missing else "-") + reported
    if cell.reported is not None:
        reported = f" ({cell.reported.value:.1f}: {cell.beyond_reported:+.1f})"
    spread = "" if cell.deviation is None else f" ± {cell.deviation:.1f}"
    if len(cell.values) < len(cell.line.row.seeds):
        spread += f" ×{len(cell.values)}"
    mark = f" {cell.mark}" if cell.mark else ""
    return f"{cell.mean:.1f}{spread}{mark}{'*' if cell.mixed else ''}{'†' if cell.outdated else ''}{reported}"


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.4g}" if abs(value) < 1 else f"{value:.2f}"
