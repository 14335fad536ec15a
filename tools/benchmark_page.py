"""Write docs/BENCHMARKS.md and the figures in docs/figures/ from benchmarks/results/benchmark/.

    python tools/benchmark_page.py            write them
    python tools/benchmark_page.py --check    fail if the page is not up to date

Marks are taken from comparisons.json there; ``coterie benchmark table`` computes those that are missing. What was found
out is written by hand in benchmarks/FINDINGS.md and put in front.
"""

from __future__ import annotations

import json
import math
import sys
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from coterie.benchmark.catalogue import all_figures, all_tables, find_row, published_figures
from coterie.benchmark.figures import FigureData, plot_figure
from coterie.benchmark.matplotlib_plots import COST_SET
from coterie.benchmark.published import Published
from coterie.benchmark.rows import ROWS, Row
from coterie.benchmark.sets import EIGHT_SHORT, find_set
from coterie.benchmark.significance_marks import p_values
from coterie.benchmark.specs import FINAL, TRAINED, FigureSpec
from coterie.benchmark.store import Store
from coterie.benchmark.table_formats import LEGEND, as_markdown
from coterie.benchmark.tables import build_table

ROOT = Path(__file__).resolve().parent.parent
PAGE, FIGURES = ROOT / "docs" / "BENCHMARKS.md", ROOT / "docs" / "figures"
STORE = Store(ROOT / "benchmarks" / "results" / "benchmark")
CHOICES = ROOT / "benchmarks" / "results" / "choose_k.json"
CALIBRATION = ROOT / "benchmarks" / "results" / "calibration.json"
STARTS = ROOT / "benchmarks" / "results" / "starts.json"
EIGHT = ROOT / "benchmarks" / "results" / "auto_eight.json"
# ACC that the default method is to reach on each of the eight.
AIMS = dict(zip(EIGHT_SHORT, (89.0, 90.5, 88.0, 55.0, 91.0, 86.0, 87.0, 92.0), strict=True))
# Points within which a printed figure counts as met.
NEAR = 3.0
# Why a baseline's own figures cannot be met here, where none is.
OTHER_FEATURES = "UFTC prints it on features that it does not describe; the figures of its own paper are of pictures."
OTHER_WORDS = "Its word vectors were trained on large corpora of the same fields, which are not at hand."
REASONS = {
    "frozen-kmeans": "The papers' encoders are older and weaker; their weights are not at hand.",
    **dict.fromkeys(("ae-tfidf", "dec-tfidf", "idec-tfidf", "dcn-tfidf"), OTHER_FEATURES),
    **dict.fromkeys(("ae-embedding", "dec-embedding", "idec-embedding", "dcn-embedding"), OTHER_FEATURES),
    "self-train": f"{OTHER_WORDS} Here they are the encoder's word pieces.",
    "stcc": f"{OTHER_WORDS} Here they are trained on the texts themselves.",
    "hac-sd": "The paper's vectors are other ones.",
    "tsdae": "The paper's encoder was trained on a million sentences of Wikipedia first.",
}
# Figures that are of another task than ours: ClusterBERT's k = 20 for eight classes, and twice the texts.
ANOTHER_TASK = {("clusterbert", "searchsnippets"), ("clusterbert", "biomedical")}
# Figures that a paper copied are counted once.
COPIED = "taken from the SCCL paper"


