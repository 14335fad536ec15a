"""Seconds of each rule-based augmenter on 20,000 StackOverflow titles, and how many of them it leaves unchanged.

    PYTHONPATH=src python benchmarks/augmentation_speed.py --out benchmarks/results/augmentation_speed.json

Each augmenter runs with its defaults, several times; the fastest run counts, since other work on the machine can only
add time. The first run includes loading the table of synonyms where one is used.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from coterie import __version__, load_dataset
from coterie.text.augmentation import wordnet
from coterie.text.augmentation.base import Augmenter, unchanged_share
from coterie.text.augmentation.registry import AUGMENTERS, RULE, parse_augmenter


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()

    texts = list(load_dataset("stackoverflow").texts)
    results = {
        info.name: measured(parse_augmenter(info.name), texts, options.repeats, options.seed)
        for info in AUGMENTERS
        if info.kind == RULE
    }
    content = {
        "date": datetime.now(UTC).date().isoformat(),
        "code_version": __version__,
        "dataset": "stackoverflow",
        "texts": len(texts),
        "words_a_text": round(float(np.mean([len(text.split()) for text in texts])), 1),
        "seed": options.seed,
        "repeats": options.repeats,
        "machine": {
            "cores": os.cpu_count(),
            "cores_used": 1,
            "processor": platform.machine(),
            "python": platform.python_version(),
        },
        "synonym_table_load_seconds": round(table_seconds(options.repeats), 3),
        "augmenters": results,
    }
    options.out.write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")
    print(json.dumps({name: found["seconds"] for name, found in results.items()}))


def measured(augmenter: Augmenter, texts: list[str], repeats: int, seed: int) -> dict[str, Any]:
    wordnet._table.cache_clear()
    wordnet.look_up.cache_clear()
    seconds = []
    for _ in range(repeats):
        began = time.perf_counter()
        views = augmenter.augment(texts, np.random.default_rng(seed))
        seconds.append(time.perf_counter() - began)
    return {
        "augmenter": augmenter.describe(),
        "seconds": round(min(seconds), 3),
        "first_run_seconds": round(seconds[0], 3),
        "texts_per_second": round(len(texts) / min(seconds)),
        "unchanged_share": round(unchanged_share(texts, views), 4),
    }


def table_seconds(repeats: int) -> float:
    seconds = []
    for _ in range(repeats):
        wordnet._table.cache_clear()
        began = time.perf_counter()
        wordnet._table()
        seconds.append(time.perf_counter() - began)
    return min(seconds)


if __name__ == "__main__":
    main()
