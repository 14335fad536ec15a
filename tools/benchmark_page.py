"""Write docs/BENCHMARKS.md and the figures in docs/figures/ from benchmarks/results/benchmark/.

    python tools/benchmark_page.py            write them
    python tools/benchmark_page.py --check    fail if the page is not up to date

Marks are taken from comparisons.json there; ``coterie benchmark table`` computes those that are missing. What was found
out is written by hand in benchmarks/FINDINGS.md and put in front.
"""

from __future__ import annotations

import sys
from pathlib import Path

from coterie.benchmark.drawing import COST_SET
from coterie.benchmark.figures import FigureData, FigureSpec, all_figures, draw_figure
from coterie.benchmark.marks import p_values
from coterie.benchmark.published import Published, published_figures
from coterie.benchmark.rendering import LEGEND, as_markdown
from coterie.benchmark.rows import ROWS, Row
from coterie.benchmark.store import Store
from coterie.benchmark.tables import FINAL, TRAINED, all_tables, build_table

ROOT = Path(__file__).resolve().parent.parent
PAGE, FIGURES = ROOT / "docs" / "BENCHMARKS.md", ROOT / "docs" / "figures"
STORE = Store(ROOT / "benchmarks" / "results" / "benchmark")
# Points within which a printed figure counts as met.
NEAR = 3.0
# Why a baseline's own figures cannot be met here, where none is.
REASONS = {
    "frozen-kmeans": "The papers' encoders are weaker; their weights are not at hand.",
    "ae-tfidf": "UFTC prints it on features it does not describe; ours are TF-IDF and embeddings.",
    "dec-tfidf": "UFTC prints it on features it does not describe; the figures of its own paper are of pictures.",
    "idec-tfidf": "As DEC.",
    "dcn-tfidf": "As DEC.",
    "ae-embedding": "As on TF-IDF.",
    "dec-embedding": "As on TF-IDF.",
    "idec-embedding": "As on TF-IDF.",
    "dcn-embedding": "As on TF-IDF.",
    "self-train": "Its word vectors were trained on large corpora of the same fields, which are not at hand; here they "
    "are the encoder's word pieces.",
    "stcc": "Its word vectors were trained on large corpora of the same fields, which are not at hand; here they are "
    "trained on the texts themselves.",
    "hac-sd": "The printed figures are those with iterative classification and other vectors.",
    "tsdae": "The paper's encoder was trained on a million sentences of Wikipedia first.",
}


def page() -> str:
    parts = [
        "# Benchmarks\n",
        "<!-- written by tools/benchmark_page.py from benchmarks/results/benchmark/; do not edit -->\n",
        "How it is measured, and what to distrust: [PROTOCOL.md](PROTOCOL.md). Every figure is the mean of the runs in "
        "[benchmarks/results/benchmark](../benchmarks/results/benchmark), one JSON a run.\n",
        (ROOT / "benchmarks" / "FINDINGS.md").read_text(encoding="utf-8"),
        f"# Tables\n\n{LEGEND}\n",
    ]
    waiting = []
    for spec in all_tables():
        table = build_table(spec, STORE, p_values(spec, STORE, compute=False))
        if any(cell.values for cell in table.cells.values()):
            parts.append(as_markdown(table, legend=False))
        else:
            waiting.append(f"- {spec.name}. {spec.title}: `coterie benchmark run --table {spec.name}`")
    parts += [reproduced(), "# Figures\n"]
    for figure in all_figures():
        if there(figure):
            parts.append(
                f"**{figure.name}.** {figure.title}. `coterie benchmark figure {figure.name}`\n\n"
                f"![{figure.title}](figures/{figure.name}.svg)\n"
            )
        else:
            waiting.append(f"- {figure.name}. {figure.title}: `coterie benchmark run --figure {figure.name}`")
    if waiting:
        parts += ["# Not run yet\n", "\n".join(waiting) + "\n"]
    return "\n".join(parts)


def there(figure: FigureSpec) -> bool:
    """Whether all that it shows has been run, as far as it can be run."""
    data = FigureData(STORE, figure.rows, figure.sets)
    rows = [row for row in figure.rows if not data.missing(row)]
    wanted = [(row, name) for row in rows for name in figure.sets]
    if figure.name == "cost" and not any(data.seconds_alone(row, COST_SET) for row in rows):
        return False
    return all(data.trace(*each) is not None if figure.traced else data.runs(*each) for each in wanted)


def reproduced() -> str:
    """Every baseline beside the figures that papers print for it."""
    lines = [
        "## Do the baselines reproduce?\n",
        f"ACC printed by the papers for the same texts, and how many of these figures ours come within {NEAR:.0f} "
        "points of. Other encoders, vectors and features make most of the difference where there is one.\n",
        "| baseline | figures printed | within 3 points | the closest: printed, ours | |",
        "|---|---|---|---|---|",
    ]
    for row in ROWS:
        pairs = [] if row.name in TRAINED or not row.published else _pairs(row)
        if pairs:
            near = sum(abs(ours - printed.value) <= NEAR for printed, ours in pairs)
            printed, ours = min(pairs, key=lambda pair: abs(pair[1] - pair[0].value))
            closest = f"{printed.dataset} {printed.value:.1f}, {ours:.1f} ({printed.paper} table {printed.table})"
            reason = "" if near else REASONS.get(row.name, "")
            lines.append(f"| {row.title} | {len(pairs)} | {near} | {closest} | {reason} |")
    return "\n".join(lines) + "\n"


def _pairs(row: Row) -> list[tuple[Published, float]]:
    """What is printed for the row, once for each set and paper, and what was measured."""
    data = FigureData(STORE, (row.name,), ())
    printed = [
        figure
        for figure in published_figures()
        if figure.method == row.published and figure.metric == "accuracy" and not figure.doubtful
    ]
    pairs = []
    for figure in {(each.paper, each.dataset): each for each in reversed(printed)}.values():
        ours = data.mean(row.name, figure.dataset, "accuracy", FINAL)
        if ours is not None:
            pairs.append((figure, ours))
    return pairs


def main() -> None:
    text = page()
    if "--check" in sys.argv:
        if not PAGE.is_file() or PAGE.read_text(encoding="utf-8") != text:
            sys.exit(f"{PAGE.name} is not up to date: run make readme")
        return
    PAGE.write_text(text, encoding="utf-8")
    for figure in all_figures():
        if there(figure):
            draw_figure(figure, STORE, FIGURES / f"{figure.name}.svg")


if __name__ == "__main__":
    main()
