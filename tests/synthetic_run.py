"""A run folder of many texts, made without a fit: what the explorer reads, and nothing that needs a model."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import numpy as np
from safetensors.numpy import save_file

WORDS = [f"{a}{b}" for a in ("par", "lo", "re", "in", "da", "mo", "ca", "ti") for b in ("cel", "gin", "fund", "voice")]


def made_texts(n: int, seed: int = 0) -> list[str]:
    """``n`` different texts of some eight words."""
    generator = np.random.default_rng(seed)
    drawn = generator.integers(0, len(WORDS), (n, 8))
    return [f"{' '.join(WORDS[word] for word in words)} {row}" for row, words in enumerate(drawn)]


def write_run(folder: Path, labels: np.ndarray, vectors: np.ndarray, *, mapped: np.ndarray | None = None) -> Path:
    """``mapped`` are the rows on the map, all without it."""
    folder.mkdir(parents=True)
    texts = made_texts(len(labels))
    about = {"method": "frozen", "input": {"source": "texts.csv", "kept": []}, "rows": len(labels), "notes": []}
    (folder / "run.json").write_text(json.dumps(about), encoding="utf-8")
    clusters = [{"id": k, "name": f"Cluster {k}", "keywords": [WORDS[k]]} for k in range(int(labels.max()) + 1)]
    (folder / "clusters.json").write_text(json.dumps({"clusters": clusters}), encoding="utf-8")
    with (folder / "assignments.csv").open("w", encoding="utf-8", newline="") as stream:
        writer = csv.writer(stream)
        writer.writerow(["row", "cluster", "confidence", "status", "text"])
        for row, (label, text) in enumerate(zip(labels.tolist(), texts, strict=True)):
            writer.writerow([row + 1, label, f"{(row % 97) / 97:.4f}", "assigned", text])
    rows = np.arange(len(labels)) if mapped is None else mapped
    content = {
        "rows": rows.astype(np.int64),
        "places": np.clip(vectors[rows, :2] / 10, -1, 1).astype(np.float32),
        "vectors": vectors[rows].astype(np.float32),
        "exact": np.array([True]),
    }
    save_file({name: np.ascontiguousarray(values) for name, values in content.items()}, folder / "map.safetensors")
    return folder
