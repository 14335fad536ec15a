"""Write the generated parts of README.md: the table of methods and the measured figures.

    python tools/readme_table.py            write them
    python tools/readme_table.py --check    fail if they are not up to date

Methods come from the registry, figures from benchmarks/results/, so neither can drift.
"""

from __future__ import annotations

import json
import re
import statistics
import sys
from pathlib import Path

from coterie.methods.registry import METHODS

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "benchmarks" / "results"


def methods_table() -> str:
    rows = ["| `--method` | in Python | what it does | trains the encoder | from |", "|---|---|---|---|---|"]
    for info in METHODS:
        trains = "yes" if info.trains_encoder else "no"
        rows.append(f"| `{info.name}` | `{info.class_name}` | {info.summary} | {trains} | {info.citation} |")
    return "\n".join(rows)


def figures() -> str:
    gpu = json.loads((RESULTS / "sccl_stackoverflow.json").read_text(encoding="utf-8"))
    default, paper = gpu["summary"]["default"], gpu["summary"]["paper"]
    cpu = json.loads((RESULTS / "speed" / "sccl_cpu.json").read_text(encoding="utf-8"))
    speed = json.loads((RESULTS / "speed" / "training.json").read_text(encoding="utf-8"))
    lines = [
        "| StackOverflow titles, 20 clusters, all-MiniLM-L6-v2 | ACC before | ACC after | NMI before | NMI after |",
        "|---|---|---|---|---|",
    ]
    # The rates became 1e-4 and 2e-3 after these runs.
    for name, found in (("SCCL, rates 2e-5 and 5e-4", default), ("SCCL, the paper's settings", paper)):
        lines.append(
            f"| {name}, 20,000 texts, {len(found['seeds'])} seeds | {found['accuracy_frozen']:.1f} | "
            f"{found['accuracy_kmeans']:.1f} | {found['nmi_frozen']:.1f} | {found['nmi_kmeans']:.1f} |"
        )
    small = [
        statistics.mean(run["scores"][answer][measure] for run in cpu["runs"])
        for measure in ("accuracy", "nmi")
        for answer in ("frozen", "kmeans")
    ]
    lines.append(
        f"| SCCL, defaults on a CPU, 5,000 texts, {len(cpu['runs'])} seeds | "
        + " | ".join(f"{value:.1f}" for value in small)
        + " |"
    )
    lines += [
        "",
        "Before is k-means on the frozen encoder, after is SCCL started from those same centres. "
        f"An epoch over 20,000 titles takes {speed['sccl_words']['stages'][0]['median_epoch']:.2f} s on one "
        f"{gpu['machine']['device']}; the whole command on 5,000 titles took {cpu['median_seconds'] / 60:.1f} minutes "
        f"on {cpu['cores_a_run']} CPU cores. How fast everything is: "
        f"[docs/PERFORMANCE.md](docs/PERFORMANCE.md). Note that {gpu['note']}. Every run, seed by seed, and what was "
        "tried on the way: [benchmarks/results](benchmarks/results).",
        "",
        f"A caution: {gpu['caution']}.",
    ]
    return "\n".join(lines)


SHORT_NAMES = {
    "agnews": "AgNews",
    "searchsnippets": "SearchSnippets",
    "stackoverflow": "StackOverflow",
    "biomedical": "Biomedical",
    "googlenews_ts": "GoogleNews-TS",
    "googlenews_t": "GoogleNews-T",
    "googlenews_s": "GoogleNews-S",
    "tweet": "Tweet",
}


def papers() -> str:
    found = json.loads((RESULTS / "papers.json").read_text(encoding="utf-8"))
    runs = {(run["method"], run["dataset"]): run for run in found["runs"]}
    titles = {info.name: info.title for info in METHODS}
    names = [*SHORT_NAMES.values(), "no worse", "2 better"]
    lines = ["| ACC, seed 0 | " + " | ".join(names) + " |", "|---|" + "---|" * len(names)]
    # SCCL was measured later, from a start of its own.
    start = [runs["aecl", dataset]["scores"]["frozen"]["accuracy"] for dataset in SHORT_NAMES]
    lines.append("| k-means on the frozen encoder | " + " | ".join(f"{value:.1f}" for value in start) + " | | |")
    for method in found["summary"]:
        cells = []
        for dataset in SHORT_NAMES:
            scores = runs[method, dataset]["scores"]
            gain = scores["final"]["accuracy"] - scores["frozen"]["accuracy"]
            cells.append(f"{scores['final']['accuracy']:.1f} ({gain:+.1f})")
        count = found["summary"][method]
        cells += [f"{count['no_worse']} of {count['runs']}", f"{count['two_better']} of {count['runs']}"]
        lines.append(f"| {titles[method]} | " + " | ".join(cells) + " |")
    lines += ["", found["remark"]]
    return "\n".join(lines)


def generated(text: str) -> str:
    for name, content in (("methods", methods_table()), ("figures", figures()), ("papers", papers())):
        pattern = re.compile(f"(<!-- {name}:start -->).*?(<!-- {name}:end -->)", re.DOTALL)
        text, found = pattern.subn(lambda match, content=content: f"{match[1]}\n{content}\n{match[2]}", text)
        if found != 1:
            sys.exit(f"README.md: the markers of {name!r} must stand there exactly once, found {found}")
    return text


def main() -> None:
    readme = ROOT / "README.md"
    old = readme.read_text(encoding="utf-8")
    new = generated(old)
    if "--check" in sys.argv[1:]:
        if new != old:
            sys.exit("README.md is not up to date: run `make readme`")
        return
    readme.write_text(new, encoding="utf-8")


if __name__ == "__main__":
    main()
