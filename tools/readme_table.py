"""Write the measured tables of README.md, docs/choose-a-method.md and docs/scores.md.

    python tools/readme_table.py            write them
    python tools/readme_table.py --check    fail if they are not up to date

Every figure comes from a JSON under benchmarks/results/, so none can drift.
"""

from __future__ import annotations

import json
import math
import re
import statistics
import sys
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from coterie.benchmark.catalogue import find_row
from coterie.benchmark.cell_runs import existing_runs
from coterie.benchmark.sets import EIGHT_SHORT, find_set
from coterie.benchmark.specs import FINAL, TRAINED
from coterie.benchmark.store import Store

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "benchmarks" / "results"
# Rows of docs/scores.md: the five papers' methods, what they must beat, the default and its start.
SCORE_ROWS = ("tfidf", "lexical", "frozen-kmeans", "frozen-ward", "umap-kmeans", *TRAINED, "frozen-chosen", "auto")
# Rows of docs/choose-a-method.md: a row of the benchmark, and how to ask for it.
CHOICE_ROWS = {
    "auto": "default",
    "frozen-chosen": "`-m frozen --set clusterer=chosen`",
    "umap-kmeans": "`-m frozen --set clusterer=umap`",
    "frozen-kmeans": "`-m frozen`",
    "frozen-ward": "`-m frozen --set clusterer=ward`",
    "tfidf": "`-m tfidf`",
    "lexical": "`-m lexical`",
    **{name: f"`-m {name}`" for name in (*TRAINED, "rstc", "tsdae", "bertopic")},
    "dec-embedding": "`-m dec`",
    "hac-sd-ic": "`-m hac_sd`",
}
OUTDATED = "† The runs of this row were made before its method was changed; they have not been made again."
# ClustPy has these methods too; they work on vectors.
CLUSTPY_ROWS = ("dec-embedding", "idec-embedding", "dcn-embedding")
# Classes count as even where the largest has at most this many times the texts of the smallest.
EVEN = 2.0
# The set of docs/choose-a-method.md whose fits are timed: 20,000 titles.
TIMED = "stackoverflow"


@cache
def records() -> Any:
    return Store(RESULTS / "benchmark").records()


@cache
def result(name: str) -> Any:
    """The content of ``benchmarks/results/NAME.json``."""
    return json.loads((RESULTS / f"{name}.json").read_text(encoding="utf-8"))


def accuracies(row: str, dataset: str) -> list[float]:
    """Accuracy of every seed that a row has on a set."""
    return [run["scores"][FINAL]["accuracy"] for run in existing_runs(find_row(row), dataset, records())]


def mean_accuracy(row: str, datasets: Sequence[str] = EIGHT_SHORT) -> float:
    """Mean over sets of the mean over seeds."""
    return statistics.mean(statistics.mean(accuracies(row, dataset)) for dataset in datasets)


def seeds(row: str) -> str:
    counts = {len(accuracies(row, dataset)) for dataset in EIGHT_SHORT}
    return str(min(counts)) if len(counts) == 1 else f"{min(counts)} to {max(counts)}"


def title(row: str) -> str:
    """The title of a row, marked where its runs were made before its method was changed."""
    found = find_row(row)
    runs = [run for dataset in EIGHT_SHORT for run in existing_runs(found, dataset, records())]
    return f"{found.title} †" if any(map(found.is_outdated, runs)) else found.title


def even_sets() -> list[str]:
    """Those of the eight sets whose classes have about the same size."""
    return [name for name in EIGHT_SHORT if result("choose_k")["short"][name]["largest_to_smallest"] <= EVEN]


# --- README.md ---