def page() -> str:
    parts = [
        "# Benchmarks\n",
        "<!-- written by tools/benchmark_page.py from benchmarks/results/benchmark/; do not edit -->\n",
        "How it is measured, and what to distrust: [PROTOCOL.md](PROTOCOL.md). Every figure is the mean of the runs in "
        "[benchmarks/results/benchmark](../benchmarks/results/benchmark), packed as Parquet; "
        "`coterie benchmark show METHOD DATASET SEED` prints the run behind a cell.\n",
        (ROOT / "benchmarks" / "FINDINGS.md").read_text(encoding="utf-8"),
        f"## Tables\n\n{LEGEND}\n",
    ]
    waiting = []
    main = {row.name for row in ROWS}
    for spec in all_tables():
        table = build_table(spec, STORE, p_values(spec, STORE, compute=False))
        # A table of a paper's own rows is none before one of them has been run, and no sweep of sets has one set.
        own = {name for name in spec.rows if name not in main}
        filled = {(cell.line.row.name, cell.dataset) for cell in table.cells.values() if cell.values}
        enough = any(row in own for row, _ in filled) if own else len({name for _, name in filled}) > 1
        if enough or (spec.traced and filled):
            parts.append(as_markdown(table, legend=False, heading="###"))
        else:
            waiting.append(f"- {spec.name}. {spec.title}: `coterie benchmark run --table {spec.name}`")
    parts += [reproduced(), own_backbones(), default_method(), choosing_start(), choosing_k(), calibration()]
    drawn = [figure for figure in all_figures() if there(figure)]
    if drawn:
        parts.append("## Figures\n")
    for figure in all_figures():
        if figure in drawn:
            parts.append(
                f"**{figure.name}.** {figure.title}. `coterie benchmark figure {figure.name}`\n\n"
                f"![{figure.title}](figures/{figure.name}.svg)\n"
            )
        else:
            waiting.append(f"- {figure.name}. {figure.title}: `coterie benchmark run --figure {figure.name}`")
    if waiting:
        parts += ["## Not run yet\n", "\n".join(waiting) + "\n"]
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
        "### Do the baselines reproduce?\n",
        "ACC (for UFTC's tables purity) that the papers print for a baseline, figures that one copied from another "
        f"once, and how many of them ours come within {NEAR:.0f} points of.\n",
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
        if figure.method == row.published
        and figure.metric == ("purity" if figure.paper == "uftc" else "accuracy")
        and not figure.doubtful
        and COPIED not in figure.remark
        and (figure.paper, figure.dataset) not in ANOTHER_TASK
    ]
    pairs = []
    for figure in {(each.paper, each.dataset): each for each in reversed(printed)}.values():
        ours = data.mean(row.name, figure.dataset, figure.metric, FINAL)
        if ours is not None:
            pairs.append((figure, ours))
    return pairs


def own_backbones() -> str:
    """How each paper's own setting would be run, which needs weights that are not at hand."""
    lines = [
        "### The papers' own encoders and settings\n",
        "Not run: no weights. Where the hub can be reached, these commands run them; each set has its file:\n",
        "| method | encoder | sets | |",
        "|---|---|---|---|",
    ]
    for method in TRAINED:
        files = sorted((ROOT / "experiments" / method).glob("*.yaml"))
        read = [yaml.safe_load(file.read_text(encoding="utf-8")) for file in files]
        encoders = ", ".join(sorted({each["settings"]["encoder"] for each in read}))
        sets = ", ".join(find_set(each["dataset"]).title for each in read)
        first = read[0]["dataset"]
        command = f"coterie fit {first}.csv --config experiments/{method}/{method}_{first}.yaml"
        lines.append(f"| {find_row(method).title} | {encoders} | {sets} | `{command}` |")
    return "\n".join(lines) + "\n"


