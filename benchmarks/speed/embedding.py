"""Texts embedded in a second, tokenising included, against sentence-transformers in the same run.

    PYTHONPATH=src python benchmarks/speed/embedding.py --device cuda
    PYTHONPATH=src python benchmarks/speed/embedding.py --device cpu --name embedding_cpu --titles 20000 \\
        --dataset stackoverflow

Titles are distinct and generated, or the texts of ``--dataset``. sentence-transformers gets its own best: half
precision and the best of several batch sizes, on as many of the titles as ``--theirs`` says.
"""

from __future__ import annotations

import argparse
import statistics
from pathlib import Path
from typing import Any

import numpy as np
from common import generate_titles, repeated, write


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--titles", type=int, default=1_000_000)
    parser.add_argument("--theirs", type=int, help="how many of them sentence-transformers embeds (default: all)")
    parser.add_argument("--dataset", help="texts of a data set in place of generated ones")
    parser.add_argument("--batch-sizes", type=int, nargs="+", default=[128, 512, 2048])
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--clusters", type=int, default=20)
    parser.add_argument("--threads", type=int)
    parser.add_argument("--name", default="embedding")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()

    import torch
    from sentence_transformers import SentenceTransformer

    from coterie import load_dataset
    from coterie.clustering.kmeans import kmeans
    from coterie.encoders.device import resolve_precision
    from coterie.encoders.transformer import TransformerEncoder
    from coterie.encoders.weights import DEFAULT_MODEL, find_weights

    if options.threads:
        torch.set_num_threads(options.threads)
    device = torch.device(options.device)
    titles = list(load_dataset(options.dataset).texts) if options.dataset else generate_titles(options.titles)
    titles = titles[: options.titles]
    fewer = titles[: options.theirs]
    encoder = TransformerEncoder.load(DEFAULT_MODEL, device=device, max_length=64)
    theirs = SentenceTransformer(str(find_weights(DEFAULT_MODEL).folder), device=options.device)
    theirs.max_seq_length = 64
    dtype = resolve_precision("auto", device)

    def rate(action: Any, texts: list[str], repeats: int) -> dict[str, Any]:
        action(texts[:2000])  # warm up
        found = repeated(lambda: action(texts), repeats=repeats, warm_up=0)
        return {**found, "texts": len(texts), "per_second": len(texts) / found["median"]}

    def embedded(texts: list[str], precision: Any = dtype) -> Any:
        encoder._words = None  # no word is known from the run before
        return encoder.encode(texts, precision)

    ours = rate(embedded, titles, options.repeats)
    exact = rate(lambda texts: embedded(texts, torch.float32), fewer, 1)
    default = rate(lambda texts: theirs.encode(texts, show_progress_bar=False), fewer, 1)
    best: dict[str, Any] = {}
    half = torch.float16 if device.type == "cuda" else torch.bfloat16
    theirs_exact = theirs.encode(titles[:1000], show_progress_bar=False)
    theirs.to(half)
    for size in options.batch_sizes:
        found = rate(lambda texts, size=size: theirs.encode(texts, batch_size=size, show_progress_bar=False), fewer, 1)
        if found["per_second"] > best.get("per_second", 0):
            best = {**found, "batch_size": size, "precision": str(half)}

    vectors, wide = encoder.encode(titles[:20_000], dtype), encoder.encode(titles[:20_000])
    centers = kmeans(wide, options.clusters, seed=0, n_init=1).centers
    same = nearest(vectors, centers) == nearest(wide, centers)
    cosines = (vectors * wide).sum(axis=1) / np.linalg.norm(vectors, axis=1) / np.linalg.norm(wide, axis=1)
    write(
        options.out,
        options.name,
        {
            "device": options.device,
            "titles": len(titles),
            "source": options.dataset or "made by a seed",
            "precision": str(dtype),
            "ours": ours,
            "ours_float32": exact,
            "sentence_transformers_default": default,
            "sentence_transformers_best": best,
            "times_default": ours["per_second"] / default["per_second"],
            "times_best": ours["per_second"] / best["per_second"],
            "nearest_center_the_same": float(same.mean()),
            "cosine": {"least": float(cosines.min()), "median": statistics.median(cosines.tolist())},
            "float32_against_theirs": float(np.abs(wide[:1000] - theirs_exact).max()),
        },
    )


def nearest(vectors: np.ndarray[Any, Any], centers: np.ndarray[Any, Any]) -> Any:
    return (vectors @ centers.T - np.square(centers).sum(axis=1) / 2).argmax(axis=1)


if __name__ == "__main__":
    main()