def why() -> str:
    speed = result("speed/training")
    public = speed["public"]
    best = max(TRAINED, key=mean_accuracy)
    vectors = [mean_accuracy(row) for row in CLUSTPY_ROWS]
    calibration = result("calibration")
    error = statistics.mean(each["ece"] for each in calibration["short"]["auto"].values())
    lines_per_second = result("speed/predict_memory")["lines_per_second"]
    step = f"{1000 * public['sccl_step_seconds']:.0f} ms and {public['aecl_epoch_seconds']:.1f} s"
    ours = f"{1000 * speed['sccl_virtual']['step_seconds']:.1f} ms and {speed['aecl']['epoch_seconds']:.2f} s"
    outdated_error = ", before the last change of the default" if find_row("auto").is_outdated(calibration) else ""
    own_seeds = "" if seeds("auto") == "5" else f" (Coterie: {seeds('auto')})"
    rows = [
        ("", "Coterie", "BERTopic", "ClustPy", "the papers' code"),
        (
            "mean accuracy on eight sets of short texts, %",
            f"**{mean_accuracy('auto'):.1f}**",
            f"{mean_accuracy('bertopic'):.1f} ¹",
            f"{min(vectors):.1f} to {max(vectors):.1f} ²",
            f"{mean_accuracy(best):.1f} ({find_row(best).title}) ²",
        ),
        ("fine-tunes the sentence encoder", "yes", "no", "no, clusters vectors", "yes"),
        ("judges without labels how far to trust its training", "yes, and says so", "-", "no", "no"),
        (
            "an SCCL step and an AECL epoch ³",
            f"**{ours}** ({speed['sccl_virtual']['times']:.0f} and {speed['aecl']['times']:.0f} times as fast)",
            "-",
            "-",
            step,
        ),
        ("every text has a cluster", "yes", "by default outliers have none", "by algorithm", "yes"),
        ("confidence calibrated without labels", f"yes, calibration error {error:.2f} ⁴", "no", "no", "no"),
        (
            "new texts",
            f"the same answer alone or in a batch; {lines_per_second:,.0f} per second on a GPU",
            "yes",
            "by algorithm",
            "-",
        ),
        ("command line, report, explorer", "yes", "plots", "plots", "scripts"),
    ]
    lines = ["| " + " | ".join(row) + " |" for row in rows]
    lines.insert(1, "|---|---|---|---|---|")
    return "\n".join(
        [
            *lines,
            "",
            "Same frozen encoder (all-MiniLM-L6-v2) and right number of clusters for all; five seeds"
            f"{own_seeds}, no label used but for scoring. k-means of that encoder has "
            f"{mean_accuracy('frozen-kmeans'):.1f}. ¹ The package itself with k-means; {seeds('bertopic')} seeds. "
            "² In our implementations: DEC, IDEC and DCN on the encoder's vectors, and the best of the five papers' "
            "methods. ³ StackOverflow titles, batch 400, "
            f"{speed['machine']['gpu']}; the public AECL epoch scores itself too. ⁴ Expected calibration error, mean "
            f"of the eight sets{outdated_error}. Every figure: [docs/scores.md](docs/scores.md), "
            "[docs/PERFORMANCE.md](docs/PERFORMANCE.md), [docs/BENCHMARKS.md](docs/BENCHMARKS.md).",
        ]
    )


# --- docs/choose-a-method.md ---


def choices() -> str:
    even = even_sets()
    uneven = [name for name in EIGHT_SHORT if name not in even]
    lines = [
        "| method | how to ask for it | even classes | uneven classes | all eight | seeds | a fit of 20,000 titles |",
        "|---|---|---|---|---|---|---|",
    ]
    for row in sorted(CHOICE_ROWS, key=mean_accuracy, reverse=True):
        means = [f"{mean_accuracy(row, sets):.1f}" for sets in (even, uneven, EIGHT_SHORT)]
        runs = existing_runs(find_row(row), TIMED, records())
        seconds = statistics.median(run["seconds"]["fit"] for run in runs)
        devices = sorted({"CPU" if run["machine"]["device"] == "cpu" else "GPU" for run in runs})
        cells = [title(row), CHOICE_ROWS[row], *means, seeds(row), f"{seconds:,.0f} s, {' or '.join(devices)}"]
        lines.append(f"| {' | '.join(cells)} |")
    titles = [", ".join(find_set(name).title for name in sets) for sets in (even, uneven)]
    off = [each["chosen"] / each["classes"] for each in result("choose_k")["short"].values()]
    factor = math.exp(statistics.mean(abs(math.log(each)) for each in off))
    return "\n".join(
        [
            *lines,
            "",
            *([OUTDATED, ""] if any("†" in line for line in lines) else []),
            f"Mean accuracy in percent. Even classes: {titles[0]}. Uneven: {titles[1]}. Seconds are the median of fits "
            "on one GPU (NVIDIA H200) or on a CPU, on machines that ran up to 15 fits at once: read them as orders of "
            f"magnitude. The right number of clusters was given. `-k auto` is off by a factor of {factor:.1f} on these "
            "sets on average ([choose_k.json](../benchmarks/results/choose_k.json)).",
        ]
    )