def default_method() -> str:
    """The default on the eight sets, how far it is from what it is to reach, and what was tried there before."""
    *earlier, now = json.loads(EIGHT.read_text(encoding="utf-8"))

    def told(trial: dict[str, Any]) -> str:
        return f"{trial['what']} ({', '.join(trial['dates'])}): {_mean_of_sets(trial['auto']):.1f}"

    lines = [
        "## The default method\n",
        f"{len(earlier) + 1} settings of it were run on the eight sets, each decided on the tuning sets alone and run "
        f"once. This one, mean ACC over the eight: {told(now)}; its start alone: {_mean_of_sets(now['start']):.1f}. "
        f"Before it: {'; '.join(told(each) for each in earlier)}. On StackOverflow and Biomedical mind what "
        "the encoder was trained on ([PROTOCOL.md](PROTOCOL.md)). The log: "
        "[auto_eight.json](../benchmarks/results/auto_eight.json), `benchmarks/log_eight.py`.\n",
        "| | ACC, five seeds | NMI | its start alone | seeds in which the trained partition was chosen | aim | left |",
        "|---|---|---|---|---|---|---|",
    ]
    for name, aim in AIMS.items():
        found, start = now["auto"][name].values(), now["start"][name].values()
        accuracy, nmi = ([each[score] for each in found] for score in ("accuracy", "nmi"))
        begun, mean = np.mean([each["accuracy"] for each in start]), np.mean(accuracy)
        left = f"{aim - mean:.1f}" if mean < aim else "reached"
        lines.append(
            f"| {find_set(name).title} | {mean:.1f} ± {np.std(accuracy, ddof=1):.1f} | {np.mean(nmi):.1f} | "
            f"{begun:.1f} | {now['trained_chosen'][name]} of {len(accuracy)} | {aim:g} | {left} |"
        )
    return "\n".join(lines) + "\n"


def _mean_of_sets(found: dict[str, Any]) -> float:
    return float(np.mean([np.mean([each["accuracy"] for each in seeds.values()]) for seeds in found.values()]))


def choosing_start() -> str:
    """What was chosen among the clusterings of the frozen embeddings, and what would have been best."""
    found = json.loads(STARTS.read_text(encoding="utf-8"))
    eight = {name: found["short"][name] for name in EIGHT_SHORT if name in found["short"]}
    tuning = found["tuning"]
    ways = list(next(iter(tuning.values()))["signs"])

    def mean(sets: dict[str, Any], way: str | None = None) -> float:
        return float(np.mean([_returned(each) if way is None else _accuracy(each, way) for each in sets.values()]))

    def best(sets: dict[str, Any]) -> float:
        return float(np.mean([_best(each) for each in sets.values()]))

    ways.sort(key=lambda way: -mean(eight, way))
    earlier = [
        f"{number}. {each['rule']} ({each['date']}): "
        f"{np.mean([one['accuracy'] for one in each['short'].values()]):.1f} ACC over the eight, "
        f"{each['over']}"
        for number, each in enumerate(found["earlier"], start=1)
    ]
    lines = [
        "## Choosing a start\n",
        "`clusterer=chosen` of the frozen encoder, which is how the default method begins, makes six clusterings by "
        "k-means, Ward and average linkage: of the embeddings as they are, smoothed over their neighbours by meaning "
        "and by words, and as waves on the graph of those neighbours. Each settles: a text goes where its vector and "
        "its neighbours agree. It takes the one with the best mean in five label-free signs, standardised: neighbours "
        "by words kept together, neighbours by vectors kept together of what is possible, silhouette, likelihood, and "
        "stability when parts of the texts are clustered alike; and draws it to one size where neighbours speak next "
        "to no less for that. Ways and signs were settled on the tuning sets and parts of them, where it has "
        f"{mean(tuning):.1f} ACC on average, k-means (settled) {mean(tuning, 'k-means'):.1f}, the best of the six by "
        f"label {best(tuning):.1f}. On the sets below: {mean(eight):.1f}, k-means (settled) "
        f"{mean(eight, 'k-means'):.1f}, the best by label (oracle) {best(eight):.1f}. Nothing is trained here; the "
        "number of classes is given; seed 0. [starts.json](../benchmarks/results/starts.json), "
        "`benchmarks/starts.py`.\n",
        f"{len(earlier) + 1} rules were run on the eight. Before this one:\n",
        *earlier,
        "",
        f"| ACC | chosen | | left to the best | {' | '.join(ways)} |",
        f"|---|---|---|---|{'---|' * len(ways)}",
        *(
            f"| {find_set(name).title} | {each['chosen']}{', one size' if each['even'] else ''} | "
            f"**{_returned(each):.1f}** (NMI {each['returned']['nmi']:.1f}) | {_best(each) - _returned(each):.1f} | "
            f"{' | '.join(f'{_accuracy(each, way):.1f}' for way in ways)} |"
            for name, each in eight.items()
        ),
    ]
    return "\n".join(lines) + "\n"


