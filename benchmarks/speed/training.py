"""Seconds of an AECL epoch and of a (virtual) SCCL step at batch 400, on one GPU.

    PYTHONPATH=src python benchmarks/speed/training.py

Public code on the same kind of GPU: AECL 10.9 s per epoch of StackOverflow, SCCL 147 ms per step.
"""

from __future__ import annotations

import argparse
import statistics
import time
from pathlib import Path
from typing import Any

from common import write

PUBLIC = {"aecl_epoch_seconds": 10.9, "sccl_step_seconds": 0.147}
# Epochs of a stage that do not count: kernels are compiled and steps recorded in them.
WARM_UP = 3


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--dataset", default="stackoverflow")
    parser.add_argument("--epochs", type=int, default=10, help="of each stage")
    parser.add_argument("--limit", type=int, help="so many texts, to try the script out")
    parser.add_argument("--device", default="auto")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()

    from coterie import AECL, SCCL, TrainingConfig, load_dataset

    data = load_dataset(options.dataset)
    texts = list(data.texts)[: options.limit]
    n_clusters = len({label for label in data.labels if label is not None})
    n, batch = options.epochs, min(400, len(texts))
    sccl = SCCL(
        n_clusters,
        augmentation="virtual",
        device=options.device,
        training=TrainingConfig(max_epochs=n, max_steps=None, batch_size=batch, check_every=0),
    )
    aecl = AECL(n_clusters, stage_1=n, stage_2=n, stage_3=n, device=options.device).set_params(
        training__max_epochs=3 * n, training__max_steps=None, training__batch_size=batch, training__patience=1000
    )
    words = SCCL(
        n_clusters,
        device=options.device,
        training=TrainingConfig(max_epochs=n, max_steps=None, batch_size=batch, patience=1000),
    )
    sccl_run, aecl_run, words_run = (measured(model, texts, n) for model in (sccl, aecl, words))
    step = sccl_run["stages"][0]["median_epoch"] / sccl_run["stages"][0]["steps_an_epoch"]
    epoch = max(stage["median_epoch"] + stage["look_an_epoch"] for stage in aecl_run["stages"])
    write(
        options.out,
        "training",
        {
            "dataset": options.dataset,
            "texts": len(texts),
            "batch": batch,
            "sccl_virtual": {**sccl_run, "step_seconds": step, "times": PUBLIC["sccl_step_seconds"] / step},
            "aecl": {**aecl_run, "epoch_seconds": epoch, "times": PUBLIC["aecl_epoch_seconds"] / epoch},
            "sccl_words": words_run,
            "public": PUBLIC,
            "remark": "An AECL epoch is that of its slowest stage, with the look at the labels; views are resampled "
            "every epoch and tokenised, by other processes. Medians over the epochs of a stage after the first "
            f"{WARM_UP}.",
        },
    )


def measured(model: Any, texts: list[str], n_epochs: int) -> dict[str, Any]:
    began = time.perf_counter()
    model.fit(texts)
    seconds = time.perf_counter() - began
    history = model.history_
    stages = []
    for i, cost in enumerate(history.costs):
        epochs = history.epoch_seconds[i * n_epochs : (i + 1) * n_epochs]
        stages.append(
            {
                "stage": cost["stage"],
                "epochs": epochs,
                "warm_up": WARM_UP,
                "repeats": len(epochs) - WARM_UP,
                "median_epoch": statistics.median(epochs[WARM_UP:]),
                "look_an_epoch": cost["looks"] / cost["epochs"],
                "steps_an_epoch": cost["steps"] / cost["epochs"],
                "cost": cost,
            }
        )
    return {"fit_seconds": seconds, "timings": model.timings_, "padding": history.padding, "stages": stages}


if __name__ == "__main__":
    main()
