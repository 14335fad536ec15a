"""How often the paired bootstrap calls equally good methods different, when only the seeds differ.

    PYTHONPATH=src python benchmarks/significance.py --out benchmarks/results/significance.json

The share of wrong texts of each run of each method is sampled from one distribution.
"""

from __future__ import annotations

import argparse
import json
from datetime import UTC, datetime
from pathlib import Path

import numpy as np

from coterie import __version__
from coterie.metrics.external.significance import paired_bootstrap

CLASSES = 4
WRONG, SPREAD = 0.3, 0.05


def rejected(n_seeds: int, comparisons: int, texts: int, resamples: int) -> float:
    """Return the share of comparisons with p below 0.05."""
    generator = np.random.default_rng(n_seeds)
    truth = generator.integers(CLASSES, size=texts)

    def run() -> np.ndarray:
        wrong = generator.random(texts) < generator.normal(WRONG, SPREAD)
        return np.where(wrong, (truth + 1 + generator.integers(CLASSES - 1, size=texts)) % CLASSES, truth)

    values = [
        paired_bootstrap(
            [run() for _ in range(n_seeds)], [run() for _ in range(n_seeds)], truth, n_resamples=resamples, seed=i
        ).p_value
        for i in range(comparisons)
    ]
    return float(np.mean(np.array(values) < 0.05))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--comparisons", type=int, default=400)
    parser.add_argument("--texts", type=int, default=2000)
    parser.add_argument("--resamples", type=int, default=400)
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    sizes = (options.comparisons, options.texts, options.resamples)
    found = {str(seeds): rejected(seeds, *sizes) for seeds in (3, 5, 10)}
    record = {
        "what": "share of comparisons of equally good methods with p < 0.05, by the number of seeds",
        "date": datetime.now(UTC).date().isoformat(),
        "code_version": __version__,
        "comparisons": options.comparisons,
        "texts": options.texts,
        "resamples": options.resamples,
        "share_wrong": {"mean": WRONG, "deviation_between_seeds": SPREAD},
        "rejected": found,
    }
    options.out.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    print(found)


if __name__ == "__main__":
    main()