def _accuracy(found: dict[str, Any], way: str) -> float:
    return float(found["scores"][way]["accuracy"])


def _returned(found: dict[str, Any]) -> float:
    return float(found["returned"]["accuracy"])


def _best(found: dict[str, Any]) -> float:
    return max(_returned(found), _accuracy(found, found["best"]))


def choosing_k() -> str:
    """What -k auto chooses, beside the number of classes."""
    found = json.loads(CHOICES.read_text(encoding="utf-8"))
    weights = ", ".join(f"{name} {weight:g}" for name, weight in found["weights"].items())
    short = {name: found["short"][name] for name in EIGHT_SHORT if name in found["short"]}
    tuning = found["tuning"]
    lines = [
        "## Choosing k\n",
        "`-k auto` looks at up to 4,000 distinct texts as the frozen encoder sees them and takes the number of "
        f"clusters with the largest sum of signs ({weights}; the gap is shown and not counted). The rule was decided "
        "on the tuning sets and on parts of them, and then run once on the eight sets below. About 2,400 weightings "
        "were tried there, so the tuning figures flatter it; the eight do not. ACC and NMI are of "
        "k-means on the frozen embeddings of all texts, seed 0: with the number chosen, and with the number of classes "
        "given. [choose_k.json](../benchmarks/results/choose_k.json), `benchmarks/choose_k.py`.\n",
        "| set | classes | chosen | nearly as good | ACC chosen | ACC given | NMI chosen | NMI given |",
        "|---|---|---|---|---|---|---|---|",
        *(_choice_line(find_set(name).title, each) for name, each in short.items()),
        "",
        f"On these the number is off by a factor of {_typical(short):.1f} on average (geometric mean), "
        f"{_worst(short, find_set)}; {_largest_loss(short)}. On the {len(tuning)} tuning sets and parts, where it was "
        f"tuned, by {_typical(tuning):.1f}, {_worst(tuning)}. "
        f"One sign alone, on the tuning sets: {_alone(tuning)}; on the eight: {_alone(short)}.\n",
        "| tuning set | classes | chosen | ACC chosen | ACC given | NMI chosen | NMI given |",
        "|---|---|---|---|---|---|---|",
        *(_choice_line(name, each, near=False) for name, each in tuning.items()),
    ]
    return "\n".join(lines) + "\n"


def calibration() -> str:
    """How far confidence is off, with its bins."""
    found = json.loads(CALIBRATION.read_text(encoding="utf-8"))
    rows = found["short"]
    errors = {row: [each["ece"] for each in sets.values()] for row, sets in rows.items()}
    told = ", ".join(f"{row} {np.mean(each):.3f} over {len(each)} sets" for row, each in errors.items())
    before = found["earlier"][0]["short"]
    earlier = ", ".join(f"{row} {np.mean(list(each.values())):.3f}" for row, each in before.items())
    left_out = found["tuning"]["mean_of_sets"]
    lines = [
        "## Is confidence right?\n",
        "Confidence is meant as the chance that a text has the class that most texts of its cluster have. It is made "
        "without labels, from five signs: how often texts of the cluster have their ten nearest neighbours with them "
        "(by the frozen encoder), how often all texts do, how often they have them in the cluster or in those most "
        "like it, how much of the cluster k-means finds again on other draws of the texts, and the rank of the text's "
        f"margin in the run. {len(found['tried'])} sets of signs were tried, and the weights learned, on the tuning "
        "sets and parts of them, with the right number of clusters given; each set left out in turn, the expected "
        "calibration error "
        f"there is {np.mean(list(left_out.values())):.3f} on average "
        f"({', '.join(f'{name} {error:.3f}' for name, error in left_out.items())}). On the eight sets, run with those "
        f"weights: {told}. The aim was 0.10. {len(found['earlier'])} other setting was run on the eight before, with "
        f"{len(found['earlier'][0]['parameters']['weights'])} signs: {earlier}. The error is largest on Tweet and "
        "GoogleNews, whose large classes are cut in several clusters: these are purer than their neighbours tell. "
        "Where the number of clusters is given wrong, confidence says nothing about that: two subjects in one cluster "
        "may each be tight. "
        "[calibration.json](../benchmarks/results/calibration.json), `benchmarks/calibrate.py`.\n",
        "| set | clusters by | error | mean confidence | right |",
        "|---|---|---|---|---|",
        *(
            f"| {find_set(name).title} | {row} | {each['ece']:.3f} | {each['mean_confidence']:.1%} "
            f"| {each['right']:.1%} |"
            for row, sets in rows.items()
            for name, each in sets.items()
        ),
        "",
        "All texts of the eight sets in bins of their confidence, and how many of each are right:\n",
        f"| confidence | {' | '.join(f'{row}: texts | right' for row in rows)} |",
        f"|---|{'---|---|' * len(rows)}",
        *(
            f"| {low / 10:.0%} to {(low + 1) / 10:.0%} | {' | '.join(_in_bin(sets, low) for sets in rows.values())} |"
            for low in range(10)
        ),
    ]
    return "\n".join(lines) + "\n"


