"""Write docs/BENCHMARKS.md and the figures in docs/figures/ from benchmarks/results/benchmark/.

    python tools/benchmark_page.py            write them
    python tools/benchmark_page.py --check    fail if the page is not up to date

Marks are taken from comparisons.json there; ``coterie benchmark table`` computes missing ones. The findings, written
by hand in benchmarks/FINDINGS.md, come first.
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
from coterie.formatting import counted

ROOT = Path(__file__).resolve().parent.parent
PAGE, FIGURES = ROOT / "docs" / "BENCHMARKS.md", ROOT / "docs" / "figures"
STORE = Store(ROOT / "benchmarks" / "results" / "benchmark")
CHOICES = ROOT / "benchmarks" / "results" / "choose_k.json"
CALIBRATION = ROOT / "benchmarks" / "results" / "calibration.json"
STARTS = ROOT / "benchmarks" / "results" / "starts.json"
START_PARTS = ROOT / "benchmarks" / "results" / "start_parts.json"
TRIALS = ROOT / "benchmarks" / "results" / "auto_trials.json"
EIGHT = ROOT / "benchmarks" / "results" / "auto_eight.json"
# ACC that the default method should reach on each of the eight.
AIMS = dict(zip(EIGHT_SHORT, (89.0, 91.0, 88.5, 57.0, 94.0, 90.0, 89.0, 95.0), strict=True))
# Points within which a published figure counts as reproduced.
NEAR = 3.0
# Factor within which a selected number of clusters counts as near the number of classes.
NEAR_CLASSES = 1.3
# Why the published figures of a baseline cannot be reproduced here, where none is.
OTHER_FEATURES = "UFTC prints it on features that it does not describe; the figures of its own paper are of images."
OTHER_WORDS = "Its word vectors were trained on large corpora of the same fields, which are not available here."
REASONS = {
    "frozen-kmeans": "The papers' encoders are older and weaker; their weights are not available here.",
    **dict.fromkeys(("ae-tfidf", "dec-tfidf", "idec-tfidf", "dcn-tfidf"), OTHER_FEATURES),
    **dict.fromkeys(("ae-embedding", "dec-embedding", "idec-embedding", "dcn-embedding"), OTHER_FEATURES),
    "self-train": f"{OTHER_WORDS} Here they are the encoder's word pieces.",
    "stcc": f"{OTHER_WORDS} Here they are trained on the texts themselves.",
    "hac-sd": "The paper has other vectors.",
    "tsdae": "The paper's encoder was trained on a million sentences of Wikipedia first.",
}
# Figures of another task than ours: ClusterBERT has k = 20 for eight classes, and twice as many texts.
ANOTHER_TASK = {("clusterbert", "searchsnippets"), ("clusterbert", "biomedical")}
# Remark on figures that a paper copied; they are counted once.
COPIED = "taken from the SCCL paper"


def page() -> str:
    parts = [
        "# Benchmarks\n",
        "<!-- written by tools/benchmark_page.py from benchmarks/results/benchmark/; do not edit -->\n",
        "How the figures were measured, and how far to trust them: [PROTOCOL.md](PROTOCOL.md). Every figure is a "
        "mean of runs in [benchmarks/results/benchmark](../benchmarks/results/benchmark), packed as Parquet; "
        "`coterie benchmark show METHOD DATASET SEED` prints the run behind a cell.\n",
        (ROOT / "benchmarks" / "FINDINGS.md").read_text(encoding="utf-8"),
        f"## Tables\n\n{LEGEND}\n",
    ]
    waiting = []
    main = {row.name for row in ROWS}
    for spec in all_tables():
        table = build_table(spec, STORE, p_values(spec, STORE, compute=False))
        # A table is shown once one of the paper's own rows has been run; a sweep over data sets, once two have.
        own = {name for name in spec.rows if name not in main}
        filled = {(cell.line.row.name, cell.dataset) for cell in table.cells.values() if cell.values}
        enough = any(row in own for row, _ in filled) if own else len({name for _, name in filled}) > 1
        if enough or (spec.traced and filled):
            parts.append(as_markdown(table, legend=False, heading="###"))
        else:
            waiting.append(f"- {spec.name}. {spec.title}: `coterie benchmark run --table {spec.name}`")
    parts += [reproduced(), own_backbones(), default_method(), choosing_start(), start_parts()]
    parts += [choosing_k(), calibration()]
    complete = [figure for figure in all_figures() if is_complete(figure)]
    if complete:
        parts.append("## Figures\n")
    for figure in all_figures():
        if figure in complete:
            parts.append(
                f"**{figure.name}.** {figure.title}. `coterie benchmark figure {figure.name}`\n\n"
                f"![{figure.title}](figures/{figure.name}.svg)\n"
            )
        else:
            waiting.append(f"- {figure.name}. {figure.title}: `coterie benchmark run --figure {figure.name}`")
    if waiting:
        parts += ["## Not run yet\n", "\n".join(waiting) + "\n"]
    return "\n".join(parts)


def is_complete(figure: FigureSpec) -> bool:
    """Return whether all runs that a figure shows have been made, as far as they can be made."""
    data = FigureData(STORE, figure.rows, figure.sets)
    rows = [row for row in figure.rows if not data.missing(row)]
    wanted = [(row, name) for row in rows for name in figure.sets]
    if figure.name == "cost" and not any(data.seconds_alone(row, COST_SET) for row in rows):
        return False
    return all(data.trace(*each) is not None if figure.traced else data.runs(*each) for each in wanted)


def reproduced() -> str:
    """Return the section that compares every baseline with its published figures."""
    lines = [
        "### Do the baselines reproduce?\n",
        "The ACC (for UFTC's tables, the purity) that the papers print for a baseline, without copied figures, and how "
        f"many of them are within {NEAR:.0f} points of ours.\n",
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
    """Return published and measured figures of a row, one pair per data set and paper."""
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
    """Return the section with the commands for the papers' own settings, whose weights are not available here."""
    lines = [
        "### The papers' own encoders and settings\n",
        "Not run: the weights are not available here. With access to the model hub, these commands run them; each data "
        "set has a file:\n",
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
    """Return the section on the default method: its scores, its aims, and the settings that were tried before."""
    *earlier, now = json.loads(EIGHT.read_text(encoding="utf-8"))

    def describe(trial: dict[str, Any]) -> str:
        return f"{trial['what']} ({', '.join(trial['dates'])}): {_mean_of_sets(trial['auto']):.1f}"

    seeds = sorted({seed for each in now["auto"].values() for seed in each})
    lines = [
        "## The default method\n",
        f"{len(earlier) + 1} settings of it were run on the eight sets, each chosen on the tuning sets alone and run "
        f"once. Mean ACC over the eight of the present one, {counted(len(seeds), 'seed')}: {describe(now)}; of its "
        f"start alone: {_mean_of_sets(now['start']):.1f}. "
        f"Of the earlier ones: {'; '.join(describe(each) for each in earlier)}. The encoder was trained on texts "
        "like those of StackOverflow and Biomedical ([PROTOCOL.md](PROTOCOL.md)). The log: "
        "[auto_eight.json](../benchmarks/results/auto_eight.json), `benchmarks/log_eight.py`.\n",
        "| | ACC | NMI | ACC of its start | ACC of the setting before | aim | still missing |",
        "|---|---|---|---|---|---|---|",
    ]
    for name, aim in AIMS.items():
        found, start = now["auto"][name].values(), now["start"][name].values()
        accuracy, nmi = ([each[score] for each in found] for score in ("accuracy", "nmi"))
        begun, mean = np.mean([each["accuracy"] for each in start]), np.mean(accuracy)
        before = np.mean([each["accuracy"] for each in earlier[-1]["auto"][name].values()])
        spread = f" ± {np.std(accuracy, ddof=1):.1f}" if len(accuracy) > 1 else ""
        left = f"{aim - mean:.1f}" if mean < aim else "reached"
        lines.append(
            f"| {find_set(name).title} | {mean:.1f}{spread} | {np.mean(nmi):.1f} | {begun:.1f} | {before:.1f} | "
            f"{aim:g} | {left} |"
        )
    return "\n".join(lines) + "\n"


def _mean_of_sets(found: dict[str, Any]) -> float:
    return float(np.mean([np.mean([each["accuracy"] for each in seeds.values()]) for seeds in found.values()]))


def choosing_start() -> str:
    """Return the section on the start: the consensus, frozen k-means, and the best candidate by labels."""
    tuning = json.loads(STARTS.read_text(encoding="utf-8"))["tuning"]
    trained = {each["set"]: each for each in json.loads(TRIALS.read_text(encoding="utf-8")) if not each["settings"]}

    def mean(name: str) -> float:
        return float(np.mean([_over_seeds(seeds, name) for seeds in tuning.values()]))

    seeds = sorted({seed for each in tuning.values() for seed in each})
    spreads = {name: _spread(each) for name, each in tuning.items()}
    unstable = [name for name, each in spreads.items() if each > 3]
    below = [name for name, each in tuning.items() if _over_seeds(each, "start") < _over_seeds(each, "kmeans") - 1]
    gained = [each["accuracy"] - each["start"] for each in trained.values() if _was_trained(each)]
    lines = [
        "## What is left on the table\n",
        "The start of the default method is the consensus of about a hundred candidates: two views, as they are and "
        "centred, six algorithms, three kinds of sizes ([auto.md](methods/auto.md)). On the tuning sets, on which "
        f"every number of it was chosen, its mean ACC is {mean('start'):.1f}; k-means of the frozen encoder has "
        f"{mean('kmeans'):.1f}, the best candidate of each set by labels (oracle) {mean('best'):.1f}. What is left is "
        "the difference to the oracle; below 0, the consensus is better than every candidate. The rank correlation is "
        "of the agreement of a candidate with the consensus and its ACC, over all candidates. Means of "
        f"{len(seeds)} seeds; the number of classes is given. A fit makes its start with seed 0, whatever its own "
        "seed; the other seeds here show how stable it is. [starts.json](../benchmarks/results/starts.json), "
        "`benchmarks/starts.py`.\n",
        f"The start is below frozen k-means by more than 1.0 on {_these(below, len(tuning))}. With these seeds its "
        f"largest and smallest ACC differ by at most 1.0 on {sum(each <= 1 for each in spreads.values())} of the "
        f"{len(tuning)} sets, by more than 3.0 on {_these(unstable, len(tuning))}."
        f" Whole fits with seed 0 were made on {len(trained)} of the sets. Training changed ACC by "
        f"{np.mean(gained):+.1f} on average, from {min(gained):+.1f} to {max(gained):+.1f}, where the views agreed "
        f"({len(gained)} sets). [auto_trials.json](../benchmarks/results/auto_trials.json), "
        "`benchmarks/auto_trials.py`.\n",
        "| tuning set | classes | frozen k-means | start | by seed | best candidate | left | rank correlation | "
        "lexical share | after training |",
        "|---|---|---|---|---|---|---|---|---|---|",
        *(_start_line(name, each, trained.get(name)) for name, each in tuning.items()),
    ]
    return "\n".join(lines) + "\n"


def start_parts() -> str:
    """Return the section on what each part of the start is worth: consensuses of the stored candidates without it."""
    content = json.loads(START_PARTS.read_text(encoding="utf-8"))
    tuning, (whole, *others) = content["tuning"], content["parts"]
    n_seeds = len({seed for seeds in tuning.values() for seed in seeds})

    def means(part: str) -> np.ndarray[Any, np.dtype[np.float64]]:
        return np.array([np.mean([each[part] for each in seeds.values()]) for seeds in tuning.values()])

    start = means(whole)
    lines = [
        "### What the parts of the start are worth\n",
        f"The same candidates on the tuning sets, combined in other ways. Means of {counted(n_seeds, 'seed')}. Worse "
        "and better: the number of sets on which ACC changes by more than a point. The candidates were not made again: "
        "lexical neighbours are in the graphs of all of them. "
        "[start_parts.json](../benchmarks/results/start_parts.json), `benchmarks/start_parts.py`.\n",
        f"| | mean ACC over {len(tuning)} sets | difference | worse on | better on |",
        "|---|---|---|---|---|",
        f"| **{whole}** | {start.mean():.1f} | | | |",
    ]
    for part in others:
        change = means(part) - start
        lines.append(
            f"| {part} | {start.mean() + change.mean():.1f} | {change.mean():+.1f} | {(change < -1).sum()} | "
            f"{(change > 1).sum()} |"
        )
    return "\n".join(lines) + "\n"


def _start_line(name: str, seeds: dict[str, Any], trial: dict[str, Any] | None) -> str:
    one = next(iter(seeds.values()))
    start, best = _over_seeds(seeds, "start"), _over_seeds(seeds, "best")
    known = [each["rank_correlation"] for each in seeds.values() if each["rank_correlation"] is not None]
    found = [each["start"]["accuracy"] for each in seeds.values()]
    cells = (
        name,
        str(one["classes"]),
        f"{_over_seeds(seeds, 'kmeans'):.1f}",
        f"**{start:.1f}**",
        f"{min(found):.1f} to {max(found):.1f}",
        f"{best:.1f}: {one['best']['name']}",
        f"{best - start:.1f}",
        f"{np.mean(known):.2f}" if known else "",
        f"{np.mean([each['lexical_share'] for each in seeds.values()]):.2f}",
        "" if trial is None else f"{trial['accuracy']:.1f}" if _was_trained(trial) else "not trained",
    )
    return f"| {' | '.join(cells)} |"


def _was_trained(trial: dict[str, Any]) -> bool:
    return len(trial["candidates"]) > 1


def _over_seeds(seeds: dict[str, Any], name: str) -> float:
    """Return the mean accuracy of ``start``, ``kmeans`` or ``best``."""
    return float(np.mean([each[name]["accuracy"] for each in seeds.values()]))


def _spread(seeds: dict[str, Any]) -> float:
    found = [each["start"]["accuracy"] for each in seeds.values()]
    return max(found) - min(found)


def _these(names: list[str], of: int) -> str:
    return f"{len(names)} of {of} ({'; '.join(names)})" if names else f"none of {of}"


def choosing_k() -> str:
    """Return the section on ``-k auto``: the selected number beside the number of classes."""
    found = json.loads(CHOICES.read_text(encoding="utf-8"))
    short = {name: found["short"][name] for name in EIGHT_SHORT if name in found["short"]}
    tuning = found["tuning"]
    lines = [
        "## Choosing k\n",
        "`-k auto` takes a sample of up to 4,000 distinct texts, as the frozen encoder embeds them, and selects the "
        f"number of clusters with the largest score: {' + '.join(found['weights'])} - {found['penalty']:g} log k. "
        "`information` is how much the clusters tell about which texts are neighbours, in nats per neighbour; "
        "`neighbours` is semantic modularity. The other criteria are reported but not counted. The rule was chosen on "
        "the tuning sets, among hundreds, so their figures are optimistic. Its one number, the penalty, moves by 0.01 "
        "at most if any data set is left out of the choice. The figures of the eight "
        f"were computed {'once, afterwards' if _has_information(short) else 'by the rule before this one'}. ACC and "
        "NMI are of k-means on the frozen embeddings of all texts, seed 0: with the selected number of clusters, and "
        "with the number of classes. [choose_k.json](../benchmarks/results/choose_k.json), "
        "`benchmarks/choose_k.py`.\n",
        "| set | classes | selected | nearly as good | ACC selected | ACC given | NMI selected | NMI given |",
        "|---|---|---|---|---|---|---|---|",
        *(_choice_line(find_set(name).title, each) for name, each in short.items()),
        "",
        f"The selected number differs from the number of classes by a factor of {_typical(short):.1f} on average "
        f"(geometric mean), {_worst(short, find_set)}; {_largest_loss(short)}. On the {len(tuning)} tuning sets it "
        f"differs by {_typical(tuning):.1f}; on {_near(tuning)} it is within a factor of {NEAR_CLASSES:g}. With one "
        f"criterion alone, on the tuning sets: {_alone(tuning)}; on the eight: {_alone(short)}.\n",
        "It fails where classes are not what neighbours show. Where classes have two dozen texts or fewer (mixed, "
        "few, the tails of uneven sets), most nearest neighbours are of other classes, and it selects the domains that "
        "the classes belong to. It selects parts of broad classes (dblp, and the one class of ATIS that has three "
        "quarters of the texts).\n",
        "| tuning set | classes | selected | ACC selected | ACC given | NMI selected | NMI given |",
        "|---|---|---|---|---|---|---|",
        *(_choice_line(name, each, near=False) for name, each in tuning.items()),
    ]
    return "\n".join(lines) + "\n"


def calibration() -> str:
    """Return the section on the calibration of confidence."""
    found = json.loads(CALIBRATION.read_text(encoding="utf-8"))
    rows = found["short"]
    errors = {row: [each["ece"] for each in sets.values()] for row, sets in rows.items()}
    errors_text = ", ".join(f"{row} {np.mean(each):.3f} over {len(each)} sets" for row, each in errors.items())
    before = found["earlier"][0]["short"]
    earlier = ", ".join(f"{row} {np.mean(list(each.values())):.3f}" for row, each in before.items())
    left_out = found["tuning"]["mean_of_sets"]
    lines = [
        "## Is confidence calibrated?\n",
        "Confidence estimates the probability that a text has the class that most texts of its cluster have. It is "
        "computed without labels from five criteria: the share of the ten nearest neighbours (by the frozen encoder) "
        "of the texts of a cluster that are in the cluster, the same share over all texts, the share of neighbours "
        "that are in the cluster or in those most similar to it, the share of the cluster that k-means finds again "
        f"on other samples of the texts, and the rank of the text's margin in the run. {len(found['tried'])} sets of "
        "criteria were tried, and the weights learned, on the tuning sets and parts of them, with the right number "
        "of clusters given. With each set left out in turn, the expected calibration error there is "
        f"{np.mean(list(left_out.values())):.3f} on average "
        f"({', '.join(f'{name} {error:.3f}' for name, error in left_out.items())}). On the eight sets, run with those "
        f"weights: {errors_text}. The aim was 0.10. {len(found['earlier'])} other setting was run on the eight "
        f"before, with {len(found['earlier'][0]['parameters']['weights'])} criteria: {earlier}. The error is largest "
        "on Tweet and GoogleNews, whose large classes are divided into several clusters: these are purer than their "
        "neighbours suggest. Confidence does not show that the number of clusters is wrong: two subjects in one "
        "cluster may each be compact. [calibration.json](../benchmarks/results/calibration.json), "
        "`benchmarks/calibrate.py`.\n",
        "| set | clusters by | error | mean confidence | right |",
        "|---|---|---|---|---|",
        *(
            f"| {find_set(name).title} | {row} | {each['ece']:.3f} | {each['mean_confidence']:.1%} "
            f"| {each['right']:.1%} |"
            for row, sets in rows.items()
            for name, each in sets.items()
        ),
        "",
        "All texts of the eight sets, by bins of their confidence, and the share of each bin that is right:\n",
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


def _typical(sets: dict[str, Any], criterion: str | None = None) -> float:
    """Return the geometric mean of the factors; with ``criterion``, of the numbers it would select alone."""
    chosen = [each["each_sign_alone"][criterion] if criterion else each["chosen"] for each in sets.values()]
    factors = [_off(k, each["classes"]) for k, each in zip(chosen, sets.values(), strict=True)]
    return math.exp(sum(map(math.log, factors)) / len(factors))


def _near(sets: dict[str, Any]) -> int:
    """Return how many sets have a selected number within ``NEAR_CLASSES`` of the number of classes."""
    return sum(_off(each["chosen"], each["classes"]) <= NEAR_CLASSES for each in sets.values())


def _has_information(sets: dict[str, Any]) -> bool:
    """Return whether every number was selected by the rule of today, in which ``information`` counts."""
    return all("information" in each["each_sign_alone"] for each in sets.values())


def _worst(sets: dict[str, Any], find: Any = None) -> str:
    name = max(sets, key=lambda each: _off(sets[each]["chosen"], sets[each]["classes"]))
    worst = sets[name]
    title = find(name).title if find else name
    factor = _off(worst["chosen"], worst["classes"])
    return f"at worst {factor:.1f} ({title}: {worst['chosen']} for {worst['classes']})"


def _largest_loss(sets: dict[str, Any]) -> str:
    """Return the largest loss of accuracy by a wrong number, and where it is."""

    def lost(name: str) -> float:
        return 100 * (sets[name]["at_classes"]["accuracy"] - sets[name]["at_chosen"]["accuracy"])

    name = max(sets, key=lost)
    return f"it costs most on {find_set(name).title}, {lost(name):.1f} points of ACC"


def _alone(sets: dict[str, Any]) -> str:
    criteria = ("information", "neighbours", "words", "silhouette", "stability", "gap")
    known = [each for each in criteria if all(each in found["each_sign_alone"] for found in sets.values())]
    return ", ".join(f"{criterion} {_typical(sets, criterion):.1f}" for criterion in known)


def main() -> None:
    text = page()
    if "--check" in sys.argv:
        if not PAGE.is_file() or PAGE.read_text(encoding="utf-8") != text:
            sys.exit(f"{PAGE.name} is not up to date: run make readme")
        return
    PAGE.write_text(text, encoding="utf-8")
    for figure in all_figures():
        if is_complete(figure):
            plot_figure(figure, STORE, FIGURES / f"{figure.name}.svg")


if __name__ == "__main__":
    main()