# --- docs/scores.md ---


def papers() -> str:
    """Accuracy of the five papers' methods, of what they must beat, and of the default and its start."""
    lines = [
        "| ACC | seeds | " + " | ".join(find_set(name).title for name in EIGHT_SHORT) + " |",
        "|---|---|" + "---|" * len(EIGHT_SHORT),
    ]
    for row in SCORE_ROWS:
        cells = []
        for dataset in EIGHT_SHORT:
            values = accuracies(row, dataset)
            spread = f" ± {statistics.stdev(values):.1f}" if len(values) > 1 else ""
            cells.append(f"{statistics.mean(values):.1f}{spread}")
        lines.append(f"| {title(row)} | {seeds(row)} | " + " | ".join(cells) + " |")
    return "\n".join([*lines, "", OUTDATED] if any("†" in line for line in lines) else lines)


def stackoverflow() -> str:
    """SCCL on StackOverflow, before and after training, on a GPU and on a CPU."""
    gpu, cpu, speed = result("sccl_stackoverflow"), result("speed/sccl_cpu"), result("speed/training")
    paper = gpu["summary"]["paper"]
    default = existing_runs(find_row("sccl"), "stackoverflow", records())
    lines = [
        "| StackOverflow titles, 20 clusters, all-MiniLM-L6-v2 | ACC before | ACC after | NMI before | NMI after |",
        "|---|---|---|---|---|",
    ]
    for name, runs in (("defaults, 20,000 texts", default), ("defaults on a CPU, 5,000 texts", cpu["runs"])):
        values = [
            statistics.mean(run["scores"][answer][measure] for run in runs)
            for measure in ("accuracy", "nmi")
            for answer in ("frozen", "kmeans")
        ]
        lines.append(f"| SCCL, {name}, {len(runs)} seeds | " + " | ".join(f"{value:.1f}" for value in values) + " |")
    lines += [
        f"| SCCL, the paper's settings, 20,000 texts, {len(paper['seeds'])} seeds | {paper['accuracy_frozen']:.1f} | "
        f"{paper['accuracy_kmeans']:.1f} | {paper['nmi_frozen']:.1f} | {paper['nmi_kmeans']:.1f} |",
        "",
        "Before is k-means on the frozen encoder, after is SCCL started from those same centres. An epoch over 20,000 "
        f"titles takes {speed['sccl_words']['stages'][0]['median_epoch']:.2f} s on one {gpu['machine']['device']}; the "
        f"whole command on 5,000 titles took {cpu['median_seconds'] / 60:.1f} minutes on {cpu['cores_a_run']} CPU "
        f"cores. Note that {gpu['note']}.",
        "",
        f"A caution: {gpu['caution']}.",
    ]
    return "\n".join(lines)


PAGES: dict[str, dict[str, Callable[[], str]]] = {
    "README.md": {"why": why},
    "docs/choose-a-method.md": {"choices": choices},
    "docs/scores.md": {"papers": papers, "stackoverflow": stackoverflow},
}


def with_tables(page: str, text: str) -> str:
    """The text of a page with its generated tables between their markers."""
    for name, make in PAGES[page].items():
        pattern = re.compile(f"(<!-- {name}:start -->).*?(<!-- {name}:end -->)", re.DOTALL)
        content = make()
        text, count = pattern.subn(lambda match, content=content: f"{match[1]}\n{content}\n{match[2]}", text)
        if count != 1:
            sys.exit(f"{page}: the markers of {name!r} must occur exactly once, found {count}")
    return text


def main() -> None:
    stale = []
    for page in PAGES:
        path = ROOT / page
        old = path.read_text(encoding="utf-8")
        new = with_tables(page, old)
        if new != old:
            stale.append(page)
            if "--check" not in sys.argv[1:]:
                path.write_text(new, encoding="utf-8")
    if stale and "--check" in sys.argv[1:]:
        sys.exit(f"not up to date: {', '.join(stale)}; run `make readme`")


if __name__ == "__main__":
    main()
