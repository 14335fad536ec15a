"""How seconds and memory of fit and predict grow with the texts and with the clusters, and the estimate of the seconds.

    PYTHONPATH=src python benchmarks/speed/growth.py

Generated titles, SCCL with its defaults. Every size runs in a process of its own; memory is its peak.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any

from common import generate_titles, peak_memory, write


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--texts", type=int, nargs="+", default=[1_000, 10_000, 100_000, 1_000_000])
    parser.add_argument("--clusters", type=int, nargs="+", default=[10, 100, 1_000])
    parser.add_argument("--fixed-texts", type=int, default=100_000, help="texts where the clusters vary")
    parser.add_argument("--fixed-clusters", type=int, default=20, help="clusters where the texts vary")
    parser.add_argument("--device", default="auto")
    parser.add_argument("--method", default="sccl")
    parser.add_argument("--one", type=int, nargs=2, metavar=("TEXTS", "CLUSTERS"), help=argparse.SUPPRESS)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    if options.one:
        print(json.dumps(one(*options.one, options.method, options.device)))
        return

    sizes = [(n, options.fixed_clusters) for n in options.texts] + [(options.fixed_texts, k) for k in options.clusters]
    sizes.sort(key=lambda size: size[0] * max(1, size[1] // 100))
    runs: list[dict[str, Any]] = []
    for n, k in sizes:
        command = [sys.executable, __file__, "--one", str(n), str(k), "--method", options.method]
        done = subprocess.run([*command, "--device", options.device], capture_output=True, text=True, check=False)
        if done.returncode:
            print(done.stderr[-2000:], file=sys.stderr)
            continue
        runs.append(json.loads(done.stdout.splitlines()[-1]))
        print(runs[-1], flush=True)
        write(options.out, "growth", {"method": options.method, "device": options.device, "runs": runs})


def one(n_texts: int, n_clusters: int, method: str, device: str) -> dict[str, Any]:
    from coterie.methods.build_method import build_method
    from coterie.methods.cost_estimate import estimate
    from coterie.text.corpus import as_corpus

    texts = generate_titles(n_texts)
    # The first use of a device takes longer, once: that is not growth.
    build_method(method, 4, 0, {"training.max_steps": 4}, {"device": device}).fit(texts[:200])
    corpus = as_corpus(texts)
    model = build_method(method, n_clusters, 0, {}, {"device": device})
    expected = estimate(model, corpus) if n_texts >= 10_000 else None
    with peak_memory() as fit_memory:
        began = time.perf_counter()
        model.fit(corpus)
        fit_seconds = time.perf_counter() - began
    with peak_memory() as predict_memory:
        began = time.perf_counter()
        model.predict(texts)
        predict_seconds = time.perf_counter() - began
    return {
        "texts": n_texts,
        "clusters": n_clusters,
        "fit": {"seconds": fit_seconds, "memory": fit_memory["peak"], "before": fit_memory["before"]},
        "predict": {"seconds": predict_seconds, "memory": predict_memory["peak"], "before": predict_memory["before"]},
        "timings": model.timings_,
        "steps": len(model.history_.steps),
        "estimate": None if expected is None else asdict(expected),
        # The estimate is of the whole command; its guess for reading and writing is taken off.
        "estimate_over_actual": None
        if expected is None
        else (expected.seconds - expected.parts["reading_and_writing"]) / fit_seconds,
    }


if __name__ == "__main__":
    main()