def _in_bin(sets: dict[str, Any], low: int) -> str:
    inside = [b for each in sets.values() for b in each["bins"] if min(int(10 * b["confidence"]), 9) == low]
    texts = sum(b["texts"] for b in inside)
    return f"{texts:,} | {sum(b['texts'] * b['right'] for b in inside) / texts:.1%}" if texts else "0 | "


def _choice_line(title: str, found: dict[str, Any], *, near: bool = True) -> str:
    scores = [100 * found[at][score] for score in ("accuracy", "nmi") for at in ("at_chosen", "at_classes")]
    low, high = found["nearly_as_good"]
    cells = [title, found["classes"], f"**{found['chosen']}**", *([f"{low} to {high}"] if near else [])]
    return "| " + " | ".join([*map(str, cells), *(f"{score:.1f}" for score in scores)]) + " |"


def _off(chosen: int, classes: int) -> float:
    return max(chosen / classes, classes / chosen)


def _typical(sets: dict[str, Any], sign: str | None = None) -> float:
    """The geometric mean of the factors; with ``sign``, of what that sign alone would choose."""
    chosen = [each["each_sign_alone"][sign] if sign else each["chosen"] for each in sets.values()]
    factors = [_off(k, each["classes"]) for k, each in zip(chosen, sets.values(), strict=True)]
    return math.exp(sum(map(math.log, factors)) / len(factors))


def _worst(sets: dict[str, Any], find: Any = None) -> str:
    name = max(sets, key=lambda each: _off(sets[each]["chosen"], sets[each]["classes"]))
    worst = sets[name]
    title = find(name).title if find else name
    factor = _off(worst["chosen"], worst["classes"])
    return f"at worst {factor:.1f} ({title}: {worst['chosen']} for {worst['classes']})"


def _largest_loss(sets: dict[str, Any]) -> str:
    """What the wrong number costs where it costs most."""

    def lost(name: str) -> float:
        return 100 * (sets[name]["at_classes"]["accuracy"] - sets[name]["at_chosen"]["accuracy"])

    name = max(sets, key=lost)
    return f"it costs most on {find_set(name).title}, {lost(name):.1f} points of ACC"


def _alone(sets: dict[str, Any]) -> str:
    signs = ("neighbours", "words", "silhouette", "stability", "gap")
    return ", ".join(f"{sign} {_typical(sets, sign):.1f}" for sign in signs)


def main() -> None:
    text = page()
    if "--check" in sys.argv:
        if not PAGE.is_file() or PAGE.read_text(encoding="utf-8") != text:
            sys.exit(f"{PAGE.name} is not up to date: run make readme")
        return
    PAGE.write_text(text, encoding="utf-8")
    for figure in all_figures():
        if there(figure):
            plot_figure(figure, STORE, FIGURES / f"{figure.name}.svg")


if __name__ == "__main__":
    main()
