"""How far the structure of real texts is from that of none, and how alike texts of one subject are: no label is used.

    PYTHONPATH=src python benchmarks/structure.py --out benchmarks/results/structure.json

On the tuning sets of tuning_sets.py, whole (1,500 texts at most) and as samples of 200 and 100 texts, beside texts of
words that are sampled from theirs, and variations of one message. Embeddings are stored in ``--cache``.
"""

from __future__ import annotations

import argparse
import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tuning_sets import tuning_sets

from coterie import __version__
from coterie.encoders.transformer import TransformerEncoder
from coterie.encoders.weights import DEFAULT_MODEL
from coterie.selection.structure import (
    LEAST_STRUCTURE,
    ONE_SUBJECT_SIMILARITY,
    UNRELATED_SENTENCES,
    mean_similarity,
    structure_beyond_chance,
)

MOST, SAMPLES = 1_500, (200, 100)
MESSAGE = "my parcel is late and nobody at the depot can tell me when the courier will bring it to my door"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cache", type=Path, default=Path("embeddings"))
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    options.cache.mkdir(parents=True, exist_ok=True)
    encoder = TransformerEncoder.load(DEFAULT_MODEL, max_length=64)
    unrelated = encoder.encode(list(UNRELATED_SENTENCES))
    found: dict[str, Any] = {}

    def add(name: str, vectors: NDArray[np.float32], n_clusters: int) -> None:
        found[name] = {
            "texts": len(vectors),
            "clusters": n_clusters,
            "structure": round(structure_beyond_chance(vectors, n_clusters), 3),
            "likeness": round(mean_similarity(vectors, unrelated), 3),
        }
        print(name, found[name], flush=True)

    generator = np.random.default_rng(0)
    for name, corpus, labels, vectors in tuning_sets(options.cache):
        classes = len(set(labels))
        add(name, vectors[np.sort(generator.permutation(len(vectors))[:MOST])], classes)
        for draw in SAMPLES:
            if "," not in name and 4 * classes <= draw:
                add(f"{name}, {draw} texts", vectors[np.sort(generator.permutation(len(vectors))[:draw])], classes)
        if "," not in name:
            words = sorted({word for text in corpus.distinct for word in text.lower().split()})
            salad = [" ".join(generator.choice(words, 7)) for _ in range(400)]
            add(f"words of {name} at random", encoder.encode(salad), min(classes, 20))
    words_of_one = MESSAGE.split()
    for name, texts in (
        ("one message, order of words", [" ".join(generator.permutation(words_of_one)) for _ in range(400)]),
        (
            "one message, numbers",
            [f"where is my parcel number {generator.integers(10_000, 99_999)}" for _ in range(400)],
        ),
        (
            "one message, words left out",
            [" ".join(w for w in words_of_one if generator.random() > 0.3) for _ in range(400)],
        ),
    ):
        add(name, encoder.encode(list(dict.fromkeys(texts))), 4)
    content = {
        "what": "structure and similarity of texts without labels (coterie.selection.structure)",
        "date": datetime.now(UTC).date().isoformat(),
        "code_version": __version__,
        "encoder": DEFAULT_MODEL,
        "found_from": LEAST_STRUCTURE,
        "one_subject_from": ONE_SUBJECT_SIMILARITY,
        "found": found,
    }
    options.out.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
