"""k-means of a million vectors: scikit-learn on all cores against the device.

``equal_work`` starts both from the same centres and lets both take the same number of steps, so the ratio compares the
same arithmetic. ``whole_run`` is what a caller gets: k-means++ and as many steps as each needs (on fewer rows, since
scikit-learn's k-means++ alone takes about a minute on a million). ``device_alone`` is the whole run on all rows.
The vectors are where each of the two wants them before the clock starts.

    PYTHONPATH=src python benchmarks/speed/kmeans.py [--rows 1000000] [--clusters 100] [--device auto] [--out file.json]
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from common import repeated, write
from sklearn.cluster import KMeans

from coterie.clustering.device_kmeans import device_kmeans
from coterie.encoders.device import resolve_device

DIRECTIONS = 300
# Length of the noise, for directions of length one: clusters overlap.
NOISE = 1.5
MAX_ITER = 100
BLOCK = 100_000


def generate_vectors(rows: int, dimension: int, device: torch.device, seed: int = 0) -> torch.Tensor:
    """Return unit rows around random directions; clusters differ in size."""
    generator = torch.Generator(device).manual_seed(seed)
    directions = torch.randn(DIRECTIONS, dimension, generator=generator, device=device)
    directions = torch.nn.functional.normalize(directions)
    shares = 1 / torch.arange(10, DIRECTIONS + 10, device=device)
    vectors = torch.empty(rows, dimension, device=device)
    for part in vectors.split(BLOCK):
        clusters = torch.multinomial(shares, len(part), replacement=True, generator=generator)
        noise = torch.randn(part.shape, generator=generator, device=device) * (NOISE / dimension**0.5)
        part.copy_(torch.nn.functional.normalize(directions[clusters] + noise))
    return vectors


def timed(action: Callable[[], Any], repeats: int, warm_up: int) -> tuple[dict[str, Any], Any]:
    """Seconds of ``action``, and what it last returned."""
    results: list[Any] = []
    times = repeated(lambda: results.append(action()), repeats=repeats, warm_up=warm_up)
    return times, results[-1]


def compared(
    vectors: torch.Tensor, clusters: int, *, init: torch.Tensor | None, max_iter: int, tol: float, times: int
) -> dict[str, Any]:
    """Both on the same vectors, scikit-learn ``times`` times."""
    array = vectors.cpu().numpy()
    start = None if init is None else init.cpu().numpy()
    model = KMeans(
        clusters, init="k-means++" if start is None else start, n_init=1, max_iter=max_iter, tol=tol, random_state=0
    )
    # One fit on few rows: starting the threads is not what is measured.
    KMeans(clusters, n_init=1, max_iter=2).fit(array[: 20 * clusters])
    their_times, theirs = timed(lambda: model.fit(array), repeats=times, warm_up=0)
    our_times, ours = timed(
        lambda: device_kmeans(vectors, clusters, n_init=1, init=start, max_iter=max_iter, tol=tol),
        repeats=5,
        warm_up=1,
    )
    return {
        "rows": len(vectors),
        "max_iter": max_iter,
        "tol": tol,
        "scikit_learn": {**their_times, "steps": int(theirs.n_iter_), "inertia": float(theirs.inertia_)},
        "device": {**our_times, "inertia": ours.inertia},
        "ratio": their_times["median"] / our_times["median"],
        "inertia_relative_difference": ours.inertia / float(theirs.inertia_) - 1,
    }


def alone(vectors: torch.Tensor, clusters: int, n_init: int) -> dict[str, Any]:
    """The device's whole run, with its peak memory beside the vectors."""
    on_gpu = vectors.is_cuda
    if on_gpu:
        torch.cuda.reset_peak_memory_stats(vectors.device)
    held = torch.cuda.memory_allocated(vectors.device) if on_gpu else 0
    times, partition = timed(
        lambda: device_kmeans(vectors, clusters, n_init=n_init, max_iter=MAX_ITER), repeats=3, warm_up=1
    )
    peak = torch.cuda.max_memory_allocated(vectors.device) - held if on_gpu else None
    return {**times, "n_init": n_init, "max_iter": MAX_ITER, "inertia": partition.inertia, "extra_bytes": peak}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--whole-run-rows", type=int, default=500_000, help="rows of the comparison with k-means++")
    parser.add_argument("--clusters", type=int, default=100)
    parser.add_argument("--dimension", type=int, default=384)
    parser.add_argument("--steps", type=int, default=20, help="steps of the comparison of equal work")
    parser.add_argument("--device", default="auto")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()

    device = resolve_device(options.device)
    vectors = generate_vectors(options.rows, options.dimension, device)
    clusters = options.clusters
    # The rows are in no order, so the first ones are as good as any.
    start = vectors[:clusters]
    few = vectors[: options.whole_run_rows].clone()
    write(
        options.out,
        "kmeans",
        {
            "device": str(device),
            "clusters": clusters,
            "dimension": options.dimension,
            "rows": options.rows,
            "equal_work": compared(vectors, clusters, init=start, max_iter=options.steps, tol=0, times=2),
            "whole_run": compared(few, clusters, init=None, max_iter=MAX_ITER, tol=1e-4, times=1),
            "device_alone": [alone(vectors, clusters, n_init) for n_init in (1, 10)],
        },
    )


if __name__ == "__main__":
    main()
