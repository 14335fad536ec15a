"""Write docs/BENCHMARKS.md from benchmarks/results/benchmark/.

    python tools/benchmark_page.py            write it
    python tools/benchmark_page.py --check    fail if it is not up to date

Marks are taken from comparisons.json there; ``coterie benchmark table`` computes those that are missing.
"""

from __future__ import annotations

import sys
from pathlib import Path

from coterie.benchmark.marks import p_values
from coterie.benchmark.rendering import as_markdown
from coterie.benchmark.store import Store
from coterie.benchmark.tables import TABLES, build_table

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "BENCHMARKS.md"


def page() -> str:
    store = Store(ROOT / "benchmarks" / "results" / "benchmark")
    parts = [
        "# Benchmarks\n",
        "<!-- written by tools/benchmark_page.py from benchmarks/results/benchmark/; do not edit -->\n",
        "How it is measured, and what to distrust: [PROTOCOL.md](PROTOCOL.md). Every figure is the mean of the runs in "
        "[benchmarks/results/benchmark](../benchmarks/results/benchmark), one JSON a run.\n",
    ]
    for spec in TABLES:
        table = build_table(spec, store, p_values(spec, store, compute=False))
        if any(cell.values for cell in table.cells.values()):
            parts.append(as_markdown(table))
        else:
            parts.append(f"## {spec.name}. {spec.title}\n\nNot run yet.\n")
    return "\n".join(parts)


def main() -> None:
    text = page()
    if "--check" in sys.argv:
        if not PAGE.is_file() or PAGE.read_text(encoding="utf-8") != text:
            sys.exit(f"{PAGE.name} not up to date: run make readme")
        return
    PAGE.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
